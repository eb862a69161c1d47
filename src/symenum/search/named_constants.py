"""Constants that the user has declared, found in a law: 4.905*t**2 becomes g*t**2/2 where g = 9.81 was declared.

Heads and fits know numbers only. Here a number that is a simple multiple of a declared constant, of its square, root or
inverse, or of a product or quotient of two of them, gets the name, where the loss does not grow by more than chance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations

import torch
from torch import Tensor

from symenum.core.target import Target
from symenum.expressions import Constant, Expression, apply, evaluate, simplify
from symenum.expressions.candidate import Candidate
from symenum.fitting import free_constants, refine, standard_errors
from symenum.fitting.free_constants import with_leaves
from symenum.fitting.recognise import RECOGNITION, count_fitted_constants
from symenum.front import Front

__all__ = ["declared_number", "with_names"]


# A constant fixed at its true value raises the loss by about loss/rows; four times that, two standard deviations, is
# still chance.
_BY_CHANCE = 4.0
_MAX_FACTOR = 12  # of p and q in the multiples p/q; chosen by trial, see benchmarks/constants.py


def with_names(
    found: Sequence[Candidate],
    declared: Mapping[str, float],
    columns: Mapping[str, Tensor],
    target: Target,
    empty: Front,
    allows: Callable[[Expression], bool],
    seed: int = 0,
) -> list[Candidate]:
    """The finds; those that stand on a front of their own get names for numbers where that fits as well.

    A name may make a law longer (g*x/2 for 4.9*x). So the finds that the law with the number beat leave with it.
    `columns` (rows,) by name, `target` and the front `empty`, without entries, are those of the rows of the fit.
    """
    remaining = list(found)
    for candidate in empty.update(found):
        named = _named(candidate, declared, columns, target, empty.floor, seed)
        if named is None or not allows(named.expression):
            continue
        limit = candidate.loss * (1 - _BY_CHANCE / target.rows)
        remaining = [
            one for one in remaining if one.complexity < candidate.complexity or empty.floor < one.loss < limit
        ]
        remaining.append(named)
    return remaining


def declared_number(value: float, window: float, declared: Mapping[str, float]) -> Expression | None:
    """The simplest multiple of declared constants within `window` of a value; None where that could be chance.

    >>> print(declared_number(4.905, 1e-6, {"g": 9.81}))
    g/2
    """
    few_digits = not count_fitted_constants(Constant(value))
    best: tuple[float, int, int, Expression | None, Expression | None] | None = None
    for rank, (unit, above, below) in enumerate(_units(declared), start=1):
        for q in range(1, 2 if few_digits else _MAX_FACTOR + 1):
            multiple = value * q / unit
            p = round(multiple) if abs(multiple) <= _MAX_FACTOR + 1 else 0
            if not 0 < abs(p) <= (1 if few_digits else _MAX_FACTOR) or math.gcd(p, q) != 1:
                continue
            larger = max(abs(p), q)
            cost = math.log2(rank) + 2 * math.log2(larger)
            near = abs(p * unit / q - value) <= window < RECOGNITION.noise_rarity * abs(value) / (rank * larger**2)
            if near and (best is None or cost < best[0]):
                best = cost, p, q, above, below
    return None if best is None else _written(*best[1:])


def _written(p: int, q: int, above: Expression | None, below: Expression | None) -> Expression:
    """The expression p·above / (q·below); None stands for 1."""
    top = Constant(abs(p)) if above is None else above if abs(p) == 1 else apply("mul", Constant(abs(p)), above)
    bottom = below if q == 1 else Constant(q) if below is None else apply("mul", Constant(q), below)
    number = top if bottom is None else apply("div", top, bottom)
    return number if p > 0 else apply("neg", number)


def _named(
    candidate: Candidate,
    declared: Mapping[str, float],
    columns: Mapping[str, Tensor],
    target: Target,
    floor: float,
    seed: int,
) -> Candidate | None:
    """The candidate with names for all numbers that are multiples, the others fitted anew; None where it has none."""
    constants = free_constants(candidate.expression, integers=False)
    errors = standard_errors(candidate.expression, columns, target.y, target.weight, integers=False)
    exact = candidate.loss <= floor
    leaves: list[Expression] = []
    for value, error in zip(constants, errors, strict=True):
        window = RECOGNITION.window(value, error, exact=exact, expected=True)
        number = declared_number(value, window, declared)
        leaves.append(Constant(value) if number is None else number)
    count = sum(not isinstance(leaf, Constant) or leaf.name is not None for leaf in leaves)
    if not count:
        return None
    law = simplify(with_leaves(candidate.expression, leaves, integers=False))
    if not exact and free_constants(law, integers=False):
        (refitted,) = refine([law], columns, target.y, target.weight, starts=0, integers=False, seed=seed)
        law = refitted.expression
    values: Tensor = evaluate(law, columns)
    loss = float(target.loss(values.to(torch.float64)[None]))
    limit = max(floor, candidate.loss * (1 + _BY_CHANCE * count / target.rows))
    return Candidate(law, loss) if loss <= limit else None


def _units(declared: Mapping[str, float]) -> Iterator[tuple[float, Expression | None, Expression | None]]:
    """The units of `_all_units` whose values are neither 0 nor infinite: the square of 1e200 is left out."""
    for value, above, below in _all_units(declared):
        if 0 < abs(value) < math.inf:
            yield value, above, below


def _all_units(declared: Mapping[str, float]) -> Iterator[tuple[float, Expression | None, Expression | None]]:
    """Value, numerator and denominator of what a number may be a multiple of, the simplest first."""
    named = [(value, Constant(value, name)) for name, value in declared.items()]
    for value, name in named:
        yield value, name, None
    for value, name in named:
        yield _inverse(value), None, name
    for value, name in named:
        square = apply("pow", name, Constant(2))
        yield value * value, square, None
        yield _inverse(value * value), None, square
        if value > 0:
            yield math.sqrt(value), apply("sqrt", name), None
            yield 1 / math.sqrt(value), None, apply("sqrt", name)
    for (value, name), (other, second) in combinations(named, 2):
        yield value * other, apply("mul", name, second), None
        yield value / other, name, second
        yield other / value, second, name
        yield _inverse(value * other), None, apply("mul", name, second)


def _inverse(value: float) -> float:
    return 1 / value if value else math.inf
