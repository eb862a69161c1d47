"""The best of all pairs, found exactly although most are excluded in low precision; and the device that a scan runs on.

"Does the pair (i, j) explain more than τ of the target?" is, for each kind of pairs, the sign of a polynomial in a few
inner products. So a tile of pairs is tested by one to three matrix products and the maximum of the result. The tests
err towards yes by more than their rounding error, first in single, then in double precision. A pair that passes is
judged exactly, and τ rises meanwhile. So the result is that of a scan in exact arithmetic, up to ties.

The tests are in `pair_tests`; the same scan on a GPU is in `cuda_pairs`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.devices import choose_devices, device_failed
from symenum.core.exactness import EXACTNESS
from symenum.core.threads import Job, available_cores, run_jobs, torch_threads
from symenum.core.user_warnings import warn_user

__all__ = [
    "BestPairs",
    "Exact",
    "PairTest",
    "Pairs",
    "Passes",
    "bounded_slices",
    "certified_scan",
    "run_on_best_device",
    "scan_on_best_device",
]


CPU = torch.device("cpu")
_NO_PAIRS = torch.empty(0, dtype=torch.int64)  # numbers of pairs
_MIN_TAU = 1e-6  # smallest τ of a test, which divides by τ; pairs that explain less are of no use
# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
TILE = (512, 1024)  # rows times columns of a tile; with smaller ones threads wait for each other between operations
EXACT_BATCH = 4096  # pairs of a tile that are judged exactly sooner than tested again in double precision
_MAX_UNTESTED = 2000  # pairs that are all judged exactly sooner than a test is prepared
_MIN_BATCH = 256  # pairs that are judged in one go at least, because each go has a fixed cost
_STALE = 0.97  # a test is prepared anew when the limit has fallen below this part of the one that it was made for
_SAMPLED_PAIRS = 1 << 17  # pairs that are estimated for the first limit,
_SAMPLED_PER_WIDTH = 32  # and so many more for each of the `width` pairs that are wanted
_ESTIMATED = 1 << 15  # of these at a time: 256 KiB in float64
_JUDGED_NUMBERS = 1 << 18  # numbers in a slice of pairs on the CPU: 2 MiB, of which each thread holds several copies
_JUDGED_NUMBERS_GPU = 1 << 24  # on a GPU: 128 MiB; there each operation has a fixed cost, and memory is plenty
_STARTED = 20  # a GPU in use, or asked for by name, is worth it for scans so many times smaller than an idle one
Result = TypeVar("Result")
# (rows, columns) -> scores of a tile and a bound: pairs below the bound fail. The thread's next tile overwrites them.
Passes = Callable[[slice, slice], tuple[Tensor, float]]
Exact = Callable[[Tensor, Tensor], Tensor]  # indices i, j (m,) int64 -> losses 1 - R² (m,) float64
Index = NDArray[np.int64]
Wanted = Callable[[Tensor], tuple[Tensor, Tensor]]  # numbers of pairs (int64) -> i, j of those that are asked for


class PairTest(Protocol):
    """A test of all pairs (i, j) of some rows and some columns by matrix products."""

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of columns."""
        ...

    def prepare(self, tau: float, dtype: torch.dtype) -> Passes | None:
        """The test for R² ≥ τ, which every pair with R² ≥ τ passes; None if values are out of the range of the type."""
        ...

    def estimate(self, rows: Tensor) -> Tensor:
        """R² (m, columns) float64 of `rows` (m,) int64 with all columns, by the formula; rounding is not bounded."""
        ...


class _Prepared:
    """The test for the current limit in each precision, shared by the threads."""

    def __init__(self, test: PairTest, best: BestPairs) -> None:
        self._test = test
        self._best = best
        self._lock = threading.Lock()
        self._made: dict[torch.dtype, tuple[float, Passes | None]] = {}

    def get(self, dtype: torch.dtype) -> Passes | None:
        """The test in that precision; None if there is none."""
        with self._lock:
            limit = self._best.threshold
            made = self._made.get(dtype)
            if made is None or limit < _STALE * made[0]:
                made = (limit, self._test.prepare(max(1 - limit * (1 + EXACTNESS.tie), _MIN_TAU), dtype))
                self._made[dtype] = made
            return made[1]


class _Judge:
    """Judges pairs exactly, in large batches that threads and tiles fill together.

    A pair is given by its number, row·columns + column (int64). `wanted` drops the pairs that are not asked for.
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
        """Let pairs wait, and judge all that wait when they are enough for a batch."""
        with self._lock:
            self._waiting.append(pairs)
            self._count += len(pairs)
            full = self._count >= self._batch
        if full:
            self.finish()

    def finish(self) -> None:
        """Judge all pairs that wait."""
        with self._lock:
            waiting, self._waiting, self._count = self._waiting, [], 0
        if not waiting:
            return
        i, j = self._wanted(torch.cat(waiting))
        for start in range(0, len(i), EXACT_BATCH):
            some = i[start : start + EXACT_BATCH], j[start : start + EXACT_BATCH]
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
    """The `width` pairs of smallest exact loss, as indices (m,) int64, ordered by row, then by column.

    `exact` must give a pair the same bits in any batch: which pairs come together depends on the threads. If rows and
    columns are the `same`, only i ≤ j; without the `diagonal`, only i ≠ j. Over budget, the best so far come back.
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
    # Small batches let τ rise early, but a batch below `width` hardly changes it.
    judge = _Judge(exact, wanted, best, max(_MIN_BATCH, 2 * width))
    if rows * columns <= _MAX_UNTESTED:
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
    """The pairs ordered by row, then by column: not in the order in which the threads found them."""
    order = torch.argsort(best.j, stable=True)
    order = order[torch.argsort(best.i[order], stable=True)]
    return best.i[order], best.j[order]


def _survivors(prepared: _Prepared, a: slice, b: slice, columns: int, *, diagonal: bool) -> Tensor:
    """The numbers (int64) of the pairs of a tile that pass the tests."""
    found: tuple[Index, Index] | None = None
    for dtype in (torch.float32, torch.float64):
        passes = prepared.get(dtype)
        if passes is None:
            continue
        scores, bound = passes(a, b)
        if not diagonal and a.start < b.stop and b.start < a.stop:
            # A row with itself passes most tests, and would be judged exactly in every row.
            scores.diagonal(a.start - b.start).fill_(float("-inf"))
        found = _at_least(scores, bound)
        if not len(found[0]):
            return _NO_PAIRS
        if len(found[0]) <= EXACT_BATCH:
            break
    if found is None:
        i, j = np.indices((a.stop - a.start, b.stop - b.start))
        found = i.ravel(), j.ravel()
    return torch.from_numpy((found[0] + a.start) * columns + (found[1] + b.start))


def _at_least(scores: Tensor, bound: float) -> tuple[Index, Index]:
    """Rows and columns where scores are not below the bound; NaN passes, and is judged exactly.

    In NumPy, whose small operations cost a fifth of torch's: as a rule few pairs pass.
    """
    rows = np.flatnonzero(~(scores.amax(dim=1).numpy() < bound))
    if not len(rows):
        return rows, rows
    i, j = np.nonzero(~(scores.numpy()[rows] < bound))
    return rows[i], j


def _promising(test: PairTest, width: int, *, same: bool) -> Tensor:
    """Numbers of about 2·width different pairs (i ≤ j if `same`): the best of a sample, by their estimates."""
    rows, columns = test.shape
    sampled = _SAMPLED_PAIRS + _SAMPLED_PER_WIDTH * width
    sample = torch.unique(torch.linspace(0, rows - 1, min(rows, sampled // columns + 1)).long())
    step = max(1, _ESTIMATED // columns)
    promising = BestPairs(2 * width + 16)
    for first in range(0, len(sample), step):
        promising.add_tile(1 - test.estimate(sample[first : first + step]), first, 0)
    i, j = sample[promising.i], promising.j
    if same:
        i, j = torch.minimum(i, j), torch.maximum(i, j)
    pairs: Tensor = torch.unique(i * columns + j)
    return pairs


def _first_limit(exact: Exact, wanted: Wanted, pairs: Tensor, width: int) -> float:
    """The `width`-th smallest loss of some different pairs, which the best of all do not exceed; inf if fewer."""
    best = BestPairs(width)
    judge = _Judge(exact, wanted, best, EXACT_BATCH)
    judge.add(pairs)
    judge.finish()
    full = len(best.loss) == width
    return float(best.loss.max()) * (1 + EXACTNESS.tie) if full else float("inf")


def _slices(start: int, stop: int, step: int) -> Iterator[slice]:
    for first in range(start, stop, step):
        yield slice(first, min(first + step, stop))


def bounded_slices(count: int, rows: int, *, on_gpu: bool = False) -> Iterator[slice]:
    """Slices of `count` pairs, each pair with `rows` numbers, so that the memory of a slice is bounded."""
    step = max(1, (_JUDGED_NUMBERS_GPU if on_gpu else _JUDGED_NUMBERS) // max(1, rows))
    return (slice(start, start + step) for start in range(0, count, step))


@dataclass(frozen=True)
class Pairs:
    """m pairs, residual ascending."""

    i: Tensor  # (m,) int64
    j: Tensor  # (m,) int64
    residual: Tensor  # (m,) float64, relative to the norm of t off the background

    def cpu(self) -> Pairs:
        """The same pairs on the CPU."""
        return Pairs(self.i.cpu(), self.j.cpu(), self.residual.cpu())


class BestPairs:
    """The `width` pairs (i, j) of smallest loss so far, on the CPU; of equal losses the first pairs. NaN is left out.

    They do not depend on the order in which pairs are added, as long as a pair always has the same loss.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self.loss = torch.empty(0, dtype=torch.float64)
        self.i = torch.empty(0, dtype=torch.int64)
        self.j = torch.empty(0, dtype=torch.int64)
        self.threshold = float("inf")

    def add_tile(self, loss: Tensor, first: int, second: int) -> None:
        """Add a tile of losses (a, b), of the pairs (first + row, second + column)."""
        hit = torch.nonzero(loss < self.threshold)
        if len(hit):
            self.add(loss[hit[:, 0], hit[:, 1]], hit[:, 0] + first, hit[:, 1] + second)

    def add(self, loss: Tensor, i: Tensor, j: Tensor) -> None:
        """Add pairs by their losses and indices, all (m,)."""
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
    """Indices (width,) int64 of the smallest losses, in no order; of losses equal to the last one the first pairs."""
    edge = torch.topk(loss, width, largest=False, sorted=False).values.max()
    inside = torch.nonzero(loss < edge).flatten()
    tied = torch.nonzero(loss == edge).flatten()
    room = width - len(inside)
    if len(tied) > room:
        tied = tied[torch.argsort(j[tied], stable=True)]
        tied = tied[torch.argsort(i[tied], stable=True)][:room]
    return torch.cat([inside, tied])


def run_on_best_device(run: Callable[[torch.device], Result], *, work: int, device: str, head: str) -> Result:
    """run(device) on a GPU if one is there and the scan is large enough, else on the CPU.

    `device`: "cpu", "auto", or the name of a GPU; `work`: the number of candidates times rows. If the GPU fails or has
    too little memory, a warning names the `head`, and the CPU does the work.
    """
    if device != "auto" or torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        work *= _STARTED
    if device != "cpu" and choose_devices("auto", work):
        try:
            return run(choose_devices(device, work)[0])
        except RuntimeError as error:
            if not device_failed(error):
                raise
            if isinstance(error, torch.cuda.OutOfMemoryError):
                torch.cuda.empty_cache()
                warn_user(f"the GPU has no memory left for the head {head!r}: it runs on the CPU")
            else:
                why = str(error).strip().partition("\n")[0]
                warn_user(f"the GPU failed in the head {head!r} ({why}): it runs on the CPU")
    return run(CPU)


def scan_on_best_device(
    scan: Callable[..., Pairs], *tensors: Tensor | None, work: int, device: str, head: str
) -> Pairs:
    """scan(*tensors) as by `run_on_best_device`, with the tensors moved to the device and the result to the CPU."""

    def run(there: torch.device) -> Pairs:
        return scan(*(None if tensor is None else tensor.to(there) for tensor in tensors)).cpu()

    return run_on_best_device(run, work=work, device=device, head=head)
