"""How sure the choice of a law is: its weight among the alternatives, and whether it is better than no law at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from symenum.core.target import Training
from symenum.expressions import Constant, Expression, Variable, apply, variables
from symenum.fitting.form_fit import linear_in
from symenum.fitting.losses import Loss
from symenum.selection.alternatives import Alternative
from symenum.selection.evidence import INDISTINCT, evidence

__all__ = ["Verdict", "make_verdict"]

_ROWS_PER_CONSTANT = 3  # as for laws of a front: with fewer rows a regression on all columns fits the noise


@dataclass(frozen=True)
class Verdict:
    """What is known of the chosen law.

    `weight`: its probability among the alternatives, and `others`: those, without it, by falling weight. `exact`: it
    equals the data up to rounding. `beats_mean`, `beats_line`: whether it is more probable, by more than chance, than
    the mean of y, and than a straight line (a sum of multiples of the columns). `noise_grows`: the data say, by more
    than chance, that the noise grows with the law's values.
    """

    law: Expression
    weight: float
    others: tuple[Alternative, ...]
    exact: bool
    beats_mean: bool
    beats_line: bool
    noise_grows: bool = False


def make_verdict(
    law: Expression,
    alternatives: Sequence[Alternative],
    training: Training,
    floor: float,
    loss: Loss,
    *,
    noise_grows: bool = False,
) -> Verdict:
    """The verdict on a law, one of the alternatives, on the rows of its fit; `floor` and `loss` as in `evidence`.

    `noise_grows`: the rows have said so, and are weighed by it.
    """
    mean = Constant(float((training.target.y * training.target.weight).sum()))
    line = _line(training) if len(training.columns) < training.target.rows // _ROWS_PER_CONSTANT else mean
    own, of_mean, of_line = evidence([law, mean, line], training, floor, loss)
    # A straight line may also stand among the alternatives, with fewer columns than the regression on all of them.
    lines = [one.law.expression for one in alternatives if is_line(one.law.expression)]
    (own_alternative,) = [one for one in alternatives if one.law.expression == law]
    return Verdict(
        law,
        own_alternative.weight,
        tuple(one for one in alternatives if one is not own_alternative),
        own_alternative.law.loss <= floor,
        bool(variables(law)) and own - of_mean > INDISTINCT,
        not lines and own - of_line > INDISTINCT,
        noise_grows,
    )


def is_line(law: Expression) -> bool:
    """Whether a law is a sum of multiples of its variables, or a constant."""
    names = variables(law)
    return linear_in(law, names) == frozenset(names)


def _line(training: Training) -> Expression:
    """The linear regression of y on all columns, by the weights of the rows."""
    y, root = training.target.y.numpy(), training.target.weight.sqrt().numpy()
    columns = [column.numpy() for column in training.columns.values()]
    sizes = [float(np.abs(column).max()) or 1.0 for column in columns]
    A = np.stack([np.ones_like(y), *(column / size for column, size in zip(columns, sizes, strict=True))], axis=1)
    first, *others = np.linalg.lstsq(A * root[:, None], y * root, rcond=None)[0].tolist()
    line: Expression = Constant(first)
    for name, size, coefficient in zip(training.columns, sizes, others, strict=True):
        line = apply("add", line, apply("mul", Constant(coefficient / size), Variable(name)))
    return line
