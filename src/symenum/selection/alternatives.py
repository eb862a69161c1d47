"""The laws that the data cannot tell from the chosen one, each with its weight: the probability of being the law.

The weight goes by the evidence, among the laws that are named here: it says nothing about laws that nobody has thought
of. What these may differ by is a part of the band (`band`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from symenum.core.target import Training
from symenum.expressions import Expression, evaluate
from symenum.expressions.candidate import Candidate
from symenum.fitting.losses import Loss
from symenum.selection.evidence import evidence, evidence_of_loss, law_price
from symenum.selection.same_law import families, same_as

__all__ = ["Alternative", "find_alternatives", "most_probable"]

INDISTINCT = math.log(20.0)
"""Nats of evidence: a law that is less than 20 times less probable than another cannot be told from it, as at 95%."""
_JUDGED = 60  # laws, the best by their loss and price, whose evidence is worked out


@dataclass(frozen=True)
class Alternative:
    """A law, its loss on the rows of the fit, and its weight; the weights of all alternatives sum to 1."""

    law: Candidate
    weight: float


def find_alternatives(
    chosen: Expression,
    kept: Iterable[Candidate],
    training: Training,
    floor: float,
    loss: Loss,
    allowed: Callable[[Candidate], bool] = lambda law: True,
) -> tuple[Alternative, ...]:
    """The chosen law, and those of the `kept` ones that the data cannot tell from it, by falling weight.

    Ways to write one law, and other values of its constants, count once (`same_law`), by the most probable of them: a
    weight says how sure the form is. What is named is the chosen law, of other forms the most probable one. A form of
    higher evidence than the chosen one, which another rule may have passed over, is named too. `floor` and `loss` as
    in `evidence`; `allowed`: whether a law may be named at all.
    """
    weighed = _weighed([chosen], kept, training, floor, loss)
    losses = {law.expression: law.loss for law in kept}
    bound = weighed[chosen] - INDISTINCT
    probable = [law for law in weighed if law != chosen and weighed[law] >= bound]
    sane = [law for law in sorted(probable, key=lambda law: -weighed[law]) if allowed(Candidate(law, losses[law]))]
    forms = families([chosen, *sane], training)
    best = [max(weighed[law] for law in form) for form in forms]
    named = [(form[0], nats) for form, nats in zip(forms, best, strict=True) if nats >= best[0] - INDISTINCT]
    top = max(best)
    shares = np.array([math.exp(nats - top) if top > -math.inf else 1.0 for _, nats in named])
    found = [
        Alternative(Candidate(law, _loss(law, training, loss)), float(share))
        for (law, _), share in zip(named, shares / shares.sum(), strict=True)
    ]
    return tuple(sorted(found, key=lambda one: -one.weight))


def most_probable(
    front: Sequence[Candidate],
    others: Iterable[Candidate],
    training: Training,
    floor: float,
    loss: Loss,
    allowed: Callable[[Candidate], bool],
) -> Candidate:
    """The most probable law of a front and the others, or the same law as the front has it, if that is no longer.

    (The front has its constants in fewer digits.) Arguments as in `find_alternatives`, where no law has more weight.
    """
    entries = [law.expression for law in front]
    known = {law.expression: law for law in (*others, *front)}
    weighed = _weighed(entries, known.values(), training, floor, loss)
    on_front = max(entries, key=lambda law: weighed[law])
    better = [law for law in weighed if weighed[law] > weighed[on_front]]
    best = next((law for law in sorted(better, key=lambda law: -weighed[law]) if allowed(known[law])), on_front)
    if best == on_front:
        return known[on_front]
    price = law_price(best, training.target.rows)
    short = [law for law in entries if law_price(law, training.target.rows) <= price]
    same = [law for law, one in zip(short, same_as(best, short, training), strict=True) if one]
    return known[max(same, key=lambda law: weighed[law], default=best)]


def _weighed(
    first: Sequence[Expression], kept: Iterable[Candidate], training: Training, floor: float, loss: Loss
) -> dict[Expression, float]:
    """The evidence for the first laws, and for the best of the kept ones by their loss and price."""
    rows = training.target.rows
    others = {law.expression: law.loss for law in kept if law.expression not in first}

    def rough(expression: Expression) -> float:
        return evidence_of_loss(others[expression], floor, rows) - law_price(expression, rows)

    laws = [*first, *sorted(others, key=rough, reverse=True)[:_JUDGED]]
    return dict(zip(laws, evidence(laws, training, floor, loss), strict=True))


def _loss(law: Expression, training: Training, loss: Loss) -> float:
    target = training.target
    return loss.total(target.y, evaluate(law, training.columns).to(torch.float64), target.weight)
