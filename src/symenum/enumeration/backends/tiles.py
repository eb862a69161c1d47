"""Scans of one operator or form: which tiles there are, and how each is worked off."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import log2

import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.enumeration.bounds import bound_constant, left_factors, right_factors, row_parts
from symenum.enumeration.forms import Family, Form
from symenum.enumeration.layer import Block, apply_poisoned
from symenum.enumeration.scoring import Scorer
from symenum.enumeration.threads import Job
from symenum.enumeration.workspace import tile_space
from symenum.operators import Kind

__all__ = ["FormScan", "OperatorScan", "UnaryScan"]


TILE = (512, 1024)  # of products: 2 MB in float32, which a core keeps in its cache
DIRECT_TILE = (128, 512)  # of values that are computed row by row
ROW_PART = 256  # rows in one product; most tiles are excluded by the first part
FEW = 4096  # so many candidates are evaluated exactly sooner than the next rung is tried
_SHARE = 64  # below 1/64 of a tile, exact evaluation is cheaper than a product over more rows


@dataclass(frozen=True)
class UnaryScan:
    """u(v) for all signed columns, evaluated exactly."""

    scorer: Scorer
    block: Block

    def jobs(self) -> Iterator[tuple[int, Job]]:
        """(candidates, job) for each part of the work."""
        step = max(1, (1 << 20) // self.scorer.target.rows)
        for start in range(0, len(self.scorer.signed), step):
            which = torch.arange(start, min(start + step, len(self.scorer.signed)))
            yield len(which), partial(self._run, which)

    def _run(self, which: Tensor, budget: Budget) -> int:
        self.scorer.operator(self.block, which, None)
        return len(which)


@dataclass(frozen=True)
class OperatorScan:
    """Any binary operator on all pairs of signed columns, by sums of squares that grow row by row."""

    scorer: Scorer
    block: Block

    def jobs(self) -> Iterator[tuple[int, Job]]:
        """(candidates, job) for each part of the work."""
        width = len(self.scorer.signed)
        triangled = self.block.operator.kind is Kind.TRIANGLED
        for rows in _pieces(range(width), DIRECT_TILE[0]):
            tiles = [
                (rows, columns) for columns in _pieces(range(rows.start if triangled else 0, width), DIRECT_TILE[1])
            ]
            yield sum(len(i) * len(j) for i, j in tiles), partial(self._run, tiles)

    def _run(self, tiles: list[tuple[range, range]], budget: Budget) -> int:
        done = 0
        for rows, columns in tiles:
            if budget.over():
                return done
            left = self.scorer.signed_values(torch.arange(rows.start, rows.stop))
            right = self.scorer.signed_values(torch.arange(columns.start, columns.stop))
            bounds = _direct_bounds(self.scorer, partial(apply_poisoned, self.block.operator), left, right)
            if self.block.operator.kind is Kind.TRIANGLED:
                _drop_below_diagonal(bounds, rows, columns)
            for i, j, _ in _survivors(self.scorer, bounds, rows, columns):
                self.scorer.operator(self.block, i, j)
            done += len(rows) * len(columns)
        return done


class FormScan:
    """A bilinear form on all pairs of columns, by lower bounds from matrix products."""

    def __init__(self, scorer: Scorer, form: Form) -> None:
        self._scorer = scorer
        self._form = form
        self._parts = row_parts(scorer.target, ROW_PART)
        self._scale2 = scorer.target.mean_square
        self._norm = scorer.bank.values.mul(scorer.target.weight.sqrt()).norm(dim=1) / self._scale2**0.5
        self._extremes: dict[range, tuple[float, float]] = {}
        self._right: dict[range, Tensor | None] = {}
        self._unfinished = 0
        self._lock = threading.Lock()
        # How often a precision was tried and left too many candidates, by the size of its rounding margin.
        self._tries: Counter[tuple[torch.dtype, int]] = Counter()
        self._fails: Counter[tuple[torch.dtype, int]] = Counter()

    def jobs(self) -> Iterator[tuple[int, Job]]:
        """(candidates, job) for each part of the work."""
        width = len(self._scorer.bank)
        paired = self._scorer.bank.paired  # columns that have both signs come first
        for rows in _pieces(range(width), TILE[0]):
            first = rows.start // TILE[1] * TILE[1] if self._form.symmetric else 0
            tiles = [
                (rows, columns)
                for columns in _pieces(range(first, width), TILE[1])
                if self._form.reachable(rows.start < paired, columns.start < paired)
            ]
            if tiles:
                self._unfinished += 1
                yield sum(len(i) * len(j) for i, j in tiles), partial(self._run, tiles)

    def _run(self, tiles: list[tuple[range, range]], budget: Budget) -> int:
        done = 0
        left: dict[torch.dtype, Tensor | None] = {}
        for rows, columns in tiles:
            if budget.over():
                return done
            if not self._too_far(rows, columns):
                self._tile(rows, columns, left)
            done += len(rows) * len(columns)
        with self._lock:
            self._unfinished -= 1
            if not self._unfinished:
                self._right.clear()  # the factors of a finished form make room for the next one's
        return done

    def _tile(self, rows: range, columns: range, left: dict[torch.dtype, Tensor | None]) -> None:
        for dtype in (torch.float32, torch.float64):
            rung = (dtype, self._margin(rows, columns))
            self._tries[rung] += 1
            if self._fails[rung] > 4 and 4 * self._fails[rung] > self._tries[rung]:
                continue  # counted as a try all the same, so that the rung gets another chance later
            if dtype not in left:
                left[dtype] = left_factors(self._form, self._parts[0], self._columns(rows), dtype)
            product = self._product(rows, columns, dtype, left[dtype])
            if product is None:
                continue
            bounds, constant = product
            if float(bounds.amin()) > self._scorer.pool.limit / self._scale2 - constant:
                return
            if self._score(bounds.add_(constant).mul_(self._scale2), rows, columns):
                return
            self._fails[rung] += 1
        for some_rows in _pieces(rows, DIRECT_TILE[0]):
            for some_columns in _pieces(columns, DIRECT_TILE[1]):
                pair = self._columns(some_rows), self._columns(some_columns)
                bounds = _direct_bounds(self._scorer, self._form.value, *pair)
                self._score(bounds, some_rows, some_columns, at_any_cost=True)

    def _score(self, bounds: Tensor, rows: range, columns: range, *, at_any_cost: bool = False) -> bool:
        """Evaluate what the bounds do not exclude; False: there is so much of it that better bounds should be tried."""
        if self._form.symmetric:
            _drop_below_diagonal(bounds, rows, columns)
        pool = self._scorer.pool
        for i, j, left in _survivors(self._scorer, bounds, rows, columns):
            self._scorer.form(self._form, i, j)
            if left > 4 * FEW and pool.full and not at_any_cost and int((bounds <= pool.limit).sum()) > 4 * FEW:
                return False
        return True

    def _product(
        self, rows: range, columns: range, dtype: torch.dtype, left: Tensor | None
    ) -> tuple[Tensor, float] | None:
        """Lower bounds (rows, columns) of the losses, over as many row parts as it takes, in units of |y|².

        They are still to be raised by the constant that comes with them: adding it to each would cost a pass over the
        tile. None: out of the range of the type.
        """
        constant = 0.0
        out: Tensor | None = None
        for number, part in enumerate(self._parts):
            a = left if number == 0 else left_factors(self._form, part, self._columns(rows), dtype)
            b = self._right_factors(columns, number, dtype)
            if a is None or b is None:
                return None
            constant += bound_constant(self._form, part, dtype)
            if out is None:
                out = torch.mm(a, b.T, out=tile_space(len(rows), len(columns), dtype))
            else:
                out.addmm_(a, b.T)
            limit = self._scorer.pool.limit / self._scale2 - constant
            if number + 1 < len(self._parts) and int((out <= limit).sum()) * _SHARE < out.numel():
                break
        assert out is not None
        return out, constant

    def _right_factors(self, columns: range, part: int, dtype: torch.dtype) -> Tensor | None:
        # Single precision, first rows: needed by every row of tiles, so kept.
        if part or dtype is not torch.float32:
            return right_factors(self._form, self._parts[part], self._columns(columns), dtype)
        if columns not in self._right:
            self._right[columns] = right_factors(self._form, self._parts[0], self._columns(columns), dtype)
        return self._right.get(columns)

    def _columns(self, which: range) -> Tensor:
        return self._scorer.bank.values[which.start : which.stop]

    def _norms(self, which: range) -> tuple[float, float]:
        if which not in self._extremes:
            part = self._norm[which.start : which.stop]
            self._extremes[which] = float(part.min()), float(part.max())
        return self._extremes[which]

    def _too_far(self, rows: range, columns: range) -> bool:
        """Whether norms alone exclude a tile: |±v_i ± v_j - y| is at least ||v_i| - |v_j|| - |y|."""
        if self._form.family is not Family.SUM:
            return False
        (low_i, high_i), (low_j, high_j) = self._norms(rows), self._norms(columns)
        gap = max(low_j - high_i, low_i - high_j) * (1 - 1e-9) - 1.0
        return gap > 0 and gap * gap * self._scale2 > self._scorer.pool.limit

    def _margin(self, rows: range, columns: range) -> int:
        """The size of the rounding margins of a tile's bounds, in octaves; sums of large columns have large ones."""
        if self._form.family is not Family.SUM:
            return 0
        largest = max(self._norms(rows)[1], self._norms(columns)[1])
        return round(log2(min(max(largest, 1.0), 1e300)))


def _pieces(whole: range, size: int) -> Iterator[range]:
    for start in range(whole.start, whole.stop, size):
        yield range(start, min(start + size, whole.stop))


def _drop_below_diagonal(bounds: Tensor, rows: range, columns: range) -> None:
    """Exclude the pairs i > j of a tile of (i, j) that reaches over the diagonal."""
    if columns.start < rows.stop:
        i = torch.arange(rows.start, rows.stop)[:, None]
        bounds.masked_fill_(i > torch.arange(columns.start, columns.stop), float("inf"))


def _survivors(scorer: Scorer, bounds: Tensor, rows: range, columns: range) -> Iterator[tuple[Tensor, Tensor, int]]:
    """Pairs (i, j) whose bounds do not exclude them, the most promising first, and how many may follow.

    The limit falls on the way, so that far fewer do follow, if the bounds are good.
    """
    flat = bounds.flatten()
    which = torch.nonzero(~(flat > scorer.pool.limit)).flatten()  # NaN survives, and is judged exactly
    if len(which) > FEW:
        which = which[torch.argsort(flat[which])]
    for start in range(0, len(which), FEW):
        some = which[start : start + FEW]
        some = some[~(flat[some] > scorer.pool.limit)]
        if not len(some):
            return
        left = max(0, len(which) - start - FEW)
        yield rows.start + some // bounds.shape[1], columns.start + some % bounds.shape[1], left


def _direct_bounds(scorer: Scorer, value: Callable[[Tensor, Tensor], Tensor], left: Tensor, right: Tensor) -> Tensor:
    """Sums of squares (left, right) over as many rows as it takes to exclude nearly all; inf where a value fails."""
    target = scorer.target
    total = torch.zeros(len(left), len(right), dtype=torch.float64)
    check = 1
    for row in range(target.rows):
        error = value(left[:, row, None], right[None, :, row]).sub_(target.y[row]).square_()
        total.add_(error, alpha=float(target.weight[row]))
        if row + 1 == check:
            check *= 2
            if int((total <= scorer.pool.limit).sum()) * _SHARE < total.numel():
                break
    return total.nan_to_num_(nan=float("inf"), posinf=float("inf"))
