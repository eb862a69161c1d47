"""What the user knows of laws of motion: constraints for all of them, guesses and forbidden variables by state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np
import torch

from symenum.core.budget import Budget
from symenum.core.target import Target, Training
from symenum.dynamics.equation import Equation
from symenum.dynamics.system import System
from symenum.estimator.knowledge import prior_knowledge
from symenum.estimator.parameters import PARAMETERS
from symenum.search import Settings

__all__ = ["OF_ALL_LAWS", "OF_EACH_STATE", "check_by_state", "settings_of_each", "without_forbidden"]

OF_ALL_LAWS = ("operators", "constants", "max_complexity", "max_depth", "nested_constraints", "constraints")
"""Parameters that mean for each law of motion what they mean for the one law of PSERegressor."""
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


def settings_of_each(
    model: Parameters, system: System, states: Sequence[str], settings: Settings, seed: int
) -> list[Settings]:
    """The settings of the search for each state, with what the user knows of its law; an error names the parameter."""
    given = model.get_params(deep=False)
    check_by_state("guesses", given["guesses"], states)
    defaults = {name: row.default for name, row in PARAMETERS.items()}
    own = {name: given[name] for name in OF_ALL_LAWS} | {"variable_operators": given["variable_operators"]}
    found = []
    for i, (state, equation) in enumerate(zip(states, system.equations, strict=True)):
        guesses = _of_state(given["guesses"], state) or None
        parameters = SimpleNamespace(**{**defaults, **own, "guesses": guesses})
        training = _training(equation, system.points[:, i])
        known = prior_knowledge(parameters, training, Budget(), seed, weighted=False)
        found.append(replace(settings, prior=known.prior, guesses=known.guesses))
    return found


def _training(equation: Equation, points: Any) -> Training:
    """The points of the search for one law: constants of guesses are fitted to them first."""
    columns = {name: torch.from_numpy(np.ascontiguousarray(values)) for name, values in equation.columns.items()}
    y = torch.from_numpy(np.ascontiguousarray(points))
    return Training(columns, Target(y, torch.full((len(y),), 1 / len(y), dtype=torch.float64)))
