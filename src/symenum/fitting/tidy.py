"""Fitted constants written as the numbers that people write, inner ones too, where the data do not object.

The rule is that of `snap`: in a fit that is exact up to rounding, a constant may move by 8 of its standard errors and
the residual may grow to 4 times its size; in a fit with noise it may move by one standard error, to a number whose like
are rare within that error, and the loss may grow by the variance of one constant for each that was fixed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from symenum.enumeration.budget import Budget
from symenum.expressions import Apply, Constant, Expression, Variable, evaluate, simplify, substitute, variables
from symenum.fitting.least_squares import EPSILON
from symenum.fitting.numbers import Number, nice_number
from symenum.fitting.parameters import postfix, with_leaves
from symenum.fitting.refine import Refined, refine
from symenum.fitting.uncertainty import standard_errors
from symenum.operators import Role

__all__ = ["tidy"]

_EXACT = 1e-11  # a residual below this part of y is rounding
_EXACT_ERRORS, _NOISE_ERRORS = 8.0, 1.0
_EXACT_RARITY, _NOISE_RARITY = 0.02, 0.06
_EXACT_GROWTH = 4.0
_DIGITS = 2  # after the point, in the decimals that are written instead of fractions
_EXACT_WINDOW = 1e-12  # part of a constant by which rounding may have moved it


@dataclass(frozen=True)
class _Rule:
    exact: bool
    base: float  # the loss with all constants free, at least rounding
    rows: int
    free: int  # constants at the beginning

    def limit(self, fixed: int) -> float:
        """The largest loss allowed with so many constants fixed."""
        if self.exact:
            return self.base * _EXACT_GROWTH**2
        return self.base * (1 + fixed / max(1, self.rows - self.free))

    def number(self, value: float, error: float, exponent: bool) -> Number | None:
        if self.exact:
            window = max(_EXACT_ERRORS * error, _EXACT_WINDOW * max(1.0, abs(value)))
            return nice_number(value, window, rational=exponent, rarity=_EXACT_RARITY)
        return nice_number(value, _NOISE_ERRORS * error, rational=exponent, rarity=_NOISE_RARITY)


def tidy(
    expression: Expression,
    columns: Mapping[str, Tensor],
    y: Tensor,
    weight: Tensor | None = None,
    *,
    budget: Budget | None = None,
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
        return refine([candidate], with_held(held), y, weight, starts=0, integers=False, budget=budget)[0]

    # A number that is held is a variable with one value: so whatever kind of number it is, nothing moves it.
    held: dict[str, Number] = {}
    current = fit(simplify(expression), held)
    mean_square = float((weight * y.square()).sum())
    exact = current.loss <= _EXACT**2 * mean_square
    rule = _Rule(exact, max(current.loss, EPSILON**2 * mean_square), rows, len(current.constants))
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
        number = rule.number(value, error, exponents[place])
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
