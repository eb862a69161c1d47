"""What becomes of a step's finds: judged by the loss, taken into the front, kept as runners-up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.exactness import EXACTNESS
from symenum.core.target import Target
from symenum.expressions import Expression, evaluate
from symenum.expressions.candidate import Candidate
from symenum.fitting.fit_under_loss import judged, refit
from symenum.fitting.losses import Loss, typical_size
from symenum.front import Front
from symenum.heads.response import law_limit

__all__ = ["best_under", "loss_floor", "near", "outlier_weights", "runners_up"]


# --------------------------------------------------------------------------------------------------------------------
# What becomes of a step's finds: those that the prior allows, judged by the loss, and the front with them.
#
# Under the mean square error a find has its loss already. Under any other loss the scan and its fits are only a way
# to find forms: the best of them get their constants fitted anew under it.


_BEST = 8  # finds that are fitted under the loss, beside those that stand on a front of their own
_FAR = 4.0  # times the typical residual: rows beyond it are doubted


def best_under(
    loss: Loss,
    found: Sequence[Candidate],
    columns: Mapping[str, Tensor],
    target: Target,
    empty: Front,
    max_complexity: int,
    budget: Budget,
    *,
    fit: bool = True,
    seed: int = 0,
) -> list[Candidate]:
    """The finds that could stand on a front under the loss, as they are and, if `fit`, with constants fitted under it.

    `columns` and `target` are the rows to judge them on, `empty` a front without entries for the loss.
    """
    distinct = dict.fromkeys(candidate.expression for candidate in found)
    plain = [judged(expression, columns, target.y, target.weight, loss) for expression in distinct]
    plain = [candidate for candidate in plain if candidate.loss < float("inf")]
    simple = [candidate for candidate in plain if candidate.complexity <= max_complexity]
    chosen = {candidate.expression: candidate for candidate in empty.update(simple)}
    for candidate in sorted(simple, key=lambda one: one.loss)[:_BEST]:
        chosen[candidate.expression] = candidate
    if not fit:
        return list(chosen.values())
    fitted = refit(list(chosen), columns, target.y, target.weight, loss, budget=budget, seed=seed)
    return [*chosen.values(), *(candidate for candidate in fitted if candidate.expression not in chosen)]


def loss_floor(loss: Loss, target: Target) -> float:
    """The loss up to which a law equals y but for rounding."""
    step = law_limit(target) ** 0.5
    floors = [loss.total(target.y, target.y + sign * step, target.weight) for sign in (1.0, -1.0)]
    return max((floor for floor in floors if floor < float("inf")), default=0.0)


def outlier_weights(law: Expression, columns: Mapping[str, Tensor], target: Target) -> Target:
    """The target with less weight on the rows that the law is far from, for the next scan.

    A law that is not yet the right one is wrong about some rows; the weights fall slowly enough to forgive that.
    """
    values: Tensor = evaluate(law, columns)
    residual = values.to(torch.float64) - target.y
    size = max(typical_size(residual), EXACTNESS.scanned * typical_size(target.y))
    weight = target.weight / (1 + (residual / (_FAR * size)).square())
    return Target(target.y, weight / weight.sum())


# --------------------------------------------------------------------------------------------------------------------
# Laws that nearly stand on the front: with one more coefficient one of them may be better than what stands there.


_EACH = 12  # of a complexity; this and the next two by benchmarks/breadth.py, on laws drawn at random
_MOST = 240  # the simplest
_NEAR = 10.0  # times the loss of what stands on the front


def runners_up(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """The best few of each complexity, each function once; by complexity, then loss."""
    best: dict[int, list[Candidate]] = {}
    for candidate in sorted(candidates, key=lambda candidate: candidate.loss):
        kept = best.setdefault(candidate.complexity, [])
        if len(kept) < _EACH and not (kept and candidate.loss <= kept[-1].loss * (1 + EXACTNESS.tie)):
            kept.append(candidate)
    return tuple(candidate for complexity in sorted(best) for candidate in best[complexity])[:_MOST]


def near(front: Front, candidates: Iterable[Candidate]) -> list[Candidate]:
    """Those that are not far behind what stands on the front, and no simpler than all of it."""
    known = {entry.expression for entry in front}
    found = []
    for candidate in candidates:
        rival = min((entry.loss for entry in front if entry.complexity <= candidate.complexity), default=0.0)
        if candidate.loss <= _NEAR * rival and candidate.expression not in known:
            found.append(candidate)
    return found
