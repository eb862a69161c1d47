"""SymbolicTransformer: laws and parts of laws as new features, for a pipeline that goes on with another model.

The search is that of PSERegressor. The features are chosen among the parts of the laws that it has found, one after the
other, each for what it adds to a linear model of y on the features before it. Sums are no features, their terms are:
the model that follows adds them up with coefficients of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from symenum.core.exactness import EXACTNESS
from symenum.core.target import Training
from symenum.core.threads import single_threaded
from symenum.estimator.classifier import search_parameters
from symenum.estimator.data import check_rows
from symenum.estimator.parameters import PARAMETERS, knows_words_of_pysr
from symenum.estimator.regressor import PSERegressor
from symenum.expressions import Apply, Expression, Variable, evaluate, simplify, to_text, variables, walk
from symenum.expressions.algebra import as_product
from symenum.expressions.render import SHOWN_DIGITS
from symenum.operators import Operator
from symenum.operators.traits import ADDITIVE
from symenum.search import StepReport

__all__ = ["SymbolicTransformer"]

Array = npt.NDArray[np.float64]

_MIN_LAW_COMPLEXITY = 50  # of the laws whose terms become features: PSERegressor's own limit
_LONGEST_NAME = 50  # characters of a feature's name: pandas cuts longer cells (display.max_colwidth)
_MAX_TERMS = 2000  # features to choose from, the simplest first: a second of choosing for 2048 rows


class SymbolicTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Features found by a search, with scikit-learn's interface; gplearn's name for it.

    Parameters
    ----------
    n_components : the largest number of features; there are fewer where fewer are of use
    max_complexity : largest complexity of a feature
    operators, max_time, max_iterations, layers, inputs, token_generator, constants, constant_range, top_k, discount,
    max_depth, nested_constraints, constraints, variable_operators, required_variables, forbidden_variables,
    select_k_features, denoise, device, random_state, verbose, callbacks, max_memory : as in PSERegressor

    Attributes
    ----------
    expressions_ : the features, the one first that alone explains y best
    regressor_ : the PSERegressor that has found them
    variable_names_ : the names that the features use

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> X = np.random.default_rng(0).uniform(1, 3, (60, 3))
    >>> y = 2 * X[:, 0] / X[:, 1] + 3 * X[:, 2]
    >>> features = SymbolicTransformer(3, operators="arithmetic", max_iterations=20, max_time=None, random_state=0)
    >>> round(make_pipeline(features, LinearRegression()).fit(X, y).score(X, y), 6)
    1.0
    """

    @knows_words_of_pysr
    def __init__(
        self,
        n_components: int = 10,
        *,
        operators: str | Iterable[str | Operator] = "koza",
        max_time: float | None = 60.0,
        max_iterations: int | None = None,
        layers: int | None = None,
        inputs: int | None = None,
        token_generator: str = "gp",
        constants: bool | Mapping[str, float] = True,
        constant_range: tuple[float, float] = (-3.0, 3.0),
        top_k: int = 30,
        discount: float = 0.99,
        max_complexity: int = 15,
        max_depth: int | None = None,
        nested_constraints: Mapping[str, Mapping[str, int]] | None = None,
        constraints: Mapping[str, int | tuple[int, int]] | None = None,
        variable_operators: Mapping[str, Iterable[str | Operator]] | None = None,
        required_variables: Sequence[str] | None = None,
        forbidden_variables: Sequence[str] | None = None,
        select_k_features: int | None = None,
        denoise: bool = False,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
        callbacks: Callable[[StepReport], object] | Sequence[Callable[[StepReport], object]] | None = None,
        max_memory: int | str | None = None,
    ) -> None:
        self.n_components = n_components
        self.operators = operators
        self.max_time = max_time
        self.max_iterations = max_iterations
        self.layers = layers
        self.inputs = inputs
        self.token_generator = token_generator
        self.constants = constants
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
        self.denoise = denoise
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.max_memory = max_memory

    def fit(self, X: object, y: object, sample_weight: object = None) -> SymbolicTransformer:
        """Search for laws of y (rows,) in X (rows, features), and choose features among their parts."""
        count = self.n_components
        if isinstance(count, bool) or not isinstance(count, Integral) or count < 1:
            raise ValueError(f"n_components must be a whole number of at least 1, not {count!r}")
        limit = PARAMETERS["max_complexity"].constraint
        if limit is not None and not limit.allows(self.max_complexity):
            raise ValueError(f"max_complexity must be {limit.words}, not {self.max_complexity!r}")
        _, target = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        settings = {**search_parameters(self), "max_complexity": max(self.max_complexity, _MIN_LAW_COMPLEXITY)}
        self.regressor_ = PSERegressor(**settings).fit(X, target, sample_weight)
        self.variable_names_: tuple[str, ...] = self.regressor_.variable_names_
        with single_threaded():
            terms = _terms(self.regressor_, self.max_complexity)
            self.expressions_: list[Expression] = _chosen(terms, self.regressor_.training_, int(count))
        return self

    def transform(self, X: object) -> Array:
        """The features (rows, components) for X (rows, features); NaN or infinite where one is not defined."""
        check_is_fitted(self, "expressions_")
        rows = check_rows(self, X)
        columns = {name: np.ascontiguousarray(rows[:, i]) for i, name in enumerate(self.variable_names_)}
        return np.column_stack([evaluate(feature, columns) for feature in self.expressions_])

    def get_feature_names_out(self, input_features: object = None) -> npt.NDArray[Any]:
        """The features as text of at most 50 characters, in the order of the columns of `transform`.

        A feature with a longer text has five digits of its constants; one that is still too long, or then like another,
        is cut and ends in its number, from 1. `expressions_` has all of them whole.
        """
        check_is_fitted(self, "expressions_")
        known = getattr(self, "feature_names_in_", None)
        if input_features is not None:
            given = np.asarray(input_features, dtype=object)
            if known is not None and not np.array_equal(given, known):
                raise ValueError("input_features is not equal to feature_names_in_")
            if len(given) != self.n_features_in_:
                raise ValueError(
                    f"input_features should have length equal to number of features ({self.n_features_in_}), got "
                    f"{len(given)}"
                )
        return np.array(_names(self.expressions_), dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _names(features: Sequence[Expression]) -> list[str]:
    """A short text for each feature, no two alike."""
    whole = [str(feature) for feature in features]
    names = [
        text if len(text) <= _LONGEST_NAME else to_text(f, SHOWN_DIGITS)
        for text, f in zip(whole, features, strict=True)
    ]
    count = Counter(names)
    for place, name in enumerate(names):
        if len(name) > _LONGEST_NAME or (count[name] > 1 and name != whole[place]):
            number = f"...#{place + 1}"  # no text of a formula holds a #
            names[place] = name[: _LONGEST_NAME - len(number)] + number
    return names


def _terms(model: PSERegressor, max_complexity: int) -> list[Expression]:
    """The variables and terms of the laws that the search has found, without coefficients; the simplest first."""
    laws = [entry.expression for entry in (*model.front_, *model._last_run.state.runners_up)]
    parts = dict.fromkeys(part for law in laws for part in walk(law) if variables(part))
    terms = dict.fromkeys(_without_coefficient(part) for part in parts)
    short = [term for term in terms if term.complexity <= max_complexity and variables(term) and not _is_sum(term)]
    if not short:  # the only law is a constant
        short = [Variable(name) for name in model.variable_names_]
    return sorted(short, key=lambda term: (term.complexity, str(term)))[:_MAX_TERMS]


def _is_sum(part: Expression) -> bool:
    return isinstance(part, Apply) and part.operator.role in ADDITIVE


def _without_coefficient(part: Expression) -> Expression:
    """The part without the number that it is multiplied by: 3*x/y becomes x/y."""
    return replace(as_product(simplify(part)), numerator=1, denominator=1).close()


def _chosen(terms: Sequence[Expression], training: Training, count: int) -> list[Expression]:
    """Up to `count` of the terms, by orthogonal matching pursuit: each explains most of what the others leave of y.

    Terms that are not finite on all rows, do not vary, or are linear in those chosen before, are left out. Where none
    is left, there is the first term alone.
    """
    root = training.target.weight.sqrt().numpy()
    columns = {name: column.numpy() for name, column in training.columns.items()}
    values = np.array([np.broadcast_to(evaluate(term, columns), root.shape) for term in terms])  # (terms, rows)
    with np.errstate(over="ignore", invalid="ignore"):
        size = np.abs(values).max(axis=1, initial=0.0)
        unit = values / np.where(size > 0, size, 1.0)[:, None]
        centred = (unit - (unit * root**2).sum(axis=1, keepdims=True)) * root
    usable = np.isfinite(values).all(axis=1) & np.isfinite(centred).all(axis=1)
    centred[~usable] = 0.0
    lengths = np.linalg.norm(centred, axis=1)
    residual = training.target.y.numpy()
    residual = (residual - (residual * root**2).sum()) * root
    chosen: list[int] = []
    while len(chosen) < count:
        left = np.linalg.norm(centred, axis=1)
        varying = left > EXACTNESS.scanned * lengths
        varying &= left > EXACTNESS.flat
        varying[chosen] = False
        if not varying.any():
            break
        gain = np.where(varying, np.abs(centred @ residual) / np.where(varying, left, 1.0), -1.0)
        best = int(gain.argmax())  # the simplest of equals
        chosen.append(best)
        direction = centred[best] / left[best]
        centred = centred - np.outer(centred @ direction, direction)
        residual = residual - (residual @ direction) * direction
    return [terms[i] for i in chosen] or list(terms[:1])
