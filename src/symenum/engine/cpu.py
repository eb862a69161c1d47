"""The scan of the last layer on the CPU: tiles of matrix products that bound losses from below, on all cores."""

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
from symenum.core.target import Target
from symenum.core.threads import Job, run_jobs, tile_space
from symenum.engine.layer import Block, Family, Form, apply_poisoned, forms_of
from symenum.engine.shortlist import Scorer
from symenum.operators import Kind
from symenum.operators.traits import ARITHMETIC

__all__ = ["FormScan", "OperatorScan", "RowPart", "UnaryScan", "left_factors", "right_factors", "row_parts", "scan"]


# --------------------------------------------------------------------------------------------------------------------
# Lower bounds of the losses of a whole tile of candidates, as one matrix product.
#
# For a form f of the columns v_i and v_j, the loss Σ w (f - y)² expands into terms that are each a function of i
# times a function of j. With the rows scaled so that Σ w y² = 1, and x = √w·v, z = √w·y, s = |x|², a = x·z:
#
#     |±x_i ± x_j - z|²  =  s_i + s_j ± 2 x_i·x_j - (±2 a_i) - (±2 a_j) + |z|²
#     Σ w (v_i v_j - y)²  =  Σ (w v_i²)(v_j²) + Σ (-2 w y v_i)(v_j) + |z|²          (v_i/v_j: the same with 1/v_j)
#
# so a tile of losses is left(i) · right(j)ᵀ + const. Rounding can make a computed loss wrong by at most γ times the
# sum of the absolute terms (γ = K·u for K products summed in a precision of unit roundoff u). That error is bounded
# by
#
#     sums:      γ (3 s_i + 3 s_j + 2)         since 2|a| ≤ s + 1
#     products:  γ (2 Σ w f² + 1)              since 2|y f| ≤ y² + f²
#
# and is taken off *inside* the product: what comes out is a number that the true loss cannot be below. Partial sums
# over some of the rows are lower bounds as well, because the rest can only add.


# Beyond this the squares of squares of a column leave the range of the type: no bound, evaluate directly.
_RANGE = {torch.float32: 1e9, torch.float64: 1e75}


@dataclass(frozen=True)
class RowPart:
    """Some rows of the target, in units of its root mean square `scale`."""

    rows: slice
    weight: Tensor  # (rows,) float64; the weights of all parts together sum to 1
    y: Tensor  # (rows,) float64, divided by scale
    scale: float

    @property
    def constant(self) -> float:
        """|z|², the part of the loss that depends on no column."""
        return float((self.weight * self.y.square()).sum())


def row_parts(target: Target, size: int) -> list[RowPart]:
    """The target's rows in parts of at most `size`."""
    scale = target.mean_square**0.5
    slices = [slice(start, start + size) for start in range(0, target.rows, size)]
    return [RowPart(rows, target.weight[rows], target.y[rows] / scale, scale) for rows in slices]


def unit(dtype: torch.dtype, rows: int) -> float:
    """γ: the relative error of a sum of 2·rows + 2 products, with a few more for the rounding of the factors."""
    return (2 * rows + 10) * torch.finfo(dtype).eps / 2


def left_factors(form: Form, part: RowPart, values: Tensor, dtype: torch.dtype) -> Tensor | None:
    """Factors (columns, K) of the columns `values` (columns, all rows) as v_i; None if they are out of range."""
    v = values[:, part.rows]
    gamma = unit(dtype, v.shape[1])
    if form.family is Family.SUM:
        x, own = _sum_terms(form.first, part, v, gamma)
        return _checked(torch.cat([x, own, torch.ones_like(own)], dim=1), x, dtype)
    v = v / part.scale**0.5
    square = part.weight * v.square() * (1 - 2 * gamma)
    cross = (-2 * form.first * part.weight * part.y) * v
    return _checked(torch.cat([square, cross], dim=1), v, dtype)


def right_factors(form: Form, part: RowPart, values: Tensor, dtype: torch.dtype) -> Tensor | None:
    """Factors (columns, K) of the columns `values` (columns, all rows) as v_j; None if they are out of range."""
    v = values[:, part.rows]
    gamma = unit(dtype, v.shape[1])
    if form.family is Family.SUM:
        x, own = _sum_terms(form.second, part, v, gamma)
        return _checked(torch.cat([2 * form.first * form.second * x, torch.ones_like(own), own], dim=1), x, dtype)
    if form.family is Family.QUOTIENT:
        v = v.reciprocal()
        v[~torch.isfinite(v).all(dim=1)] = 0.0  # never a candidate: the bound of zero is as good as any
    v = v / part.scale**0.5
    return _checked(torch.cat([v.square(), v], dim=1), v, dtype)


def bound_constant(form: Form, part: RowPart, dtype: torch.dtype) -> float:
    """What must be added to a product of factors to make it a lower bound of the loss, in units of scale²."""
    gamma = unit(dtype, len(part.y))
    # Sums have their share of γ·2 in the factors already.
    return part.constant * (1 - gamma) - (0.0 if form.family is Family.SUM else gamma)


def _sum_terms(sign: int, part: RowPart, v: Tensor, gamma: float) -> tuple[Tensor, Tensor]:
    x = v * (part.weight.sqrt() / part.scale)
    s = x.square().sum(dim=1, keepdim=True)
    a = x @ (part.weight.sqrt() * part.y)
    return x, s * (1 - 3 * gamma) - 2 * sign * a[:, None] - gamma


def _checked(factors: Tensor, values: Tensor, dtype: torch.dtype) -> Tensor | None:
    if not bool((values.abs() <= _RANGE[dtype]).all()):
        return None
    return factors.to(dtype).contiguous()


# --------------------------------------------------------------------------------------------------------------------
# Scans of one operator or form: which tiles there are, and how each is worked off.


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


# --------------------------------------------------------------------------------------------------------------------
# The scan of the last layer on the CPU: tiles of matrix products, on all cores, in bounded memory.
#
# Each tile of candidates goes down a ladder and stops at the first rung that excludes all of it: lower bounds in
# single precision, lower bounds in double precision, then squares summed row by row. What no rung can exclude is
# evaluated exactly, in double precision, on all rows. So the result is exact, whatever the precision of the first
# rungs.


def scan(scorer: Scorer, budget: Budget, threads: int) -> tuple[int, bool]:
    """Bring the best of all candidates into the scorer's pool; the share of work done, and whether that is all."""
    jobs = list(_jobs(scorer))
    total = sum(size for size, _ in jobs)
    done = run_jobs([job for _, job in jobs], budget, threads)
    scored = scorer.layer.size * done // max(1, total)
    return scored, done == total


def _jobs(scorer: Scorer) -> Iterator[tuple[int, Job]]:
    """(work, job): unary operators first, because they are quick and give the others a first limit."""
    operators = [block.operator for block in scorer.layer.blocks]
    for block in scorer.layer.blocks:
        if block.operator.arity == 1:
            yield from UnaryScan(scorer, block).jobs()
    for form in forms_of(operators):
        yield from FormScan(scorer, form).jobs()
    for block in scorer.layer.blocks:
        if block.operator.arity == 2 and block.operator.role not in ARITHMETIC:
            yield from OperatorScan(scorer, block).jobs()
