"""SymbolicClassifier: a law for the log-odds of two classes, log(p/(1 - p)) = f(X).

The search is that of PSERegressor on y = -1 and 1. Its scans are least squares, which find forms; a form is ranked by
the log loss that it has with the best scale and offset. When the search has ended, all constants of the laws on the
front are fitted under the log loss itself, so that the loss in the table is that of the law as it is printed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas
import scipy.optimize
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.exactness import EXACTNESS
from symenum.core.seeds import sample_rows
from symenum.core.target import Target, Training
from symenum.core.threads import single_threaded
from symenum.core.user_warnings import warn_user
from symenum.display.notebook import front_html
from symenum.display.table import rows_of, terminal_width, text_table
from symenum.estimator.data import check_rows
from symenum.estimator.parameters import PARAMETERS, knows_words_of_pysr
from symenum.estimator.regressor import PSERegressor
from symenum.expressions import Constant, Expression, Variable, apply, evaluate, simplify, substitute, to_torch
from symenum.expressions.algebra import plain_form
from symenum.expressions.candidate import Candidate
from symenum.fitting.free_constants import free_constants, with_leaves
from symenum.fitting.losses import RowLoss
from symenum.front import Front
from symenum.operators import Operator
from symenum.search import StepReport
from symenum.selection import DEFAULT_RULE, MODEL_SELECTIONS, select

__all__ = ["LogOdds", "SymbolicClassifier", "search_parameters"]

Array = npt.NDArray[np.float64]

_PENALTY = 1e-4  # of the square of log-odds: classes without a mistake get log-odds of about 7, a probability of 0.999
_SEARCH_SHARE = 0.9  # part of max_time for the search; the rest is for the last fits of constants
_NEWTON_STEPS = 30  # of the fit of scale and offset: a convex problem of two unknowns takes about eight
_NEWTON_HALVINGS = 20  # of a step that would make it worse
_NEWTON_END = 1e-10  # relative gain of a step below which it is the last
_FIT_ROWS = 20_000  # rows that constants are fitted on at the end: a millisecond for each look at them
_FIT_STEPS = 100  # of the last fit of a law's constants
_SAME_LOSS = 1e-3  # relative difference of two log losses below which a law needs no scale or offset of its own
_SEED = 0  # of the rows for the last fits: no other random numbers are drawn here


@dataclass(frozen=True)
class LogOdds(RowLoss):
    """The log loss of the classes y < 0 and y > 0, for the log-odds a·f + b with the best scale a and offset b.

    Log-odds of infinite size, where f tells the classes apart without a mistake, are prevented by a small penalty on
    their mean square. The loss itself does not hold the penalty.
    """

    name: str = "log_odds"

    def rows(self, y: Tensor, prediction: Tensor) -> Tensor:
        """The log loss of each row (rows,), natural logarithms, with predictions as log-odds."""
        return torch.nn.functional.softplus(-torch.sign(y) * prediction)

    def weights(self, y: Tensor, prediction: Tensor) -> Tensor:
        """Least squares is what the constants stay with until the search has ended."""
        return torch.ones_like(y)

    def total(self, y: Tensor, prediction: Tensor, weight: Tensor) -> float:
        if not bool(torch.isfinite(prediction).all()):
            return math.inf
        scale, offset = self.best_scale(y, prediction, weight)
        return float((self.rows(y, scale * prediction + offset) * weight).sum())

    def best_scale(self, y: Tensor, prediction: Tensor, weight: Tensor) -> tuple[float, float]:
        """The scale a and the offset b of least penalised log loss; by Newton's method, which is safe when damped."""
        middle = float((prediction * weight).sum())
        spread = float(((prediction - middle).square() * weight).sum().sqrt())
        varies = EXACTNESS.flat * float(prediction.abs().max()) < spread < math.inf
        unit = (prediction - middle) / spread if varies else torch.zeros_like(prediction)
        basis = torch.stack([unit, torch.ones_like(unit)])
        values = torch.zeros(2, dtype=y.dtype)
        loss = _penalised(y, values @ basis, weight)
        for _ in range(_NEWTON_STEPS):
            odds = values @ basis
            sign = torch.sign(y)
            wrong = torch.sigmoid(-sign * odds)  # the probability of the other class
            slope = basis @ (weight * (_PENALTY * odds - sign * wrong))
            curvature = (basis * (weight * (_PENALTY + wrong * (1 - wrong)))) @ basis.T
            # A column of zeros has no curvature: an identity there leaves its value at zero.
            step = torch.linalg.solve(curvature + torch.diag((curvature.diagonal() == 0).to(y.dtype)), slope)
            new, gain = values, 0.0
            for _ in range(_NEWTON_HALVINGS):
                tried = values - step
                gain = loss - _penalised(y, tried @ basis, weight)
                if gain >= 0:
                    new = tried
                    break
                step = step / 2
            values, loss = new, loss - max(gain, 0.0)
            if gain <= _NEWTON_END * loss:
                break
        scale = float(values[0]) / spread if varies else 0.0
        return scale, float(values[1]) - scale * middle


def _penalised(y: Tensor, odds: Tensor, weight: Tensor) -> float:
    return float(((LogOdds().rows(y, odds) + _PENALTY / 2 * odds.square()) * weight).sum())


class SymbolicClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A closed-form law for the log-odds of two classes, with scikit-learn's interface; gplearn's name for it.

    For more than two classes use `sklearn.multiclass.OneVsRestClassifier(SymbolicClassifier())`.

    Parameters
    ----------
    operators, max_time, max_iterations, layers, inputs, token_generator, constant_range, top_k, discount,
    max_complexity, max_depth, nested_constraints, constraints, variable_operators, required_variables,
    forbidden_variables, select_k_features, device, random_state, verbose, callbacks, max_memory : as in PSERegressor
    model_selection : "evidence", "mdl", "best", "accuracy" or "reward", as in PSERegressor

    Attributes
    ----------
    classes_ : the two classes; the log-odds are those of the second one
    equations_ : DataFrame, one row for each law of the front: complexity, loss (the mean log loss), score, reward,
        equation, sympy_format, lambda_format
    best_expression_, selected_index_ : the chosen law for the log-odds, and its row
    front_ : the front itself
    regressor_ : the laws as a PSERegressor, with all that it can show and export

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-2, 2, (200, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same sign", "other")
    >>> model = SymbolicClassifier(["+", "*"], max_iterations=20, max_time=None, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95, model.predict([[1.0, 2.0]])
    (True, array(['same sign'], dtype='<U9'))
    """

    @knows_words_of_pysr
    def __init__(
        self,
        operators: str | Iterable[str | Operator] = "koza",
        *,
        max_time: float | None = 60.0,
        max_iterations: int | None = None,
        layers: int | None = None,
        inputs: int | None = None,
        token_generator: str = "gp",
        constant_range: tuple[float, float] = (-3.0, 3.0),
        top_k: int = 30,
        discount: float = 0.99,
        max_complexity: int = 50,
        max_depth: int | None = None,
        nested_constraints: Mapping[str, Mapping[str, int]] | None = None,
        constraints: Mapping[str, int | tuple[int, int]] | None = None,
        variable_operators: Mapping[str, Iterable[str | Operator]] | None = None,
        required_variables: Sequence[str] | None = None,
        forbidden_variables: Sequence[str] | None = None,
        select_k_features: int | None = None,
        model_selection: str = DEFAULT_RULE,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
        callbacks: Callable[[StepReport], object] | Sequence[Callable[[StepReport], object]] | None = None,
        max_memory: int | str | None = None,
    ) -> None:
        self.operators = operators
        self.max_time = max_time
        self.max_iterations = max_iterations
        self.layers = layers
        self.inputs = inputs
        self.token_generator = token_generator
        self.constant_range = constant_range
        self.top_k = top_k
        self.discount = discount
        self.max_complexity = max_complexity
        self.max_depth = max_depth
        self.nested_constraints = nested_constraints
        self.constraints = constraints
        self.variable_operators = variable_operators
        self.required_variables = required_variables
        self.forbidden_variables = forbidden_variables
        self.select_k_features = select_k_features
        self.model_selection = model_selection
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.max_memory = max_memory

    def fit(self, X: object, y: object, sample_weight: object = None) -> SymbolicClassifier:
        """Search for the log-odds of the classes y (rows,) as a law of X (rows, features)."""
        if self.model_selection not in MODEL_SELECTIONS:
            known = ", ".join(map(repr, MODEL_SELECTIONS))
            raise ValueError(f"model_selection must be one of {known}, not {self.model_selection!r}")
        labels = self._check_classes(X, y)
        time_for_search = None if self.max_time is None else _SEARCH_SHARE * self.max_time
        search = PSERegressor(**{**search_parameters(self), "max_time": time_for_search}, loss=LogOdds())
        began = time.monotonic()
        search.fit(X, np.where(labels == self.classes_[1], 1.0, -1.0), sample_weight)
        left = None if self.max_time is None else max(began + self.max_time - time.monotonic(), 1e-9)
        with single_threaded():
            front = _fitted_front(search, self.max_complexity, Budget(left))
        search._set_front(front, _chosen(front, self.model_selection), None)
        self.regressor_ = search
        self.front_: Front = search.front_
        self.equations_: pandas.DataFrame = search.equations_
        self.best_expression_ = search.best_expression_
        self.selected_index_ = search.selected_index_
        self.variable_names_ = search.variable_names_
        self.n_iter_, self.stop_reason_, self.interrupted_ = search.n_iter_, search.stop_reason_, search.interrupted_
        return self

    def decision_function(self, X: object, index: int | None = None) -> Array:
        """The log-odds (rows,) of the second class; NaN or infinite where the law is not defined."""
        check_is_fitted(self, "regressor_")
        rows = check_rows(self, X)
        columns = getattr(self, "feature_names_in_", None)
        table = rows if columns is None else pandas.DataFrame(rows, columns=columns)
        return self.regressor_.predict(table, index)

    def predict_proba(self, X: object, index: int | None = None) -> Array:
        """The probabilities (rows, 2) of the classes, in the order of `classes_`."""
        second = scipy.special.expit(self.decision_function(X, index))
        return np.column_stack([1 - second, second])

    def predict(self, X: object, index: int | None = None) -> npt.NDArray[Any]:
        """The more likely class (rows,) for X (rows, features); `index` picks another row of `equations_`.

        A row on which the law is not defined gets the first class, and a warning says how many such rows there are.
        """
        odds = self.decision_function(X, index)
        undefined = int(np.isnan(odds).sum())
        if undefined:
            warn_user(
                f"the law is not defined on {undefined} of {len(odds)} rows: they get the class {self.classes_[0]!r}",
                RuntimeWarning,
            )
        predicted: npt.NDArray[Any] = self.classes_[(odds > 0).astype(int)]
        return predicted

    def __str__(self) -> str:
        if not hasattr(self, "front_"):
            return repr(self)
        return text_table(rows_of(self.front_), self.selected_index_, width=terminal_width())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """What a notebook shows: the front; before a fit, scikit-learn's diagram of the parameters."""
        if not hasattr(self, "front_"):
            shown: dict[str, str] = super()._repr_mimebundle_(**kwargs)
            return shown
        title = f"log-odds of {self.classes_[1]}"
        return {"text/plain": str(self), "text/html": front_html(rows_of(self.front_), self.selected_index_, title)}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True  # the checks' tiny budgets find no law in random data
        return tags

    def _check_classes(self, X: object, y: object) -> npt.NDArray[Any]:
        """The labels (rows,); sets `classes_`, and refuses what is not two classes."""
        _, labels = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        kind = type_of_target(labels, input_name="y", raise_unknown=True)
        if kind != "binary":
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {kind}. For more classes use "
                "sklearn.multiclass.OneVsRestClassifier(SymbolicClassifier())"
            )
        self.classes_ = np.unique(labels)
        if len(self.classes_) < 2:
            raise ValueError(f"y must hold two classes; there is only one class, {labels.tolist()[0]!r}")
        return np.asarray(labels)


def search_parameters(estimator: BaseEstimator) -> dict[str, Any]:
    """The parameters of an estimator that are parameters of the search, too."""
    return {name: value for name, value in estimator.get_params(deep=False).items() if name in PARAMETERS}


def _fitted_front(search: PSERegressor, max_complexity: int, budget: Budget) -> Front:
    """The front of the search with constants of least log loss; once the budget is over, with scales and offsets only.

    Least squares may have found a law whose values are not log-odds even with other constants: it then gets a scale,
    and an offset.
    """
    training = search.training_
    empty = replace(search.front_, entries=(), floor=0.0)
    found: list[Candidate] = []
    for entry in search.front_:
        law, target = entry.expression, training.target
        values = evaluate(law, training.columns)
        scale, offset = LogOdds().best_scale(target.y, values, target.weight)
        scaled = apply("mul", Constant(scale), law) if scale else Constant(0)
        scaled, with_offset = map(_shorter, (scaled, apply("add", scaled, Constant(offset))))
        limit = _log_loss(with_offset, training) * (1 + _SAME_LOSS)
        for form in (law, scaled, with_offset):
            fitted = _fitted(form, training, budget)
            if fitted is not None:
                found.append(fitted)
            if fitted is not None and fitted.loss <= limit:
                break
    return empty.update(found, max_complexity)


def _shorter(law: Expression) -> Expression:
    """The law, or what it is multiplied out where that is less complex: 9.6 - 4.5*x for 4.5*(2 - x) + 0.6.

    The front judges either by its log loss, so it need not be the same function.
    """
    return min((simplify(law), plain_form(law)), key=lambda one: one.complexity)


def _fitted(law: Expression, training: Training, budget: Budget) -> Candidate | None:
    """The law with the constants of least penalised log loss near its own, and its log loss; None if not finite.

    Whole numbers but exponents are constants, too: they come from fits to -1 and 1.
    """
    rows = sample_rows(training.target.rows, _FIT_ROWS, _SEED, "rows of the log loss")
    part = training.at(rows)
    module = to_torch(_with_floats(law), tuple(part.columns))
    table, target = _table(part), part.target
    constants = list(module.constants)
    start = np.array([constant.item() for constant in constants])

    def look(values: Array) -> tuple[float, Array]:
        """The penalised log loss at these constants, and its slopes; inf once the budget is over."""
        with torch.no_grad():
            for constant, value in zip(constants, values, strict=True):
                constant.fill_(value)
                constant.grad = None
        odds = module(table)
        losses = LogOdds().rows(target.y, odds) + _PENALTY / 2 * odds.square()
        total = (losses * target.weight).sum()
        if budget.over() or not bool(torch.isfinite(total.detach())):
            return math.inf, np.zeros_like(values)
        total.backward()
        slopes = np.array([0.0 if constant.grad is None else constant.grad.item() for constant in constants])
        return float(total.detach()), np.where(np.isfinite(slopes), slopes, 0.0)

    if not len(start) or look(start)[0] == math.inf:
        return _judged(law, training)
    ended = scipy.optimize.minimize(look, start, jac=True, method="L-BFGS-B", options={"maxiter": _FIT_STEPS})
    with torch.no_grad():
        for constant, value in zip(constants, ended.x if ended.fun < math.inf else start, strict=True):
            constant.fill_(value)
    return _judged(simplify(module.law()), training)


def _with_floats(law: Expression) -> Expression:
    """The law with floats for its whole numbers, but for exponents: `to_torch` trains floats only."""
    values = free_constants(law)
    names = [f"constant{i}_" for i in range(len(values))]
    form = with_leaves(law, [Variable(name) for name in names])
    return substitute(form, {name: Constant(value) for name, value in zip(names, values, strict=True)})


def _judged(law: Expression, training: Training) -> Candidate | None:
    loss = _log_loss(law, training)
    return Candidate(law, loss) if loss < math.inf else None


def _log_loss(law: Expression, training: Training) -> float:
    """The mean log loss of a law as it is, on all rows; inf where it is not finite."""
    target: Target = training.target
    odds = evaluate(law, training.columns)
    loss = float((LogOdds().rows(target.y, odds) * target.weight).sum())
    return loss if loss < math.inf else math.inf


def _table(training: Training) -> Tensor:
    return torch.stack(list(training.columns.values()), dim=1)


def _chosen(front: Front, rule: str) -> int:
    """The row that a rule picks.

    The rules are made for the mean square error s², for which n rows take n/2·log2(s²) bits. Here they take n·loss/ln 2
    bits, which is the same for s² = exp(2·loss).
    """
    entries = [replace(entry, loss=math.exp(2 * entry.loss)) for entry in front]
    return select(entries, rule, floor=0.0, rows=front.rows, discount=front.discount)
