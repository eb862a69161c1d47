"""Fitted constants written as the numbers that people write, inner ones too, where the data do not object.

The rule, how far a constant may move and how much the loss may grow, is `recognise.Recognition`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.exactness import EPSILON, EXACTNESS, is_exact, loss_up_to
from symenum.expressions import Apply, Constant, Expression, Variable, evaluate, simplify, substitute, variables
from symenum.fitting.parameters import postfix, with_leaves
from symenum.fitting.recognise import RECOGNITION, Number, recognise
from symenum.fitting.refine import Refined, refine
from symenum.fitting.uncertainty import standard_errors
from symenum.operators import Role

__all__ = ["tidy"]

_DIGITS = 2  # after the point, in the decimals that are written instead of fractions


@dataclass(frozen=True)
class _Rule:
    exact: bool
    base: float  # the loss with all constants free, at least rounding
    rows: int
    free: int  # constants at the beginning

    def limit(self, fixed: int) -> float:
        """The largest loss allowed with so many constants fixed."""
        return self.base * RECOGNITION.residual_growth(fixed, self.rows - self.free, exact=self.exact) ** 2


def tidy(
    expression: Expression,
    columns: Mapping[str, Tensor],
    y: Tensor,
    weight: Tensor | None = None,
    *,
    budget: Budget | None = None,
    seed: int = 0,
) -> Refined:
    """The expression with its constants fixed at nice numbers one after another, the others refitted each time.

    Arguments as in `refine`. Whole numbers are nice already and stay. Terms whose coefficient becomes zero leave, and
    constants are folded (`simplify`). `constants` are those of the result, as if all of them were free.
    """
    budget = Budget() if budget is None else budget
    rows = len(y)
    weight = torch.full((rows,), 1 / rows, dtype=torch.float64) if weight is None else weight

    def with_held(held: Mapping[str, Number]) -> dict[str, Tensor]:
        return {**columns, **{name: torch.full_like(y, number.value) for name, number in held.items()}}

    def fit(candidate: Expression, held: Mapping[str, Number]) -> Refined:
        return refine([candidate], with_held(held), y, weight, starts=0, integers=False, budget=budget, seed=seed)[0]

    # A number that is held is a variable with one value: so whatever kind of number it is, nothing moves it.
    held: dict[str, Number] = {}
    current = fit(simplify(expression), held)
    mean_square = float((weight * y.square()).sum())
    exact = is_exact(current.loss, mean_square, EXACTNESS.noise_free)
    rule = _Rule(exact, max(current.loss, loss_up_to(EPSILON, mean_square)), rows, len(current.constants))
    taken = {*columns, *variables(current.expression)}
    while not budget.over():
        step = None
        errors = standard_errors(current.expression, with_held(held), y, weight, integers=False)
        for place, number in _offers(current, errors, rule):
            name = next(name for i in range(len(taken) + 1) if (name := f"held{i}") not in taken)
            candidate = fit(_hold(current.expression, place, name), {**held, name: number})
            if candidate.loss <= rule.limit(len(held) + 1):
                step = name, number, candidate
                break
        if step is None:
            break
        name, number, current = step
        held[name] = number
        taken.add(name)
    written = substitute(current.expression, {name: _written(number) for name, number in held.items()})
    for result in (simplify(written), written):
        values = evaluate(result, columns)
        loss = float((values.to(torch.float64) - y).square() @ weight)
        if loss <= rule.limit(len(held)):
            return _judged(result, columns, y, weight, current.converged)
    return _judged(expression, columns, y, weight, False)


def _written(number: Number) -> Expression:
    """2.5 rather than 5/2, which is two numbers and a division; but 1/2 and 1/3."""
    above, below = number.numerator, number.denominator
    plain = isinstance(above, Constant) and above.name is None and above.value != 1
    if below is not None and plain and round(number.value, _DIGITS) == number.value:
        return Constant(number.value)
    return number.expression


def _offers(current: Refined, errors: Sequence[float], rule: _Rule) -> list[tuple[int, Number]]:
    """Constants that have a nice number, by their place, the best determined first."""
    exponents = _exponents(current.expression)
    offers = []
    for place, (value, error) in enumerate(zip(current.constants, errors, strict=True)):
        number = recognise(value, error, exact=rule.exact, rational=exponents[place])
        if number is not None:
            offers.append((error / max(abs(value), 1e-3), number.cost, place, number))
    return [(place, number) for _, _, place, number in sorted(offers, key=lambda offer: offer[:3])]


def _hold(expression: Expression, place: int, name: str) -> Expression:
    leaves: list[Expression] = [node for node, free in postfix(expression, integers=False) if free]
    leaves[place] = Variable(name)
    return with_leaves(expression, leaves, integers=False)


def _exponents(expression: Expression) -> list[bool]:
    """For each free constant, from left to right, whether it is an exponent."""
    found: list[bool] = []
    stack: list[tuple[Expression, bool]] = [(expression, False)]
    while stack:
        node, exponent = stack.pop()
        if isinstance(node, Apply):
            power = node.operator.role is Role.POWER
            stack.extend((operand, power and i == 1) for i, operand in reversed(list(enumerate(node.operands))))
        elif isinstance(node, Constant) and node.name is None and not isinstance(node.value, int):
            found.append(exponent)
    return found


def _judged(
    expression: Expression, columns: Mapping[str, Tensor], y: Tensor, weight: Tensor, converged: bool
) -> Refined:
    return replace(refine([expression], columns, y, weight, starts=0, steps=0)[0], converged=converged)
