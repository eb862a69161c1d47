"""The paper's ablations, by name: what `symenum bench ablation` runs.

Three compare variants of symenum on problem sets, as any bench does: token generators, ranges of constants, stages of
the heads. Three measure the engine: duplicate removal, search efficiency, and growth with the number of inputs. How a
bench is run and reported is not decided here (`run`, `report`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from symenum.bench.problems.problem import Array
from symenum.display.html import Table
from symenum.display.svg import points
from symenum.engine import PSRN
from symenum.engine.layer import SymbolLayer, layer_sizes
from symenum.expressions import Constant, Expression, Variable, fold
from symenum.heads.stages import STAGE_NAMES
from symenum.operators import get_operators

__all__ = ["MEASUREMENTS", "VARIANTS", "Measurement", "Variants"]

_SIX_SETS = ("nguyen", "nguyen_c", "r", "r_star", "livermore", "feynman")
_GROWTH_OPERATORS = ("koza", "semikoza", "basic_koza", "arithmetic")
_BLOCK = 512  # columns scored at once: against the 33,705 of koza on 5 inputs a block of scores takes 138 MB
_BANK_ROWS = 100  # rows for which the memory of a bank is given
_BRUTE_FORCE_SAMPLE = 200  # candidates that the brute force evaluates: some seconds; its rate is extrapolated
_MB = 2**20  # bytes


@dataclass(frozen=True)
class Variants:
    """Variants of symenum, named as systems, and the problem sets on which they are compared."""

    title: str
    sets: tuple[str, ...]
    systems: tuple[str, ...]


def _generators() -> Variants:
    return Variants(
        "token generators: GP, MCTS, random, none",
        (*_SIX_SETS, "deep"),  # the laws of `deep` cannot be found without tokens
        tuple(f"symenum:generator={name}" for name in ("gp", "mcts", "random", "none")),
    )


def _constants() -> Variants:
    return Variants(
        "the range of token constants",
        ("nguyen_c",),
        tuple(f"symenum:range={span}" for span in ("-1..1", "-3..3", "-10..10")),
    )


def _heads() -> Variants:
    return Variants(
        "each stage of the heads left out",
        _SIX_SETS,
        ("symenum", *(f"symenum:without={name}" for name in STAGE_NAMES)),
    )


VARIANTS: Mapping[str, Callable[[], Variants]] = {"generators": _generators, "constants": _constants, "heads": _heads}
"""The ablations that are benches, by name."""


@dataclass(frozen=True)
class Measurement:
    """A table, and a plot as SVG text."""

    table: Table
    plot: str


def _data(inputs: int, rows: int) -> tuple[Tensor, Tensor]:
    """Inputs (rows, inputs) and a target (rows,) that no expression of three layers equals; float64 on the CPU."""
    generator = torch.Generator().manual_seed(rows)
    x = 1 + 2 * torch.rand(rows, inputs, generator=generator, dtype=torch.float64)
    return x, x[:, 0] * torch.exp(x[:, 1] / x[:, -1]) + x[:, 0] ** 3 * torch.sin(x[:, -1])


def duplicates(max_inputs: int = 4) -> Measurement:
    """Duplicate removal on and off: columns of the bank, its memory, and the seconds of one plain scan of all pairs.

    The scan is the same few matrix products on both banks, so that nothing but the number of columns differs.
    """
    cells, series = [], dict[str, list[tuple[float, float]]]()
    for name in ("koza", "semikoza"):
        for inputs in range(2, max_inputs + 1):
            net = PSRN(inputs, name, 3)
            x, y = _data(inputs, 20)
            first, second = (SymbolLayer(get_operators(name), width) for width in (inputs, net.raw_sizes[0]))
            whole = second.forward(first.forward(x.T.contiguous()))
            begin = time.perf_counter()
            distinct = net._architecture.kept
            mask_seconds = time.perf_counter() - begin
            for label, bank in (("off", whole), ("on", whole[distinct])):
                seconds = _scan_seconds(torch.nan_to_num(bank, posinf=0.0, neginf=0.0), y)
                megabytes = bank.nelement() * bank.element_size() / _MB
                mask = f"{mask_seconds:.2f}" if label == "on" else ""
                cells.append((name, str(inputs), label, f"{len(bank):,}", f"{megabytes:.1f}", f"{seconds:.3f}", mask))
                series.setdefault(f"{name}, {label}", []).append((float(inputs), seconds))
    table = Table(
        "Duplicate removal",
        "20 rows; seconds of one plain scan of all sums and products of two columns, the mask made before.",
        (
            "operators",
            "inputs",
            "removal",
            "columns of the bank",
            "MB",
            "seconds of a scan",
            "seconds to make the mask",
        ),
        tuple(cells),
    )
    return Measurement(table, points("One scan of all pairs", series, "inputs", "seconds"))


def efficiency(rows: tuple[int, ...] = (10, 100, 1000, 10_000)) -> Measurement:
    """Seconds of a whole pass, and of a brute force that evaluates every expression on its own with NumPy.

    The brute force evaluates a random sample of the candidates; its time for all of them is extrapolated.
    """
    net = PSRN(5, "basic_koza", 3)
    total = net.sizes[-1]
    cells = []
    ours: list[tuple[float, float]] = []
    theirs: list[tuple[float, float]] = []
    numbers = np.random.default_rng(0).integers(0, total, _BRUTE_FORCE_SAMPLE)
    sample = [net.expression(int(number)) for number in numbers]
    for count in rows:
        x, y = _data(5, count)
        begin = time.perf_counter()
        net.search(x, y, k=10)
        seconds = time.perf_counter() - begin
        columns = {f"x{i + 1}": np.ascontiguousarray(x[:, i].numpy()) for i in range(5)}
        begin = time.perf_counter()
        for expression in sample:
            _loss(expression, columns, y.numpy())
        brute = (time.perf_counter() - begin) / len(sample) * total
        cells.append((f"{count:,}", f"{total:,}", f"{seconds:.2f}", f"{brute:,.0f}", f"{brute / seconds:,.0f}"))
        ours.append((float(np.log10(count)), seconds))
        theirs.append((float(np.log10(count)), brute))
    table = Table(
        "Search efficiency",
        "basic_koza, 5 inputs, 3 layers. "
        f"The brute force ran on {_BRUTE_FORCE_SAMPLE} random candidates and is extrapolated.",
        ("rows", "candidates", "ours, seconds", "brute force, seconds (extrapolated)", "ratio"),
        tuple(cells),
    )
    plot = points("Search efficiency", {"ours": ours, "brute force": theirs}, "log10 of the rows", "seconds")
    return Measurement(table, plot)


def growth(max_inputs: int = 8) -> Measurement:
    """Candidates of three layers by the paper's formula, and the memory of our bank of two layers for 100 rows."""
    cells, series = [], dict[str, list[tuple[float, float]]]()
    for name in _GROWTH_OPERATORS:
        operators = get_operators(name)
        for inputs in range(2, max_inputs + 1):
            sizes = layer_sizes(operators, inputs, 3)
            megabytes = sizes[1] * _BANK_ROWS * 8 / _MB
            cells.append((name, str(inputs), f"{sizes[1]:,}", f"{sizes[2]:,}", f"{megabytes:.1f}"))
            series.setdefault(name, []).append((float(inputs), float(sizes[2])))
    table = Table(
        "Growth with the inputs",
        "Sizes by the paper's formula, duplicates included. The last layer is never in memory: the bank is, MB for "
        f"{_BANK_ROWS} rows.",
        ("operators", "inputs", "columns of the bank", "candidates", "MB of the bank"),
        tuple(cells),
    )
    return Measurement(table, points("Candidates of three layers", series, "inputs", "candidates"))


MEASUREMENTS: Mapping[str, Callable[[], Measurement]] = {
    "duplicates": duplicates,
    "efficiency": efficiency,
    "inputs": growth,
}
"""The ablations that measure the engine, by name."""


def _scan_seconds(bank: Tensor, y: Tensor) -> float:
    """Seconds to score v + w and v·w for all pairs of columns, bank (columns, rows) and y (rows,)."""
    begin = time.perf_counter()
    best = float("inf")
    squares, weighted = bank.square(), bank * y
    norms, along = squares.sum(1), weighted.sum(1)
    for start in range(0, len(bank), _BLOCK):
        rows = slice(start, start + _BLOCK)
        sums = norms[rows, None] + norms[None, :] + 2 * bank[rows] @ bank.T - 2 * (along[rows, None] + along[None, :])
        products = squares[rows] @ squares.T - 2 * weighted[rows] @ bank.T
        best = min(best, float(sums.min()), float(products.min()))
    return time.perf_counter() - begin


def _loss(expression: Expression, columns: Mapping[str, Array], y: Array) -> float:
    """The mean squared error of one expression, evaluated node by node with NumPy; columns and y are (rows,)."""

    def visit(node: Expression, operands: tuple[Array, ...]) -> Array:
        if isinstance(node, Variable):
            return columns[node.name]
        if isinstance(node, Constant):
            return np.full(len(y), float(node.value))
        assert node.operator.numpy is not None  # the sets that are measured hold built-in operators only
        values: Array = node.operator.numpy(*operands)
        return values

    with np.errstate(all="ignore"):
        return float(np.square(fold(expression, visit) - y).mean())
