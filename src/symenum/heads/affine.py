"""Affine: a·f(v_i, v_j) + b for every binary operator and a·u(v_i) + b for every unary one.

With weights summing to 1 and t centred, of unit norm: R² = Sy² / (S2 - S1²), and for a product f = v_i·v_j all three
sums are matrix products (`pair_tests`). A quotient is a product with reciprocals; sums and differences follow from the
Gram matrix. Any other operator is evaluated pair by pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.dimensions import SAME_NUMBER, Dimension
from symenum.core.exactness import EXACTNESS
from symenum.core.threads import torch_threads
from symenum.engine.layer import apply_poisoned
from symenum.engine.layer_dimensions import admissible_parts, join
from symenum.expressions import apply
from symenum.expressions.candidate import Candidate
from symenum.heads.features import Features
from symenum.heads.head import Choice, choose, fit_chosen, rounding_of
from symenum.heads.response import ONE, Response
from symenum.operators import Kind, Operator
from symenum.operators.traits import ADDITIVE, ARITHMETIC, MULTIPLICATIVE, Role
from symenum.scans.best_pairs import BestPairs, Exact, Pairs, bounded_slices, certified_scan, scan_on_best_device
from symenum.scans.cuda_pairs import AffineProducts, AffineSums, PairScan
from symenum.scans.pair_tests import AffineProductTest, AffineSumTest
from symenum.scans.pairs import best_single
from symenum.scans.projection import (
    orthogonal_part_each,
    orthonormal,
    unit_orthogonal_part,
    unit_orthogonal_part_of_one,
    unit_rows,
)

__all__ = ["Affine", "best_affine", "rescore_affine", "scan_affine"]

# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_PAIRWISE_PART = 20  # so many times fewer features for an operator that is evaluated pair by pair
_UNARY_CAPS = 8  # so many times more features for a unary operator: their number enters once, not squared


@torch_threads(1)
def best_affine(
    V: Tensor, t: Tensor, root: Tensor, operator: Operator, *, width: int = 4096, budget: Budget | None = None
) -> Pairs:
    """The best a·operator(v_i, v_j) + b for rows of V (N, n) and t (n,), float64; `root`: roots of the weights (n,).

    Residuals are relative to the spread of t. Commutative operators and differences: i ≤ j only. Tensors on a GPU are
    scanned there; the result lies on the same device.
    """
    target = unit_orthogonal_part((t * root)[None], orthonormal(root[None]))[0][0]
    i, j = scan_affine(V, target, root, operator, width=width, budget=budget or Budget())
    residual = rescore_affine(V, target, root, operator, i, j)
    order = torch.argsort(residual, stable=True)
    order = order[torch.isfinite(residual[order])]
    return Pairs(i[order], j[order], residual[order])


def scan_affine(
    V: Tensor, target: Tensor, root: Tensor, operator: Operator, *, width: int, budget: Budget
) -> tuple[Tensor, Tensor]:
    """Indices of the `width` best pairs; `target` (n,): weighted, centred, of unit norm."""
    role = operator.role

    def exact(i: Tensor, j: Tensor) -> Tensor:
        return rescore_affine(V, target, root, operator, i, j).square()

    if V.is_cuda:
        return _scan_on_device(V, target, root, operator, exact, width=width, budget=budget)
    if role is Role.QUOTIENT:
        divides = (V != 0).all(dim=1)
        order = torch.argsort(divides.long(), descending=True, stable=True)  # so that v/v is the diagonal
        above = V[order]
        quotient = AffineProductTest(above, above[: int(divides.sum())].reciprocal(), target, root)
        i, j = certified_scan(
            quotient, lambda i, j: exact(order[i], order[j]), width=width, same=False, diagonal=False, budget=budget
        )
        return order[i], order[j]
    if role is Role.PRODUCT:
        product = AffineProductTest(V, V, target, root)
        return certified_scan(product, exact, width=width, same=True, diagonal=True, budget=budget)
    if role in ADDITIVE:  # a·(v_i - v_j) + b is a·(v_j - v_i) + b
        total = AffineSumTest(V, target, root, 1 if role is Role.SUM else -1)
        return certified_scan(total, exact, width=width, same=True, diagonal=role is Role.SUM, budget=budget)
    best = BestPairs(width)
    everything = torch.arange(len(V))
    for first in range(len(V)):
        if budget.over():
            break
        j = everything[first:] if operator.commutative else everything
        i = torch.full_like(j, first)
        loss = exact(i, j)
        good = torch.nonzero(loss < best.threshold).flatten()
        best.add(loss[good], i[good], j[good])
    return best.i, best.j


def _scan_on_device(
    V: Tensor, target: Tensor, root: Tensor, operator: Operator, exact: Exact, *, width: int, budget: Budget
) -> tuple[Tensor, Tensor]:
    if operator.role is Role.PRODUCT:
        scan = PairScan(AffineProducts(V, V, target, root, same=True))
        return scan.best(exact, width, diagonal=True, budget=budget)
    if operator.role is Role.QUOTIENT:
        divisors = torch.nonzero((V != 0).all(dim=1)).flatten()
        scan = PairScan(AffineProducts(V, V[divisors].reciprocal(), target, root, same=False))
        i, j = scan.best(lambda i, j: exact(i, divisors[j]), width, diagonal=False, budget=budget)
        return i, divisors[j]
    if operator.role in ADDITIVE:
        sign = 1 if operator.role is Role.SUM else -1
        sums = PairScan(AffineSums(AffineSumTest(V, target, root, sign)))
        return sums.best(exact, width, diagonal=sign > 0, budget=budget)
    raise ValueError(f"operator {operator.name!r} has no scan on a GPU: move the tensors to the CPU")


def rescore_affine(V: Tensor, target: Tensor, root: Tensor, operator: Operator, i: Tensor, j: Tensor) -> Tensor:
    """Residual norms (m,) of the unit target on operator(v_i, v_j) and 1, by the residual vectors; inf: no fit.

    By sums of rows only, so that a pair's residual does not depend on the pairs beside it.
    """
    unit = unit_rows(root[None])[0]
    out = torch.full((len(i),), float("inf"), dtype=torch.float64, device=V.device)
    for part in bounded_slices(len(i), V.shape[1], on_gpu=V.is_cuda):
        f = apply_poisoned(operator, V[i[part]], V[j[part]])
        is_finite = torch.isfinite(f).all(dim=1)
        C, remaining = unit_orthogonal_part_of_one(torch.where(is_finite[:, None], f, torch.zeros_like(f)) * root, unit)
        residual = target - (C * target).sum(dim=1, keepdim=True) * C
        residual = orthogonal_part_each(residual, C, times=1)
        norm: Tensor = residual.norm(dim=1)
        out[part] = norm.masked_fill_(~is_finite | (remaining < EXACTNESS.rank), float("inf"))
    return out


@dataclass(frozen=True)
class Affine:
    """a·operator(v, w) + b for every operator of `operators` on the `cap` simplest features.

    An operator that is no sum, difference, product or quotient is evaluated pair by pair, on a twentieth of them.
    With a `device` other than "cpu", scans by matrix products run on a GPU where there is one and they are large.
    """

    operators: tuple[Operator, ...]
    cap: int = 4000
    width: int = 4096
    device: str = "cpu"
    name: str = "affine"

    def scan(self, features: Features, response: Response, k: int, budget: Budget) -> list[Candidate]:
        """See `Head`."""
        t, root = response.scanned()
        if len(t) < 2:
            return []
        rounding = rounding_of(response)
        out: list[Candidate] = []
        for operator in self.operators:
            if budget.over():
                break
            found = self._scan_one(operator, features, response.dimension_of_terms, t, root, k, rounding, budget)
            out += fit_chosen(response, found.choice, partial(found.fit, response), budget)
            if any(response.data.is_law(candidate) for candidate in out):
                break
        return out

    def _scan_one(
        self,
        operator: Operator,
        features: Features,
        wanted: Dimension | None,
        t: Tensor,
        root: Tensor,
        k: int,
        rounding: float,
        budget: Budget,
    ) -> _Found:
        if operator.kind is Kind.UNARY:
            return self._unary(operator, features.simplest(_UNARY_CAPS * self.cap), t, root, k, rounding)
        by_products = operator.role in ARITHMETIC
        scale_free = operator.role in MULTIPLICATIVE
        chosen = features.up_to_scale(budget) if scale_free else features
        chosen = chosen.simplest(self.cap if by_products else self.cap // _PAIRWISE_PART)
        pairs = self._pairs(operator, chosen, wanted, t, root, budget)
        choice = choose(pairs.residual, chosen.complexity[pairs.i] + chosen.complexity[pairs.j], k, rounding)
        return _Found(operator, chosen, (pairs.i, pairs.j), choice)

    def _pairs(
        self, operator: Operator, chosen: Features, wanted: Dimension | None, t: Tensor, root: Tensor, budget: Budget
    ) -> Pairs:
        """The best pairs; where units are known, of those that have the dimension of t."""
        if wanted is None or chosen.dimension is None:
            return self._best(chosen.values, t, root, operator, budget)
        found: list[Pairs] = []
        for part in admissible_parts(chosen.dimension, wanted.number, operator.dimension_rule):
            if budget.over():
                break
            pairs = self._best(chosen.values[part], t, root, operator, budget)
            i, j = part[pairs.i], part[pairs.j]
            joined = join(
                operator, chosen.dimension[i], chosen.dimension[j], torch.full_like(pairs.residual, torch.nan)
            )
            right = (joined - wanted.number).abs() < SAME_NUMBER
            found.append(Pairs(i[right], j[right], pairs.residual[right]))
        if not found:
            nothing = torch.empty(0, dtype=torch.int64)
            return Pairs(nothing, nothing, nothing.double())
        i, j, residual = (torch.cat([getattr(one, name) for one in found]) for name in ("i", "j", "residual"))
        order = torch.argsort(residual, stable=True)[: self.width]
        return Pairs(i[order], j[order], residual[order])

    def _best(self, V: Tensor, t: Tensor, root: Tensor, operator: Operator, budget: Budget) -> Pairs:
        """`best_affine` on the device that suits it; the result lies on the CPU."""
        by_products = operator.role in ARITHMETIC
        return scan_on_best_device(
            partial(best_affine, operator=operator, width=self.width, budget=budget), V, t, root,
            work=len(V) ** 2 * len(t), device=self.device if by_products else "cpu", head=self.name,
        )  # fmt: skip

    def _unary(
        self, operator: Operator, features: Features, t: Tensor, root: Tensor, k: int, rounding: float
    ) -> _Found:
        values = apply_poisoned(operator, features.values, None)
        finite = torch.nonzero(torch.isfinite(values).all(dim=1)).flatten()
        which, residual = best_single(values[finite] * root, t * root, orthonormal(root[None]), self.width)
        choice = choose(residual, features.complexity[finite[which]], k, rounding)
        return _Found(operator, features, (finite[which],), choice)


@dataclass(frozen=True)
class _Found:
    """The best of the scan of one operator: the indices of the operands, one tensor (m,) int64 for each operand."""

    operator: Operator
    features: Features
    operands: tuple[Tensor, ...]
    choice: Choice

    def fit(self, response: Response, at: int) -> list[Candidate | None]:
        operands = (self.features.expression(int(side[at])) for side in self.operands)
        return [response.fit((ONE, apply(self.operator, *operands)))]
