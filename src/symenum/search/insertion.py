"""One more part at any place of a law, and what that promises, told by its tangent.

A part w that comes into a law f at a place s changes it, to first order, by g·w (where s becomes s + a·w) or by g·s·w
(where s becomes s·(1 + a·w)); g = ∂f/∂s. An exponent is a part, too: s**(1 + a) changes it by g·s·log(s). The gain of w
is the fall of the sum of squares that one Gauss–Newton step brings in which a and *all* constants of f move together:
the square of the residual along that column, taken off the derivatives of f by its constants. So every part at every
place is judged by one matrix product, and a new term beside the terms of a sum (s is the whole law) is one case of
many: a shift of a factor, a further summand in the argument of a sine, a factor that a term had lacked.

Parts are the variables, products and quotients of two of them, and functions of these with an inner constant on a grid.
Nothing is fitted here: `growth` fits what promises most.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import torch
from torch import Tensor

from symenum.core.target import Target
from symenum.expressions import Apply, Constant, Expression, Variable, apply, evaluate, variables
from symenum.fitting.free_constants import postfix
from symenum.fitting.linear import least_squares_of_each
from symenum.operators import Abilities, Operator
from symenum.operators.traits import ADDITIVE, ARITHMETIC, MULTIPLICATIVE, Role
from symenum.scans.projection import orthonormal

__all__ = ["Insertion", "Place", "below", "best_insertions", "common_factors", "places_of", "replaced", "swaps"]

_LEAST_NEW = 1e-3  # part of a column that must lie off the derivatives: else constants of the law do the same already
_LARGEST = 1e8  # of |part| over its median: larger values come from poles and overflow
_NOT_GRIDDED = (
    Role.IDENTITY,
    Role.NEGATION,
    Role.RECIPROCAL,
    Role.SQUARE,
    Role.CUBE,
)  # products and quotients do these
_WITHOUT_EXPONENT = (
    *MULTIPLICATIVE,
    Role.POWER,
    Role.EXPONENTIAL,
    Role.ROOT,
    Role.SQUARE,
    Role.CUBE,
    Role.RECIPROCAL,
)  # their operands take one
_LARGEST_CHANGE = 0.7  # of an exponent, where its fit begins: the sign of an exponent stays; not tried otherwise
# Chosen by trial on random laws and development tables.
_TURNS = tuple(0.8 * i for i in range(1, 15))  # c of periodic functions, in units of 1/(range of v): up to two periods
_GROWTHS = (0.3, 0.8, 1.6, 3.0, 6.0)  # |c| of exponentials, in units of 1/(range of v)
_SHIFTS = (0.03, 0.1, 0.3, 0.8, 2.0)  # distance of -c from the range of v, in units of that range, at poles and ends
_SLOPES = (1.5, 4.0, 10.0)  # |c| of other functions, such as tanh, in units of 1/(range of v),
_MIDDLES = (0.25, 0.5, 0.75)  # and where in that range their argument is zero
_BASES = 24  # variables, and as many products of two, that functions are taken of
_SWAPS = 4  # functions that may take the place of one,
_WRAPS = 2  # and functions that may be taken of one
_PER_PLACE = 8  # insertions at one place that are handed back
_FAMILIES_LOOKED_AT = 200  # at one place, where not all laws are allowed: to ask takes some 50 us

Path = tuple[int, ...]
Write = Callable[[float], Expression]
Allowed = Callable[[Expression], bool]


@dataclass(frozen=True)
class Place:
    """A node of a law: the way to it from the root, its values and the derivatives of the law by it (rows,)."""

    path: Path
    node: Expression
    value: Tensor
    slope: Tensor
    parent: Role | None

    @property
    def takes_summand(self) -> bool:
        """Whether one more summand here is no summand of a sum above it."""
        return self.parent not in ADDITIVE and self.parent is not Role.NEGATION

    @property
    def takes_factor(self) -> bool:
        """Whether one more factor here is no factor of a product above it, and not the business of a coefficient."""
        return bool(self.path) and self.parent not in MULTIPLICATIVE and bool(variables(self.node))

    @property
    def takes_exponent(self) -> bool:
        """Whether it is positive and varies, and no coefficient, exponent or factor inside it does what one would."""
        node = self.node
        if not variables(node) or self.parent is Role.POWER or not bool((self.value > 0).all()):
            return False
        return not isinstance(node, Apply) or node.operator.role not in _WITHOUT_EXPONENT


@dataclass(frozen=True)
class Insertion:
    """A law with one more part, and the part of the residual's square that it promises to take away."""

    law: Expression
    promise: float


def places_of(law: Expression, columns: Mapping[str, Tensor]) -> list[Place]:
    """All nodes of the law, parents before their operands; `columns` (rows,) float64 by name."""
    order: list[tuple[Path, Expression, Role | None]] = []
    stack: list[tuple[Path, Expression, Role | None]] = [((), law, None)]
    while stack:
        path, node, parent = stack.pop()
        order.append((path, node, parent))
        if isinstance(node, Apply):
            stack += [((*path, at), operand, node.operator.role) for at, operand in enumerate(node.operands)]
    sample = next(iter(columns.values()))
    values: dict[Path, Tensor] = {}
    for path, node, _ in reversed(order):
        if isinstance(node, Variable):
            values[path] = columns[node.name]
        elif isinstance(node, Constant):
            values[path] = torch.full_like(sample, float(node.value))
        else:
            values[path] = node.operator.function(*_operands(node, path, values))
    slopes: dict[Path, Tensor] = {(): torch.ones_like(sample)}
    for path, node, _ in order:
        if isinstance(node, Apply):
            operands = _operands(node, path, values)
            for at in range(len(operands)):
                slopes[below(path, at)] = slopes[path] * node.operator.partial(at, values[path], *operands)
    return [Place(path, node, values[path], slopes[path], parent) for path, node, parent in order]


def _operands(node: Apply, path: Path, values: Mapping[Path, Tensor]) -> list[Tensor]:
    return [values[below(path, at)] for at in range(len(node.operands))]


def below(path: Path, at: int) -> Path:
    """The path to an operand of the node at the end of a path."""
    return (*path, at)


def replaced(law: Expression, path: Sequence[int], new: Expression) -> Expression:
    """The law with another expression at the end of that path."""
    nodes: list[Apply] = []
    node = law
    for at in path:
        assert isinstance(node, Apply)  # the path is one of this law
        nodes.append(node)
        node = node.operands[at]
    for parent, at in zip(reversed(nodes), reversed(path), strict=True):
        new = Apply(parent.operator, (*parent.operands[:at], new, *parent.operands[at + 1 :]))
    return new


def best_insertions(
    law: Expression,
    columns: Mapping[str, Tensor],
    target: Target,
    material: Sequence[Variable],
    alone: Sequence[Variable],
    operators: tuple[Operator, ...],
    count: int,
    allowed: Allowed | None = None,
) -> list[Insertion]:
    """The `count` insertions that promise most. The law is a sum with fitted coefficients.

    `columns` (rows,) by name and `target`: the rows that they are judged on. `material`: the variables that parts are
    made of; `alone`: further ones, which become terms as they are. `allowed`: whether a law with one more part may be
    one at all; None where all may.
    """
    root = target.weight.sqrt()
    places = places_of(law, columns)
    if not bool(torch.isfinite(places[0].value).all()):
        return []
    free = set(_free_paths(law))
    slopes = [place.slope for place in places if place.path in free and bool(torch.isfinite(place.slope).all())]
    background = orthonormal(torch.stack([torch.ones_like(root), *slopes]) * root)
    residual = (target.y - places[0].value) * root
    for _ in range(2):
        residual = residual - (residual @ background.T) @ background
    if not float(residual.norm()) > 0:
        return []
    judge = _Judge(background, residual, root, allowed)
    single = _Parts.of([(columns[one.name], one) for one in material])
    several = _joined_in_pairs(material, columns, operators)
    order = judge.gains(several, torch.ones_like(root)).argsort(descending=True, stable=True)[:_BASES].tolist()
    inside = [
        (place.value, place.node) for place in places[1:] if isinstance(place.node, Apply) and variables(place.node)
    ]
    bases = [(columns[one.name], one) for one in material[:_BASES]]
    products = [(several.values[at], several.write[at](0.0)) for at in order]
    further = _Parts.of([(columns[one.name], one) for one in alone])
    factors = _Parts.joined([single, _functions(bases, operators)])
    terms = _Parts.joined([factors, several, further, _functions([*products, *inside], operators)])
    one = _Parts.of([(torch.ones_like(root), Constant(1))])
    summands = _Parts.joined([one, factors])
    able = Abilities(operators)
    found: list[Insertion] = []
    for place in places:
        if not bool(torch.isfinite(place.slope).all()) or (place.path and isinstance(place.node, Constant)):
            continue
        if able.sums and place.takes_summand:
            found += judge.best(summands if place.path else terms, place.slope, partial(_added, law, place))
        if able.products and place.takes_factor:
            found += judge.best(factors, place.slope * place.value, partial(_multiplied, law, place))
        if able.powers and place.takes_exponent:
            logarithm = _Parts.of([(place.value.log(), place.node)])
            found += judge.best(logarithm, place.slope * place.value, partial(_to_the_power, law, place))
    return sorted(found, key=lambda one: -one.promise)[:count]


def swaps(
    law: Expression, columns: Mapping[str, Tensor], target: Target, operators: tuple[Operator, ...]
) -> list[Expression]:
    """The law with another function in the place of each of its functions and variables; those that promise most.

    A function u(v), or v itself, becomes a·w(v) + b: a part that came in first need not be the right one, it only
    promised most, and what looked like a line may be bent. A function, product or quotient v also becomes the argument
    of another function, a·w(v) + b; so sin(x) becomes 1/(sin(x) + c). With v taken out to first order, w is judged by
    what it then explains, off the derivatives by the constants that stay; its inner constant, a and b are those of
    least squares.
    """
    root = target.weight.sqrt()
    places = places_of(law, columns)
    if not bool(torch.isfinite(places[0].value).all()):
        return []
    free = set(_free_paths(law))
    found: list[Insertion] = []
    for place in places:
        arguments = _arguments_at(place)
        weighted = place.slope * root
        if not arguments or not 0 < float(weighted.norm()) < math.inf:
            continue
        staying = [
            other.slope * root
            for other in places
            if other.path in free
            and other.path[: len(place.path)] != place.path
            and bool(torch.isfinite(other.slope).all())
        ]
        background = orthonormal(torch.stack([root, weighted, *staying]))
        missed = (target.y - places[0].value) * root
        values = missed + place.value * weighted
        judge = _Judge(background, values - (values @ background.T) @ background, root)
        for argument, count in arguments:
            parts = _functions([(evaluate(argument, columns), argument)], operators)

            def write(size: float, part: Expression, place: Place = place, weighted: Tensor = weighted) -> Expression:
                rest = (place.value - size * evaluate(part, columns)) * weighted
                offset = float((rest * weighted).sum() / weighted.square().sum())
                return replaced(law, place.path, _shifted(_times(size, part), offset))

            best = judge.best(parts, place.slope, write)
            found += [one for one in best if math.isfinite(one.promise)][:count]
    return [one.law for one in found]


def common_factors(
    terms: Sequence[Expression],
    columns: Mapping[str, Tensor],
    target: Target,
    material: Sequence[Variable],
    operators: tuple[Operator, ...],
    count: int,
) -> list[Expression]:
    """Functions w for larger sums Σ (a_i + b_i·w)·t_i, in which all coefficients of a sum Σ a_i·t_i vary with w.

    The `count` functions w(v) that leave least of the target. So y = p + (q - p)·exp(-c·t) is found from p, q and 1
    in one step, where no single further part looks like it.
    """
    root = target.weight.sqrt()
    parts = _functions([(columns[one.name], one) for one in material], operators)
    if not parts.write:
        return []
    A = torch.stack([evaluate(term, columns) for term in terms]) * root
    background = orthonormal(A)
    residual = target.y * root
    residual = residual - (residual @ background.T) @ background
    usable = torch.isfinite(parts.values).all(dim=1) & (parts.values.abs().amax(dim=1) < _LARGEST)
    which = torch.nonzero(usable).flatten()
    blocks = A * parts.values[which][:, None]
    blocks = blocks - (blocks @ background.T) @ background
    left = least_squares_of_each(blocks, residual).residual.norm(dim=1)
    found: dict[tuple[str, Expression], Expression] = {}
    for at in which[left.argsort(stable=True)].tolist():
        if parts.family[at] not in found:
            found[parts.family[at]] = parts.write[at](0.0)
        if len(found) == count:
            break
    return list(found.values())


def _arguments_at(place: Place) -> list[tuple[Expression, int]]:
    """What another function may be taken of at that place, and how many such functions are handed back.

    Of a variable itself; of the operand of a function, and of the divisor below a number, in place of it; of a
    function, a product and a quotient as they are. Numbers that multiply or are added are the new function's own.
    """
    node = place.node
    if isinstance(node, Variable):
        return [(node, _SWAPS)]
    if not isinstance(node, Apply) or not variables(node):
        return []
    found: list[tuple[Expression, int]] = []
    divides = node.operator.role is Role.QUOTIENT and not variables(node.operands[0])
    if divides or (len(node.operands) == 1 and node.operator.role not in _NOT_GRIDDED):
        found.append((_without_numbers(node.operands[-1]), _SWAPS))
    if place.path and node.operator.role not in (*ADDITIVE, Role.NEGATION) and _without_numbers(node) is node:
        found.append((node, _WRAPS))
    return found


def _without_numbers(argument: Expression) -> Expression:
    """The argument without numbers that are added to it, or that multiply it."""
    while isinstance(argument, Apply) and argument.operator.role in ARITHMETIC:
        varying = [operand for operand in argument.operands if variables(operand)]
        if len(varying) != 1 or (argument.operator.role is Role.QUOTIENT and varying[0] is argument.operands[1]):
            break
        argument = varying[0]
    return argument


@dataclass(frozen=True)
class _Parts:
    """Parts that may come into a law: values (m, rows), and for each how it is written.

    `write` makes the expression for a phase. Only periodic functions have one; `partner` (m, rows) are their values a
    quarter of a period on, and zeros for all others. `family`: parts that differ in an inner constant have the same.
    """

    values: Tensor
    partner: Tensor
    write: tuple[Write, ...]
    family: tuple[tuple[str, Expression], ...]

    @cached_property
    def squares(self) -> Tensor:
        """(m, rows) of the values."""
        return self.values.square()

    @cached_property
    def usable(self) -> Tensor:
        """(m,) whether the values are finite, without the spikes of a pole."""
        return ~_has_spikes(self.values)

    @cached_property
    def periodic(self) -> Tensor:
        """The numbers of the parts that have a phase."""
        return torch.nonzero(self.partner.any(dim=1)).flatten()

    @staticmethod
    def of(parts: Sequence[tuple[Tensor, Expression]]) -> _Parts:
        """Parts without a phase."""
        values = torch.stack([value for value, _ in parts]) if parts else torch.empty(0, 0, dtype=torch.float64)
        written = tuple(expression for _, expression in parts)
        return _Parts(
            values, torch.zeros_like(values), tuple(map(_always, written)), tuple(("", one) for one in written)
        )

    @staticmethod
    def joined(several: Sequence[_Parts]) -> _Parts:
        several = [parts for parts in several if len(parts.write)]
        if not several:
            return _Parts.of([])
        return _Parts(
            torch.cat([parts.values for parts in several]),
            torch.cat([parts.partner for parts in several]),
            tuple(write for parts in several for write in parts.write),
            tuple(family for parts in several for family in parts.family),
        )


def _joined_in_pairs(
    material: Sequence[Variable], columns: Mapping[str, Tensor], operators: tuple[Operator, ...]
) -> _Parts:
    """Products of two variables, squares among them, and quotients."""
    able = Abilities(operators)
    found: list[tuple[Tensor, Expression]] = []
    for i, one in enumerate(material):
        for j, other in enumerate(material):
            if able.products and i <= j:
                found.append((columns[one.name] * columns[other.name], apply("mul", one, other)))
            if able.quotients and i != j and bool((columns[other.name] != 0).all()):
                found.append((columns[one.name] / columns[other.name], apply("div", one, other)))
    return _Parts.of(found)


def _functions(bases: Sequence[tuple[Tensor, Expression]], operators: tuple[Operator, ...]) -> _Parts:
    """u(c·v), u(v + c) or u(c·v - c·m) of each base v, for each function u of the operators; c on a grid.

    Of periodic functions there is one: with a phase it is all of them.
    """
    if not bases:
        return _Parts.of([])
    V = torch.stack([value for value, _ in bases])
    inner = [expression for _, expression in bases]
    low, high = V.amin(dim=1, keepdim=True), V.amax(dim=1, keepdim=True)
    width = high - low
    found: list[_Parts] = []

    def add(name: str, values: Tensor, write: Iterable[Write], partner: Tensor | None = None) -> None:
        with_phase = torch.zeros_like(values) if partner is None else partner
        found.append(_Parts(values, with_phase, tuple(write), tuple((name, one) for one in inner)))

    def each(c: Tensor) -> Iterable[tuple[Expression, float]]:
        """The bases, and of each its number of c (bases, 1)."""
        return zip(inner, c.flatten().tolist(), strict=True)

    beyond = [shift * width - low for shift in _SHIFTS]
    if Abilities(operators).quotients:
        for c in (*beyond, *(-high - shift * width for shift in _SHIFTS)):
            add("1/", 1 / (V + c), [partial(_over_shifted, one, shift) for one, shift in each(c)])
    unary = [one for one in operators if one.arity == 1 and one.form is None and one.role not in _NOT_GRIDDED]
    periodic = [one for one in unary if one.periodic]
    for u in (*periodic[:1], *(one for one in unary if not one.periodic)):
        if u.traits.period is not None:
            for c in (turn / width for turn in _TURNS):
                later = u.function(c * V + u.traits.period / 4)
                add(u.name, u.function(c * V), [partial(_turned, u, one, factor) for one, factor in each(c)], later)
        elif u.role is Role.EXPONENTIAL:
            for c in (sign * growth / width for growth in _GROWTHS for sign in (1, -1)):
                add(u.name, u.function(c * V), [partial(_of_scaled, u, one, factor) for one, factor in each(c)])
        elif u.entire:
            for c, zero in ((slope / width, low + at * width) for slope in _SLOPES for at in _MIDDLES):
                shifts = (-c * zero).flatten().tolist()
                lines = zip(each(c), shifts, strict=True)
                write = [partial(_of_line, u, one, factor, shift) for (one, factor), shift in lines]
                add(u.name, u.function(c * (V - zero)), write)
        else:
            for c in beyond:
                add(u.name, u.function(V + c), [partial(_of_shifted, u, one, shift) for one, shift in each(c)])
    return _Parts.joined(found)


class _Judge:
    """The gains of parts off a background (k, rows, orthonormal) for a residual (rows,) off it; `root` (rows,)."""

    def __init__(self, background: Tensor, residual: Tensor, root: Tensor, allowed: Allowed | None = None) -> None:
        self._background, self._residual, self._root, self._allowed = background, residual, root, allowed
        self._square = float(residual @ residual)

    def gains(self, parts: _Parts, factor: Tensor) -> Tensor:
        """(parts,) the part of the residual's square that each takes away as a column times `factor` (rows,)."""
        return self._judged(parts, factor)[0]

    def best(self, parts: _Parts, factor: Tensor, write: Callable[[float, Expression], Expression]) -> list[Insertion]:
        """The best part of each family, of the eight best families that are allowed.

        `write` takes its coefficient and expression.
        """
        if not len(parts.write) or bool(_has_spikes(factor)):
            return []
        gain, a, b = self._judged(parts, factor)
        out: list[Insertion] = []
        seen: set[tuple[str, Expression]] = set()
        for at in gain.argsort(descending=True, stable=True).tolist():
            if not float(gain[at]) > 0 or len(out) == _PER_PLACE or len(seen) == _FAMILIES_LOOKED_AT:
                break
            if parts.family[at] not in seen:
                seen.add(parts.family[at])
                sine, cosine = float(a[at]), float(b[at])
                size = math.hypot(sine, cosine) if cosine else sine
                phase = math.atan2(cosine, sine) if cosine else 0.0
                if math.isfinite(size) and size and math.isfinite(1 / size):
                    law = write(size, parts.write[at](phase))
                    if self._allowed is None or self._allowed(law):
                        out.append(Insertion(law, float(gain[at])))
        return out

    def _judged(self, parts: _Parts, factor: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Gains (parts,) and the coefficients (parts,) of values and partners.

        A column's size off the background is what the background leaves of its square, so that no column is made: all
        sums over the rows are matrix products of the parts' values.
        """
        weight = factor * self._root
        along, inside, norm = self._off(parts.values, parts.squares, weight)
        norm = torch.where(parts.usable, norm, torch.inf)
        along = torch.where(torch.isfinite(norm), along / norm, 0.0)
        gain, a, b = along.square(), along / norm, torch.zeros_like(along)
        periodic = parts.periodic
        if len(periodic):
            partner = parts.partner[periodic]
            other, partner_inside, size = self._off(partner, partner.square(), weight)
            own, other = along[periodic], torch.where(torch.isfinite(size), other / size, 0.0)
            product = (parts.values[periodic] * partner) @ weight.square() - (inside[periodic] * partner_inside).sum(1)
            cosine = torch.where(torch.isfinite(norm[periodic] * size), product / (norm[periodic] * size), 0.0)
            rest = (1 - cosine.square()).clamp_min(_LEAST_NEW)
            x, z = (own - cosine * other) / rest, (other - cosine * own) / rest
            gain[periodic] = own * x + other * z
            a[periodic], b[periodic] = x / norm[periodic], z / size
        gain = torch.where(torch.isfinite(gain), gain, 0.0) / self._square
        return gain.clamp(0.0, 1.0), a, b

    def _off(self, values: Tensor, squares: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Of columns values·weight (m, rows): residual (m,), background (m, k) and norm off the background (m,).

        The norm is infinite where the column is useless: not finite, or hardly off the background. The threshold for
        that is 1e-6 of the square, so the difference of two squares keeps nine digits.
        """
        sums = values @ (torch.cat([self._background, self._residual[None]]) * weight).T
        inside, along = sums[:, :-1], sums[:, -1]
        square = squares @ weight.square()
        left = square - inside.square().sum(dim=1)
        useful = torch.isfinite(left) & (left > _LEAST_NEW**2 * square)
        return along, inside, torch.where(useful, left, torch.inf).sqrt()


def _has_spikes(values: Tensor) -> Tensor:
    """(…,) whether the last dimension has values that are not finite, or far larger than its median."""
    size = values.abs()
    return ~(size.amax(dim=-1) <= _LARGEST * size.median(dim=-1).values)


def _free_paths(law: Expression) -> Iterator[Path]:
    """The paths to the constants that a fit of the law moves."""
    free = (is_free for node, is_free in postfix(law, integers=False) if not isinstance(node, Apply))
    stack: list[tuple[Path, Expression]] = [((), law)]
    while stack:  # from left to right, as in `postfix`
        path, node = stack.pop()
        if isinstance(node, Apply):
            stack += [((*path, at), node.operands[at]) for at in reversed(range(len(node.operands)))]
        elif next(free):
            yield path


def _added(law: Expression, place: Place, size: float, part: Expression) -> Expression:
    """The law with node + size·part at the place."""
    new = Constant(size) if part == Constant(1) else _times(size, part)
    return replaced(law, place.path, apply("add", place.node, new))


def _multiplied(law: Expression, place: Place, size: float, part: Expression) -> Expression:
    """The law with node·(1 + size·part) at the place; where the node has a coefficient, this takes up the size."""
    node = place.node
    if isinstance(node, Apply) and node.operator.role is Role.PRODUCT and isinstance(node.operands[0], Constant):
        coefficient, rest = node.operands
        assert isinstance(coefficient, Constant)
        product = apply("mul", rest, _shifted(part, 1 / size))
        return replaced(law, place.path, _times(float(coefficient.value) * size, product))
    return replaced(law, place.path, apply("mul", node, _shifted(_times(size, part), 1.0)))


def _to_the_power(law: Expression, place: Place, size: float, part: Expression) -> Expression:
    """The law with node**(1 + size) at the place, the size kept within what a first order says."""
    exponent = 1 + max(-_LARGEST_CHANGE, min(size, _LARGEST_CHANGE))
    return replaced(law, place.path, apply("pow", part, Constant(exponent)))


def _always(expression: Expression) -> Write:
    return lambda phase: expression


# How parts are written: only the few that promise most are. All but waves leave the phase alone.


def _turned(operator: Operator, inner: Expression, c: float, phase: float) -> Expression:
    """The periodic function of c·inner, with a phase that has 2·pi for a period."""
    period = operator.traits.period or 2 * math.pi
    return apply(operator, _shifted(_times(c, inner), phase * period / (2 * math.pi)))


def _of_scaled(operator: Operator, inner: Expression, c: float, phase: float) -> Expression:
    return apply(operator, _times(c, inner))


def _of_line(operator: Operator, inner: Expression, c: float, shift: float, phase: float) -> Expression:
    return apply(operator, _shifted(_times(c, inner), shift))


def _of_shifted(operator: Operator, inner: Expression, c: float, phase: float) -> Expression:
    return apply(operator, _shifted(inner, c))


def _over_shifted(inner: Expression, c: float, phase: float) -> Expression:
    return apply("div", Constant(1), _shifted(inner, c))


def _times(c: float, inner: Expression) -> Expression:
    return apply("mul", Constant(c), inner)


def _shifted(inner: Expression, c: float) -> Expression:
    return apply("add", inner, Constant(c))
