"""The pass on a GPU: against a materialising pass, against the roofline, in rows, inputs and size, and its recall.

    python benchmarks/gpu.py [--only pass,many,roofline,affine,two_terms,fitting,rows,screening,inputs,recall,largest]

Prints one table per part. The materialising pass is our own code for the reference's way on the same GPU: row by row,
all values of the last layer of that row in memory, index tensors of the triangular operators made anew, squared errors
added to one vector, top k of that vector in the end. A pass of ours is timed from slot values on the host to the exact,
distinct best 10 on the host: bank, scan, shortlist and transfers included. `search` is the same with checks before it
and the way back to expressions after it. Times are medians, after a first run that compiles.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from unittest import mock

import torch
import triton
from engine import data

from symenum import PSRN
from symenum.core import devices
from symenum.core.budget import Budget
from symenum.core.target import check_target
from symenum.core.threads import available_cores, torch_threads
from symenum.engine.cuda import passes as cuda
from symenum.engine.cuda.scan import UNITS
from symenum.engine.layer import Family, SymbolLayer
from symenum.engine.shortlist import Pool
from symenum.expressions import Variable, evaluate, parse
from symenum.fitting import refine
from symenum.heads.affine import best_affine, rescore_affine
from symenum.heads.features import build_features, extended_by_unary
from symenum.operators import Kind, get_operator, get_operators
from symenum.scans.cuda_pairs import AffineProducts, AffineSums, PairScan, TwoTermPairs
from symenum.scans.pair_tests import AffineSumTest
from symenum.scans.pairs import _best_pairs, best_pairs
from symenum.scans.projection import orthonormal, unit_orthogonal_part

refining = import_module("symenum.fitting.refine")  # `symenum.fitting` has a function of that name
PATCHED = ((devices, "_MIN_GPU_WORK"), (refining, "_WORTH_A_DEVICE"))
"""The constants that parts of this benchmark replace."""

DEVICE = torch.device("cuda", 0)
LAWS = (
    "{a}*sin({b}*x + 0.3)/(y + 2.0) + 0.1",
    "{a}*exp({b}*x)*y + 0.5*x",
    "({a} - x)*log({b}*y + x*x + 1.0)",
    "{a}*x*y/({b} + x) + 0.2*cos(1.1*y)",
)


def seconds(work: Callable[[], object], repeats: int) -> float:
    """The median of wall-clock times, the device idle before and after."""
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def kernel_seconds(work: Callable[[], object]) -> float:
    return 1e-3 * float(triton.testing.do_bench(work, warmup=50, rep=200, return_mode="median"))


def recorded_seconds(work: Callable[[], object]) -> float:
    """The time of launches that are recorded once and replayed, as in a pass."""
    work()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return kernel_seconds(graph.replay)


def table(*columns: str) -> None:
    print("\n| " + " | ".join(columns) + " |\n|" + "---|" * len(columns), flush=True)


def line(*cells: object) -> None:
    print(
        "| " + " | ".join(f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in cells) + " |", flush=True
    )


def dense_forward(layer: SymbolLayer, below: torch.Tensor) -> torch.Tensor:
    """All outputs of a layer for one row, as the reference makes them."""
    parts = []
    for block in layer.blocks:
        function = block.operator.function
        if block.operator.kind is Kind.UNARY:
            parts.append(function(below))
        elif block.operator.kind is Kind.SQUARED:
            parts.append(function(below[:, None], below[None]).reshape(-1))
        else:
            pairs = torch.triu_indices(layer.width, layer.width, dtype=torch.int32, device=below.device)
            parts.append(function(below[pairs[0].long()], below[pairs[1].long()]))
    return torch.cat(parts)


def materialise(net: PSRN, x: torch.Tensor, y: torch.Tensor, k: int = 10) -> torch.Tensor:
    """The reference's pass with the duplicates of layer 2 removed; x (rows, inputs), y (rows,) float32 on the GPU."""
    kept = net._architecture.kept.to(x.device)
    first, second, last = (
        SymbolLayer(get_operators("koza"), width) for width in (net.inputs, net.raw_sizes[0], len(kept))
    )
    total = torch.zeros(last.size, device=x.device)
    for row in range(len(y)):
        h = dense_forward(second, dense_forward(first, x[row]))[kept]
        total += (dense_forward(last, h) - y[row]) ** 2
    total /= len(y)
    total[~torch.isfinite(total)] = float("inf")
    return torch.topk(total, k, largest=False).values


def one_pass(net: PSRN, x: torch.Tensor, y: torch.Tensor, k: int = 10) -> Callable[[], Pool]:
    """From slot values on the host to the exact, distinct best k on the host."""
    target, _ = check_target(y, None, len(y))
    slots = x.T.contiguous()

    def run() -> Pool:
        pool = Pool(k, target)
        cuda.scan_network(net._architecture, slots, (0,) * net.inputs, target, k, pool, Budget(), (DEVICE,), 1)
        pool.best()
        return pool

    return run


def bench_pass() -> None:
    x, y = data(5, 20)
    net = PSRN(5, "koza", 3)
    run = one_pass(net, x, y)
    run(), run()
    torch.cuda.reset_peak_memory_stats()
    ours = seconds(run, 300)
    shard = cuda._shard(net._architecture, 20, 10, DEVICE, 0, 1, UNITS)
    graph = shard._graph
    assert graph is not None
    alone = kernel_seconds(graph.replay)
    peak = torch.cuda.max_memory_reserved()
    search = seconds(lambda: net.search(x, y, k=10, device="cuda"), 30)
    cpu = seconds(lambda: net.search(x, y, k=10, device="cpu"), 1)
    same = [c.loss for c in net.search(x, y, device="cuda")] == [c.loss for c in net.search(x, y, device="cpu")]
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    on_gpu = x.float().to(DEVICE), y.float().to(DEVICE)
    materialise(net, *on_gpu)
    reference = seconds(lambda: materialise(net, *on_gpu), 5)
    print(f"\nkoza, 5 inputs, 3 layers, 20 rows, best 10; {net.sizes[-1]:,} candidates; as on the CPU: {same}")
    table("pass", "milliseconds", "candidates/s", "peak memory", "ratio")
    rows = [
        ("materialising", reference, torch.cuda.max_memory_reserved()),
        ("ours, values to best 10", ours, peak),
        ("of that, on the device", alone, peak),
        ("ours, search with expressions", search, peak),
        (f"ours, search on {available_cores()} CPU cores", cpu, 0),
    ]
    for what, time_, memory in rows:
        line(what, 1e3 * time_, net.sizes[-1] / time_, f"{memory / 1e9:.2f} GB" if memory else "", reference / time_)


def bench_roofline() -> None:
    """Each kernel against the larger of tensor-core time and instruction time.

    Tensor cores: the rate of a large TF32 product, measured here. Instructions: 128 float32 lanes per multiprocessor at
    1.98 GHz; a pair's float32 instructions alone, without addresses and loads: 7 and 2 where all signs exist, 10 and 4
    elsewhere. Bytes: the factors stay in L2, and one float32 a unit is written, which is below both.
    """
    x, y = data(5, 20)
    net = PSRN(5, "koza", 3)
    run = one_pass(net, x, y)
    run(), run()
    shard = cuda._shard(net._architecture, 20, 10, DEVICE, 0, 1, UNITS)
    scan, bank = shard._scan, shard.bank
    a = torch.randn(8192, 8192, device=DEVICE)
    torch.backends.cuda.matmul.allow_tf32 = True
    tensor_rate = 2 * 8192**3 / kernel_seconds(lambda: a @ a)
    torch.backends.cuda.matmul.allow_tf32 = False
    properties = torch.cuda.get_device_properties(DEVICE)
    lane_rate = properties.multi_processor_count * 128 * 1.98e9
    columns = int(bank.counts[0])
    families = scan.families
    print(f"\nTF32 product 8192³: {tensor_rate:.3g} flop/s; float32 lanes: {lane_rate:.3g}/s; columns {columns:,}")
    table(
        "kernel",
        "pairs",
        "flops a pair",
        "instructions a pair",
        "tensor µs",
        "instruction µs",
        "measured µs",
        "of limit",
    )
    limit = 0.0
    half, square = columns * (columns + 1) / 2, float(columns) ** 2
    without = (1 - int(bank.counts[1]) / columns) ** 2  # the part of the pairs that lack a sign
    for family, pairs, flops, instructions in (
        (Family.SUM, half, 64, 7 + 3 * without),
        (Family.PRODUCT, half, 128, 2 + 2 * without),
        (Family.QUOTIENT, square, 128, 2 + 2 * without),
    ):
        scan.families = [family]
        measured = recorded_seconds(lambda: scan.bounds(bank, 0))
        tensor, lanes = pairs * flops / tensor_rate, pairs * instructions / lane_rate
        limit += max(tensor, lanes)
        line(family.name.lower(), pairs, flops, instructions, 1e6 * tensor, 1e6 * lanes, 1e6 * measured,
             f"{max(tensor, lanes) / measured:.0%}")  # fmt: skip
    scan.families = families
    together = recorded_seconds(lambda: scan.bounds(bank, 0))
    line("all, side by side", "", "", "", "", 1e6 * limit, 1e6 * together, f"{limit / together:.0%}")


def bench_rows() -> None:
    net = PSRN(5, "koza", 3)
    table("rows", "mode", "seconds", "candidates/s", "times 20 rows")
    base = 0.0
    for rows in (20, 32, 100, 256, 1000, 10_000):
        x, y = data(5, rows)
        for mode in ("exact", "screen") if rows > 256 else ("exact",):
            run = lambda x=x, y=y, mode=mode: net.search(x, y, k=10, mode=mode, device="cuda")  # noqa: E731
            run(), run()
            time_ = seconds(run, 7)
            base = base or time_
            line(f"{rows:,}", mode, time_, net.sizes[-1] / time_, time_ / base)


def bench_many(sets: int = 16, k: int = 30) -> None:
    """Batches of slot sets: `search_many` as a whole, and its parts."""
    table("inputs", "rows", "candidates", "duplicates s", "first batch s", "ms a set", "ms by `search`",
          "ms on the device", "device at work", "candidates/s", "memory")  # fmt: skip
    for inputs, rows in ((5, 32), (8, 32), (9, 32), (10, 32), (10, 28)):
        bench_many_size(inputs, rows, sets, k)


def bench_many_size(inputs: int, rows: int, sets: int, k: int) -> None:
    generator = torch.Generator().manual_seed(0)
    base = 0.2 + 3 * torch.rand(rows, inputs, generator=generator, dtype=torch.float64)
    y = torch.sin(base[:, 0] * base[:, 1]) + base[:, 2] / base[:, 3]
    y += 0.05 * torch.randn(rows, generator=generator, dtype=torch.float64)
    texts = [f"x{i + 1}" for i in range(inputs)]
    values, slots = [], []
    for at in range(sets):  # some slots are tokens: products and quotients of two variables
        partner = 1 + at % (inputs - 1)
        tokens = [f"x{i + 1}{'*/'[at % 2]}x{(i + partner) % inputs + 1}" for i in range(inputs // 2)]
        slots.append([parse(text) for text in [*tokens, *texts[inputs // 2 :]]])
        columns = {name: base[:, i].contiguous() for i, name in enumerate(texts)}
        values.append(torch.stack([evaluate(slot, columns) for slot in slots[-1]], dim=1))
    net = PSRN(inputs, "koza", 3)
    torch.cuda.reset_peak_memory_stats()
    masked = seconds(lambda: net._architecture.prepare(DEVICE), 1)
    run = partial(net.search_many, values, y, k, slots=slots, device="cuda")
    first = seconds(run, 1)
    found = run()
    whole = seconds(run, 3)
    alone = partial(net.search, values[0], y, k, slots=slots[0], device="cuda")
    alone(), alone()
    one = seconds(alone, 5)
    assert [hit.loss for hit in found[0]] == [hit.loss for hit in alone()]
    shard = cuda._shard(net._architecture, rows, k, DEVICE, 0, 1, cuda._strip_units(net._architecture.columns, DEVICE))
    graph = shard._graph_of_many
    assert graph is not None
    device = kernel_seconds(graph.replay)
    line(inputs, rows, f"{net.sizes[-1]:,}", masked, first, 1e3 * whole / sets, 1e3 * one, 1e3 * device,
         f"{sets * device / whole:.0%}", sets * net.sizes[-1] / whole,
         f"{torch.cuda.max_memory_allocated() / 1e9:.1f} GB")  # fmt: skip
    cuda._free()


def bench_screening(problems: int = 40, rows: int = 10_000) -> None:
    """What screening finds of the exact best 10, on noisy laws of the network itself."""
    net = PSRN(4, "koza", 3)
    times: dict[str, list[float]] = {"screen": [], "exact": []}
    first = found = letters = total = 0
    for problem in range(problems):
        generator = torch.Generator().manual_seed(problem)
        x = 0.2 + 3 * torch.rand(rows, net.inputs, generator=generator, dtype=torch.float64)
        names = {f"x{i + 1}": x[:, i].contiguous() for i in range(net.inputs)}
        y = torch.full((rows,), float("nan"), dtype=torch.float64)
        while not bool(torch.isfinite(y).all()) or float(y.std()) < 1e-3:
            law = net.expression(int(torch.randint(net.sizes[-1], (1,), generator=generator)))
            y = torch.as_tensor(evaluate(law, names)).broadcast_to(rows).clone()
        noise = torch.randn(rows, generator=generator, dtype=torch.float64)
        y += (0.0, 0.1, 1.0)[problem % 3] * y.std() * noise
        lists = []
        for mode, spent in times.items():
            start = time.perf_counter()
            lists.append(net.search(x, y, k=10, mode=mode, device="cuda"))
            spent.append(time.perf_counter() - start)
        # By their losses on all rows: one function can be written in several ways.
        equal = [
            math.isclose(a.loss, b.loss, rel_tol=1e-9, abs_tol=1e-24 * float(y.square().mean()))
            for a, b in zip(*lists, strict=True)
        ]
        first += equal[0]
        found += sum(equal)
        letters += sum(str(a.expression) == str(b.expression) for a, b in zip(*lists, strict=True))
        total += len(equal)
    table("rows", "problems", "best one found", "of the exact best 10", "to the letter", "screen ms", "exact ms")
    medians = [1e3 * statistics.median(spent) for spent in times.values()]
    line(f"{rows:,}", problems, first, f"{found} of {total} ({found / total:.1%})", letters, *medians)


def bench_inputs() -> None:
    """Up to the pass that takes a minute; duplicates are found on the device, and nothing is read from a cache."""
    cuda._free()
    table("inputs", "columns", "candidates", "duplicates s", "pass ms", "candidates/s", "memory")
    for inputs in (*range(3, 11), 12, 14, 17, 20, 23, 26):
        x, y = data(inputs, 20)
        net = PSRN(inputs, "koza", 3, max_memory=128 << 30)
        torch.cuda.reset_peak_memory_stats()
        masked = seconds(lambda net=net: net._architecture._find_distinct(DEVICE), 1)
        net._architecture.prepare(DEVICE)
        run = one_pass(net, x, y)
        time_ = seconds(run, 1)  # of a large pass, which need not wait for a compiler, once is enough
        if time_ < 20:
            run()
            time_ = seconds(run, 3)
        line(inputs, f"{net.sizes[-2]:,}", f"{net.sizes[-1]:,}", masked, 1e3 * time_, net.sizes[-1] / time_,
             f"{torch.cuda.max_memory_allocated() / 1e9:.1f} GB")  # fmt: skip
        cuda._free()


def bench_largest() -> None:
    """One layer on a bank of composite slots: products of powers of five variables."""
    table("largest pass: columns", "candidates", "seconds", "candidates/s", "best loss", "memory")
    for count in (100_000, 1_900_000, 4_500_000):  # the first to compile
        bench_largest_size(count)


def bench_largest_size(count: int) -> None:
    generator = torch.Generator().manual_seed(0)
    x = 1 + 2 * torch.rand(20, 5, generator=generator, dtype=torch.float64)
    powers = torch.randn(5, count, generator=generator, dtype=torch.float64)
    slots = torch.exp(x.log() @ powers)
    y = data(5, 20)[1]
    net = PSRN(count, "koza", 1, max_memory=64 << 30)
    torch.cuda.reset_peak_memory_stats()
    run = one_pass(net, slots, y)
    start = time.perf_counter()
    best = run().best()
    torch.cuda.synchronize()
    time_ = time.perf_counter() - start
    assert best is not None
    line(f"{count:,}", f"{net.sizes[-1]:,}", time_, net.sizes[-1] / time_, float(best.loss[0]),
         f"{torch.cuda.max_memory_allocated() / 1e9:.1f} GB")  # fmt: skip
    cuda._shard.cache_clear()


def bench_recall(problems: int = 200) -> None:
    """The best 10 of random problems against the CPU backend, which judges every candidate in float64."""
    nets = [PSRN(2, "koza", 3), PSRN(3, "koza", 3), PSRN(3, "semikoza", 3), PSRN(3, "arithmetic", 3)]
    losses = same = total = 0
    for problem in range(problems):
        net = nets[problem % len(nets)]
        generator = torch.Generator().manual_seed(problem)
        rows = (12, 20, 40)[problem // len(nets) % 3]
        x = torch.randn(rows, net.inputs, generator=generator, dtype=torch.float64)
        x = (x.abs() + 0.1 if problem % 2 else x) * (1.0, 10.0)[problem % 5 == 0]
        law = net.expression(int(torch.randint(net.sizes[-1], (1,), generator=generator)))
        names = {f"x{i + 1}": x[:, i].contiguous() for i in range(net.inputs)}
        y = torch.as_tensor(evaluate(law, names)).broadcast_to(rows).clone()
        noise = torch.randn(rows, generator=generator, dtype=torch.float64)
        scale = float(y.square().mean().sqrt()) if bool(torch.isfinite(y).all()) else 0.0
        # A third of the problems are exact laws, a third noisy ones, the rest pure noise.
        y = y * (1 + 0.05 * noise * (problem % 3)) if problem % 3 < 2 and 1e-100 < scale < 1e100 else noise
        ours, truth = (net.search(x, y, k=10, device=device) for device in ("cuda", "cpu"))
        floor = 1e-22 * float(y.square().mean())
        good = [math.isclose(a.loss, b.loss, rel_tol=1e-9, abs_tol=floor) for a, b in zip(ours, truth, strict=True)]
        losses += sum(good)
        total += len(truth)
        same += [str(c.expression) for c in ours] == [str(c.expression) for c in truth]
    table("random problems", "of the true best 10 found", "lists that are equal to the letter")
    line(problems, f"{losses} of {total} ({losses / total:.2%})", same)


def bench_affine() -> None:
    table("affine", "columns", "rows", "pairs", "bounds ms", "bounds pairs/s", "whole ms", "whole pairs/s",
          "better ones in a sample of 2e6")  # fmt: skip
    sizes = ((65_536, 32), (65_536, 128), (262_144, 32), (262_144, 128))
    for name, columns, rows in (*(("mul", *size) for size in sizes), ("add", 262_144, 32), ("add", 262_144, 128)):
        bench_affine_size(name, columns, rows)


def bench_affine_size(name: str, columns: int, rows: int) -> None:
    generator = torch.Generator().manual_seed(0)
    V = torch.randn(columns, rows, generator=generator, dtype=torch.float64)
    V += torch.randn(columns, 1, generator=generator, dtype=torch.float64)
    y = torch.randn(rows, generator=generator, dtype=torch.float64)
    root = torch.full((rows,), rows**-0.5, dtype=torch.float64)
    V, y, root = (part.to(DEVICE) for part in (V, y, root))
    target = unit_orthogonal_part((y * root)[None], orthonormal(root[None]))[0][0]
    operator = get_operator(name)
    found = best_affine(V, y, root, operator, width=64)
    whole = seconds(lambda: best_affine(V, y, root, operator, width=64), 5)
    sums = AffineSums(AffineSumTest(V, target, root, 1))
    scan = PairScan(sums if name == "add" else AffineProducts(V, V, target, root, same=True))
    bounds = kernel_seconds(lambda: [scan.bounds(strip) for strip in scan.strips])
    pairs = len(V) * (len(V) + 1) // 2
    i, j = torch.randint(len(V), (2, 2_000_000), device=DEVICE)
    better = rescore_affine(V, target, root, operator, i, j) < found.residual[-1] * (1 - 1e-12)
    known = torch.isin(torch.minimum(i, j) * columns + torch.maximum(i, j), found.i * columns + found.j)
    line(
        f"v {operator.name} w",
        f"{columns:,}",
        rows,
        f"{pairs:,}",
        1e3 * bounds,
        pairs / bounds,
        1e3 * whole,
        pairs / whole,
        int((better & ~known).sum()),
    )


def bench_two_terms() -> None:
    """Random columns, and, against the CPU, the features of two layers of data with one to three variables."""
    table("two terms: columns", "rows", "pairs", "bounds ms", "bounds pairs/s", "whole ms", "whole pairs/s")
    for columns, rows in ((14_000, 20), (65_536, 20), (65_536, 128), (262_144, 20), (262_144, 32)):
        generator = torch.Generator().manual_seed(0)
        V = torch.randn(columns, rows, generator=generator, dtype=torch.float64).to(DEVICE)
        t = torch.randn(rows, generator=generator, dtype=torch.float64).to(DEVICE)
        background = orthonormal(torch.ones_like(t)[None])
        work = partial(_best_pairs, V, t, background, None, width=4096, budget=Budget())
        work()
        whole = seconds(work, 5)
        C, target = unit_orthogonal_part(V, background)[0], unit_orthogonal_part(t[None], background)[0][0]
        scan = PairScan(TwoTermPairs(C, C, target, same=True))
        bounds = kernel_seconds(lambda scan=scan: [scan.bounds(strip) for strip in scan.strips])
        pairs = columns * (columns - 1) // 2
        line(f"{columns:,}", rows, f"{pairs:,}", 1e3 * bounds, pairs / bounds, 1e3 * whole, pairs / whole)
        del scan
    table("two terms: variables", "rows", "features", f"ms on {available_cores()} CPU cores", "ms on the GPU", "equal")
    for inputs, rows in ((1, 20), (2, 20), (3, 40)):
        bench_two_term_features(inputs, rows)


def bench_two_term_features(inputs: int, rows: int) -> None:
    x = 1 + 2 * torch.rand(rows, inputs, generator=torch.Generator().manual_seed(rows), dtype=torch.float64)
    slots = [Variable(f"x{i + 1}") for i in range(inputs)]
    features = build_features(slots, x.T.contiguous(), get_operators("koza"), 2, max_columns=30_000)
    V = extended_by_unary(features, 150_000).up_to_affine().values[:20_000]
    t = x.prod(dim=1).abs().sqrt() + x[:, 0].sin()
    background = orthonormal(torch.ones_like(t)[None])
    here = partial(best_pairs, V, t, background)
    there = partial(best_pairs, V, t, background, device="cuda")
    with mock.patch.object(devices, "_MIN_GPU_WORK", 0):  # the GPU whatever the size
        same = torch.allclose(there().residual, here().residual, rtol=1e-6, atol=1e-12)
        on_gpu = seconds(there, 5)
    line(inputs, rows, f"{len(V):,}", 1e3 * seconds(here, 3), 1e3 * on_gpu, same)


def bench_fitting() -> None:
    """A batch of families of four kinds from several constants each, on noisy data; no further starts."""
    cores = available_cores()
    table(
        "expressions",
        "rows",
        f"ms on the CPU ({cores} cores)",
        "ms on the GPU",
        "ratio",
        "largest difference of losses",
    )
    for count, rows in ((32, 1000), (32, 10_000), (256, 10_000), (64, 100_000)):
        generator = torch.Generator().manual_seed(0)
        x, y, noise = torch.rand(3, rows, generator=generator, dtype=torch.float64)
        columns = {"x": 0.5 + 2 * x, "y": 0.5 + 2 * y}
        target = 3 * torch.sin(1.2 * columns["x"] + 0.3) / (columns["y"] + 2) + 0.1 * noise
        families = [parse(LAWS[i % 4].format(a=1.0 + i / count, b=0.5 + i / count)) for i in range(count)]
        fit = partial(refine, families, columns, target, starts=0)
        here = fit()
        with mock.patch.object(refining, "_WORTH_A_DEVICE", 0):  # the GPU whatever the size
            there = fit(device="cuda")
            on_gpu = seconds(partial(fit, device="cuda"), 3)
        on_cpu = seconds(fit, 1)
        worst = max(abs(a.loss - b.loss) / b.loss for a, b in zip(there, here, strict=True))
        line(count, f"{rows:,}", 1e3 * on_cpu, 1e3 * on_gpu, on_cpu / on_gpu, worst)


PARTS = {
    "pass": bench_pass,
    "many": bench_many,
    "roofline": bench_roofline,
    "affine": bench_affine,
    "two_terms": bench_two_terms,
    "fitting": bench_fitting,
    "rows": bench_rows,
    "screening": bench_screening,
    "inputs": bench_inputs,
    "recall": bench_recall,
    "largest": bench_largest,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), help="parts, separated by commas")
    parts = parser.parse_args().only.split(",")
    print(f"{torch.cuda.get_device_name(DEVICE)}, torch {torch.__version__}, triton {triton.__version__}")
    with torch_threads(1):  # as a search does
        for part in parts:
            PARTS[part]()


if __name__ == "__main__":
    main()
