"""How fast pairs are judged for many targets at once, beside one target after another; and pairs looked up in an index.

    python benchmarks/many_targets.py                    two cores: 512 targets, 1,000 rows of features, 32 samples
    python benchmarks/many_targets.py --device cuda      a GPU: 4,096 targets, 4,000 features

A candidate is one pair for one target, with its best scale and offset, or two coefficients and an offset. "Whole" means
from features and targets to the best pair of each target; the engine of one target is the scan of the heads
(`best_affine`, best 10), on as many of the targets as take a few seconds. Medians of three runs, both sides in turn.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch

from symenum.core.budget import NO_LIMIT
from symenum.core.threads import single_threaded
from symenum.heads.affine import best_affine
from symenum.operators import get_operator
from symenum.scans.many_targets import Group, PairBank, best_pairs_of_targets
from symenum.scans.matches import KEY_SAMPLES, Forms, Index, find_matches

REPEATS = 3
ONE_BY_ONE = 8  # targets that the engine of one target scans


def seconds(work: Callable[[], object], device: str) -> float:
    """The median time of the work, after one run to warm up."""
    times = []
    for repeat in range(REPEATS + 1):
        begin = time.perf_counter()
        work()
        if device != "cpu":
            torch.cuda.synchronize()
        if repeat:
            times.append(time.perf_counter() - begin)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--features", type=int)
    parser.add_argument("--targets", type=int)
    parser.add_argument("--group", type=int, default=256, help="targets with the same row weights")
    parser.add_argument("--samples", type=int, default=32)
    options = parser.parse_args()
    gpu = options.device == "cuda"
    features, targets = options.features or (4000 if gpu else 1000), options.targets or (4096 if gpu else 512)
    generator = torch.Generator().manual_seed(0)
    V = torch.randn(features, options.samples, generator=generator, dtype=torch.float64).to(options.device)
    groups = [
        Group(
            torch.randn(options.group, options.samples, generator=generator, dtype=torch.float64).to(options.device),
            torch.rand(options.samples, generator=generator, dtype=torch.float64).sqrt().to(options.device),
        )
        for _ in range(targets // options.group)
    ]
    print(f"{options.device}: {features} features, {len(groups) * options.group} targets, {options.samples} samples")
    with single_threaded():
        for name, bank in (
            ("products", PairBank(V, V, terms=False, same=True)),
            ("quotients", PairBank(V, 1 / V, terms=False, same=False)),
            ("two terms", PairBank(V, V, terms=True, same=True)),
        ):
            candidates = bank.pairs * len(groups) * options.group
            took = seconds(lambda bank=bank: best_pairs_of_targets(bank, groups, 1, NO_LIMIT), options.device)
            print(f"{name:12s} {candidates:.2e} candidates, whole {took:7.3f} s, {candidates / took:.2e} a second")
            if name == "products":
                compare_with_one_by_one(bank, groups[0], candidates / took, options.device)
        if not gpu:
            print_look_ups(generator)


def compare_with_one_by_one(bank: PairBank, group: Group, rate: float, device: str) -> None:
    """The scan of the heads on the first targets of a group, one after another."""
    product = get_operator("mul")
    some = group.values[:ONE_BY_ONE]
    took = seconds(lambda: [best_affine(bank.left, t, group.root, product, width=10) for t in some], device)
    candidates = bank.pairs * len(some)
    print(f"{'one by one':12s} {candidates:.2e} candidates, whole {took:7.3f} s, {candidates / took:.2e} a second")
    print(f"{'':12s} many at once: {rate / (candidates / took):.1f} times as fast")


def print_look_ups(generator: torch.Generator) -> None:
    """Products looked up in an index of 100,000 targets."""
    index = Index(torch.randn(100_000, KEY_SAMPLES, generator=generator, dtype=torch.float64))
    rows = torch.randn(4000, 12, generator=generator, dtype=torch.float64)
    forms = Forms(torch.mul, symmetric=True)
    took = seconds(lambda: find_matches(index, rows, rows, forms, lambda f, t: t >= 0, NO_LIMIT), "cpu")
    pairs = len(rows) * (len(rows) + 1) // 2
    print(f"looked up    {pairs:.2e} pairs among 100,000 targets, {took:.3f} s, {pairs / took:.2e} pairs a second")


if __name__ == "__main__":
    main()
