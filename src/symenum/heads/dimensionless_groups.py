"""Dimensionless groups: y = ∏ x_i^p_i · F(g₁, g₂, …), Buckingham's theorem, for slots and a target with known units.

A few of the slots, the *base*, have independent dimensions that give those of all others. Each other slot, divided by a
product of powers of the base, is a group; y, divided by such a product, is a function of the groups alone. So there are
fewer slots, and whatever the heads build of them has the right dimension. Which slots are the base is open: the choices
with the simplest exponents are taken.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import torch
from torch import Tensor

from symenum.core.dimensions import DIMENSIONLESS, Dimension, solve_exponents
from symenum.expressions import Expression, Variable
from symenum.expressions.algebra import Powers, multiplied_powers, power_product, powers_of
from symenum.heads.reductions import Reduced
from symenum.heads.response import Data

__all__ = ["Grouping", "groupings", "groups_of", "in_groups"]

# Each choice is a search of its own with the same time; no other number was compared.
_GROUPINGS = 4  # choices of a base that are searched, the simplest first
_MAX_TRIED = 5_000  # choices of a base that are compared: 15 slots with 4 base units have 1365


@dataclass(frozen=True)
class Grouping:
    """The groups as powers of names, and the powers that y is divided by; `cost`: how large the exponents are."""

    groups: tuple[Mapping[str, Fraction], ...]
    factor: Mapping[str, Fraction]
    cost: Fraction


def groupings(dimensions: Mapping[str, Dimension], target: Dimension) -> list[Grouping]:
    """All choices of a base, the one with the simplest exponents first; none where the target cannot be reached.

    >>> from symenum.core.dimensions import Dimension
    >>> length, time = Dimension.of(m=1), Dimension.of(s=1)
    >>> found = groupings({"v": length / time, "t": time, "l": length}, length)
    >>> len(found), [{name: str(power) for name, power in group.items()} for group in found[0].groups]
    (3, [{'v': '1', 't': '1', 'l': '-1'}])
    """
    names = [name for name, dimension in dimensions.items() if not dimension.dimensionless]
    plain = [name for name, dimension in dimensions.items() if dimension.dimensionless]
    rank = _rank([dimensions[name] for name in names])
    found: list[Grouping] = []
    for base in itertools.islice(itertools.combinations(names, rank), _MAX_TRIED):
        bases = [dimensions[name] for name in base]
        if _rank(bases) < rank:
            continue
        factor = solve_exponents(bases, target)
        if factor is None:
            return []
        groups: list[Mapping[str, Fraction]] = []
        for name in names:
            if name not in base:
                powers = solve_exponents(bases, dimensions[name])
                assert powers is not None  # the base spans all of them
                whole = {name: Fraction(1), **{one: -power for one, power in zip(base, powers, strict=True) if power}}
                groups.append({one: whole[one] for one in dimensions if one in whole})
        of_target = {name: power for name, power in zip(base, factor, strict=True) if power}
        groups += [{name: Fraction(1)} for name in plain]
        cost = sum((_cost(group) for group in groups), start=_cost(of_target))
        found.append(Grouping(tuple(groups), of_target, cost))
    return sorted(found, key=lambda one: one.cost)


def groups_of(dimensions: Mapping[str, Dimension]) -> list[Expression]:
    """The groups of the simplest choice of a base, as expressions in the variables."""
    found = groupings(dimensions, DIMENSIONLESS)
    return [power_product(_powers(group, {name: Variable(name) for name in group})) for group in found[0].groups]


def in_groups(data: Data) -> list[Reduced]:
    """The problem in the groups of each of the simplest groupings; its target and its slots are plain numbers.

    Empty where units are not known, where numbers may have units, or where no slot has one.
    """
    units = data.units
    if units is None or units.free:
        return []
    slots = {slot.name: slot for slot in data.stand_ins if isinstance(slot, Variable)}
    dimensions = {name: units.variables[name] for name in slots}
    if all(dimension.dimensionless for dimension in dimensions.values()):
        return []
    found = [_reduced(data, grouping, slots) for grouping in groupings(dimensions, units.target)[:_GROUPINGS]]
    return [one for one in found if one is not None]


def _reduced(data: Data, grouping: Grouping, slots: Mapping[str, Variable]) -> Reduced | None:
    """None where there are no groups, or where a power of a column is not finite."""
    values = [_values(data, group) for group in grouping.groups]
    factor = _values(data, grouping.factor)
    expressions = tuple(power_product(_powers(group, slots)) for group in grouping.groups)
    y = data.target.y
    if not expressions or factor is None or any(value is None for value in values):
        return None
    columns = torch.stack([value for value in values if value is not None])
    varying = (columns != columns[:, :1]).any(dim=1)
    kept = torch.nonzero(varying).flatten().tolist()
    t = y / factor
    if not kept or not bool(torch.isfinite(t).all()) or bool((t == t[0]).all()):
        return None
    return Reduced(
        data,
        tuple(expressions[at] for at in kept),
        columns[varying],
        t,
        factor,
        _powers(grouping.factor, slots),
        lambda inner: inner,
        spreads=True,
    )


def _powers(powers: Mapping[str, Fraction], slots: Mapping[str, Variable]) -> Powers:
    return multiplied_powers(*((powers_of(slots[name]), power) for name, power in powers.items())) if powers else {}


def _values(data: Data, powers: Mapping[str, Fraction]) -> Tensor | None:
    """The product of powers (rows,); None where it is not finite on a row, or zero."""
    out = torch.ones_like(data.target.y)
    for name, power in powers.items():
        out = out * data.columns[name] ** float(power)
    return out if bool(torch.isfinite(out).all()) and bool((out != 0).all()) else None


def _cost(powers: Mapping[str, Fraction]) -> Fraction:
    """Exponents that are large or no whole numbers cost more, and so do negative ones, a little."""
    return sum(
        (abs(power) + power.denominator - 1 + (Fraction(1, 10) if power < 0 else 0) for power in powers.values()),
        start=Fraction(0),
    )


def _rank(dimensions: Sequence[Dimension]) -> int:
    """How many of the dimensions are independent."""
    independent: list[Dimension] = []
    for dimension in dimensions:
        if solve_exponents(independent, dimension) is None:
            independent.append(dimension)
    return len(independent)
