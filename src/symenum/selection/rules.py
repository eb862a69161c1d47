"""What each rule of `model_selection` picks from a front, by the loss and the complexity of its laws.

The default rule, `evidence`, also looks at the residuals where there are rows: heavy tails must not decide.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from symenum.core.target import Training
from symenum.expressions import Constant, Expression, evaluate, walk
from symenum.expressions.candidate import Candidate
from symenum.fitting.losses import Loss
from symenum.fitting.recognise import constant_bits
from symenum.heads.response import law_limit
from symenum.selection.evidence import evidence_of_loss, law_price
from symenum.selection.growing_noise import judged_if_noise_grows, noise_may_grow
from symenum.selection.held_out import HELD_OUT, HeldOut
from symenum.selection.influence import settled_evidence

__all__ = [
    "DEFAULT_RULE",
    "DISCOUNT",
    "MODEL_SELECTIONS",
    "choose_law",
    "description_length",
    "description_lengths",
    "reward",
    "rule_while_searching",
    "scores",
    "select",
]

DEFAULT_RULE = "evidence"
"""The rule that is right most often on random laws with noise and on held-out rows: benchmarks/choice.py."""
MODEL_SELECTIONS = (DEFAULT_RULE, "best", "accuracy", "reward", "mdl")
"""Rules that need no rows beside those of the fit."""
DISCOUNT = 0.99
"""η of the paper's reward: the factor for each unit of complexity."""
_YIELDING = (DEFAULT_RULE, "best")  # rules that leave the choice to held-out rows, where there are any
_NEARLY_BEST = 1.5  # PySR's value: its "best" considers losses up to this factor above the smallest
_MIN_LOSS = 1e-300  # near the smallest normal double: logarithms are taken of losses of at least this


class Laws(Protocol):
    """A front, as far as the choice of a law needs it."""

    @property
    def entries(self) -> tuple[Candidate, ...]: ...
    @property
    def floor(self) -> float: ...
    @property
    def rows(self) -> int: ...
    @property
    def discount(self) -> float: ...


def reward(loss: float, complexity: int, discount: float = DISCOUNT) -> float:
    """η^α / (1 + √MSE), the paper's equation for the feedback to the token generator.

    >>> round(reward(1.0, 2), 4)
    0.49
    """
    return float(discount**complexity / (1 + math.sqrt(loss)))


def scores(laws: Sequence[Candidate], floor: float) -> tuple[float, ...]:
    """PySR's score of each law: how fast ln(loss) falls with complexity; 0 for the first."""
    rates = [0.0] if laws else []
    for before, law in itertools.pairwise(laws):
        fall = math.log(_clamped(before.loss, floor)) - math.log(_clamped(law.loss, floor))
        rates.append(fall / (law.complexity - before.complexity))
    return tuple(rates)


def description_lengths(laws: Sequence[Candidate], floor: float, rows: int) -> tuple[float, ...]:
    """Bits to write each law, its constants in the digits that so many rows support, and its residuals."""
    return tuple(
        0.5 * rows * math.log2(_clamped(law.loss, floor)) + description_length(law.expression, rows) for law in laws
    )


def description_length(expression: Expression, rows: int) -> float:
    """Bits to write an expression: its symbols, and its constants in the digits that so many rows support."""
    nodes = list(walk(expression))
    symbols = {getattr(node, "name", None) or type(node).__name__ for node in nodes}
    bits = len(nodes) * math.log2(1 + len(symbols))
    for node in nodes:
        if isinstance(node, Constant) and node.name is None:
            bits += constant_bits(node.value, rows)
    return bits


def select(laws: Sequence[Candidate], rule: str, *, floor: float, rows: int, discount: float = DISCOUNT) -> int:
    """The index of the law to believe, by one of MODEL_SELECTIONS; laws by complexity ascending.

    `evidence`: the most probable law, under normal noise. `mdl`: the shortest description of law and data. `best`:
    PySR's rule, the highest score among those with a loss of up to 1.5 times the smallest; but a law that is longer to
    describe than the `mdl` one, and more accurate, has only fitted the noise, and takes no part. `accuracy`: the
    smallest loss. `reward`: the highest reward.

    `floor`: losses up to it are zero up to rounding. `rows`: of the data. `discount`: η of the reward.
    """
    if rule not in MODEL_SELECTIONS:
        raise ValueError(f"model_selection must be one of {', '.join(map(repr, MODEL_SELECTIONS))}, not {rule!r}")
    if not laws:
        raise ValueError("the front is empty: nothing to select from")
    indices = range(len(laws))
    if rule == "accuracy":
        return len(laws) - 1
    if rule == "reward":
        rewards = [reward(law.loss, law.complexity, discount) for law in laws]
        return max(indices, key=lambda i: rewards[i])
    if rule == "evidence":
        return max(
            indices,
            key=lambda i: evidence_of_loss(laws[i].loss, floor, rows) - law_price(laws[i].expression, rows),
        )
    lengths = description_lengths(laws, floor, rows)
    shortest = min(indices, key=lambda i: lengths[i])
    if rule == "mdl":
        return shortest
    rates = scores(laws, floor)
    limit = _NEARLY_BEST * _clamped(laws[shortest].loss, floor)
    believable = (i for i in indices[: shortest + 1] if _clamped(laws[i].loss, floor) <= limit)
    return max(believable, key=lambda i: rates[i])


def rule_while_searching(model_selection: str, otherwise: str = DEFAULT_RULE) -> str:
    """The rule that marks a law while the search runs: held-out rows are used only at its end.

    `otherwise`: the rule in place of a `model_selection` that needs such rows.
    """
    return model_selection if model_selection in MODEL_SELECTIONS else otherwise


def choose_law(front: Laws, rule: str, held: HeldOut | None, training: Training, loss: Loss) -> int:
    """The index of the law by a rule of MODEL_SELECTIONS or HELD_OUT, for laws that were fitted by that loss.

    `held`: the losses on held-out rows; they decide for the rules of HELD_OUT, for "evidence" and for "best". Under a
    loss that outliers do not decide, the other rules go by median residuals.
    """
    if held is not None and rule in (*HELD_OUT, *_YIELDING):
        chosen = held.select()
        if chosen is not None:
            return chosen
    rule = rule_while_searching(rule)
    if rule == "evidence" and loss.rows(training.target.y, training.target.y) is not None:
        laws = [entry.expression for entry in front.entries]
        exact = any(entry.loss <= front.floor for entry in front.entries)
        if not exact and noise_may_grow(training, loss):
            growing = judged_if_noise_grows(laws, training, front.floor)
            if growing is not None:
                return max(range(len(laws)), key=lambda i: growing[i].nats)
        weighed = settled_evidence(laws, training, front.floor, loss)
        return max(range(len(laws)), key=lambda i: weighed[i])
    if not loss.robust:
        return select(front.entries, rule, floor=front.floor, rows=front.rows, discount=front.discount)
    typical = _with_median_losses(front.entries, training)
    return select(typical, rule, floor=law_limit(training.target), rows=front.rows, discount=front.discount)


def _with_median_losses(laws: Sequence[Candidate], training: Training) -> list[Candidate]:
    """The laws with the square of their median absolute residual as loss.

    The loss itself would mislead: outliers cost every law about the same, which hides how much better one law is.
    """
    y = training.target.y
    sizes = [float((evaluate(law.expression, training.columns) - y).abs().median()) for law in laws]
    return [replace(law, loss=size**2) for law, size in zip(laws, sizes, strict=True)]


def _clamped(loss: float, floor: float) -> float:
    """The loss, at least what is zero up to rounding, and above 0."""
    return max(loss, floor, _MIN_LOSS)
