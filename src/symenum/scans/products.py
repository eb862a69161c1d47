"""All products of up to four factors, scored against a residual without being stored.

A product of three or four factors is a row of one or two factors times a row of two, so all scores are matrix products
of two short tables H_a and H_b: (r∘H_a)·H_b, squared, divided by the square of the norm. Factors are the slots, their
reciprocals, and functions of a slot. The *tier* of a product is the number of its factors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce

import torch
from torch import Tensor

from symenum.core.budget import NO_LIMIT, Budget
from symenum.engine.layer import apply_poisoned
from symenum.expressions import Apply, Constant, Expression, apply
from symenum.operators import Abilities, Kind, Operator
from symenum.operators.traits import Role
from symenum.scans.best_pairs import CPU

__all__ = ["Factors", "Products", "build_factors"]


FactorIndices = tuple[int, ...]  # the indices of the factors of a product, ascending
_LARGEST = 1e8  # bound of a factor's largest |value| and of its inverse: products of four stay in float32's range
_SMALLEST_SQUARE = 1e-30  # least square of a norm that is divided by; columns have a mean square of 1
# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_TILE, _GPU_TILE = 1024, 8192  # rows and columns of a tile of scores: 8 MiB in float64; on a GPU 256 MiB in float32
_CACHE_BYTES = 1 << 29  # for the norms of all tiles, which do not change from scan to scan
_SINGLE_FROM = 500_000  # products of four from which all are screened in single precision; the caller judges in double
_MAX_FUNCTION_SLOTS = 6  # slots up to which functions of a slot are factors; with more the features have them
_MAX_EXTRA_SLOTS = 3  # slots up to which exp(-x) and sqrt(x) are factors too


@dataclass(frozen=True)
class Factors:
    """m factors: `values` (m, n) float64 on the CPU, their `expressions`, and the `slot` that each is made of.

    `slot` is i + 1 for slot i itself, -(i + 1) for its reciprocal, 0 for a function of a slot.
    """

    values: Tensor
    expressions: tuple[Expression, ...]
    slot: tuple[int, ...]

    def products(self, ids: Sequence[FactorIndices]) -> Tensor:
        """Values (len(ids), n) float64 of products of one tier."""
        return self.values[torch.tensor(ids, dtype=torch.int64)].prod(dim=1)

    def expression(self, ids: FactorIndices) -> Expression:
        """The product as a tree: the factors divided by those whose reciprocals occur."""
        above = [self.expressions[i] for i in ids if self.slot[i] >= 0]
        below: list[Expression] = []
        for i in ids:
            node = self.expressions[i]
            if self.slot[i] < 0 and isinstance(node, Apply):
                below.append(node.operands[1])
        top = reduce(lambda a, b: apply("mul", a, b), above) if above else Constant(1)
        return apply("div", top, reduce(lambda a, b: apply("mul", a, b), below)) if below else top

    def cancels(self, ids: FactorIndices) -> bool:
        """Whether a slot and its reciprocal both occur, so that it equals a shorter product."""
        slots = {self.slot[i] for i in ids} - {0}
        return any(-slot in slots for slot in slots)


def build_factors(slots: Sequence[Expression], values: Tensor, operators: Sequence[Operator]) -> Factors:
    """The factors on slot values (slots, n) float64: slots, reciprocals, and for few slots functions of one slot.

    A factor that is not finite, or whose largest value is out of range, is left out.
    """
    rows: list[Tensor] = []
    expressions: list[Expression] = []
    which: list[int] = []

    def add(row: Tensor, expression: Expression, slot: int) -> None:
        size = float(row.abs().max())
        if bool(torch.isfinite(row).all()) and 1 / _LARGEST < size < _LARGEST:
            rows.append(row)
            expressions.append(expression)
            which.append(slot)

    able = Abilities(tuple(operators))
    unary = [
        operator
        for operator in operators
        if operator.kind is Kind.UNARY and operator.role is not Role.NEGATION and operator.form is None
    ]
    for i, (slot, row) in enumerate(zip(slots, values, strict=True)):
        if bool(row.max() == row.min()):
            continue  # a constant factor is the coefficient's work
        add(row, slot, i + 1)
        if able.quotients:
            add(1 / row, apply("inv", slot), -(i + 1))
        if len(slots) <= _MAX_FUNCTION_SLOTS:
            for operator in unary:
                add(apply_poisoned(operator, row, None), apply(operator, slot), 0)
        if len(slots) <= _MAX_EXTRA_SLOTS:
            if Role.EXPONENTIAL in able.roles:
                add(torch.exp(-row), apply("exp", apply("neg", slot)), 0)
            # exp(log(x)/2), which no short product reaches
            if able.exponentials_of_logarithms and Role.ROOT not in able.roles:
                add(torch.sqrt(row), apply("sqrt", slot), 0)
    stacked = torch.stack(rows) if rows else torch.empty(0, values.shape[1], dtype=torch.float64)
    return Factors(stacked, tuple(expressions), tuple(which))


@dataclass(frozen=True)
class Products:
    """All products of 1 … 4 `factors`; `root` (n,) float64: the square roots of the row weights.

    They are screened on `device`; results are on the CPU. `cache_bytes` bounds the memory for norms.
    """

    factors: Factors
    root: Tensor
    cache_bytes: int = _CACHE_BYTES
    device: torch.device = CPU
    _norms: dict[tuple[int, int, int], Tensor] = field(default_factory=dict)

    @cached_property
    def pairs(self) -> tuple[Tensor, Tensor]:
        """The factors i ≤ j of each product of two, int64, ordered by i; a slot times its reciprocal is left out."""
        count = len(self.factors.values)
        i, j = torch.triu_indices(count, count)
        slot = torch.tensor(self.factors.slot, dtype=torch.int64)
        keep = torch.nonzero((slot[i] != -slot[j]) | (slot[i] == 0)).flatten()
        return i[keep], j[keep]

    @cached_property
    def _pair_ids(self) -> list[FactorIndices]:
        i, j = self.pairs
        return list(zip(i.tolist(), j.tolist(), strict=True))

    @cached_property
    def two(self) -> Tensor:
        """Values (pairs, n) float64 of the products of two."""
        i, j = self.pairs
        return self.factors.values[i] * self.factors.values[j]

    @property
    def sizes(self) -> dict[int, int]:
        """About how many products each tier has."""
        one, two = len(self.factors.values), len(self.pairs[0])
        return {1: one, 2: two, 3: one * two // 3 + 1, 4: two * two // 6 + 1}

    def ids(self, tier: int, a: int, b: int = 0) -> FactorIndices:
        """The factors of a product, from its rows a and b in the two tables."""
        if tier == 1:
            return (a,)
        if tier == 2:
            return self._pair_ids[a]
        left = (a,) if tier == 3 else self._pair_ids[a]
        return tuple(sorted(left + self._pair_ids[b]))

    def screen(self, residual: Tensor, tier: int, count: int, budget: Budget = NO_LIMIT) -> list[FactorIndices]:
        """About `count` products of the tier: those that explain most of a weighted residual (n,) float64, each alone.

        Raises CutShortError when the budget is over.
        """
        one, two = self._tables
        along = (residual * self.root).to(one)
        if tier <= 2:
            rows = (one, two)[tier - 1]
            score = (rows @ along).square() / (rows.square() @ self._weight).clamp_min(_SMALLEST_SQUARE)
            return [self.ids(tier, a) for a in torch.topk(score, min(count, len(score))).indices.tolist()]
        a, b = self._scan(along, tier, count, budget)
        found = (self.ids(tier, *pair) for pair in zip(a.tolist(), b.tolist(), strict=True))
        return [ids for ids in dict.fromkeys(found) if not self.factors.cancels(ids)]

    @cached_property
    def _tables(self) -> tuple[Tensor, Tensor]:
        single = self.sizes[4] > _SINGLE_FROM
        dtype = torch.float32 if single else torch.float64

        def scaled(rows: Tensor) -> Tensor:
            # By the root mean square, not the norm: products must not underflow in single precision.
            return (rows / rows.square().mean(dim=1, keepdim=True).sqrt()).to(self.device, dtype)

        return scaled(self.factors.values), scaled(self.two)

    @property
    def _tile(self) -> int:
        return _GPU_TILE if self.device.type == "cuda" else _TILE

    @cached_property
    def _weight(self) -> Tensor:
        return self.root.square().to(self._tables[0])

    def _scan(self, along: Tensor, tier: int, count: int, budget: Budget) -> tuple[Tensor, Tensor]:
        """Rows (int64) of the left and the right table of the best products of three or four factors.

        Left halves are sorted by their last factor, right halves by their first. Where last > first, another pair of
        halves is the same product, so whole tiles are skipped.
        """
        one, two = self._tables
        i, j = self.pairs
        order_left = torch.argsort(j, stable=True) if tier == 4 else torch.arange(len(one))
        left = two[order_left.to(self.device)] if tier == 4 else one
        last = j[order_left] if tier == 4 else order_left
        score = left.new_empty(0)
        rows = columns = left.new_empty(0, dtype=torch.int64)
        size = self._tile
        threshold = 0.0
        for a in range(0, len(left), size):
            budget.check()
            part = left[a : a + size]
            for b in range(0, len(two), size):
                right = two[b : b + size]
                if int(i[min(b + size, len(two)) - 1]) < int(last[a]):
                    continue
                inverse = self._inverse_norms((tier, a, b), part, right, last[a : a + size])
                tile = ((part * along) @ right.T).square_().mul_(inverse)
                top = tile.amax(dim=1)
                alive = torch.nonzero(top > threshold).flatten()
                if not len(alive):
                    continue
                alive = alive[torch.topk(top[alive], min(count, len(alive))).indices]
                best = tile[alive].flatten()
                value, at = torch.topk(best, min(count, len(best)))
                score = torch.cat([score, value])
                rows = torch.cat([rows, alive[at // tile.shape[1]] + a])
                columns = torch.cat([columns, at % tile.shape[1] + b])
                if len(score) > count:
                    score, order = torch.topk(score, count)
                    rows, columns = rows[order], columns[order]
                    threshold = float(score.min())
        order = torch.argsort(score, descending=True)
        order = order[score[order] > 0]
        return order_left[rows[order].cpu()], columns[order].cpu()

    def _inverse_norms(self, key: tuple[int, int, int], left: Tensor, right: Tensor, last: Tensor) -> Tensor:
        """1/|f|² of the products f of a tile, 0 for one that another pair of halves gives; kept while memory allows."""
        known = self._norms.get(key)
        if known is not None:
            return known
        inverse = 1 / ((left.square() * self._weight) @ right.square().T).clamp_min(_SMALLEST_SQUARE)
        first = self.pairs[0][key[2] : key[2] + len(right)]
        inverse.masked_fill_(last.to(self.device)[:, None] > first.to(self.device)[None], 0.0)
        if (len(self._norms) + 1) * self._tile**2 * inverse.element_size() <= self.cache_bytes:
            self._norms[key] = inverse
        return inverse
