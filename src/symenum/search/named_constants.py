"""Constants that the user has declared, found in a law: 4.905*t**2 is g*t**2/2 to whoever has declared g.

Heads and fits know numbers only; here those that are a simple multiple of a declared constant, of its square, root or
inverse, or of two of them, get its name, where the data do not object.
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
from symenum.fitting.constants import with_leaves
from symenum.fitting.recognise import RECOGNITION, fitted_constants
from symenum.front import Front

__all__ = ["declared_number", "with_names"]


_MULTIPLES = 12  # p/q with both up to this
_BY_CHANCE = 4.0  # variances of one constant by which the loss may grow for each that gets a name


def with_names(
    found: Sequence[Candidate],
    declared: Mapping[str, float],
    columns: Mapping[str, Tensor],
    target: Target,
    empty: Front,
    allows: Callable[[Expression], bool],
    seed: int = 0,
) -> list[Candidate]:
    """The finds, those that stand on a front of their own with names instead of numbers where that is as good.

    A name may make a law longer (g*x/2 for 4.9*x), so what the law with its number beat leaves with that number.
    """
    left = list(found)
    for candidate in empty.update(found):
        named = _named(candidate, declared, columns, target, empty.floor, seed)
        if named is None or not allows(named.expression):
            continue
        limit = candidate.loss * (1 - _BY_CHANCE / target.rows)
        left = [one for one in left if one.complexity < candidate.complexity or empty.floor < one.loss < limit]
        left.append(named)
    return left


def declared_number(value: float, window: float, declared: Mapping[str, float]) -> Expression | None:
    """The simplest multiple of declared constants within `window` of a value, if it is not there by chance.

    >>> print(declared_number(4.905, 1e-6, {"g": 9.81}))
    g/2
    """
    few_digits = not fitted_constants(Constant(value))
    best: tuple[float, int, int, Expression | None, Expression | None] | None = None
    for rank, (unit, above, below) in enumerate(_units(declared), start=1):
        for q in range(1, 2 if few_digits else _MULTIPLES + 1):
            multiple = value * q / unit
            p = round(multiple) if abs(multiple) <= _MULTIPLES + 1 else 0
            if not 0 < abs(p) <= (1 if few_digits else _MULTIPLES) or math.gcd(p, q) != 1:
                continue
            most = max(abs(p), q)
            cost = math.log2(rank) + 2 * math.log2(most)
            near = abs(p * unit / q - value) <= window < RECOGNITION.noise_rarity * abs(value) / (rank * most**2)
            if near and (best is None or cost < best[0]):
                best = cost, p, q, above, below
    return None if best is None else _written(*best[1:])


def _written(p: int, q: int, above: Expression | None, below: Expression | None) -> Expression:
    """p·above / (q·below); what is None is 1."""
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
    """The candidate with all names that can be given one after another, the others of its numbers fitted anew."""
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
    """The units whose values are doubles above zero: the square of 1e200 is none."""
    for value, above, below in _all_units(declared):
        if 0 < abs(value) < math.inf:
            yield value, above, below


def _all_units(declared: Mapping[str, float]) -> Iterator[tuple[float, Expression | None, Expression | None]]:
    """Value, numerator and denominator of what numbers may be multiples of, the simplest first."""
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
