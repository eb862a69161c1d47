"""Which columns say most about what is left of y, alone or in pairs: of more columns than slots, these fill the slots.

Columns are judged by ranks, so that neither units nor heavy tails matter. A column alone is judged by polynomials of
its ranks up to degree six, which see waves and bumps where a correlation sees nothing. A pair is judged by products of
such polynomials, for all pairs at once by matrix products: y = a·b of centred a and b depends on neither alone. What
chance would give with so many columns and pairs is taken off, in nats, so that columns and pairs compare.

The best column, or pair, is taken first. What it explains is then taken out of y, and all others are judged again: the
copy of a column that was taken, or one that is correlated with it, says nothing more.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from symenum.core.seeds import sample_rows

__all__ = ["ranked_columns"]

_TINY = 1e-300  # least norm that is divided by
_LEFT = 1e-12  # part of the square of y below which nothing is left to explain
# Chosen by trial on random tables of 50 to 300 columns.
_DEGREE = 6  # of the polynomials of one column
_ROWS = 600  # that are looked at: enough to see a pair that explains a tenth of y among 1,000 columns
_ROUNDS = 16  # columns or pairs that are taken one after another; the others follow by what they say of y
_OUTLIER = 5.0  # typical sizes of y, beyond which it is cut: single rows must not decide


def ranked_columns(values: Tensor, y: Tensor, weight: Tensor, seed: int = 0) -> list[int]:
    """The numbers of all columns, those that say most about y first; values (columns, rows), y and weight (rows,).

    `seed`: of the choice of rows, where there are many.

    >>> rng = torch.Generator().manual_seed(0)
    >>> values = torch.randn(50, 400, generator=rng, dtype=torch.float64)
    >>> y = values[7] * values[31] + 0.5 * torch.sin(3 * values[20])
    >>> sorted(ranked_columns(values, y, torch.full((400,), 1 / 400, dtype=torch.float64))[:3])
    [7, 20, 31]
    """
    rows = sample_rows(len(y), _ROWS, seed, "rows that columns are judged on")
    values, y, weight = values[:, rows], y[rows], weight[rows]
    root = (weight / weight.sum().clamp_min(_TINY)).sqrt()
    bases = _polynomials(values, root)
    left = _cut(y, root)
    whole = float(left @ left)
    order: dict[int, None] = {}
    first: Tensor | None = None
    taken = root[None] / root.norm()
    for _ in range(_ROUNDS):
        left = left - (left @ taken.T) @ taken
        if float(left @ left) <= _LEFT * whole or len(order) == len(values):
            break
        alone, paired, partner = _evidence(bases, left, root)
        first = torch.maximum(alone, paired) if first is None else first
        waiting = torch.tensor([column not in order for column in range(len(values))])
        best = torch.where(waiting, torch.maximum(alone, paired), -torch.inf)
        column = int(best.argmax())
        if not float(best[column]) > 0:
            break
        columns = [column]
        if float(paired[column]) > float(alone[column]):
            columns.append(int(partner[column]))
        order |= dict.fromkeys(columns)
        taken = _with(taken, [*bases[:, columns].flatten(0, 1), *_products(bases, columns, root)])
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


def _evidence(bases: Tensor, left: Tensor, root: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What each column says alone (columns,), with its best partner (columns,), and that partner (columns,); in nats.

    The evidence of a fit with k coefficients is rows/2·log(1/(1 - R²)) - k/2·log(rows) - log(number of such fits).
    """
    _, columns, rows = bases.shape
    unit = left / left.norm()
    each = math.log(rows) / 2
    fits = (bases @ unit).square().cumsum(dim=0)
    alone = _nats(fits, rows) - each * torch.arange(1, len(bases) + 1)[:, None] - math.log(columns)
    if columns < 2:
        nothing = torch.full((columns,), -torch.inf, dtype=torch.float64)
        return alone.amax(dim=0), nothing, torch.zeros(columns, dtype=torch.int64)
    paired = torch.full((columns, columns), -torch.inf, dtype=torch.float64)
    weighted = unit / root.clamp_min(_TINY)  # each base has one root of the weights too many
    for a, b in ((0, 0), (0, 1), (1, 1)):
        along = (bases[a] * weighted) @ bases[b].T
        size = (bases[a] / root.clamp_min(_TINY)).square() @ bases[b].square().T
        evidence = _nats(along.square() / size.clamp_min(_TINY), rows)
        paired = torch.maximum(paired, torch.maximum(evidence, evidence.T))
    paired = paired - each - math.log(3 * columns * (columns - 1) / 2)
    paired.fill_diagonal_(-torch.inf)
    best, partner = paired.max(dim=1)
    return alone.amax(dim=0), best, partner


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
