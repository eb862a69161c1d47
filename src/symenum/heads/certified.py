"""The best of all pairs, found exactly by matrix products in low precision.

"Does the pair (i, j) explain more than τ of the target?" is for each head the sign of a polynomial in a few inner
products, so a tile of pairs is tested by one to three matrix products and one look at the largest result. The tests
lean to yes by more than rounding can do, first in single, then in double precision; whatever they let pass is judged
exactly, and τ rises on the way. So the result is that of a scan in exact arithmetic, up to ties.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol

import torch
from torch import Tensor

from symenum.enumeration.budget import Budget
from symenum.enumeration.threads import Job, available_cores, run_jobs, torch_threads
from symenum.heads.best_pairs import BestPairs

__all__ = ["Exact", "PairTest", "Passes", "certified_scan"]

TILE = (512, 1024)  # 2 MB in float32, which a core keeps in its cache
FEW = 4096  # so many pairs are judged exactly sooner than a tile is tested again in double precision
_ALL = 1 << 17  # so many pairs in all are judged exactly at once
_STALE = 0.85  # factors are made anew when the limit has fallen below this part of what they were made for

# (rows, columns) -> tensors of scores, one after the other: a pair may pass if one of its scores is not negative. A
# tensor is overwritten by the next tile of the same thread.
Passes = Callable[[slice, slice], Iterator[Tensor]]
Exact = Callable[[Tensor, Tensor], Tensor]  # indices i, j -> losses, 1 - R² (float64)


class PairTest(Protocol):
    """The test of a head."""

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of columns."""
        ...

    def prepare(self, tau: float, dtype: torch.dtype) -> Passes | None:
        """The test for R² ≥ τ, true for every pair that fulfils it; None: out of the range of the type."""
        ...


class _Prepared:
    """The factors for the current limit, shared by the threads."""

    def __init__(self, test: PairTest, best: BestPairs) -> None:
        self._test = test
        self._best = best
        self._lock = threading.Lock()
        self._made: dict[torch.dtype, tuple[float, Passes | None]] = {}

    def get(self, dtype: torch.dtype) -> Passes | None:
        with self._lock:
            limit = self._best.threshold
            made = self._made.get(dtype)
            if made is None or limit < _STALE * made[0]:
                made = (limit, self._test.prepare(max(1 - limit * (1 + 1e-9), 1e-6), dtype))
                self._made[dtype] = made
            return made[1]


@torch_threads(1)
def certified_scan(
    test: PairTest,
    exact: Exact,
    *,
    width: int,
    same: bool,
    diagonal: bool = False,
    budget: Budget,
    threads: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The `width` pairs of smallest exact loss, as indices (m,) int64.

    If rows and columns are the `same`, only i < j; i ≤ j with the `diagonal`.
    """
    rows, columns = test.shape
    best = BestPairs(width)

    def wanted(pairs: Tensor) -> tuple[Tensor, Tensor]:
        """Rows and columns of pairs that are numbered row by row."""
        i, j = pairs // columns, pairs % columns
        if same:
            upper = i <= j if diagonal else i < j
            i, j = i[upper], j[upper]
        return i, j

    if rows * columns <= _ALL:
        _judge(exact, best, *wanted(torch.arange(rows * columns)))
        return best.i, best.j
    best.threshold = _first_limit(exact, wanted, rows * columns, width)
    prepared = _Prepared(test, best)
    lock = threading.Lock()

    def judge(waiting: list[Tensor]) -> None:
        i, j = wanted(torch.cat(waiting))
        waiting.clear()
        for start in range(0, len(i), FEW):
            some = i[start : start + FEW], j[start : start + FEW]
            loss = exact(*some)
            with lock:
                _keep(best, loss, *some)

    def work(a: slice, _: Budget) -> int:
        waiting: list[Tensor] = []  # a few pairs of many tiles are judged in one go: each go has its price
        for b in _slices(a.start // TILE[1] * TILE[1] if same else 0, columns, TILE[1]):
            if budget.over():
                break
            survivors = _survivors(prepared, a, b, columns)
            if len(survivors):
                waiting.append(survivors)
            if sum(map(len, waiting)) > FEW // 8:
                judge(waiting)
        if waiting:
            judge(waiting)
        return 1

    jobs: list[Job] = [partial(work, a) for a in _slices(0, rows, TILE[0])]
    run_jobs(jobs, budget, threads or available_cores())
    return best.i, best.j


def _survivors(prepared: _Prepared, a: slice, b: slice, columns: int) -> Tensor:
    """The pairs of a tile that the tests let pass, numbered row by row of the whole."""
    width = b.stop - b.start
    passing: Tensor | None = None
    for dtype in (torch.float32, torch.float64):
        passes = prepared.get(dtype)
        if passes is None:
            continue
        found = [_not_negative(scores) for scores in passes(a, b)]
        passing = found[0] if len(found) == 1 else torch.unique(torch.cat(found))
        if len(passing) <= FEW:
            break
    if passing is None:
        passing = torch.arange((a.stop - a.start) * width)
    inside = torch.remainder(passing, width) + b.start
    return torch.add(inside, a.start + passing // width, alpha=columns)


def _not_negative(scores: Tensor) -> Tensor:
    """Positions (int64) in the flattened tile; NaN passes, and is judged exactly."""
    if float(scores.amax()) < 0:
        return torch.empty(0, dtype=torch.int64)
    rows = torch.nonzero(~(scores.amax(dim=1) < 0)).flatten()  # few, as a rule
    inside = torch.nonzero(~(scores[rows] < 0))
    return torch.add(inside[:, 1], rows[inside[:, 0]], alpha=scores.shape[1])


def _keep(best: BestPairs, loss: Tensor, i: Tensor, j: Tensor) -> None:
    good = torch.nonzero(loss <= best.threshold).flatten()
    if len(good):
        best.add(loss[good], i[good], j[good])


def _judge(exact: Exact, best: BestPairs, i: Tensor, j: Tensor) -> None:
    for start in range(0, len(i), FEW):
        part = slice(start, start + FEW)
        _keep(best, exact(i[part], j[part]), i[part], j[part])


def _first_limit(exact: Exact, wanted: Callable[[Tensor], tuple[Tensor, Tensor]], pairs: int, width: int) -> float:
    """A loss that at least `width` pairs do not exceed: the width-th best of a random sample."""
    generator = torch.Generator().manual_seed(0)
    sample = torch.unique(torch.randint(pairs, (max(4 * width, 1 << 16),), generator=generator))
    best = BestPairs(width)
    _judge(exact, best, *wanted(sample))
    full = len(best.loss) == width
    return float(best.loss.max()) * (1 + 1e-9) if full else float("inf")


def _slices(start: int, stop: int, step: int) -> Iterator[slice]:
    for first in range(start, stop, step):
        yield slice(first, min(first + step, stop))
