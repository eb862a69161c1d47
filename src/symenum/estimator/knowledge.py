"""What the user knows about the law: parameters of the estimator, checked and converted for the search."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Protocol

from symenum.core.budget import Budget
from symenum.core.target import Training
from symenum.estimator.formulas import check_constants, fit_form, read_form
from symenum.expressions import Expression, variables
from symenum.fitting.losses import Loss, make_loss
from symenum.front import Front
from symenum.heads.operator_grammar import Prior
from symenum.operators import Operator, get_operator, get_operators

__all__ = ["Knowledge", "check_found", "prior_knowledge"]


class Parameters(Protocol):
    """The parameters of an estimator that are read here, as the user has set them."""

    operators: Any
    constants: Any
    max_complexity: int
    max_depth: int | None
    nested_constraints: Any
    variable_operators: Any
    required_variables: Any
    forbidden_variables: Any
    guesses: Any
    loss: Any


@dataclass(frozen=True)
class Knowledge:
    """Fields of `symenum.search.Settings`, of the same names."""

    loss: Loss
    prior: Prior
    forbidden: tuple[str, ...]
    guesses: tuple[Expression, ...]
    declared: Mapping[str, float]


def prior_knowledge(
    parameters: Parameters, training: Training, budget: Budget, seed: int, *, weighted: bool
) -> Knowledge:
    """Check and convert these parameters; an error names the parameter.

    `budget` and `seed` are for fitting the constants of guesses. `weighted`: whether the rows have weights.
    """
    names = tuple(training.columns)
    loss = make_loss(parameters.loss, training.target, weighted=weighted)
    declared = check_constants(parameters.constants, names)
    forbidden = _variables("forbidden_variables", parameters.forbidden_variables, names)
    if len(forbidden) == len(names):
        raise ValueError("forbidden_variables names all variables: a law needs at least one")
    required = _variables("required_variables", parameters.required_variables, names)
    both = sorted(set(required) & set(forbidden))
    if both:
        raise ValueError(f"{', '.join(both)} cannot be in both required_variables and forbidden_variables")
    prior = Prior(
        None if parameters.max_depth is None else int(parameters.max_depth),
        _nested_constraints(parameters.nested_constraints),
        _variable_operators(parameters.variable_operators, names),
        required,
    )
    guesses = _guesses(parameters, training, declared, loss, budget, seed)
    for guess in guesses:
        unwanted = [name for name in forbidden if name in variables(guess)]
        if unwanted or not prior.allows(guess) or guess.complexity > parameters.max_complexity:
            raise ValueError(f"guesses holds {guess}, which the constraints on laws forbid: change one of them")
    return Knowledge(loss, prior, forbidden, guesses, declared)


def check_found(front: Front, error: BaseException | None) -> None:
    """Raise an error if the front is empty: the one that ended the search, or one that names the constraints."""
    if not front and error is not None:
        raise error
    if not front:
        raise ValueError(
            "no law that was found keeps to max_complexity, max_depth, nested_constraints, variable_operators and "
            "required_variables: allow more, or search longer"
        )


def _variables(parameter: str, value: object, names: tuple[str, ...]) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ValueError(f"{parameter} must be a list of variables' names, not {value!r}")
    listed = tuple(dict.fromkeys(value))
    unknown = [name for name in listed if name not in names]
    if unknown:
        raise ValueError(f"{parameter} names {unknown[0]!r}, which is no variable; there are {', '.join(names[:20])}")
    return listed


def _nested_constraints(value: object) -> dict[str | Operator, dict[str | Operator, int]]:
    if value is None:
        return {}
    shape = "nested_constraints must be a mapping such as {'sin': {'sin': 0, 'cos': 0}}"
    if not isinstance(value, Mapping):
        raise ValueError(f"{shape}, not {value!r}")
    nested: dict[str | Operator, dict[str | Operator, int]] = {}
    for outer, limits in value.items():
        if not isinstance(limits, Mapping):
            raise ValueError(f"{shape}; that of {outer!r} is {limits!r}")
        for inner, limit in limits.items():
            if isinstance(limit, bool) or not isinstance(limit, Integral) or limit < 0:
                raise ValueError(f"{shape}: {inner!r} inside {outer!r} must be a number of times, not {limit!r}")
            nested.setdefault(_operator(outer), {})[_operator(inner)] = int(limit)
    return nested


def _operator(name: object) -> Operator:
    try:
        operator = get_operator(name)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise ValueError(f"nested_constraints: {error}") from error
    if operator.form is not None:
        raise ValueError(f"nested_constraints: {operator.name} is written as {operator.form} in laws: name what it has")
    return operator


def _variable_operators(value: object, names: tuple[str, ...]) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ValueError(f"variable_operators must be a mapping such as {{'x1': ['+', '*']}}, not {value!r}")
    _variables("variable_operators", list(value), names)
    try:
        return {name: get_operators(operators) for name, operators in value.items()}
    except (TypeError, ValueError) as error:
        raise ValueError(f"variable_operators: {error}") from error


def _guesses(
    parameters: Parameters, training: Training, declared: Mapping[str, float], loss: Loss, budget: Budget, seed: int
) -> tuple[Expression, ...]:
    if parameters.guesses is None:
        return ()
    if isinstance(parameters.guesses, str) or not isinstance(parameters.guesses, Iterable):
        raise ValueError(f"guesses must be a list of formulas such as ['a*x1**2'], not {parameters.guesses!r}")
    found = []
    for formula in parameters.guesses:
        try:
            form = read_form(formula, training.columns, declared, get_operators(parameters.operators))
        except (TypeError, ValueError) as error:
            raise ValueError(f"guesses: {error}") from error
        if form.starts and parameters.constants is False:
            raise ValueError(
                f"guesses holds {formula}, whose {', '.join(form.starts)} would be fitted: constants=False"
            )
        law = fit_form(form, training, loss, budget=budget, seed=seed)
        if not law.loss < float("inf"):
            raise ValueError(f"guesses holds {formula}, which has no finite value on some row of X")
        found.append(law.expression)
    return tuple(found)
