"""What a fitted estimator can be asked about a formula and about its constants; a part of PSERegressor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas
from sklearn.utils.validation import check_is_fitted, validate_data

from symenum.estimator.given import (
    FittedForm,
    Training,
    check_constants,
    fitted,
    read_form,
    standing,
    training_of,
)
from symenum.expressions import Expression, Variable, evaluate
from symenum.fitting import free_constants
from symenum.fitting.form import judge_form
from symenum.fitting.losses import make_loss
from symenum.fitting.parameters import with_leaves
from symenum.front import Front
from symenum.operators import get_operators

__all__ = ["Questions"]


class Questions:
    """Methods of an estimator with a front and the rows that it was fitted on."""

    if TYPE_CHECKING:
        front_: Front
        training_: Training
        variable_names_: tuple[str, ...]
        operators: Any
        constants: Any
        loss: Any

        def _expression(self, index: int | None) -> Expression: ...

    def score_expression(
        self,
        formula: str | Expression,
        X: object = None,
        y: object = None,
        sample_weight: object = None,
        *,
        start: Mapping[str, float] | None = None,
        fit_numbers: bool = False,
    ) -> FittedForm:
        """How a formula of one's own does, on the rows that the search had or on others: loss, complexity, R².

        Names in it that are neither variables nor declared constants are fitted, numbers are not (see
        `symenum.fit_constants`). Without X and y the result also says where the formula would stand on the front.

        >>> import numpy as np
        >>> from symenum import PSERegressor
        >>> x = np.linspace(1, 3, 30)[:, None]
        >>> model = PSERegressor(max_iterations=3, random_state=0).fit(x, 2 * x[:, 0] ** 3)
        >>> guess = model.score_expression("a*x1**2")
        >>> guess.complexity, guess.on_front, round(guess.r2, 3)
        (3, False, 0.929)
        """
        check_is_fitted(self, "front_")
        training = self._rows(X, y, sample_weight)
        declared = check_constants(self.constants, training.columns)
        operators = get_operators(self.operators)
        form = read_form(formula, training.columns, declared, operators, start=start, fit_numbers=fit_numbers)
        result = fitted(form, training, make_loss(self.loss, training.target))
        return standing(result, self.front_) if X is None else result

    def uncertainties(
        self, index: int | None = None, X: object = None, y: object = None, sample_weight: object = None
    ) -> pandas.DataFrame:
        """The numbers of a law that are no whole ones, from left to right, with their standard errors (Fisher).

        The errors are those of a fit of all of them at once, σ² from the residuals, on the rows of the search or on
        others; they are infinite where the data do not determine the constants.
        """
        expression = self._expression(index)
        training = self._rows(X, y, sample_weight)
        target = training.target
        loss = make_loss(self.loss, target)
        factors = None if loss.is_squared else loss.weights(target.y, evaluate(expression, training.columns))
        values = free_constants(expression, integers=False)
        called = {f"constant{i}_": value for i, value in enumerate(values)}
        form = with_leaves(expression, [Variable(name) for name in called], integers=False)
        found = judge_form(form, called, training.columns, target.y, target.weight, factors)
        return pandas.DataFrame({"constant": list(values), "standard_error": list(found.errors.values())})

    def _rows(self, X: object, y: object, sample_weight: object) -> Training:
        """Those that are given, or those of the search."""
        if (X is None) != (y is None):
            raise ValueError("give both X and y, or neither for the rows of the search")
        if X is not None:
            values = validate_data(self, X, dtype=np.float64, reset=False)  # columns of a frame in their order
            return training_of(values, y, sample_weight, self.variable_names_)
        if not hasattr(self, "training_"):
            raise ValueError("this model has come without the rows of its search: give X and y")
        return self.training_
