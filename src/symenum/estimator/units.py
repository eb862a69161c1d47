"""The parameter `units`: read for all columns and the target, and checked for whether any law can have them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

from symenum.core.dimensions import BASE_UNITS, Dimension, solve_exponents
from symenum.core.words import did_you_mean
from symenum.estimator.physical_constants import PHYSICAL_CONSTANTS
from symenum.estimator.unit_text import FROM_NAMES, read_unit, unit_in_name, without_unit
from symenum.expressions import Expression, Units, Variable
from symenum.heads.dimensionless_groups import groups_of

__all__ = ["dimensionless_groups", "read_units", "unit_lines"]


class Parameters(Protocol):
    """The parameters of an estimator that are read here."""

    units: Any
    constants: Any
    dimensional_constants: bool


def read_units(
    parameters: Parameters, names: Sequence[str], labels: Sequence[str], target: str, forbidden: Collection[str]
) -> Units | None:
    """The units of the variables `names`, and of the target; None where the user gives none.

    `labels`: the columns' names as the user wrote them, one for each variable. `forbidden`: variables that no law has.
    ValueError for a unit that cannot be read, a column that is not there or has none, and a target out of reach.
    """
    given = parameters.units
    if given is None:
        if parameters.dimensional_constants:
            raise ValueError("dimensional_constants=True needs units: say those of the columns and of the target")
        return None
    texts = _from_names(labels, target) if given == FROM_NAMES else dict(given)
    unnamed = [name for name in texts if name not in (*labels, *names)]
    if target not in texts and len(unnamed) == 1 and all(label in texts for label in labels):
        texts = {target if name == unnamed[0] else name: text for name, text in texts.items()}  # y is a plain array
    found: dict[str, Dimension] = {}
    for name, text in texts.items():
        found[name] = _dimension(name, text)
    by_label = dict(zip(labels, names, strict=True))
    known = {by_label.get(name, name): dimension for name, dimension in found.items()}
    own = parameters.constants if isinstance(parameters.constants, Mapping) else {}
    for name in texts:
        if by_label.get(name, name) not in (*names, target, *own):
            raise ValueError(
                f"units names {name!r}, which is no column{did_you_mean(name, [*labels, target])}; there are "
                f"{', '.join(labels[:20])}, and the target is called {target}"
            )
    without = [label for label, name in zip(labels, names, strict=True) if name not in known and name not in forbidden]
    if target not in known or without:
        lacking = [*without, *([target] if target not in known else [])]
        raise ValueError(
            f"units says nothing of {', '.join(map(repr, lacking[:20]))}: give a unit for each column and for the "
            "target, '1' for a plain number"
        )
    of_variables = {name: known[name] for name in names if name in known}
    constants = _of_constants(parameters.constants, found)
    units = Units(of_variables, known[target], parameters.dimensional_constants, constants)
    if not units.free:
        _check_reach(units, forbidden)
    return units


def _of_constants(constants: object, given: Mapping[str, Dimension]) -> dict[str, Dimension]:
    """The dimensions of named constants: those of nature have their own, others that of `units`, or are numbers."""
    if isinstance(constants, bool) or constants is None:
        return {}
    own = dict(constants) if isinstance(constants, Mapping) else dict.fromkeys(constants)  # type: ignore[call-overload]
    of_nature = {
        name: read_unit(PHYSICAL_CONSTANTS[name][1]).dimension
        for name, value in own.items()
        if name in PHYSICAL_CONSTANTS and value in (None, PHYSICAL_CONSTANTS[name][0])
    }
    return {**of_nature, **{name: given[name] for name in own if name in given}}


def _dimension(name: str, text: object) -> Dimension:
    try:
        return read_unit(text).dimension
    except ValueError as error:
        raise ValueError(f"units of {name!r}: {error}") from error


def _from_names(labels: Iterable[str], target: str) -> dict[str, str]:
    found = {label: split[1] for label in (*labels, target) if (split := unit_in_name(label)) is not None}
    without = [label for label in (*labels, target) if label not in found]
    if without:
        raise ValueError(
            f"units='names' finds no unit in the name {without[0]!r}: call it as in 'speed [m/s]' (a column of plain "
            f"numbers '{without[0]} [1]'), or give units as a mapping. The target's name is that of y, a Series"
        )
    return found


def _check_reach(units: Units, forbidden: Collection[str]) -> None:
    """Refuse a target whose dimension no product of powers of the variables has."""
    usable = {name: one for name, one in units.variables.items() if name not in forbidden} | dict(units.constants)
    if solve_exponents(list(usable.values()), units.target) is not None:
        return
    wanted = zip(BASE_UNITS, units.target.exponents, strict=True)
    absent = [
        base
        for at, (base, power) in enumerate(wanted)
        if power and not any(one.exponents[at] for one in usable.values())
    ]
    what = f"none of them has {' or '.join(absent)}" if absent else "their units do not combine to it"
    shown = ", ".join(f"{name} [{one}]" for name, one in usable.items())
    raise ValueError(
        f"units: no law of {shown} has the unit of the target, {units.target}: {what}. Add the column (or the named "
        "constant) that is missing, correct a unit, or let constants have units by dimensional_constants"
    )


def dimensionless_groups(units: Mapping[str, str]) -> list[Expression]:
    """A full set of independent dimensionless groups of quantities with these units, with the simplest exponents.

    >>> from symenum import dimensionless_groups
    >>> print(*dimensionless_groups({"period": "s", "length": "m", "gravity": "m/s^2"}))
    period**2*gravity/length
    """
    if not isinstance(units, Mapping) or not units:
        raise ValueError(f"units must be a mapping such as {{'v': 'm/s'}}, not {units!r:.60}")
    return groups_of({Variable(name).name: _dimension(name, text) for name, text in units.items()})


def unit_lines(law: Expression, units: Units, target: str) -> list[str]:
    """Sentences that say which unit target, variables and, where they may have any, the numbers of a law have."""
    shown = [f"{without_unit(target)} [{units.target}]", *(f"{name} [{one}]" for name, one in units.variables.items())]
    lines = [f"Units: {', '.join(shown)}."]
    if units.free:
        numbers = [f"{number} [{dimension}]" for number, dimension in units.of_numbers(law)]
        lines += [f"Units of its numbers, from left to right: {', '.join(numbers)}."] if numbers else []
    return lines
