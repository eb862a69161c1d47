"""The best of all pairs, found exactly by matrix products in low precision, on the CPU or a GPU."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.devices import choose_devices
from symenum.core.exactness import EXACTNESS
from symenum.core.threads import Job, available_cores, run_jobs, torch_threads

__all__ = [
    "BestPairs",
    "Exact",
    "PairTest",
    "Pairs",
    "Passes",
    "certified_scan",
    "pieces",
    "run_where_it_suits",
    "scan_where_it_suits",
]


# --------------------------------------------------------------------------------------------------------------------
# The best pairs of a scan: what comes back, and a running shortlist with a threshold, of fixed size.


_NUMBERS = 1 << 18  # in a piece: 2 MB, as a judgement holds several copies of it in every thread
_ON_GPU = 1 << 24  # where memory is plenty and each operation has its price


def pieces(count: int, rows: int, *, on_gpu: bool = False) -> Iterator[slice]:
    """Parts of `count` pairs to be judged on `rows` numbers each, whose memory is bounded."""
    step = max(1, (_ON_GPU if on_gpu else _NUMBERS) // max(1, rows))
    return (slice(start, start + step) for start in range(0, count, step))


@dataclass(frozen=True)
class Pairs:
    """Indices (m,) int64 and the residual (m,) float64 relative to what the background leaves of t, ascending."""

    i: Tensor
    j: Tensor
    residual: Tensor

    def cpu(self) -> Pairs:
        """The same on the CPU."""
        return Pairs(self.i.cpu(), self.j.cpu(), self.residual.cpu())


class BestPairs:
    """The `width` pairs (i, j) of smallest loss so far, of equal ones the first; NaN losses never enter.

    Which ones these are does not depend on the order in which they came, as long as each comes with the same loss.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self.loss = torch.empty(0, dtype=torch.float64)
        self.i = torch.empty(0, dtype=torch.int64)
        self.j = torch.empty(0, dtype=torch.int64)
        self.threshold = float("inf")

    def add_tile(self, loss: Tensor, first: int, second: int) -> None:
        """Losses (a, b) of the pairs (first + row, second + column)."""
        hit = torch.nonzero(loss < self.threshold)
        if len(hit):
            self.add(loss[hit[:, 0], hit[:, 1]], hit[:, 0] + first, hit[:, 1] + second)

    def add(self, loss: Tensor, i: Tensor, j: Tensor) -> None:
        """Pairs with their losses, all (m,)."""
        if len(loss) > 4 * self._width:
            which = _smallest(loss, i, j, self._width)
            loss, i, j = loss[which], i[which], j[which]
        self.loss = torch.cat([self.loss, loss.double()])
        self.i, self.j = torch.cat([self.i, i]), torch.cat([self.j, j])
        if len(self.loss) > self._width:
            which = _smallest(self.loss, self.i, self.j, self._width)
            self.loss, self.i, self.j = self.loss[which], self.i[which], self.j[which]
            self.threshold = float(self.loss.max())


def _smallest(loss: Tensor, i: Tensor, j: Tensor, width: int) -> Tensor:
    """Where the `width` smallest losses are, int64 in no order; of those equal to the last one the first pairs."""
    edge = torch.topk(loss, width, largest=False, sorted=False).values.max()
    inside = torch.nonzero(loss < edge).flatten()
    tied = torch.nonzero(loss == edge).flatten()
    room = width - len(inside)
    if len(tied) > room:
        tied = tied[torch.argsort(j[tied], stable=True)]
        tied = tied[torch.argsort(i[tied], stable=True)][:room]
    return torch.cat([inside, tied])


# --------------------------------------------------------------------------------------------------------------------
# Where a scan runs: on a GPU where one is there and the scan is worth it, else on the CPU.


CPU = torch.device("cpu")
_STARTED = 20  # a GPU that is in use, or was asked for, is worth it for scans so many times smaller
Result = TypeVar("Result")


def run_where_it_suits(run: Callable[[torch.device], Result], *, work: int, device: str, head: str) -> Result:
    """run(there), where it is fastest. A GPU without room is said, with the name of the head, and the CPU does it.

    `device`: "cpu", or the name of a GPU or "auto" to let the size decide; `work`: the number of candidates times rows.
    """
    if device != "auto" or torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        work *= _STARTED
    if device != "cpu" and choose_devices("auto", work):
        try:
            return run(choose_devices(device, work)[0])
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()
            warnings.warn(f"the GPU has no memory left for the head {head!r}: it runs on the CPU", stacklevel=2)
    return run(CPU)


def scan_where_it_suits(
    scan: Callable[..., Pairs], *tensors: Tensor | None, work: int, device: str, head: str
) -> Pairs:
    """scan(*tensors), with the tensors moved where it is fastest; the result lies on the CPU."""

    def run(there: torch.device) -> Pairs:
        return scan(*(None if tensor is None else tensor.to(there) for tensor in tensors)).cpu()

    return run_where_it_suits(run, work=work, device=device, head=head)


# --------------------------------------------------------------------------------------------------------------------
# The best of all pairs, found exactly by matrix products in low precision.
#
# "Does the pair (i, j) explain more than τ of the target?" is for each head the sign of a polynomial in a few inner
# products, so a tile of pairs is tested by one to three matrix products and one look at the largest result. The tests
# lean to yes by more than rounding can do, first in single, then in double precision; whatever they let pass is
# judged exactly, and τ rises on the way. So the result is that of a scan in exact arithmetic, up to ties.


TILE = (512, 1024)  # large enough that threads seldom wait for each other between two operations
FEW = 4096  # so many pairs are judged exactly sooner than a tile is tested again in double precision
_ALL = 2000  # pairs: as many are judged one by one sooner than tests are prepared
_BATCH = 256  # so many pairs, at least, are judged in one go: each go has its price
_STALE = 0.97  # factors are made anew when the limit has fallen below this part of what they were made for
_SAMPLE = 1 << 17  # so many pairs are estimated for a first limit
_ESTIMATED = 1 << 15  # so many of them at once: 256 kB in float64
_NONE = torch.empty(0, dtype=torch.int64)
# (rows, columns) -> scores of a tile and a bound: pairs below it fail. The scores are overwritten by the next tile of
# the same thread.
Passes = Callable[[slice, slice], tuple[Tensor, float]]
Exact = Callable[[Tensor, Tensor], Tensor]  # indices i, j -> losses, 1 - R² (float64)
Index = NDArray[np.int64]
Wanted = Callable[[Tensor], tuple[Tensor, Tensor]]  # numbers of pairs -> i, j of those that count


class PairTest(Protocol):
    """The test of a head."""

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of columns."""
        ...

    def prepare(self, tau: float, dtype: torch.dtype) -> Passes | None:
        """The test for R² ≥ τ, true for every pair that fulfils it; None: out of the range of the type."""
        ...

    def estimate(self, rows: Tensor) -> Tensor:
        """R² (m, columns) float64 of `rows` (m,) int64 with all columns, by the formula, with no care for rounding."""
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
                made = (limit, self._test.prepare(max(1 - limit * (1 + EXACTNESS.tie), 1e-6), dtype))
                self._made[dtype] = made
            return made[1]


class _Judge:
    """Judges exactly the pairs that wait, from all threads and many tiles, in large batches.

    Pairs are numbered row by row, and come as tensors of numbers (int64); what is not `wanted` of them is dropped.
    """

    def __init__(self, exact: Exact, wanted: Wanted, best: BestPairs, batch: int) -> None:
        self._exact = exact
        self._wanted = wanted
        self._best = best
        self._batch = batch
        self._lock = threading.Lock()
        self._waiting: list[Tensor] = []
        self._count = 0

    def add(self, pairs: Tensor) -> None:
        with self._lock:
            self._waiting.append(pairs)
            self._count += len(pairs)
            full = self._count >= self._batch
        if full:
            self.finish()

    def finish(self) -> None:
        """Judge all that wait."""
        with self._lock:
            waiting, self._waiting, self._count = self._waiting, [], 0
        if not waiting:
            return
        i, j = self._wanted(torch.cat(waiting))
        for start in range(0, len(i), FEW):
            some = i[start : start + FEW], j[start : start + FEW]
            loss = self._exact(*some)
            with self._lock:
                good = torch.nonzero(loss <= self._best.threshold).flatten()
                if len(good):
                    self._best.add(loss[good], some[0][good], some[1][good])


@torch_threads(1)
def certified_scan(
    test: PairTest,
    exact: Exact,
    *,
    width: int,
    same: bool,
    diagonal: bool,
    budget: Budget,
    threads: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The `width` pairs of smallest exact loss, as indices (m,) int64, by row and column ascending.

    `exact` must judge a pair alike whatever other pairs it is asked for with: which ones come together depends on the
    threads. If rows and columns are the `same`, only i ≤ j; without the `diagonal`, only i ≠ j.
    """
    rows, columns = test.shape

    def wanted(pairs: Tensor) -> tuple[Tensor, Tensor]:
        i, j = pairs // columns, pairs % columns
        if same:
            upper = i <= j
            i, j = i[upper], j[upper]
        if not diagonal:
            apart = i != j
            i, j = i[apart], j[apart]
        return i, j

    best = BestPairs(width)
    # Small batches let τ rise early, but a batch below `width` hardly moves it.
    judge = _Judge(exact, wanted, best, max(_BATCH, 2 * width))
    if rows * columns <= _ALL:
        judge.add(torch.arange(rows * columns))
        judge.finish()
        return _in_order(best)
    best.threshold = _first_limit(exact, wanted, _promising(test, width, same=same), width)
    prepared = _Prepared(test, best)

    def work(a: slice, _: Budget) -> int:
        for b in _slices(a.start if same else 0, columns, TILE[1]):
            if budget.over():
                break
            survivors = _survivors(prepared, a, b, columns, diagonal=diagonal)
            if len(survivors):
                judge.add(survivors)
        return 1

    jobs: list[Job] = [partial(work, a) for a in _slices(0, rows, TILE[0])]
    run_jobs(jobs, budget, threads or available_cores())
    judge.finish()
    return _in_order(best)


def _in_order(best: BestPairs) -> tuple[Tensor, Tensor]:
    """The pairs by row, then column: not as the threads found them."""
    order = torch.argsort(best.j, stable=True)
    order = order[torch.argsort(best.i[order], stable=True)]
    return best.i[order], best.j[order]


def _survivors(prepared: _Prepared, a: slice, b: slice, columns: int, *, diagonal: bool) -> Tensor:
    """The numbers of the pairs of a tile that the tests let pass."""
    found: tuple[Index, Index] | None = None
    for dtype in (torch.float32, torch.float64):
        passes = prepared.get(dtype)
        if passes is None:
            continue
        scores, bound = passes(a, b)
        if not diagonal and a.start < b.stop and b.start < a.stop:
            # A row with itself passes many a test, and would cost a look at every row.
            scores.diagonal(a.start - b.start).fill_(float("-inf"))
        found = _at_least(scores, bound)
        if not len(found[0]):
            return _NONE
        if len(found[0]) <= FEW:
            break
    if found is None:
        i, j = np.indices((a.stop - a.start, b.stop - b.start))
        found = i.ravel(), j.ravel()
    return torch.from_numpy((found[0] + a.start) * columns + (found[1] + b.start))


def _at_least(scores: Tensor, bound: float) -> tuple[Index, Index]:
    """Where scores are not below the bound: NaN passes, and is judged exactly.

    In NumPy, because there are few, as a rule, and its small operations cost a fifth of torch's.
    """
    rows = np.flatnonzero(~(scores.amax(dim=1).numpy() < bound))
    if not len(rows):
        return rows, rows
    i, j = np.nonzero(~(scores.numpy()[rows] < bound))
    return rows[i], j


def _promising(test: PairTest, width: int, *, same: bool) -> Tensor:
    """Numbers of different pairs (i ≤ j if `same`), about 2 · width: those of a sample that the estimates like best."""
    rows, columns = test.shape
    sampled = _SAMPLE + 32 * width
    sample = torch.unique(torch.linspace(0, rows - 1, min(rows, sampled // columns + 1)).long())
    step = max(1, _ESTIMATED // columns)
    liked = BestPairs(2 * width + 16)
    for first in range(0, len(sample), step):
        liked.add_tile(1 - test.estimate(sample[first : first + step]), first, 0)
    i, j = sample[liked.i], liked.j
    if same:
        i, j = torch.minimum(i, j), torch.maximum(i, j)
    pairs: Tensor = torch.unique(i * columns + j)
    return pairs


def _first_limit(exact: Exact, wanted: Wanted, pairs: Tensor, width: int) -> float:
    """A loss that at least `width` of all pairs do not exceed, from some that differ."""
    best = BestPairs(width)
    judge = _Judge(exact, wanted, best, FEW)
    judge.add(pairs)
    judge.finish()
    full = len(best.loss) == width
    return float(best.loss.max()) * (1 + EXACTNESS.tie) if full else float("inf")


def _slices(start: int, stop: int, step: int) -> Iterator[slice]:
    for first in range(start, stop, step):
        yield slice(first, min(first + step, stop))
