"""The scan of the last layer on the CPU: tiles of matrix products that bound losses from below, on all cores.

Each tile of candidates goes down a ladder and stops at the first rung that excludes all of it: lower bounds in single
precision, lower bounds in double precision, sums of squares that grow row by row. A candidate that no rung excludes is
evaluated in double precision on all rows. So the result is exact, whatever the precision of the first rungs.

The bounds: for a form f of the columns v_i and v_j, the loss Σ w (f - y)² expands into terms that are each a function
of i times a function of j. With y scaled so that Σ w y² = 1, and x = √w·v, z = √w·y, s = |x|², a = x·z:

    |±x_i ± x_j - z|²  =  s_i + s_j ± 2 x_i·x_j - (±2 a_i) - (±2 a_j) + |z|²
    Σ w (v_i v_j - y)²  =  Σ (w v_i²)(v_j²) + Σ (-2 w y v_i)(v_j) + |z|²          (v_i/v_j: the same with 1/v_j)

so a tile of losses is left(i) · right(j)ᵀ + constant. Rounding changes a computed loss by at most γ times the sum of
the absolute terms (γ = K·u for K products summed in a precision of unit roundoff u). That error is at most

    sums:      γ (3 s_i + 3 s_j + 2)         since 2|a| ≤ s + 1
    products:  γ (2 Σ w f² + 1)              since 2|y f| ≤ y² + f²

and is subtracted *inside* the product: the true loss cannot be below the result. Sums over a part of the rows are lower
bounds too, because the other rows can only add.
"""

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
from symenum.core.dimensions import SAME_NUMBER
from symenum.core.target import Target
from symenum.core.threads import Job, run_jobs, tile_space
from symenum.engine.layer import Block, Family, Form, apply_poisoned, forms_of
from symenum.engine.layer_dimensions import admissible_parts, join
from symenum.engine.shortlist import Scorer
from symenum.operators import Kind
from symenum.operators.traits import DimensionRule

__all__ = [
    "FormScan",
    "OperatorScan",
    "RowPart",
    "UnaryScan",
    "left_factors",
    "numbered_jobs",
    "right_factors",
    "row_parts",
    "scan",
    "scan_admissible",
]


# Largest |v| in units of y's root mean square: the products of two squares must stay in the range of the type (3e38 and
# 1.8e308). Tiles with larger columns have no bounds and go to the next rung.
_RANGE = {torch.float32: 1e9, torch.float64: 1e75}
_GAP_ROUNDING = 1e-9  # more than the relative rounding error of a norm
_RULES = {
    Family.SUM: DimensionRule.HOMOGENEOUS,
    Family.PRODUCT: DimensionRule.PRODUCT,
    Family.QUOTIENT: DimensionRule.QUOTIENT,
}
# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
TILE = (512, 1024)  # columns i times columns j of a matrix product: 2 MiB in float32, which a core keeps in its cache
DIRECT_TILE = (128, 512)  # columns i times columns j that are evaluated row by row: 512 KiB in float64
ROW_PART = 256  # rows in one product; most tiles are excluded by the first part
EXACT_BATCH = 4096  # candidates that are evaluated exactly in one go
_MAX_SURVIVORS = 4 * EXACT_BATCH  # of a tile; with more of them the next rung is tried before they are evaluated
_EXACT_SHARE = 64  # with fewer than 1/64 of a tile left, exact evaluation is cheaper than bounds over more rows
_UNARY_VALUES = 1 << 20  # values (8 MiB) of a unary operator that are computed in one job
_MIN_FAILS = 4  # failures of a rung after which its success rate counts,
_MAX_FAIL_RATE = 0.25  # and the part of its tries that may fail before it is skipped


def scan(scorer: Scorer, budget: Budget, threads: int) -> tuple[int, bool]:
    """Bring the best candidates into the scorer's pool; the number of candidates scored, and whether these are all."""
    jobs = list(_jobs(scorer))
    total = sum(size for size, _ in jobs)
    done = run_jobs([job for _, job in jobs], budget, threads)
    scored = scorer.layer.size * done // max(1, total)
    return scored, done == total


def numbered_jobs(scorer: Scorer) -> list[tuple[int, Job]]:
    """The parts of a scan, (candidates, job) each; one bank has the same parts in the same order on any machine."""
    return list(_jobs(scorer) if scorer.dimension is None else _admissible_jobs(scorer))


def scan_admissible(scorer: Scorer, budget: Budget, threads: int) -> tuple[int, bool]:
    """`scan` of the candidates that have the wanted dimension; the scorer knows the dimensions of its columns.

    Columns are put together by dimension before the scan, so that nothing else is scored; of products and quotients of
    two dimensions twice as much as there is, since a scan takes all pairs of a set.
    """
    jobs = list(_admissible_jobs(scorer))
    total = sum(size for size, _ in jobs)
    done = run_jobs([job for _, job in jobs], budget, threads)
    return done, done == total


def _admissible_jobs(scorer: Scorer) -> Iterator[tuple[int, Job]]:
    """As `_jobs`, for the sets of columns whose pairs may have the wanted dimension."""
    dimension, wanted = scorer.dimension, scorer.wanted
    assert dimension is not None  # else there is nothing to tell
    plain = torch.nonzero(dimension.abs() < SAME_NUMBER).flatten()
    for block in scorer.layer.blocks:
        if block.operator.arity == 1:
            found = (join(block.operator, dimension, None, None) - wanted).abs() < SAME_NUMBER
            yield from UnaryScan(scorer.at(torch.nonzero(found).flatten()), block).jobs()
    for form in forms_of([block.operator for block in scorer.layer.blocks]):
        for part in admissible_parts(dimension, wanted, _RULES[form.family]):
            yield from FormScan(scorer.at(part), form).jobs()
    if abs(wanted) < SAME_NUMBER:  # a power of something with a unit is what a column or a product is already
        for block in scorer.layer.blocks_without_form:
            yield from OperatorScan(scorer.at(plain), block).jobs()


def _jobs(scorer: Scorer) -> Iterator[tuple[int, Job]]:
    """(candidates, job); unary operators come first, because they are quick and lower the pool's limit for the rest."""
    operators = [block.operator for block in scorer.layer.blocks]
    for block in scorer.layer.blocks:
        if block.operator.arity == 1:
            yield from UnaryScan(scorer, block).jobs()
    for form in forms_of(operators):
        yield from FormScan(scorer, form).jobs()
    for block in scorer.layer.blocks_without_form:
        yield from OperatorScan(scorer, block).jobs()


@dataclass(frozen=True)
class UnaryScan:
    """One unary operator on all signed columns, evaluated exactly."""

    scorer: Scorer
    block: Block

    def jobs(self) -> Iterator[tuple[int, Job]]:
        """(candidates, job) for each part of the work."""
        step = max(1, _UNARY_VALUES // self.scorer.target.rows)
        for start in range(0, len(self.scorer.signed), step):
            which = torch.arange(start, min(start + step, len(self.scorer.signed)))
            yield len(which), partial(self._run, which)

    def _run(self, which: Tensor, budget: Budget) -> int:
        self.scorer.operator(self.block, which, None)
        return len(which)


@dataclass(frozen=True)
class OperatorScan:
    """One binary operator without a form on all pairs of signed columns, by sums of squares that grow row by row."""

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
    """One bilinear form on all pairs of columns, by lower bounds from matrix products."""

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
        # Tiles that were tried in a precision, and those where it left too many candidates, by the rounding margin.
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
            if not self._too_far(rows, columns) and not self._tile(rows, columns, left, budget):
                return done
            done += len(rows) * len(columns)
        with self._lock:
            self._unfinished -= 1
            if not self._unfinished:
                self._right.clear()  # the factors of a finished form make room for the next one's
        return done

    def _tile(self, rows: range, columns: range, left: dict[torch.dtype, Tensor | None], budget: Budget) -> bool:
        """Score a tile; False: the time was over before its last candidate.

        Where nearly all candidates are equally bad, no bound excludes any, and one tile takes seconds.
        """
        for dtype in (torch.float32, torch.float64):
            rung = (dtype, self._margin(rows, columns))
            self._tries[rung] += 1
            if self._fails[rung] > _MIN_FAILS and self._fails[rung] > _MAX_FAIL_RATE * self._tries[rung]:
                continue  # counted as a try, so that the rung is tried again later
            if dtype not in left:
                left[dtype] = left_factors(self._form, self._parts[0], self._columns(rows), dtype)
            product = self._product(rows, columns, dtype, left[dtype])
            if product is None:
                continue
            bounds, constant = product
            if float(bounds.amin()) > self._scorer.pool.limit / self._scale2 - constant:
                return True
            if self._score(bounds.add_(constant).mul_(self._scale2), rows, columns, budget):
                return not budget.over()
            self._fails[rung] += 1
        for some_rows in _pieces(rows, DIRECT_TILE[0]):
            for some_columns in _pieces(columns, DIRECT_TILE[1]):
                pair = self._columns(some_rows), self._columns(some_columns)
                bounds = _direct_bounds(self._scorer, self._form.value, *pair)
                self._score(bounds, some_rows, some_columns, budget, at_any_cost=True)
                if budget.over():
                    return False
        return True

    def _score(self, bounds: Tensor, rows: range, columns: range, budget: Budget, *, at_any_cost: bool = False) -> bool:
        """Evaluate the candidates that the bounds do not exclude, as long as there is time.

        False: too many, try better bounds first.
        """
        if self._form.symmetric:
            _drop_below_diagonal(bounds, rows, columns)
        pool = self._scorer.pool
        for i, j, waiting in _survivors(self._scorer, bounds, rows, columns):
            self._scorer.form(self._form, i, j)
            if budget.over():
                return True
            better_bounds_help = waiting > _MAX_SURVIVORS and pool.full and not at_any_cost
            if better_bounds_help and int((bounds <= pool.limit).sum()) > _MAX_SURVIVORS:
                return False
        return True

    def _product(
        self, rows: range, columns: range, dtype: torch.dtype, left: Tensor | None
    ) -> tuple[Tensor, float] | None:
        """Lower bounds (rows, columns) of the losses and a constant to be added to each, in units of y's mean square.

        Row parts are added until few candidates are left. The constant is kept apart, because adding it would cost a
        pass over the tile. None: a column is out of the range of the type.
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
            if number + 1 < len(self._parts) and int((out <= limit).sum()) * _EXACT_SHARE < out.numel():
                break
        assert out is not None
        return out, constant

    def _right_factors(self, columns: range, part: int, dtype: torch.dtype) -> Tensor | None:
        # The factors in single precision on the first rows serve every row of tiles, so they are kept.
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
        """Whether the norms alone exclude a tile of sums: |±v_i ± v_j - y| is at least ||v_i| - |v_j|| - |y|."""
        if self._form.family is not Family.SUM:
            return False
        (low_i, high_i), (low_j, high_j) = self._norms(rows), self._norms(columns)
        gap = max(low_j - high_i, low_i - high_j) * (1 - _GAP_ROUNDING) - 1.0
        return gap > 0 and gap * gap * self._scale2 > self._scorer.pool.limit

    def _margin(self, rows: range, columns: range) -> int:
        """The size of a tile's rounding margin as a power of 2; it is large for sums of large columns."""
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
    """Batches of pairs (i, j) int64 that the bounds do not exclude, lowest bounds first, and how many wait behind them.

    The pool's limit falls meanwhile, so that fewer follow than wait.
    """
    flat = bounds.flatten()
    which = torch.nonzero(~(flat > scorer.pool.limit)).flatten()  # NaN is not excluded: it is evaluated exactly
    if len(which) > EXACT_BATCH:
        which = which[torch.argsort(flat[which])]
    for start in range(0, len(which), EXACT_BATCH):
        some = which[start : start + EXACT_BATCH]
        some = some[~(flat[some] > scorer.pool.limit)]
        if not len(some):
            return
        waiting = max(0, len(which) - start - EXACT_BATCH)
        yield rows.start + some // bounds.shape[1], columns.start + some % bounds.shape[1], waiting


def _direct_bounds(scorer: Scorer, value: Callable[[Tensor, Tensor], Tensor], left: Tensor, right: Tensor) -> Tensor:
    """Sums of squares (left, right) float64 over the first rows, until nearly all are excluded; inf where one fails."""
    target = scorer.target
    total = torch.zeros(len(left), len(right), dtype=torch.float64)
    check = 1
    for row in range(target.rows):
        error = value(left[:, row, None], right[None, :, row]).sub_(target.y[row]).square_()
        total.add_(error, alpha=float(target.weight[row]))
        if row + 1 == check:
            check *= 2
            if int((total <= scorer.pool.limit).sum()) * _EXACT_SHARE < total.numel():
                break
    return total.nan_to_num_(nan=float("inf"), posinf=float("inf"))


@dataclass(frozen=True)
class RowPart:
    """A part of the target's rows, in units of its root mean square `scale`."""

    rows: slice
    weight: Tensor  # (rows,) float64; the weights of all parts together sum to 1
    y: Tensor  # (rows,) float64, divided by scale
    scale: float

    @property
    def constant(self) -> float:
        """|z|², the term of the loss that depends on no column."""
        return float((self.weight * self.y.square()).sum())


def row_parts(target: Target, size: int) -> list[RowPart]:
    """The target's rows in parts of at most `size` rows."""
    scale = target.mean_square**0.5
    slices = [slice(start, start + size) for start in range(0, target.rows, size)]
    return [RowPart(rows, target.weight[rows], target.y[rows] / scale, scale) for rows in slices]


def _rounding(dtype: torch.dtype, rows: int) -> float:
    """γ: the relative rounding error of a sum of 2·rows + 2 products; 8 more are for the rounding of the factors."""
    return (2 * rows + 10) * torch.finfo(dtype).eps / 2


def left_factors(form: Form, part: RowPart, values: Tensor, dtype: torch.dtype) -> Tensor | None:
    """Factors (columns, K) of the columns `values` (columns, all rows) as v_i; None if they are out of range."""
    v = values[:, part.rows]
    gamma = _rounding(dtype, v.shape[1])
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
    gamma = _rounding(dtype, v.shape[1])
    if form.family is Family.SUM:
        x, own = _sum_terms(form.second, part, v, gamma)
        return _checked(torch.cat([2 * form.first * form.second * x, torch.ones_like(own), own], dim=1), x, dtype)
    if form.family is Family.QUOTIENT:
        v = v.reciprocal()
        v[~torch.isfinite(v).all(dim=1)] = 0.0  # no candidate: the scorer drops it, so any bound will do
    v = v / part.scale**0.5
    return _checked(torch.cat([v.square(), v], dim=1), v, dtype)


def bound_constant(form: Form, part: RowPart, dtype: torch.dtype) -> float:
    """The number that makes a product of factors a lower bound of the loss when it is added, in units of scale²."""
    gamma = _rounding(dtype, len(part.y))
    # The factors of sums already contain their term -2γ.
    return part.constant * (1 - gamma) - (0.0 if form.family is Family.SUM else gamma)


def _sum_terms(sign: int, part: RowPart, v: Tensor, gamma: float) -> tuple[Tensor, Tensor]:
    """x (columns, rows) and s ∓ 2a less its rounding error (columns, 1), float64."""
    x = v * (part.weight.sqrt() / part.scale)
    s = x.square().sum(dim=1, keepdim=True)
    a = x @ (part.weight.sqrt() * part.y)
    return x, s * (1 - 3 * gamma) - 2 * sign * a[:, None] - gamma


def _checked(factors: Tensor, values: Tensor, dtype: torch.dtype) -> Tensor | None:
    """The factors in that precision; None if a value is out of its range."""
    if not bool((values.abs() <= _RANGE[dtype]).all()):
        return None
    return factors.to(dtype).contiguous()
