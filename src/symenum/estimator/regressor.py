"""PSERegressor: the search behind scikit-learn's conventions. A thin shell: it checks, hands on, and shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas
import sympy
import torch
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from symenum.core.budget import Budget
from symenum.enumeration.devices import choose_devices
from symenum.enumeration.memory import memory_limit
from symenum.enumeration.target import check_target
from symenum.enumeration.threads import single_threaded
from symenum.estimator.beginning import Left, beginning
from symenum.estimator.constraints import as_callbacks, check_parameters
from symenum.estimator.given import Training, column_names
from symenum.estimator.keeping import Fitted
from symenum.estimator.knowledge import check_found, prior_knowledge
from symenum.estimator.looking import watching, write_report
from symenum.estimator.naming import check_columns, naming_arguments
from symenum.estimator.questions import Questions
from symenum.estimator.resumable import Attendance, Resumable, attended
from symenum.estimator.table import equations_table, print_table
from symenum.estimator.validation import check_validation, choose_law
from symenum.expressions import (
    Expression,
    ExpressionModule,
    LatexRow,
    evaluate,
    latex_table,
    to_c,
    to_latex,
    to_numpy_source,
    to_python,
    to_sympy,
    to_torch,
)
from symenum.fitting.losses import Loss
from symenum.front import Front
from symenum.operators import Operator, get_operators
from symenum.search import Outcome, Settings, StepReport, make_task, run

__all__ = ["PSERegressor"]

Array = npt.NDArray[np.float64]

_EXPORTS = ("python", "numpy", "torch", "c")


class PSERegressor(Questions, RegressorMixin, Resumable):  # type: ignore[misc]
    """Symbolic regression by parallel symbolic enumeration: the closed-form law behind a table of numbers.

    Parameters
    ----------
    operators : a set's name ("koza", "arithmetic", …), or a list of signs, names and Operator records
    max_time : seconds after which the search ends, or None
    max_iterations : steps after which it ends, or None; with a seed and only this limit, results repeat exactly
    stop_loss : the loss at which it ends; without, it ends at a law that equals the data up to rounding
    layers, inputs : of the network; chosen from the data, the operators and the machine where None
    token_generator : "gp", "mcts" or "random"
    constants : whether laws may hold fitted constants; or constants that have a name, as {"g": 9.81}, which then
        appear by it (fitted ones are allowed too)
    constant_range : from which constants inside tokens are drawn
    top_k : candidates of each pass whose coefficients are fitted
    discount : η of the reward η^complexity / (1 + √MSE)
    max_complexity, max_depth : of a law on the front; depth counts operators inside one another
    nested_constraints : how often an operator may occur inside another, as {"sin": {"sin": 0, "cos": 0}}
    variable_operators : the only operators that may act on what holds a variable, as {"angle": ["sin", "cos", "*"]};
        numbers may scale and shift in any case
    required_variables, forbidden_variables : names that every law has, or none
    guesses : formulas to begin with, as "a*x1**2 + b"; names that are no variables are constants to be fitted
    loss : what laws are fitted and ranked by: "mse", "mae", "huber", "log_cosh", "relative" (the mean square of
        (prediction - y)/y), or a callable (y, prediction) or (y, prediction, weights) that gives one number; Huber and
        LogCosh of symenum.fitting.losses say where they bend. Scans are least squares, whatever the loss is
    model_selection : "best" (PySR's rule; with validation data, "validation"), "accuracy", "reward", "mdl",
        "validation" (simplest of those that do best on validation data) or "kfold" (the same by cross-validation)
    device : "auto", "cpu", "cuda" or "cuda:1"; "auto" takes a GPU for large passes, where there is one
    random_state : a seed, a RandomState, or None
    verbose : show the search: a live table on a terminal, an output in a notebook, lines elsewhere
    callbacks : a callable, or several, that get a StepReport after each step; one that returns True ends the search
    checkpoint : a file that is kept up to date while the search runs; `resume` goes on from it
    warm_start : whether another `fit` starts from the front of the last one, and on the same data from where it ended
    max_memory : bytes that the search may take, as a number or as "2GB"; chosen from the machine's memory where None

    Attributes
    ----------
    equations_ : DataFrame, one row for each law of the front: complexity, loss, score, reward, equation,
        sympy_format, lambda_format; and validation_loss, where rows were held out
    best_expression_, selected_index_ : the law that `model_selection` picks, and its row
    front_ : the front itself
    training_ : the rows that it was judged on
    variable_names_ : the names that equations use; feature_names_in_ holds the DataFrame's own
    n_iter_, elapsed_, scored_, stop_reason_, plan_, interrupted_ : how the search went

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(1, 3, (30, 2))
    >>> model = PSERegressor(max_iterations=5, max_time=None, random_state=0).fit(X, X[:, 0] ** 2 / X[:, 1])
    >>> print(model.best_expression_)
    x1**2/x2
    """

    def __init__(
        self,
        operators: str | Iterable[str | Operator] = "koza",
        *,
        max_time: float | None = 60.0,
        max_iterations: int | None = None,
        stop_loss: float | None = None,
        layers: int | None = None,
        inputs: int | None = None,
        token_generator: str = "gp",
        constants: bool | Mapping[str, float] = True,
        constant_range: tuple[float, float] = (-3.0, 3.0),
        top_k: int = 30,
        discount: float = 0.99,
        max_complexity: int = 50,
        max_depth: int | None = None,
        nested_constraints: Mapping[str, Mapping[str, int]] | None = None,
        variable_operators: Mapping[str, Iterable[str | Operator]] | None = None,
        required_variables: Sequence[str] | None = None,
        forbidden_variables: Sequence[str] | None = None,
        guesses: Sequence[str | Expression] | None = None,
        loss: str | Callable[..., float] = "mse",
        model_selection: str = "best",
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
        callbacks: Callable[[StepReport], object] | Sequence[Callable[[StepReport], object]] | None = None,
        checkpoint: str | Path | None = None,
        warm_start: bool = False,
        max_memory: int | str | None = None,
    ) -> None:
        self.operators = operators
        self.max_time = max_time
        self.max_iterations = max_iterations
        self.stop_loss = stop_loss
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
        self.variable_operators = variable_operators
        self.required_variables = required_variables
        self.forbidden_variables = forbidden_variables
        self.guesses = guesses
        self.loss = loss
        self.model_selection = model_selection
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.warm_start = warm_start
        self.max_memory = max_memory

    def fit(self, X: object, y: object, sample_weight: object = None, validation: object = None) -> PSERegressor:
        """Search the law y = f(X) for X (rows, features), an array or a DataFrame, and y (rows,).

        `validation`: rows (X, y) or (X, y, sample_weight) that the search does not see; the law is chosen on them.

        Ctrl-C ends the search and keeps what was found; `interrupted_` says so. So does `stop` from another thread. A
        second Ctrl-C raises KeyboardInterrupt, and what was found is kept all the same.
        """
        with attended(self) as attendance, single_threaded():
            outcome = self._search(X, y, sample_weight, validation, attendance)
        if outcome.error is not None:  # the front that was found before is there for whoever catches it
            raise outcome.error
        return self

    def _search(
        self, X: object, y: object, sample_weight: object, validation: object, attendance: Attendance
    ) -> Outcome:
        check_parameters(self.get_params(deep=False))
        choose_devices(self.device, work=0)  # only to refuse what is not there, before any work
        seed = self._seed()
        check_columns(X)
        with naming_arguments(y):
            values, given = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
            left: Array = np.asarray(given, dtype=np.float64)
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, values, dtype=np.float64)
        target, rows = check_target(left, weight, len(values))
        if len(rows) < 2:
            raise ValueError(f"sample_weight leaves {len(rows)} row of weight above zero: at least 2 are needed")
        names = column_names(getattr(self, "feature_names_in_", None), self.n_features_in_)
        table = torch.tensor(values)[rows]
        training = Training.of(table, names, target)
        settings = self._settings(training, attendance.before_search(self.max_time), seed, weighted=weight is not None)
        held = check_validation(self, validation, names)
        columns = tuple(map(str, self.feature_names_in_)) if hasattr(self, "feature_names_in_") else None
        data = Fitted(values, left, weight, columns)
        task = make_task(names, table, target, settings)
        begin = beginning(self, task, data, self._kept)
        if begin.state is not None and begin.state.seed != seed:  # goes on with the random numbers that it began with
            seed = begin.state.seed
            task = make_task(names, table, target, replace(settings, seed=seed))
        with watching(self) as progress:
            outcome = run(
                task,
                seed,
                max_time=self.max_time,
                max_iterations=begin.most(self.max_iterations),
                callbacks=[progress, *as_callbacks(self.callbacks)],
                state=begin.state,
                known=begin.known,
                keep=begin.keeper,
                wish=attendance.wish,
                began=attendance.began,
            )
        begin.keep(outcome)
        check_found(outcome.front, outcome.error)
        self.training_ = training
        self._show(outcome, names, held, settings.loss)
        self.plan_ = str(task.plan)
        self._left = Left(outcome.whole, begin.signature, self.loss)
        return outcome

    def _show(self, outcome: Outcome, names: tuple[str, ...], held: Training | None, loss: Loss) -> None:
        """The fitted attributes."""
        self.variable_names_ = names
        self.front_: Front = outcome.front
        self.selected_index_, judged = choose_law(
            self.front_, self.model_selection, self.training_, held, loss, outcome.state.seed
        )
        self.best_expression_ = self.front_[self.selected_index_].expression
        self.equations_: pandas.DataFrame = equations_table(
            self.front_, names, None if judged is None else judged.losses
        )
        self.n_iter_ = outcome.state.iteration
        self.scored_ = outcome.state.scored
        self.elapsed_ = outcome.state.elapsed
        self.stop_reason_ = outcome.reason
        self.interrupted_ = outcome.interrupted

    def predict(self, X: object, index: int | None = None) -> Array:
        """The law's values (rows,) for X (rows, features); `index` picks another row of `equations_`.

        Where the law is not defined, the value is NaN or infinite.
        """
        check_is_fitted(self, "front_")
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        columns = {name: np.ascontiguousarray(rows[:, i]) for i, name in enumerate(self.variable_names_)}
        predicted: Array = evaluate(self._expression(index), columns)
        return predicted

    def get_best(self, index: int | None = None) -> pandas.Series:
        """The chosen row of `equations_`, or that of another index."""
        self._expression(index)
        return self.equations_.iloc[self.selected_index_ if index is None else index]

    def sympy(self, index: int | None = None) -> sympy.Expr:
        """The law as a SymPy expression."""
        return to_sympy(self._expression(index))

    def latex(self, index: int | None = None, precision: int = 3) -> str:
        """The law in LaTeX, constants to so many significant digits."""
        return to_latex(self._expression(index), precision)

    def latex_table(
        self,
        indices: Iterable[int] | None = None,
        precision: int = 3,
        columns: Sequence[str] = ("equation", "complexity", "loss", "score"),
    ) -> str:
        """The front, or some rows of it, as a LaTeX table (packages amsmath and booktabs)."""
        check_is_fitted(self, "front_")
        chosen = range(len(self.front_)) if indices is None else list(indices)
        scores = self.front_.scores()
        rows = [
            LatexRow(self._expression(i), self.front_[i].complexity, self.front_[i].loss, scores[i]) for i in chosen
        ]
        return latex_table(rows, precision=precision, columns=columns)

    def export(self, language: str, index: int | None = None) -> str | ExpressionModule:
        """The law as source text ("python", "numpy", "c") or as a torch module ("torch")."""
        expression, names = self._expression(index), self.variable_names_
        if language == "python":
            return to_python(expression, names)
        if language == "numpy":
            return to_numpy_source(expression, names)
        if language == "c":
            return to_c(expression, names)
        if language == "torch":
            return to_torch(expression, names)
        raise ValueError(f"language must be one of {', '.join(map(repr, _EXPORTS))}, not {language!r}")

    def report(self, path: str | Path, X: object = None, y: object = None) -> None:
        """Write a page for the browser: the law, the front, plots of the fit, the data and how the search went.

        One HTML file that needs nothing else. It shows the data of the fit, or X and y if given.
        """
        check_is_fitted(self, "front_")
        write_report(path, self, X, y)

    def __str__(self) -> str:
        fitted = hasattr(self, "front_")
        return print_table(self.front_, self.selected_index_) if fitted else repr(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # the checks' tiny budgets find no law in random data
        return tags

    def _seed(self) -> int:
        """The seed of a new search, or of the one that goes on from a checkpoint."""
        if self._kept is not None:
            return self._kept.state.seed
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _settings(self, training: Training, budget: Budget, seed: int, *, weighted: bool) -> Settings:
        known = prior_knowledge(self, training, budget, seed, weighted=weighted)
        return Settings(
            operators=get_operators(self.operators),
            loss=known.loss,
            prior=known.prior,
            forbidden=known.forbidden,
            guesses=known.guesses,
            declared=known.declared,
            layers=self.layers,
            inputs=self.inputs,
            token_generator=self.token_generator,
            constants=self.constants is not False,
            constant_range=(float(self.constant_range[0]), float(self.constant_range[1])),
            top_k=self.top_k,
            discount=self.discount,
            max_complexity=self.max_complexity,
            stop_loss=self.stop_loss,
            device=self.device,
            max_memory=memory_limit(self.max_memory),
            seed=seed,
        )

    def _expression(self, index: int | None) -> Expression:
        check_is_fitted(self, "front_")
        if index is None:
            return self.best_expression_
        if isinstance(index, bool) or not isinstance(index, (int, np.integer)):
            raise TypeError(f"index must be a row number of equations_, not {type(index).__name__}")
        if not -len(self.front_) <= index < len(self.front_):
            raise IndexError(f"index {index} is out of range: equations_ has {len(self.front_)} rows")
        return self.front_[int(index)].expression
