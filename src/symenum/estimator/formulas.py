"""Formulas of the user's own: their constants are fitted, and they are compared with the laws of a front."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Real

import numpy as np
import pandas

from symenum.core.budget import Budget
from symenum.core.exactness import EXACTNESS, overflow_allowed
from symenum.core.target import Training
from symenum.core.threads import single_threaded
from symenum.core.words import did_you_mean, looks_like
from symenum.estimator.data import make_training
from symenum.estimator.physical_constants import named_constants
from symenum.expressions import (
    Apply,
    Constant,
    Expression,
    Variable,
    evaluate,
    parse,
    substitute,
    variables,
    written,
)
from symenum.expressions.parse import FORMULA_RESERVED
from symenum.fitting import free_constants
from symenum.fitting.fit_under_loss import fit_form_under
from symenum.fitting.form_fit import judge_form
from symenum.fitting.free_constants import with_leaves
from symenum.fitting.losses import Loss, make_loss
from symenum.front import Front
from symenum.operators import Operator

__all__ = [
    "FittedForm",
    "Form",
    "UndeclaredNameError",
    "check_constants",
    "compare_with_front",
    "constant_errors",
    "fit_constants",
    "fit_form",
    "read_form",
]

_MAX_NAMES = 20  # of variables in a message


class UndeclaredNameError(ValueError):
    """A name in a formula that looks like a variable and is none: a typo, unless it is declared as a constant."""

    def __init__(self, name: str, meant: str) -> None:
        super().__init__(
            f"{name!r} is no variable: did you mean {meant!r}? A constant to be fitted has a name of one letter, or "
            f"one unlike any variable, or is declared by start={{{name!r}: None}}"
        )
        self.name = name
        self.meant = meant


@dataclass(frozen=True)
class Form:
    """An expression with constants to be fitted, which stand in it as variables.

    `starts` holds the names of these constants and the values to start from; None tries several starts.
    """

    expression: Expression
    starts: Mapping[str, float | None]


@dataclass(frozen=True)
class FittedForm:
    """A formula with its fitted constants: their values and standard errors by name, and how well it fits.

    `loss` is in the measure that was asked for; `r2` is the share of the variance of y that the law explains. After a
    comparison with a front, `beaten_by` is the first row of `equations_` that is no more complex and fits at least as
    well, or None, and `beats` are the rows that are no simpler and fit no better. A row that is as good in both counts
    for neither.
    """

    expression: Expression
    loss: float
    complexity: int
    r2: float
    constants: Mapping[str, float] = field(default_factory=dict)
    errors: Mapping[str, float] = field(default_factory=dict)
    beaten_by: int | None = None
    beats: tuple[int, ...] = ()

    @property
    def on_front(self) -> bool:
        """Whether no law of the front beats it."""
        return self.beaten_by is None

    def __str__(self) -> str:
        lines = [f"{self.expression}", f"loss {self.loss:.6g}, complexity {self.complexity}, R² {self.r2:.6g}"]
        lines += [f"{name} = {value:.8g} ± {self.errors[name]:.2g}" for name, value in self.constants.items()]
        return "\n".join(lines)


def fit_constants(
    formula: str | Expression,
    X: object,
    y: object,
    sample_weight: object = None,
    *,
    start: Mapping[str, float | None] | None = None,
    constants: Mapping[str, float] | None = None,
    fit_numbers: bool = False,
    loss: object = "mse",
    operators: Iterable[Operator] = (),
    seed: int = 0,
) -> FittedForm:
    """Fit the constants of a formula to X (rows, features) and y (rows,); the formula itself stays as it is.

    A name in the formula that is no column of X (x1, x2, … for an array) is a constant; one that occurs twice is one
    constant. `constants` gives names with values that stay. Numbers stay as they are; with `fit_numbers` those with a
    decimal point are fitted. `start` gives values to start from; for a constant without one, or with None, several are
    drawn at random from `seed`. A name that looks like a column's is refused as a typo, unless `start` has it. `loss`
    as in PSERegressor.

    >>> import numpy as np
    >>> x = np.linspace(0, 3, 20)
    >>> found = fit_constants("a*exp(-b*x1)", x[:, None], 3 * np.exp(-x / 2))
    >>> {name: round(value, 6) for name, value in found.constants.items()}
    {'a': 3.0, 'b': 0.5}
    """
    training = make_training(X, y, sample_weight)
    declared = check_constants(constants, training.columns)
    form = read_form(formula, training.columns, declared, operators, start=start, fit_numbers=fit_numbers)
    return fit_form(form, training, make_loss(loss, training.target, weighted=sample_weight is not None), seed=seed)


def read_form(
    formula: str | Expression,
    names: Iterable[str],
    constants: Mapping[str, float],
    operators: Iterable[Operator] = (),
    *,
    start: Mapping[str, float | None] | None = None,
    fit_numbers: bool = False,
) -> Form:
    """The form of a formula in the variables `names`; its other names, unless in `constants`, are to be fitted.

    Raises UndeclaredNameError for a name of more than one letter that looks like a variable and is not in `start`, and
    ValueError for text without any variable: its names are then all constants, and were hardly meant so.
    """
    if isinstance(formula, (Variable, Constant, Apply)):
        expression: Expression = formula
    elif isinstance(formula, str):
        own = [operator for operator in operators if operator.form is None]
        expression = parse(formula, own, constants)
    else:
        raise TypeError(f"a formula must be text such as 'a*x1**2' or an Expression, not {type(formula).__name__}")
    known = list(names)
    starts: dict[str, float | None] = {name: None for name in variables(expression) if name not in known}
    for name, value in (start or {}).items():
        if name not in starts:
            there = f"its constants are {', '.join(starts)}" if starts else "it has none"
            raise ValueError(f"start names {name!r}, and the formula has no such constant: {there}")
        starts[name] = None if value is None else float(value)
    for name in starts:
        meant = looks_like(name, known) if len(name) > 1 and name not in (start or {}) else None
        if meant is not None:
            raise UndeclaredNameError(name, meant)
    if isinstance(formula, str) and not any(name in known for name in variables(expression)):
        hint = next((hint for name in starts if (hint := did_you_mean(name, known))), "")
        raise ValueError(f"{formula!r} holds no variable{hint}; there are {', '.join(known[:_MAX_NAMES])}")
    if fit_numbers:
        numbers = free_constants(expression, integers=False)
        taken = {*known, *starts}
        unused = (name for i in range(len(numbers) + len(taken)) if (name := f"c{i + 1}") not in taken)
        named = dict(zip(unused, numbers, strict=False))
        expression = with_leaves(expression, [Variable(name) for name in named], integers=False)
        starts |= named
    return Form(expression, starts)


@single_threaded()
@overflow_allowed()
def fit_form(form: Form, training: Training, loss: Loss, *, budget: Budget | None = None, seed: int = 0) -> FittedForm:
    """The form with the constants of least loss on these rows; if the budget ends first, the best that were tried."""
    columns, target = training.columns, training.target
    found = fit_form_under(
        form.expression, form.starts, columns, target.y, target.weight, loss, budget=budget, seed=seed
    )
    law = substitute(form.expression, {name: Constant(value) for name, value in found.constants.items()})
    mse = float(target.loss(evaluate(law, columns)[None]))
    variance = training.variance
    r2 = 1 - mse / variance if variance > 0 else float("nan")
    return FittedForm(law, found.loss, law.complexity, r2, dict(found.constants), dict(found.errors))


def compare_with_front(form: FittedForm, front: Front) -> FittedForm:
    """The form with `beaten_by` and `beats` filled in; losses that differ by rounding only count as equal."""
    tie = EXACTNESS.tie * abs(form.loss)
    beaten = [
        i for i, entry in enumerate(front) if entry.complexity <= form.complexity and entry.loss <= form.loss + tie
    ]
    beats = [
        i for i, entry in enumerate(front) if entry.complexity >= form.complexity and entry.loss >= form.loss - tie
    ]
    equal = set(beaten) & set(beats)  # the law itself, or one that is as good
    return replace(
        form,
        beaten_by=min((i for i in beaten if i not in equal), default=None),
        beats=tuple(i for i in beats if i not in equal),
    )


def constant_errors(law: Expression, training: Training, loss: Loss) -> pandas.DataFrame:
    """The numbers of a law, as it is written, that are not integers, from left to right, with their standard errors.

    They come from the Fisher information of a fit of all these numbers at once, with σ² from the residuals. Where the
    data do not determine a number, its error is infinite.
    """
    law = written(law)  # the law as it was found may have other signs, and two factors where people write one
    target = training.target
    factors = None if loss.is_squared else loss.weights(target.y, evaluate(law, training.columns))
    values = free_constants(law, integers=False)
    named = {f"constant{i}_": value for i, value in enumerate(values)}
    form = with_leaves(law, [Variable(name) for name in named], integers=False)
    found = judge_form(form, named, training.columns, target.y, target.weight, factors)
    return pandas.DataFrame({"constant": list(values), "standard_error": list(found.errors.values())})


def check_constants(constants: object, names: Iterable[str]) -> dict[str, float]:
    """The named constants of the user: each a finite number other than zero, under a name that is no variable's."""
    if constants is None or isinstance(constants, bool):
        return {}
    if isinstance(constants, (list, tuple)) and all(isinstance(name, str) for name in constants):
        constants = named_constants(constants)
    if not isinstance(constants, Mapping):
        raise ValueError(
            f"constants must be True, False or a mapping such as {{'g': 9.81}}, or names of constants of nature such "
            f"as ['c', 'k_B'], not {constants!r}"
        )
    taken = set(names)
    checked: dict[str, float] = {}
    for name, value in constants.items():
        if not isinstance(name, str) or not name.isidentifier() or name in FORMULA_RESERVED:
            raise ValueError(f"constants must have names that formulas can use, such as 'g', not {name!r}")
        if name in taken:
            raise ValueError(f"constants declares {name!r}, which is a variable: give it another name")
        if isinstance(value, bool) or not isinstance(value, Real) or not np.isfinite(float(value)):
            raise ValueError(f"constants must hold finite numbers; {name} is {value!r}")
        if float(value) == 0.0:
            raise ValueError(f"constants declares {name} as 0: leave it out")
        checked[name] = float(value)
    return checked
