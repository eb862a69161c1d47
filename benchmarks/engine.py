"""Speed and memory of one pass, next to a pass that materialises its last layer as the reference does.

    python benchmarks/engine.py [--quick]

Prints one table. Both passes run in this process tree, on the same data and the same cores, in turn; times are medians.
The materialising pass is our own code for the reference's way: row by row, all values of the last layer of that row in
memory, squared errors added to one vector, top k of that vector in the end. It has no memory for koza on 5 inputs (the
vector, the row and the index tensors take tens of GB), so it runs on the largest koza network that fits, and the ratio
is one of candidates per second.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import statistics
import sys
import time
from dataclasses import dataclass, replace

import torch

from symenum import PSRN
from symenum.engine.layer import SymbolLayer
from symenum.operators import Kind, get_operators


@dataclass(frozen=True)
class Measured:
    """One line of the table."""

    what: str
    inputs: int
    rows: int
    candidates: int
    seconds: float
    peak_bytes: int

    @property
    def rate(self) -> float:
        return self.candidates / self.seconds


def data(inputs: int, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Random inputs, and a target that no expression of three layers equals; 5% noise."""
    generator = torch.Generator().manual_seed(rows)
    x = 1 + 2 * torch.rand(rows, inputs, generator=generator, dtype=torch.float64)
    y = x[:, 0] * torch.exp(x[:, 1] / x[:, 2]) + x[:, 0] ** 3 * torch.sin(x[:, -1])
    return x, y * (1 + 0.05 * torch.randn(rows, generator=generator, dtype=torch.float64))


def materialise(inputs: int, rows: int, k: int = 10) -> int:
    """The reference's pass on a network of three layers with the duplicates of layer 2 removed."""
    x, y = data(inputs, rows)
    x, y = x.float(), y.float()
    net = PSRN(inputs, "koza", 3)
    kept = net._architecture.kept
    first, second = (SymbolLayer(get_operators("koza"), width) for width in (inputs, net.raw_sizes[0]))
    last = SymbolLayer(get_operators("koza"), len(kept))
    total = torch.zeros(last.size)
    for row in range(rows):
        h = dense_forward(second, dense_forward(first, x[row]))[kept]
        total += (dense_forward(last, h) - y[row]).square_()
    total /= rows
    total[~torch.isfinite(total)] = float("inf")
    torch.topk(total, k, largest=False)
    return last.size


def dense_forward(layer: SymbolLayer, below: torch.Tensor) -> torch.Tensor:
    """All outputs of a layer for one row: outer operations, and index tensors for the triangular ones."""
    i, j = torch.triu_indices(layer.width, layer.width)
    parts = []
    for block in layer.blocks:
        function = block.operator.function
        if block.operator.kind is Kind.UNARY:
            parts.append(function(below))
        elif block.operator.kind is Kind.SQUARED:
            parts.append(function(below[:, None], below[None, :]).flatten())
        else:
            parts.append(function(below[i], below[j]))
    return torch.cat(parts)


def ours(inputs: int, rows: int, mode: str) -> int:
    """One pass of ours, with the masks in the cache as after any first run."""
    x, y = data(inputs, rows)
    net = PSRN(inputs, "koza", 3)
    hits = net.search(x, y, k=10, mode=mode)
    assert hits.complete
    return net.sizes[-1]


def _child(function: object, arguments: tuple[object, ...], repeats: int, queue: object) -> None:
    times = []
    candidates = 0
    for _ in range(repeats):
        start = time.perf_counter()
        candidates = function(*arguments)  # type: ignore[operator]
        times.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    queue.put((candidates, statistics.median(times), peak))  # type: ignore[attr-defined]


def measure(what: str, function: object, inputs: int, rows: int, *more: object, repeats: int) -> Measured:
    """In a process of its own, so that its peak of memory is its own."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=_child, args=(function, (inputs, rows, *more), repeats, queue))
    child.start()
    candidates, seconds, peak = queue.get()
    child.join()
    return Measured(what, inputs, rows, candidates, seconds, peak)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="20 and 100 rows only, once each")
    quick = parser.parse_args().quick
    net = PSRN(5, "koza", 3)
    started = time.perf_counter()
    net._architecture._find_distinct()  # not from the cache
    mask = time.perf_counter() - started
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, python {sys.version.split()[0]}")
    print(f"koza, 5 inputs, 3 layers: sizes before removal {net.raw_sizes[:2]}, as used {net.sizes}")
    print(f"mask made in {mask:.2f} s\n")
    print("| pass | inputs | rows | candidates | seconds | candidates/s | peak memory | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    for rows in (20, 100) if quick else (20, 100, 1000, 10_000):
        repeats = 1 if quick or rows > 1000 else 3
        if rows <= 100:
            reference = measure("materialising", materialise, 3, rows, repeats=1)
        else:  # it is linear in the rows: no need to wait for all of them
            reference = replace(reference, what="materialising, from 100 rows", rows=rows,
                                seconds=reference.seconds * rows / reference.rows)  # fmt: skip
        lines = [measure("ours, exact", ours, 5, rows, "exact", repeats=repeats)]
        if rows > 256:
            lines.append(measure("ours, screening", ours, 5, rows, "screen", repeats=repeats))
        for line in (reference, *lines):
            print(
                f"| {line.what} | {line.inputs} | {line.rows} | {line.candidates:,} | {line.seconds:.2f} "
                f"| {line.rate:.3g} | {line.peak_bytes / 1e9:.2f} GB | {line.rate / reference.rate:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
