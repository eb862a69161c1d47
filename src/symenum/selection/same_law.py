"""Whether two laws are one: a law is its form, and other digits of its constants are no other law.

It is decided by values, so that ways to write a form count as one: 2*sqrt(x/y), sqrt(4.1*x/y) and 2*sqrt(x)/sqrt(y) are
the same, and so are x + 1.99*(x + 1) and 3*x + 2. A form can become a law if there are constants for which it has the
law's values on the rows, up to rounding. Two laws are one

- if each form can become the other law, whatever the values of its constants are now; or
- if one form can become the other law, and the values of both differ by no more than what the noise moves a law with
  one constant by: c*x**2.0003 is c*x**2, where the rows do not tell the exponents apart.

Laws that only happen to be near to each other on the rows, such as x and sin(x) near zero, are two: what the data
cannot tell apart is not the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from symenum.core.exactness import EXACTNESS
from symenum.core.seeds import sample_rows
from symenum.core.target import Training
from symenum.expressions import Expression, evaluate
from symenum.fitting.free_constants import form_of
from symenum.fitting.losses import typical_size
from symenum.fitting.refine import refine

__all__ = ["families", "same_as"]

_ROWS = 200  # rows on which laws are compared, drawn at random: several times the constants of the longest laws


def families(laws: Sequence[Expression], training: Training) -> list[list[Expression]]:
    """The laws, each in one list with those that are the same; a list begins with the first of its laws."""
    rest = list(laws)
    found: list[list[Expression]] = []
    while rest:
        first, *others = rest
        same = same_as(first, others, training)
        found.append([first, *(law for law, one in zip(others, same, strict=True) if one)])
        rest = [law for law, one in zip(others, same, strict=True) if not one]
    return found


def same_as(law: Expression, others: Sequence[Expression], training: Training) -> list[bool]:
    """Which of the others are the same law, on these rows."""
    part = training.at(sample_rows(training.target.rows, _ROWS, 0, "rows that tell whether two laws are one"))
    size = math.sqrt(float(part.target.y.square().mean()))
    exact = EXACTNESS.scanned * size
    values = _values(law, part)
    form = form_of(law)
    same = [form_of(other) == form for other in others]
    open_places = [i for i, known in enumerate(same) if not known and bool(torch.isfinite(values).all())]
    others_values = {i: _values(others[i], part) for i in open_places}
    open_places = [i for i in open_places if bool(torch.isfinite(others_values[i]).all())]
    if not open_places:
        return same
    targets = torch.stack([others_values[i] for i in open_places])
    become_law = _become([others[i] for i in open_places], values.expand_as(targets), part, exact)
    become_other = _become([law] * len(open_places), targets, part, exact)
    for i, one, other in zip(open_places, become_law, become_other, strict=True):
        difference = math.sqrt(float((others_values[i] - values).square().mean()))
        noise = min(typical_size(part.target.y - each) for each in (values, others_values[i]))
        near = difference <= max(exact, noise / math.sqrt(training.target.rows))
        same[i] = difference <= exact or (one and other) or ((one or other) and near)
    return same


def _become(forms: Sequence[Expression], targets: Tensor, part: Training, exact: float) -> list[bool]:
    """Whether each form, its constants fitted from where they are, has the values (forms, rows) of its target."""
    results = refine(forms, part.columns, targets, starts=0, near=True)
    return [result.loss <= exact**2 for result in results]


def _values(law: Expression, part: Training) -> Tensor:
    """The values (rows,) of a law, float64."""
    values: Tensor = evaluate(law, part.columns).to(torch.float64)
    return values.expand(part.target.rows)
