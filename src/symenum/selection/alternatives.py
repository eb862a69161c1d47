"""The laws that the data cannot tell from the chosen one, each with its weight: the probability of being the law.

The weight goes by the evidence, among the laws that are named here: it says nothing about laws that nobody has thought
of. What these may differ by is a part of the band (`band`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from symenum.core.target import Training
from symenum.expressions import Expression, evaluate
from symenum.expressions.candidate import Candidate
from symenum.fitting.losses import Loss
from symenum.selection.evidence import INDISTINCT, evidence_of_loss, law_price
from symenum.selection.growing_noise import NoiseAround, fitted_to_growing_noise
from symenum.selection.influence import settled_evidence
from symenum.selection.same_law import families, same_as

__all__ = ["Alternative", "alternatives_by_noise", "find_alternatives", "most_probable", "most_promising"]

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


def alternatives_by_noise(
    chosen: Expression,
    kept: Iterable[Candidate],
    training: Training,
    noise: NoiseAround,
    floor: float,
    loss: Loss,
    allowed: Callable[[Candidate], bool] = lambda law: True,
) -> tuple[Alternative, ...]:
    """`find_alternatives` where the noise grows: laws are compared with constants that suit it, on rows weighed by it.

    `noise`: that around the chosen law. Losses are those on the rows of the fit, as everywhere.
    """
    by_noise = noise.weigh(training)
    promising = most_promising(kept, floor, training.target.rows)
    fitted = [one.law for one in fitted_to_growing_noise(promising, training, floor) if one.nats > -math.inf]
    suited = [Candidate(law, _loss(law, by_noise, loss)) for law in fitted]
    found = find_alternatives(chosen, suited, by_noise, floor, loss, allowed)
    return tuple(replace(one, law=replace(one.law, loss=_loss(one.law.expression, training, loss))) for one in found)


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
    """The evidence for the first laws, and for the best of the kept ones by their loss and price.

    It is that on the rows which do not decide the constants of the best one alone (`influence`).
    """
    others = most_promising((law for law in kept if law.expression not in first), floor, training.target.rows)
    laws = [*first, *others]
    return dict(zip(laws, settled_evidence(laws, training, floor, loss), strict=True))


def most_promising(laws: Iterable[Candidate], floor: float, rows: int) -> list[Expression]:
    """At most sixty of the laws, the best first by their loss on so many rows and their price."""
    losses = {law.expression: law.loss for law in laws}

    def rough(expression: Expression) -> float:
        return evidence_of_loss(losses[expression], floor, rows) - law_price(expression, rows)

    return sorted(losses, key=rough, reverse=True)[:_JUDGED]


def _loss(law: Expression, training: Training, loss: Loss) -> float:
    target = training.target
    return loss.total(target.y, evaluate(law, training.columns).to(torch.float64), target.weight)
