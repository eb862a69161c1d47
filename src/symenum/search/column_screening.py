"""Which columns say most about what is left of y, alone or in pairs: of more columns than slots, these fill the slots.

Columns are judged by ranks, so that neither units nor heavy tails matter. A column alone is judged by polynomials of
its ranks up to degree six, which see waves and bumps where a correlation sees nothing. A pair is judged by products of
such polynomials, for all pairs at once by matrix products: y = a·b of centred a and b depends on neither alone. Of more
than 1,000 columns only the pairs of those that say most alone are judged. What chance would give with so many columns
and pairs is taken off, in nats, so that columns and pairs compare.

The best column, or pair, is taken first. What it explains is then taken out of y, and all others are judged again: the
copy of a column that was taken, or one that is correlated with it, says nothing more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from symenum.core.seeds import sample_rows

__all__ = ["ranked_columns"]

_TINY = 1e-300  # least norm that is divided by
_LEFT = 1e-12  # part of the square of y below which nothing is left to explain
# Chosen by trial on random tables of 50 to 300 columns.
_DEGREE = 6  # of the polynomials of one column
_ROWS = 600  # that are looked at: enough to see a pair that explains a tenth of y among 1,000 columns,
_FEWEST_ROWS = 200  # and so many at least
_VALUES = 1_200_000  # numbers of a table that are looked at; of more than 2,000 columns fewer rows
# Columns whose pairs are judged, those that say most alone, in the first round and in each that follows. The first
# takes 0.4 s on one core, the others 0.03 s each.
_PAIRED, _PAIRED_LATER = 1000, 300
_AT_ONCE = 256  # columns whose polynomials are made at once, so that they fit into a core's cache
_ROUNDS = 16  # columns or pairs that are taken one after another; the others follow by what they say of y
_OUTLIER = 5.0  # typical sizes of y, beyond which it is cut: single rows must not decide


def ranked_columns(columns: Sequence[Tensor], y: Tensor, weight: Tensor, seed: int = 0) -> list[int]:
    """The numbers of all columns, those that say most about y first; each column, y and weight (rows,).

    `seed`: of the choice of rows, where there are many.

    >>> rng = torch.Generator().manual_seed(0)
    >>> values = torch.randn(50, 400, generator=rng, dtype=torch.float64)
    >>> y = values[7] * values[31] + 0.5 * torch.sin(3 * values[20])
    >>> sorted(ranked_columns(list(values), y, torch.full((400,), 1 / 400, dtype=torch.float64))[:3])
    [7, 20, 31]
    """
    most_rows = min(_ROWS, max(_FEWEST_ROWS, _VALUES // len(columns)))
    rows = sample_rows(len(y), most_rows, seed, "rows that columns are judged on")
    values, y, weight = torch.stack([column[rows] for column in columns]), y[rows], weight[rows]
    root = (weight / weight.sum().clamp_min(_TINY)).sqrt()
    bases = torch.cat([_polynomials(some, root) for some in torch.split(values, _AT_ONCE)], dim=1)
    left = _cut(y, root)
    whole = float(left @ left)
    order: dict[int, None] = {}
    first: Tensor | None = None
    taken = root[None] / root.norm()
    for _ in range(_ROUNDS):
        left = left - (left @ taken.T) @ taken
        if float(left @ left) <= _LEFT * whole or len(order) == len(values):
            break
        alone, paired, partner = _evidence(bases, left, root, _PAIRED if first is None else _PAIRED_LATER)
        first = torch.maximum(alone, paired) if first is None else first
        waiting = torch.tensor([column not in order for column in range(len(values))])
        best = torch.where(waiting, torch.maximum(alone, paired), -torch.inf)
        column = int(best.argmax())
        if not float(best[column]) > 0:
            break
        best_columns = [column]
        if float(paired[column]) > float(alone[column]):
            best_columns.append(int(partner[column]))
        order |= dict.fromkeys(best_columns)
        taken = _with(taken, [*bases[:, best_columns].flatten(0, 1), *_products(bases, best_columns, root)])
    rest = torch.zeros(len(values), dtype=torch.float64) if first is None else first
    return [*order, *(column for column in rest.argsort(descending=True, stable=True).tolist() if column not in order)]


def _polynomials(values: Tensor, root: Tensor) -> Tensor:
    """Legendre polynomials of the ranks of each column, times the roots of the weights: (degrees, columns, rows).

    Rows of norm 1, without their mean; zeros where a column has too few different values for a degree.
    """
    ordered = values.sort(dim=1).values
    below = torch.searchsorted(ordered, values.contiguous())
    not_above = torch.searchsorted(ordered, values.contiguous(), right=True)
    u = (below + not_above).to(torch.float64) / values.shape[1] - 1  # ties share their mean rank
    previous, current = torch.ones_like(u), u
    found: list[Tensor] = []
    for degree in range(1, _DEGREE + 1):
        rows = current * root
        rows = rows - (rows @ root)[:, None] * root
        for other in found:
            rows = rows - (rows * other).sum(dim=1, keepdim=True) * other
        size = rows.norm(dim=1, keepdim=True)
        found.append(torch.where(size > 1e-6, rows / size.clamp_min(_TINY), 0.0))
        previous, current = current, ((2 * degree + 1) * u * current - degree * previous) / (degree + 1)
    return torch.stack(found)


def _cut(y: Tensor, root: Tensor) -> Tensor:
    """y less its median, cut at five typical sizes, times the roots of the weights."""
    centred = y - y.median()
    size = float(centred.abs().median()) or float(centred.abs().mean())
    if 0 < size < math.inf:
        centred = centred.clamp(-_OUTLIER * size, _OUTLIER * size)
    return centred / (size or 1.0) * root


def _evidence(bases: Tensor, left: Tensor, root: Tensor, most: int) -> tuple[Tensor, Tensor, Tensor]:
    """What each column says alone (columns,), with its best partner (columns,), and that partner (columns,); in nats.

    The evidence of a fit with k coefficients is rows/2·log(1/(1 - R²)) - k/2·log(rows) - log(number of such fits).
    `most`: columns whose pairs are judged, those that say most alone; the others have no partner, and -inf.
    """
    _, columns, rows = bases.shape
    unit = left / left.norm()
    each = math.log(rows) / 2
    fits = (bases @ unit).square().cumsum(dim=0)
    by_degree = _nats(fits, rows) - each * torch.arange(1, len(bases) + 1)[:, None] - math.log(columns)
    alone = by_degree.amax(dim=0)
    best = torch.full((columns,), -torch.inf, dtype=torch.float64)
    partner = torch.zeros(columns, dtype=torch.int64)
    if columns < 2:
        return alone, best, partner
    chosen = torch.arange(columns) if columns <= most else alone.argsort(descending=True, stable=True)[:most]
    some = bases[:2, chosen]
    paired = torch.full((len(chosen), len(chosen)), -torch.inf, dtype=torch.float64)
    weighted = unit / root.clamp_min(_TINY)  # each base has one root of the weights too many
    for a, b in ((0, 0), (0, 1), (1, 1)):
        along = (some[a] * weighted) @ some[b].T
        size = (some[a] / root.clamp_min(_TINY)).square() @ some[b].square().T
        evidence = _nats(along.square() / size.clamp_min(_TINY), rows)
        paired = torch.maximum(paired, torch.maximum(evidence, evidence.T))
    paired = paired - each - math.log(3 * columns * (columns - 1) / 2)
    paired.fill_diagonal_(-torch.inf)
    best[chosen], place = paired.max(dim=1)
    partner[chosen] = chosen[place]
    return alone, best, partner


def _nats(r_squared: Tensor, rows: int) -> Tensor:
    """rows/2·log(1/(1 - R²))."""
    return -0.5 * rows * torch.log1p(-r_squared.clamp(0.0, 1 - 1e-12))


def _products(bases: Tensor, columns: list[int], root: Tensor) -> list[Tensor]:
    """The products of polynomials of degrees one and two of two columns; none of one column."""
    if len(columns) < 2:
        return []
    first, second = bases[:2, columns[0]], bases[:2, columns[1]] / root.clamp_min(_TINY)
    return [a * b for a in first for b in second]


def _with(taken: Tensor, further: list[Tensor]) -> Tensor:
    """Orthonormal rows with the span of `taken` (k, rows), orthonormal, and the `further` rows."""
    for row in further:
        size = float(row.norm())
        for _ in range(2):
            row = row - (row @ taken.T) @ taken
        if float(row.norm()) > 1e-6 * size:
            taken = torch.cat([taken, (row / row.norm())[None]])
    return taken
