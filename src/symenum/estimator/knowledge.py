"""What the user knows about the law: parameters of the estimator, checked and converted for the search."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Protocol

import torch

from symenum.core.budget import Budget
from symenum.core.target import Training
from symenum.estimator.formulas import UndeclaredNameError, check_constants, fit_form, read_form
from symenum.estimator.preparation import important_columns
from symenum.estimator.shape_text import read_shape
from symenum.estimator.template_text import read_template
from symenum.estimator.units import read_units
from symenum.expressions import Expression, Units, variables
from symenum.expressions.complexity import ComplexityWeights
from symenum.expressions.template import Template
from symenum.fitting.losses import Loss, make_loss
from symenum.front import Front
from symenum.heads.operator_grammar import Prior
from symenum.operators import Operator, get_operator, get_operators
from symenum.sanity.shapes import Shape

__all__ = ["Knowledge", "check_found", "complexity_weights", "prior_knowledge"]


_MAX_WEIGHT = 1_000_000  # what an operator or a leaf may cost: more than any limit of complexity that makes sense


class Parameters(Protocol):
    """The parameters of an estimator that are read here, as the user has set them."""

    operators: Any
    constants: Any
    max_complexity: int
    max_depth: int | None
    nested_constraints: Any
    constraints: Any
    complexity_of_operators: Any
    complexity_of_constants: Any
    complexity_of_variables: Any
    variable_operators: Any
    required_variables: Any
    forbidden_variables: Any
    guesses: Any
    loss: Any
    select_k_features: int | None
    units: Any
    dimensional_constants: bool
    template: Any
    shape: Any
    shape_box: Any


@dataclass(frozen=True)
class Knowledge:
    """Fields of `symenum.search.Settings`, of the same names.

    `final_units`: where constants of nature have units and other numbers may not. The search knows numbers only, so in
    it they may have any unit; once a number has its name, the law must keep to these.
    """

    loss: Loss
    prior: Prior
    forbidden: tuple[str, ...]
    guesses: tuple[Expression, ...]
    declared: Mapping[str, float]
    final_units: Units | None
    template: Template | None
    shape: Shape | None
    weights: ComplexityWeights | None


def prior_knowledge(
    parameters: Parameters,
    training: Training,
    budget: Budget,
    seed: int,
    *,
    weighted: bool,
    labels: Sequence[str] | None = None,
    target: str = "y",
) -> Knowledge:
    """Check and convert these parameters; an error names the parameter.

    `budget` and `seed` are for fitting the constants of guesses. `weighted`: whether the rows have weights. `labels`:
    the names of the columns as the user wrote them. `target`: the name of y.
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
    weights = complexity_weights(parameters, names)
    units = read_units(parameters, names, labels or names, target, forbidden)
    final_units = units if units is not None and units.constants and not units.free else None
    shape = read_shape(parameters.shape, parameters.shape_box, names, target, training.columns)
    prior = Prior(
        None if parameters.max_depth is None else int(parameters.max_depth),
        _nested_constraints(parameters.nested_constraints),
        _variable_operators(parameters.variable_operators, names),
        required,
        _argument_limits(parameters.constraints),
        weights,
        units if final_units is None or units is None else replace(units, free=True, by_names=True),
        () if shape is None else shape.straight,
    )
    template = read_template(parameters.template, names, declared, get_operators(parameters.operators))
    if template is not None:
        _check_alone(parameters)
    guesses = _guesses(parameters, training, declared, loss, budget, seed)
    for guess in guesses:
        unwanted = [name for name in forbidden if name in variables(guess)]
        complexity = guess.complexity if weights is None else weights.of(guess)
        if unwanted or not prior.allows(guess) or complexity > parameters.max_complexity:
            reason = None if prior.units is None else prior.units.reason(guess)
            why = "which the constraints on laws forbid" if reason is None else f"which units forbid: {reason}"
            raise ValueError(f"guesses holds {guess}, {why}: change one of them")
    wanted = {*required, *(name for guess in guesses for name in variables(guess))}
    forbidden += _unimportant(parameters.select_k_features, training, forbidden, wanted)
    return Knowledge(loss, prior, forbidden, guesses, declared, final_units, template, shape, weights)


def _check_alone(parameters: Parameters) -> None:
    """Refuse what cannot be asked for beside a template."""
    says_it = "which variables a law has is said by the template"
    reasons = {
        "units": "the units of unknown functions are not known: leave units out, and look at the law's units yourself",
        "guesses": "a law to begin with need not be of the template: write what you know into it",
        "required_variables": says_it,
        "forbidden_variables": says_it,
        "select_k_features": says_it,
        "variable_operators": "operators are asked for in all functions alike: see operators, and nested_constraints",
    }
    for name, reason in reasons.items():
        if getattr(parameters, name) is not None:
            raise ValueError(f"{name} does not go together with template: {reason}")
    if parameters.constants is False:
        raise ValueError("constants=False does not go together with template, whose functions have fitted scales")


def _unimportant(count: int | None, training: Training, forbidden: Iterable[str], wanted: set[str]) -> tuple[str, ...]:
    """The variables that are left out where only the `count` most important ones are searched with.

    Those that are `wanted`, by required_variables or guesses, are kept in any case.
    """
    free = [name for name in training.columns if name not in forbidden and name not in wanted]
    if count is None or count >= len(free) + len(wanted):
        return ()
    table = torch.stack([training.columns[name] for name in free], dim=1)
    kept = important_columns(table, training.target, max(0, int(count) - len(wanted)))
    return tuple(name for i, name in enumerate(free) if i not in set(kept))


def complexity_weights(parameters: Parameters, names: Iterable[str]) -> ComplexityWeights | None:
    """The weights of the user's own, for laws in the variables `names`; None where there are none."""
    by_operator = parameters.complexity_of_operators
    by_variable, constant = parameters.complexity_of_variables, parameters.complexity_of_constants
    if by_operator is None and by_variable is None and constant is None:
        return None
    operators = {} if by_operator is None else _weights_by_name("complexity_of_operators", by_operator, "{'sin': 3}")
    named = by_variable is not None and not isinstance(by_variable, Integral)
    variables_ = _weights_by_name("complexity_of_variables", by_variable, "{'x1': 2}, or a number") if named else {}
    _variables("complexity_of_variables", list(variables_), tuple(names))
    return ComplexityWeights(
        tuple((_operator(name, "complexity_of_operators").name, weight) for name, weight in operators.items()),
        tuple(variables_.items()),
        0 if named or by_variable is None else _weight("complexity_of_variables", by_variable),
        0 if constant is None else _weight("complexity_of_constants", constant),
    )


def _weights_by_name(parameter: str, value: object, example: str) -> dict[Any, int]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{parameter} must be a mapping such as {example}, not {value!r}")
    return {name: _weight(f"{parameter} of {name!r}", weight) for name, weight in value.items()}


def _weight(what: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or not 0 <= int(value) <= _MAX_WEIGHT:
        raise ValueError(f"{what} must be a whole number from 0 to {_MAX_WEIGHT}, not {value!r:.60}")
    return int(value)


def check_found(front: Front, error: BaseException | None) -> None:
    """Raise an error if the front is empty: the one that ended the search, or one that names the constraints."""
    if not front and error is not None:
        raise error
    if not front:
        raise ValueError(
            "no law that was found keeps to max_complexity, max_depth, nested_constraints, constraints, "
            "variable_operators, required_variables and units: allow more, or search longer"
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


def _argument_limits(value: object) -> dict[Operator, tuple[int | None, ...]]:
    """The largest complexity of each operand, by operator; None for any complexity, which PySR writes as -1."""
    if value is None:
        return {}
    shape = "constraints must be a mapping such as {'pow': (-1, 1), 'sin': 5}"
    if not isinstance(value, Mapping):
        raise ValueError(f"{shape}, not {value!r}")
    limits: dict[Operator, tuple[int | None, ...]] = {}
    for name, given in value.items():
        operator = _operator(name, "constraints")
        sizes = list(given) if isinstance(given, (tuple, list)) else [given] * operator.arity
        whole = all(isinstance(size, Integral) and not isinstance(size, bool) and int(size) >= -1 for size in sizes)
        if not whole or len(sizes) != operator.arity:
            wanted = "a whole number" if operator.arity == 1 else f"{operator.arity} whole numbers"
            raise ValueError(f"{shape}: that of {name!r} must be {wanted} of at least 0, or -1 for any, not {given!r}")
        limits[operator] = tuple(None if size == -1 else int(size) for size in sizes)
    return limits


def _operator(name: object, parameter: str = "nested_constraints") -> Operator:
    try:
        operator = get_operator(name)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise ValueError(f"{parameter}: {error}") from error
    if operator.form is not None:
        raise ValueError(f"{parameter}: {operator.name} is written as {operator.form} in laws: name what it has")
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
        except UndeclaredNameError as error:
            raise ValueError(
                f"guesses: {error.name!r} is no variable: did you mean {error.meant!r}? A constant to be fitted has a "
                "name of one letter, or one unlike any variable"
            ) from error
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
