"""What the user knows of laws of motion: constraints and units for all, guesses and forbidden variables by state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np
import torch

from symenum.core.budget import Budget
from symenum.core.target import Target, Training
from symenum.core.words import did_you_mean
from symenum.dynamics.equation import Equation, outer_terms
from symenum.dynamics.system import Names, System
from symenum.estimator.knowledge import prior_knowledge
from symenum.estimator.parameters import PARAMETERS
from symenum.estimator.unit_text import read_unit
from symenum.expressions import Expression, Units
from symenum.search import Settings

__all__ = ["OF_ALL_LAWS", "OF_EACH_STATE", "check_by_state", "name_of_time", "settings_of_each", "without_forbidden"]

OF_ALL_LAWS = (
    *("operators", "constants", "max_complexity", "max_depth", "nested_constraints", "constraints"),
    "dimensional_constants",
)
"""Parameters that mean for each law of motion what they mean for the one law of PSERegressor."""
_TIMES = ("t", "time", "t_")  # names of the time among units: the first that no state or input has
OF_EACH_STATE = ("guesses", "forbidden_variables")
"""Parameters that are lists for all laws, or mappings from states to lists."""


class Parameters(Protocol):
    """ODERegressor, as far as its knowledge is read."""

    def get_params(self, deep: bool = True) -> dict[str, Any]: ...


def check_by_state(name: str, value: object, states: Sequence[str]) -> None:
    """Raise an error unless the parameter is None, a list for all states, or a mapping from states to lists."""
    example = "{'x1': ['a*x1 - b*x1*x2']}" if name == "guesses" else "{'x1': ['x2']}"
    if value is None:
        return
    if isinstance(value, Mapping):
        unknown = [one for one in value if one not in states]
        if unknown:
            raise ValueError(f"{name} names {unknown[0]!r}, which is no state; there are {', '.join(states)}")
        values = list(value.values())
    else:
        values = [value]
    if any(isinstance(one, str) or not isinstance(one, Sequence) for one in values):
        raise ValueError(f"{name} must be a list for all states, or a mapping such as {example}, not {value!r}")


def _of_state(value: Any, state: str) -> list[Any]:
    """The entries for one state."""
    return list((value.get(state) if isinstance(value, Mapping) else value) or ())


def without_forbidden(system: System, states: Sequence[str], forbidden: object) -> System:
    """The system whose laws hold no variables that are forbidden for their state."""
    if forbidden is None:
        return system
    check_by_state("forbidden_variables", forbidden, states)
    equations = []
    for state, equation in zip(states, system.equations, strict=True):
        unwanted = _of_state(forbidden, state)
        known = {**dict.fromkeys(states), **equation.moving, **equation.columns}
        unknown = [name for name in unwanted if name not in known]
        if unknown:
            raise ValueError(f"forbidden_variables names {unknown[0]!r}; there are {', '.join(known)}")
        columns = {name: values for name, values in equation.columns.items() if name not in unwanted}
        if not columns:
            raise ValueError(f"forbidden_variables leaves no variable for the law of {state}")
        equations.append(replace(equation, columns=columns, _normalised={}))
    return replace(system, equations=tuple(equations))


@dataclass(frozen=True)
class RateUnits(Units):
    """Units where each term of a law has a coefficient with the unit that is missing, even where it is 1.

    A rate of one per second is as good as any other, and is not written.
    """

    def reason(self, expression: Expression, *, whole: bool = True) -> str | None:
        if not whole:
            return super().reason(expression, whole=False)
        reasons = (super(RateUnits, self).reason(term, whole=False) for term in outer_terms(expression))
        return next((reason for reason in reasons if reason is not None), None)


def name_of_time(measured: Sequence[str]) -> str:
    """What the time is called among the units of these states and inputs."""
    return next(name for name in _TIMES if name not in measured)


def _units_of_laws(given: object, names: Names, is_map: bool) -> list[dict[str, str]] | None:
    """For each state the units of all variables and, by the name of its law, of what the law gives; None without any.

    The user says those of states, inputs and of the time, `t`; those of velocities and accelerations follow.
    """
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise ValueError(
            f"units must be a mapping for laws of motion, such as {{'x1': 'm', 't': 's'}}, not {given!r}: give those "
            "of all states and inputs, and of the time"
        )
    measured = (*names.states, *names.inputs)
    time = name_of_time(measured)
    wanted = measured if is_map else (*measured, time)
    unknown = [str(name) for name in given if name not in wanted]
    if unknown:
        raise ValueError(
            f"units names {unknown[0]!r}, which is no state or input{did_you_mean(unknown[0], list(wanted))}; there "
            f"are {', '.join(measured)}" + ("" if is_map else f", and the time is called {time}")
        )
    lacking = [name for name in wanted if name not in given]
    if lacking:
        raise ValueError(
            f"units says nothing of {', '.join(map(repr, lacking[:20]))}: give a unit for each state and input"
            + ("" if is_map else f" and for the time, {time}")
            + ", '1' for a plain number"
        )
    try:
        dimensions = {name: read_unit(given[name]).dimension for name in wanted}
    except ValueError as error:
        raise ValueError(f"units: {error}") from error
    for names_of, before in ((names.velocities, names.states), (names.accelerations, names.velocities)):
        dimensions |= {name: dimensions[of] / dimensions[time] for name, of in zip(names_of, before, strict=False)}
    texts = {name: str(dimension) for name, dimension in dimensions.items() if is_map or name != time}
    found = []
    for state in names.states:
        left = dimensions[state] if is_map else dimensions[state] / dimensions[time] ** names.order
        found.append({**texts, _left_of(state, is_map): str(left)})
    return found


def _left_of(state: str, is_map: bool) -> str:
    """What the law of a state gives, in messages about units."""
    return f"the next {state}" if is_map else f"the rate of {state}"


def settings_of_each(
    model: Parameters, system: System, names: Names, settings: Settings, seed: int, *, is_map: bool = False
) -> list[Settings]:
    """The settings of the search for each state, with what the user knows of its law; an error names the parameter."""
    given = model.get_params(deep=False)
    states = names.states
    check_by_state("guesses", given["guesses"], states)
    units = _units_of_laws(given["units"], names, is_map)
    defaults = {name: row.default for name, row in PARAMETERS.items()}
    own = {name: given[name] for name in OF_ALL_LAWS} | {"variable_operators": given["variable_operators"]}
    found = []
    for i, (state, equation) in enumerate(zip(states, system.equations, strict=True)):
        guesses = _of_state(given["guesses"], state) or None
        target = _left_of(state, is_map)
        of_law = None
        if units is not None:
            of_law = {name: unit for name, unit in units[i].items() if name in equation.columns or name == target}
        parameters = SimpleNamespace(**{**defaults, **own, "guesses": guesses, "units": of_law})
        if units is None:
            parameters.dimensional_constants = False
        training = _training(equation, system.points[:, i])
        known = prior_knowledge(parameters, training, Budget(), seed, weighted=False, target=target)
        prior = known.prior
        if prior.units is not None and prior.units.free:
            prior = replace(prior, units=RateUnits(prior.units.variables, prior.units.target, free=True))
        found.append(replace(settings, prior=prior, guesses=known.guesses))
    return found


def _training(equation: Equation, points: Any) -> Training:
    """The points of the search for one law: constants of guesses are fitted to them first."""
    columns = {name: torch.from_numpy(np.ascontiguousarray(values)) for name, values in equation.columns.items()}
    y = torch.from_numpy(np.ascontiguousarray(points))
    return Training(columns, Target(y, torch.full((len(y),), 1 / len(y), dtype=torch.float64)))
