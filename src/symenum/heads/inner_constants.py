"""Inner constants: pairs of functions with one inner constant each, a·f + b·g + c or a·f·g + c.

f and g are u(c·v) for functions u that are defined everywhere (sin, cos, exp), u(v + c) for those that are not (log,
1/v, sqrt), or v itself; v is a slot or one operator on two slots. A grid of c in units of the range of v gives a start
for every pair of families (a function on one v), and the best family pairs are sharpened by variable projection. The
best start per pair of *families* goes on, not the best grid points: the right family may start far behind the finer
grid of a wrong one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.exactness import EXACTNESS
from symenum.expressions import Expression, apply
from symenum.expressions.candidate import Candidate
from symenum.fitting import Number, linear_combination, plain_number, recognise, scaled
from symenum.fitting.many_starts import KINDS, FittedPairs, InnerFeatures, feature_values, fit_pairs
from symenum.heads.features import Features, build_features
from symenum.heads.head import choose, fit_chosen, rounding_of
from symenum.heads.response import ONE, UNIT, Response
from symenum.operators import Operator, get_operator
from symenum.scans.projection import unit_orthogonal_part
from symenum.scans.r_squared import affine_r_squared, pair_r_squared

__all__ = ["InnerConstants"]


_PLAIN, *_FUNCTIONS = KINDS
_SHIFTED = tuple(kind for kind in _FUNCTIONS if not get_operator(kind).entire)  # u(v + c); the others are u(c·v)
_PERIODIC = tuple(kind for kind in _FUNCTIONS if get_operator(kind).periodic)
# These are there whatever the operators are: v itself and its fixed powers.
_ALWAYS = (_PLAIN, *(kind for kind in _FUNCTIONS if get_operator(kind).exponent is not None))
_UNKNOWNS = 5  # two inner constants, two coefficients, one offset: a fit needs more rows than these
_LARGEST = 1e10  # of |feature| on the grid: larger values come from poles and overflowing exponentials
# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_MAX_ROWS = 200  # for grid and polishing; the fits in the end are on all rows
_ROUGH_STEPS = 10  # steps of polishing that show which starts lead somewhere
_POLISHED = 400  # starts that are polished to the end
_PIECES_AT_ONCE = 32  # pieces that are judged by one matrix product
_PIECE = 4  # neighbouring grid points of the first family that share one start
_COST = 3  # complexity that a function with its constant adds to that of v, about
_TURNS = tuple(0.6 * i for i in range(1, 24))  # c of periodic functions, in units of 1/(range of v)
_GROWTHS = (0.15, 0.3, 0.6, 1.0, 1.6, 2.5, 4.0, 7.0)  # |c| of exponentials, in units of 1/(range of v)
_SHIFTS = (0.01, 0.03, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 7.0)  # distance of -c from the range of v, in units of that range


@dataclass(frozen=True)
class _Grid:
    """Features on the grid: kind (m,) int64 in `KINDS`, base row (m,) int64, constant (m,), and values (m, rows)."""

    kind: Tensor
    row: Tensor
    c: Tensor
    values: Tensor


@dataclass(frozen=True)
class InnerConstants:
    """Sums and products of two functions with one inner constant each; `products` says which of the two: (False, True).

    `operators` says which functions there are, `max_bases` how many rows v they are taken of, and `family_pairs` how
    many pairs of families are polished.
    """

    operators: tuple[Operator, ...]
    max_bases: int = 40
    family_pairs: int = 3000
    products: tuple[bool, ...] = (False, True)
    name: str = "inner constants"

    def scan(self, features: Features, response: Response, k: int, budget: Budget) -> list[Candidate]:
        """See `Head`; of the features only the slots play a part."""
        data = response.data
        if data.target.rows <= _UNKNOWNS:
            return []
        rows = data.scan_rows
        if len(rows) > _MAX_ROWS:
            rows = rows[torch.linspace(0, len(rows) - 1, _MAX_ROWS).long()]
        binary = [operator for operator in self.operators if operator.arity == 2]
        slots = torch.stack([data.evaluate(slot)[rows] for slot in data.stand_ins])
        base = build_features(data.stand_ins, slots, binary, 1, with_one=False, budget=budget).up_to_scale(budget)
        base = base.take(torch.arange(min(self.max_bases, len(base))))
        grid = _grid(base.values, self.operators)
        t, root = response.t[rows], (response.weight[rows] / response.weight[rows].sum()).sqrt()
        out: list[Candidate] = []
        for product in self.products:
            if budget.over() or any(data.is_law(candidate) for candidate in out):
                break
            out += self._pairs(grid, base, response, t, root, k, product, budget)
        return out

    def _pairs(
        self,
        grid: _Grid,
        base: Features,
        response: Response,
        t: Tensor,
        root: Tensor,
        k: int,
        product: bool,
        budget: Budget,
    ) -> list[Candidate]:
        family = grid.kind * len(base) + grid.row
        i, j = _best_per_family(grid.values, t, root, family, product, self.family_pairs, budget)
        if not len(i):
            return []
        first, second = (InnerFeatures(grid.kind[s], base.values[grid.row[s]], grid.c[s]) for s in (i, j))
        rough = fit_pairs(t, root, first, second, product=product, budget=budget, steps=_ROUGH_STEPS)
        best = torch.argsort(rough.residual, stable=True)[:_POLISHED]
        i, j = i[best], j[best]
        first, second = (side.take(best, rough.c[best, place]) for place, side in enumerate((first, second)))
        polished = fit_pairs(t, root, first, second, product=product, budget=budget)
        complexity = sum((grid.kind[side] > 0).long() * _COST + base.complexity[grid.row[side]] for side in (i, j))
        assert isinstance(complexity, Tensor)  # a sum of tensors

        def fit(at: int) -> Iterator[Candidate | None]:
            sides = [(int(grid.kind[side[at]]), base.expression(int(grid.row[side[at]]))) for side in (i, j)]
            for snapped in (True, False):
                terms = [
                    _term(*side, _number(polished, at, place, side[0], snapped)) for place, side in enumerate(sides)
                ]
                candidate = response.fit([ONE, apply("mul", *terms)] if product else [ONE, *terms])
                yield candidate
                if candidate is not None and response.data.is_law(candidate):
                    return

        return fit_chosen(response, choose(polished.residual, complexity, k, rounding_of(response)), fit, budget)


def _number(polished: FittedPairs, index: int, at: int, kind: int, snapped: bool) -> Number:
    """The inner constant as it is, or if `snapped` as the nice number near it. A shift may be 0, a factor may not."""
    value, error = float(polished.c[index, at]), float(polished.error[index, at])
    number: Number | None = None
    if snapped:
        exact = float(polished.residual[index]) < EXACTNESS.scanned
        shift = KINDS[kind] in _SHIFTED
        number = recognise(value, error, exact=exact, zero=shift, polished=False)
    return number or plain_number(value)


def _term(kind: int, v: Expression, number: Number) -> Expression:
    name = KINDS[kind]
    if name == _PLAIN:
        return v
    if name in _SHIFTED:
        return apply(name, linear_combination([UNIT, number], [v, ONE]))
    return apply(name, scaled(number, v))


def _grid(base: Tensor, operators: Sequence[Operator]) -> _Grid:
    """The features on the grid for base rows (m, n) that are finite and of moderate size."""
    kinds: list[int] = []
    rows: list[int] = []
    constants: list[float] = []

    def add(kind: str, row: int, values: list[float]) -> None:
        if kind in _ALWAYS or get_operator(kind) in operators:
            kinds.extend([KINDS.index(kind)] * len(values))
            rows.extend([row] * len(values))
            constants.extend(values)

    for row, v in enumerate(base):
        low, high = float(v.min()), float(v.max())
        width = high - low
        if not width > 0:
            continue
        add(_PLAIN, row, [0.0])
        for kind in _PERIODIC:
            add(kind, row, [turn / width for turn in _TURNS])
        add("exp", row, [sign * growth / width for growth in _GROWTHS for sign in (1, -1)])
        above = [-low + shift * width for shift in _SHIFTS]
        add("log", row, above)
        add("inv", row, above + [-high - shift * width for shift in _SHIFTS])
        add("sqrt", row, above)
    which, of = torch.tensor(kinds, dtype=torch.int64), torch.tensor(rows, dtype=torch.int64)
    c = torch.tensor(constants, dtype=torch.float64)
    values, _ = feature_values(which, base[of], c)
    usable = torch.nonzero(torch.isfinite(values).all(dim=1) & (values.abs().amax(dim=1) < _LARGEST)).flatten()
    return _Grid(which[usable], of[usable], c[usable], values[usable])


def _best_per_family(
    V: Tensor, t: Tensor, root: Tensor, family: Tensor, product: bool, count: int, budget: Budget
) -> tuple[Tensor, Tensor]:
    """Indices i, j of the best `count` starts: for every pair of families, and each piece of the first one's grid, one.

    In pieces, because a slow sine can start better than the right one and then lead nowhere.
    """
    _, member = torch.unique(family, return_inverse=True)
    order = torch.argsort(member, stable=True)
    V, member = V[order], member[order]
    unit = (root / root.norm())[None]
    target = unit_orthogonal_part((t * root)[None], unit)[0][0]
    losses = _ProductLosses(V, target, root) if product else _SumLosses(V, target, root, unit)
    found: list[tuple[Tensor, Tensor, Tensor]] = []
    for pieces in torch.split(_pieces(member), _PIECES_AT_ONCE):
        if budget.over() or not len(pieces):
            break
        low, high = int(pieces[0, 0]), int(pieces[-1, -1]) + 1
        low = int(torch.searchsorted(member, member[low]))  # the first of its family
        best, i, j = _best_of_pieces(losses(slice(low, high), slice(low, None)), pieces - low, member[low:])
        found.append((best, i + low, j + low))
    if not found:
        return torch.empty(0, dtype=torch.int64), torch.empty(0, dtype=torch.int64)
    loss, i, j = (torch.cat(parts) for parts in zip(*found, strict=True))
    chosen = torch.argsort(loss, stable=True)[:count]
    return order[i[chosen]], order[j[chosen]]


def _pieces(member: Tensor) -> Tensor:
    """The pieces of all families: rows (pieces, _PIECE) int64, the last one repeated where a piece is shorter.

    `member` (m,) int64, ascending: the family of each row.
    """
    rows: list[list[int]] = []
    low = 0
    for size in torch.bincount(member).tolist():
        count = -(-size // _PIECE)
        for start, end in itertools.pairwise(low + size * piece // count for piece in range(count + 1)):
            rows.append([min(start + step, end - 1) for step in range(_PIECE)])
        low += size
    return torch.tensor(rows, dtype=torch.int64).reshape(-1, _PIECE)


def _best_of_pieces(loss: Tensor, pieces: Tensor, member: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """For each piece and each family from its own on, the pair of least loss: losses (p,), rows and columns (p,) int64.

    `loss` (rows, columns), `pieces` (count, _PIECE) rows of it, `member` (columns,) the family of each column, which is
    that of the row of the same number.
    """
    of_piece, at = loss[pieces].min(dim=1)
    of_piece = torch.where(member >= member[pieces[:, :1]], of_piece, torch.full_like(of_piece, float("inf")))
    families = member - member[0]
    where = families.expand_as(of_piece)
    best = torch.full((len(pieces), int(families[-1]) + 1), float("inf"), dtype=torch.float64)
    best.scatter_reduce_(1, where, of_piece, reduce="amin")
    hit = torch.isfinite(of_piece) & (of_piece == best.gather(1, where))
    column = torch.full(best.shape, -1)
    column.scatter_reduce_(1, where, torch.where(hit, torch.arange(len(member)), -1), reduce="amax")
    piece, which = torch.nonzero(column >= 0).T
    j = column[piece, which]
    return best[piece, which], pieces[piece, at[piece, j]], j


class _SumLosses:
    """1 - R² of a·v + b·w + c for tiles of rows."""

    def __init__(self, V: Tensor, target: Tensor, root: Tensor, unit: Tensor) -> None:
        self.C, _ = unit_orthogonal_part(V * root, unit)
        self.along = self.C @ target

    def __call__(self, a: slice, b: slice) -> Tensor:
        cosine = self.C[a] @ self.C[b].T
        return 1 - pair_r_squared(self.along[a, None], self.along[None, b], cosine, otherwise=-math.inf)


class _ProductLosses:
    """1 - R² of a·v·w + b for tiles of rows."""

    def __init__(self, V: Tensor, target: Tensor, root: Tensor) -> None:
        self.V = V / V.abs().amax(dim=1, keepdim=True).clamp_min(1e-300)
        self.once = self.V * root.square()
        self.square = self.V.square()
        self.squared = self.square * root.square()
        self.along = self.V * (target * root)

    def __call__(self, a: slice, b: slice) -> Tensor:
        S1, S2 = self.once[a] @ self.V[b].T, self.squared[a] @ self.square[b].T
        along = self.along[a] @ self.V[b].T
        return 1 - affine_r_squared(along, S2 - S1.square(), S2, otherwise=-math.inf)
