"""One feature: t = a·v + b, and the small families a·v + b/v + c, a·v + b·v² + c, a·v + b·log|v| + c.

Each family is made orthonormal once per feature, and all responses share it: y and its transforms cost one product.
Two different features are the business of `two_terms`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.exactness import EXACTNESS
from symenum.expressions import Constant, Expression, apply
from symenum.expressions.candidate import Candidate
from symenum.heads.features import Features
from symenum.heads.head import choose, fit_chosen, rounding_of
from symenum.heads.response import ONE, Response
from symenum.scans.projection import orthogonal_part_each, unit_orthogonal_part

__all__ = ["FAMILIES", "Family", "OneFeature", "scan_families"]

_CHUNK = 1 << 20  # values of features (8 MB) between two looks at the clock
_LARGEST = 1e100  # of a second member: its square must not overflow
_TIE = 1e-6  # relative loss that a place in the order adds, so that of equal fits the simplest stays


@dataclass(frozen=True)
class Family:
    """A family a·v + b·w(v) + c: the values and the expression of the second member w, None where there is none.

    `cost`: the complexity that the family adds to that of v.
    """

    name: str
    value: Callable[[Tensor], Tensor] | None
    term: Callable[[Expression], Expression] | None
    cost: int

    def terms(self, v: Expression) -> tuple[Expression, ...]:
        return (ONE, v) if self.term is None else (ONE, v, self.term(v))


def _log_magnitude(v: Expression) -> Expression:
    return apply("log", apply("abs", v))


FAMILIES = (
    Family("v", None, None, 2),
    Family("v, 1/v", torch.reciprocal, lambda v: apply("inv", v), 4),
    Family("v, v**2", torch.square, lambda v: apply("pow", v, Constant(2)), 4),
    Family("v, log|v|", lambda v: v.abs().log(), _log_magnitude, 7),
)
"""The second members that a law of one variable most often has: reciprocal, square, logarithm."""


@dataclass(frozen=True)
class Hits:
    """The best of one response: feature and family indices (m,) int64, relative residuals (m,) float64, ascending."""

    feature: Tensor
    family: Tensor
    residual: Tensor


def scan_families(V: Tensor, root: Tensor, T: Tensor, width: int, budget: Budget) -> list[Hits]:
    """The `width` best features V (N, n) for each target T (K, n), in any family; float64, on the CPU.

    `root` (n,): roots of the row weights.
    """
    background = (root / root.norm())[None]
    targets, _ = unit_orthogonal_part(T * root, background)
    loss = [torch.empty(0, dtype=torch.float64) for _ in T]
    where = [torch.empty(0, 2, dtype=torch.int64) for _ in T]
    step = max(1, _CHUNK // V.shape[1])
    for start in range(0, len(V), step):
        if budget.over():
            break
        rows = V[start : start + step]
        C, remaining = unit_orthogonal_part(rows * root, background)
        single = (C @ targets.T).square()
        for number, family in enumerate(FAMILIES):
            if number and budget.over():  # the first family at least: chunks of few rows hold many features
                break
            explained = single
            if family.value is not None:
                explained = single + (_second_member(family, rows, root, C, background) @ targets.T).square()
            # More features than `width` may be exact: of equal losses the first, which are the simplest, must stay.
            place = torch.arange(start, start + len(rows)) / len(V) + number
            lost = (1 - explained).clamp_min_(EXACTNESS.squares) * (1 + _TIE * place)[:, None]
            lost.masked_fill_((remaining <= EXACTNESS.remainder)[:, None], float("inf"))
            for k in range(len(T)):
                value, index = torch.topk(lost[:, k], min(width, len(rows)), largest=False)
                found = torch.stack([index + start, torch.full_like(index, number)], dim=1)
                loss[k], where[k] = torch.cat([loss[k], value]), torch.cat([where[k], found])
    return [_best(loss[k], where[k], V, root, targets[k], background, width) for k in range(len(T))]


def _second_member(family: Family, rows: Tensor, root: Tensor, C: Tensor, background: Tensor) -> Tensor:
    """Unit rows of w(v) off v and the background; zero where w depends on these linearly or is not finite."""
    assert family.value is not None  # only called for families with a second member
    second = family.value(rows)
    fine = torch.isfinite(second).all(dim=1) & (second.abs().amax(dim=1) < _LARGEST)
    second = torch.where(fine[:, None], second, torch.zeros_like(second))
    D, remaining = unit_orthogonal_part(second * root, background)
    D = orthogonal_part_each(D, C)
    norm: Tensor = D.norm(dim=1)
    alive = (remaining > EXACTNESS.remainder) & (norm > EXACTNESS.remainder)
    return torch.where(alive[:, None], D / norm.clamp_min(1e-300)[:, None], torch.zeros_like(D))


def _best(loss: Tensor, where: Tensor, V: Tensor, root: Tensor, target: Tensor, background: Tensor, width: int) -> Hits:
    """The `width` best by `loss` (m,), judged again by their residual vectors; `where` (m, 2): feature and family."""
    order = torch.argsort(loss, stable=True)[:width]
    order = order[torch.isfinite(loss[order])]
    feature, family = where[order].T
    residual = torch.empty(len(order), dtype=torch.float64)
    for number, record in enumerate(FAMILIES):
        mine = torch.nonzero(family == number).flatten()
        if not len(mine):
            continue
        rows = V[feature[mine]]
        C, _ = unit_orthogonal_part(rows * root, background)
        missed = target.expand_as(C)
        D = None if record.value is None else _second_member(record, rows, root, C, background)
        for _ in range(2):
            missed = orthogonal_part_each(missed, C, times=1)
            if D is not None:
                missed = orthogonal_part_each(missed, D, times=1)
        residual[mine] = missed.norm(dim=1)
    order = torch.argsort(residual, stable=True)
    return Hits(feature[order], family[order], residual[order])


@dataclass(frozen=True)
class OneFeature:
    """The best features for a response, or for several responses at once; `width` of each are candidates for a fit."""

    name: str = "one feature"
    width: int = 128

    def scan(self, features: Features, response: Response, k: int, budget: Budget) -> list[Candidate]:
        """See `Head`."""
        return self.scan_responses(features, [response], k, budget)

    def scan_responses(
        self, features: Features, responses: Sequence[Response], k: int, budget: Budget
    ) -> list[Candidate]:
        """For several responses on the same rows: the scan takes the row weights of the first, each fit its own."""
        if not responses or len(responses[0].data.scan_rows) < 2:
            return []
        _, root = responses[0].scanned()
        T = torch.stack([response.scanned()[0] for response in responses])
        out: list[Candidate] = []
        costs = torch.tensor([family.cost for family in FAMILIES])
        for response, hits in zip(responses, scan_families(features.values, root, T, self.width, budget), strict=True):
            complexity = features.complexity[hits.feature] + costs[hits.family]
            # Inexact fits of transforms are many and seldom better on y than those of y itself: k of them in all.
            wanted = k if response.is_target else max(1, k // len(responses))
            choice = choose(hits.residual, complexity, wanted, rounding_of(response))
            out += fit_chosen(response, choice, partial(_fit, features, response, hits), budget)
            if budget.over():
                break
        return out


def _fit(features: Features, response: Response, hits: Hits, at: int) -> list[Candidate | None]:
    return [response.fit(FAMILIES[int(hits.family[at])].terms(features.expression(int(hits.feature[at]))))]
