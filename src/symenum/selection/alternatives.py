"""The laws that the data cannot tell from the chosen one, each with its weight: the probability of being the law.

The weight goes by the evidence, among the laws that are named here: it says nothing about laws that nobody has thought
of. What these may differ by is a part of the band (`band`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch

from symenum.core.exactness import EXACTNESS
from symenum.core.target import Training
from symenum.expressions import Expression, evaluate
from symenum.expressions.candidate import Candidate
from symenum.fitting.free_constants import free_constants, with_constants
from symenum.fitting.losses import Loss
from symenum.selection.evidence import evidence, evidence_of_loss, law_price

__all__ = ["Alternative", "find_alternatives"]

INDISTINCT = math.log(20.0)
"""Nats of evidence: a law that is less than 20 times less probable than another cannot be told from it, as at 95%."""
_JUDGED = 60  # laws, the best by their loss and price, whose evidence is worked out


@dataclass(frozen=True)
class Alternative:
    """A law, its loss on the rows of the fit, and its weight; the weights of all alternatives sum to 1."""

    law: Candidate
    weight: float


def find_alternatives(
    chosen: Expression, kept: Iterable[Candidate], training: Training, floor: float, loss: Loss
) -> tuple[Alternative, ...]:
    """The chosen law, and those of the `kept` ones that the data cannot tell from it, by falling weight.

    Of laws of one form, or of one function, the most probable stays. A law of higher evidence than the chosen one,
    which another rule may have passed over, is named too. `floor` and `loss` as in `evidence`.
    """
    target = training.target
    others = {law.expression: law.loss for law in kept if law.expression != chosen}

    def rough(expression: Expression) -> float:
        return evidence_of_loss(others[expression], floor, target.rows) - law_price(expression, target.rows)

    laws = [chosen, *sorted(others, key=rough, reverse=True)[:_JUDGED]]
    weighed = dict(zip(laws, evidence(laws, training, floor, loss), strict=True))
    bound = weighed[chosen] - INDISTINCT
    probable = [law for law in laws[1:] if weighed[law] >= bound]
    named = _distinct([chosen, *sorted(probable, key=lambda law: -weighed[law])], training)
    top = max(weighed[law] for law in named)
    shares = np.array([math.exp(weighed[law] - top) if top > -math.inf else 1.0 for law in named])
    found = [
        Alternative(Candidate(law, _loss(law, training, loss)), float(share))
        for law, share in zip(named, shares / shares.sum(), strict=True)
    ]
    return tuple(sorted(found, key=lambda one: -one.weight))


def _distinct(laws: list[Expression], training: Training) -> list[Expression]:
    """The laws without those that have the form, or the values, of one before them."""
    named: list[Expression] = []
    forms: set[Expression] = set()
    seen: list[torch.Tensor] = []
    size = float(training.target.mean_square**0.5)
    for law in laws:
        form = with_constants(law, [1.0] * len(free_constants(law)))
        values = evaluate(law, training.columns).to(torch.float64)
        same = any(float((values - other).abs().max()) <= EXACTNESS.scanned * size for other in seen)
        if form not in forms and not same:
            named.append(law)
            forms.add(form)
            seen.append(values)
    return named


def _loss(law: Expression, training: Training, loss: Loss) -> float:
    target = training.target
    return loss.total(target.y, evaluate(law, training.columns).to(torch.float64), target.weight)
