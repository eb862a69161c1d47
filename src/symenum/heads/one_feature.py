"""One feature beside a background: t = a·v + b, and the families a·v + b/v + c, a·v + b·v² + c, a·v + b·log|v| + c.

The background is the offset by default. With more terms, such as a polynomial or the terms of a law that is to grow,
all of them get new coefficients, and only the first family is tried.

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
from symenum.core.threads import available_cores, run_jobs
from symenum.expressions import Constant, Expression, apply
from symenum.expressions.candidate import Candidate
from symenum.heads.features import Features
from symenum.heads.head import choose, fit_chosen, rounding_of
from symenum.heads.response import ONE, Response
from symenum.scans.projection import orthogonal_part_each, orthonormal, unit_orthogonal_part

__all__ = ["FAMILIES", "Family", "OneFeature", "scan_families"]

_BLOCK = 4096  # features that one thread scans between two looks at the clock
_TILE = 1 << 16  # values of features that are worked on at once: 512 KiB, so that a few copies stay in the cache
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


def scan_families(
    V: Tensor, root: Tensor, T: Tensor, width: int, budget: Budget, background: Tensor | None = None
) -> list[Hits]:
    """The `width` best features V (N, n) for each target T (K, n), in any family; float64, on the CPU.

    `root` (n,): roots of the row weights. `background` (k, n): values of the terms that stand beside the feature, by
    default the offset; beside others only the first family is tried. Over budget, the best of the blocks of features
    that were scanned.
    """
    families = FAMILIES if background is None else FAMILIES[:1]
    background = (root / root.norm())[None] if background is None else orthonormal(background * root)
    targets, _ = unit_orthogonal_part(T * root, background)
    blocks = range(0, len(V), _BLOCK)
    found: list[list[tuple[Tensor, Tensor]]] = [[] for _ in blocks]

    def work(place: int, _: Budget) -> int:
        found[place] = _scan_block(V, blocks[place], root, targets, background, width, families)
        return 1

    run_jobs([partial(work, place) for place in range(len(blocks))], budget, available_cores())
    best = [hits for block in found for hits in block]
    if not best:
        best = [(torch.empty(len(T), 0, dtype=torch.float64), torch.empty(len(T), 0, 2, dtype=torch.int64))]
    loss, where = (torch.cat(parts, dim=1) for parts in zip(*best, strict=True))
    return [_best(loss[k], where[k], V, root, targets[k], background, width) for k in range(len(T))]


def _scan_block(
    V: Tensor,
    start: int,
    root: Tensor,
    targets: Tensor,
    background: Tensor,
    width: int,
    families: Sequence[Family],
) -> list[tuple[Tensor, Tensor]]:
    """For each family the `width` best of a block of features: losses (K, m), and feature and family (K, m, 2)."""
    block = V[start : start + _BLOCK]
    explained = torch.empty(len(families), len(targets), len(block), dtype=torch.float64)
    remaining = torch.empty(len(block), dtype=torch.float64)
    step = max(1, _TILE // V.shape[1])
    for low in range(0, len(block), step):
        tile = slice(low, low + step)
        rows = block[tile]
        C, remaining[tile] = unit_orthogonal_part(rows * root, background)
        single = (targets @ C.T).square_()
        for number, family in enumerate(families):
            explained[number, :, tile] = single
            if family.value is not None:
                D, scale = _second_member(family, rows, root, C, background)
                explained[number, :, tile] += (targets @ D.T).mul_(scale).square_()
    best: list[tuple[Tensor, Tensor]] = []
    for number in range(len(families)):
        # More features than `width` may be exact: of equal losses the first, which are the simplest, must stay.
        place = torch.arange(start, start + len(block)) / len(V) + number
        lost = (1 - explained[number]).clamp_min_(EXACTNESS.squares) * (1 + _TIE * place)
        lost.masked_fill_(remaining <= EXACTNESS.remainder, float("inf"))
        value, index = torch.topk(lost, min(width, len(block)), dim=1, largest=False)
        best.append((value, torch.stack([index + start, torch.full_like(index, number)], dim=2)))
    return best


def _second_member(family: Family, rows: Tensor, root: Tensor, C: Tensor, background: Tensor) -> tuple[Tensor, Tensor]:
    """w(v) off v and the background (m, n), and the factors (m,) that make its rows units.

    A factor is 0 where w depends on v and the background linearly, or is not finite.
    """
    assert family.value is not None  # only called for families with a second member
    second = family.value(rows)
    moderate = second.abs().amax(dim=1) < _LARGEST  # false for NaN
    if not bool(moderate.all()):
        second = torch.where(moderate[:, None], second, torch.zeros_like(second))
    D, remaining = unit_orthogonal_part(second * root, background)
    D = orthogonal_part_each(D, C)
    norm: Tensor = D.norm(dim=1)
    alive = (remaining > EXACTNESS.remainder) & (norm > EXACTNESS.remainder)
    return D, torch.where(alive, 1 / norm, torch.zeros_like(norm))


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
        D: Tensor | None = None
        if record.value is not None:
            second, scale = _second_member(record, rows, root, C, background)
            D = second * scale[:, None]
        missed = target.expand_as(C)
        for _ in range(2):
            missed = orthogonal_part_each(missed, C, times=1)
            if D is not None:
                missed = orthogonal_part_each(missed, D, times=1)
        residual[mine] = missed.norm(dim=1)
    order = torch.argsort(residual, stable=True)
    return Hits(feature[order], family[order], residual[order])


@dataclass(frozen=True)
class OneFeature:
    """The best features for a response, or for several responses at once; `width` of each are candidates for a fit.

    `background`: terms that stand beside the feature.
    """

    name: str = "one feature"
    width: int = 128
    background: tuple[Expression, ...] = (ONE,)

    def scan(self, features: Features, response: Response, k: int, budget: Budget) -> list[Candidate]:
        """See `Head`."""
        return self.scan_responses(features, [response], response, k, budget)

    def scan_responses(
        self, features: Features, responses: Sequence[Response], weighted: Response, k: int, budget: Budget
    ) -> list[Candidate]:
        """For several responses on the same rows: the scan takes the row weights of `weighted`, each fit its own."""
        if not responses or len(weighted.data.scan_rows) < 2:
            return []
        out: list[Candidate] = []
        for dimension in dict.fromkeys(response.dimension_of_terms for response in responses):
            alike = [response for response in responses if response.dimension_of_terms == dimension]
            fitting = features.of_dimension(dimension)
            out += self._scan_alike(fitting, alike, weighted, k, budget) if len(fitting) else []
        return out

    def _scan_alike(
        self, features: Features, responses: Sequence[Response], weighted: Response, k: int, budget: Budget
    ) -> list[Candidate]:
        """The scan for responses of one dimension, all with the same terms beside the feature."""
        _, root = weighted.scanned()
        T = torch.stack([response.scanned()[0] for response in responses])
        data = responses[0].data
        background = tuple(term for term in self.background if responses[0].suits(term))
        beside = None
        if background != (ONE,):
            beside = torch.zeros(0, len(data.scan_rows), dtype=torch.float64)
        if background not in ((ONE,), ()):
            beside = torch.stack([data.evaluate(term)[data.scan_rows] for term in background])
            if not bool(torch.isfinite(beside).all()):
                return []
        found = scan_families(features.values, root, T, self.width, budget, beside)
        out: list[Candidate] = []
        costs = torch.tensor([family.cost for family in FAMILIES])
        for response, hits in zip(responses, found, strict=True):
            complexity = features.complexity[hits.feature] + costs[hits.family]
            # Inexact fits of transforms are many and seldom better on y than those of y itself: k of them in all.
            wanted = k if response.is_target else max(1, k // len(responses))
            choice = choose(hits.residual, complexity, wanted, rounding_of(response))
            out += fit_chosen(response, choice, partial(self._fit, features, response, hits, background), budget)
            if budget.over():
                break
        return out

    def _fit(
        self, features: Features, response: Response, hits: Hits, background: tuple[Expression, ...], at: int
    ) -> list[Candidate | None]:
        feature = features.expression(int(hits.feature[at]))
        if background == (ONE,):
            return [response.fit(FAMILIES[int(hits.family[at])].terms(feature))]
        return [response.fit([*background, feature])]
