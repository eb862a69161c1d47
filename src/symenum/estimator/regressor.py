"""PSERegressor: the search with scikit-learn's interface.

A thin shell. `fit` checks parameters and data, makes the task and runs the search; the other methods show, export and
judge the laws of the front. Nothing is searched or fitted here.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import numpy.typing as npt
import pandas
import sympy
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from symenum.core.budget import Budget
from symenum.core.devices import choose_devices
from symenum.core.exactness import overflow_allowed
from symenum.core.files import write_whole
from symenum.core.interrupts import ctrl_c_ends
from symenum.core.memory import memory_limit
from symenum.core.seeds import sample_rows
from symenum.core.target import Training, refuse_dates_and_masks
from symenum.core.threads import single_threaded
from symenum.display.figures import summarise_data
from symenum.display.latex import latex_table
from symenum.display.notebook import front_html
from symenum.display.progress import observer_for_estimator
from symenum.display.report import ReportContent, report_page, run_facts
from symenum.display.schedule import schedule_table
from symenum.display.table import equations_table, rows_of, terminal_width, text_table
from symenum.estimator.data import check_fit_data, check_validation, column_names, make_training, target_name
from symenum.estimator.formulas import (
    FittedForm,
    check_constants,
    compare_with_front,
    constant_errors,
    fit_form,
    read_form,
)
from symenum.estimator.knowledge import check_found, prior_knowledge
from symenum.estimator.parameters import as_callbacks, check_parameters
from symenum.estimator.persistence import LastRun, find_start, open_checkpoint
from symenum.expressions import (
    Expression,
    ExpressionModule,
    evaluate,
    to_c,
    to_latex,
    to_numpy_source,
    to_python,
    to_sympy,
    to_torch,
    written,
)
from symenum.expressions.render import SHOWN_DIGITS
from symenum.fitting.losses import Loss, make_loss
from symenum.front import Front
from symenum.operators import Operator, get_operators
from symenum.search import Outcome, Settings, StepReport, make_task, run
from symenum.search.checkpoint import Checkpoint
from symenum.search.front_update import loss_floor
from symenum.selection import HeldOut, choose_law, on_folds, on_rows, rule_while_searching

if TYPE_CHECKING:
    from typing_extensions import Self  # in `typing` from Python 3.11 on

__all__ = ["PSERegressor"]

Array = npt.NDArray[np.float64]

_EXPORTS = ("python", "numpy", "torch", "c")
# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_DATA_SHARE = 0.25  # share of max_memory for the rows that laws are judged on
_CHOICE_SHARE = 0.1  # share of max_time for choosing a law on held-out rows, after the last step,
_LEAST_CHOICE = 0.3  # and so many seconds, even where the last step took longer than it should
_FOLD_ROWS = 10_000  # rows that cross-validation looks at, drawn at random: a loss then has an error of 1 to 2%
_GUESSES_SHARE = 0.3  # largest share of max_time for fitting the constants of guesses, before the first step


@dataclass(frozen=True)
class FitSession:
    """A running fit: when it began, in seconds of the monotonic clock, and the budget that Ctrl-C or `stop` ends."""

    began: float = field(default_factory=time.monotonic)
    stopping: Budget = field(default_factory=Budget)

    def budget_for_guesses(self, max_time: float | None) -> Budget:
        """The budget for fitting the constants of guesses, before the first step."""
        if max_time is None:
            return Budget(stop=self.stopping.over)
        seconds = _GUESSES_SHARE * max_time - (time.monotonic() - self.began)
        return Budget(max(seconds, 1e-9), stop=self.stopping.over)  # a budget must be above zero

    def budget_for_choice(self, max_time: float | None) -> Budget:
        """The budget for choosing a law on held-out rows, after the last step; Ctrl-C has ended the search only."""
        if max_time is None:
            return Budget()
        return Budget(max(max_time - (time.monotonic() - self.began), _LEAST_CHOICE))


class PSERegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Symbolic regression by parallel symbolic enumeration: the closed-form law behind a table of numbers.

    Parameters
    ----------
    operators : str | Iterable[str | Operator], default "koza"
        a set's name ("koza", "arithmetic", …), or a list of signs, names and Operator records
    max_time : float | None, default 60.0
        seconds after which the search ends, or None for no limit
    max_iterations : int | None, default None
        steps after which the search ends, or None for no limit; with a seed and only this limit, results repeat exactly
    stop_loss : float | None, default None
        the loss at which the search ends; None: it ends at a law that equals the data up to rounding
    layers : int | None, default None
        number of layers of the network; None: chosen from the data, the operators and the machine
    inputs : int | None, default None
        number of inputs of the network; None: chosen like the layers. `plan_` says what was chosen
    token_generator : str, default "gp"
        "gp", "mcts", "random", or the name of a registered one
    constants : bool | Mapping[str, float], default True
        whether laws may hold fitted constants; or named constants such as {"g": 9.81}, which laws show by their names
        (fitted ones are allowed too)
    constant_range : tuple[float, float], default (-3.0, 3.0)
        the range (low, high) from which constants inside tokens are drawn
    top_k : int, default 30
        candidates of each pass whose coefficients are fitted
    discount : float, default 0.99
        η of the reward η^complexity / (1 + √MSE)
    max_complexity : int, default 50
        largest complexity of a law on the front
    max_depth : int | None, default None
        largest depth of a law on the front: how many operators may stand inside one another
    nested_constraints : Mapping[str, Mapping[str, int]] | None, default None
        how often an operator may occur inside another, such as {"sin": {"sin": 0, "cos": 0}}
    variable_operators : Mapping[str, Iterable[str | Operator]] | None, default None
        the only operators that may act on a variable and on what holds it, such as {"angle": ["sin", "cos", "*"]};
        numbers may scale and shift it in any case
    required_variables : Sequence[str] | None, default None
        names of variables that every law must hold
    forbidden_variables : Sequence[str] | None, default None
        names of variables that no law may hold
    guesses : Sequence[str | Expression] | None, default None
        formulas to begin with, such as "a*x1**2 + b"; names that are no variables are constants to be fitted
    loss : str | Callable[..., float], default "mse"
        what laws are fitted and ranked by: "mse", "mae", "huber", "log_cosh", "relative" (the mean square of
        (prediction - y)/y), a callable (y, prediction) or (y, prediction, weights) that returns one number, or Huber or
        LogCosh of symenum.fitting.losses with a scale of its own. Scans are least squares, whatever the loss is
    model_selection : str, default "best"
        "best" (PySR's rule; with validation data, "validation"), "accuracy", "reward", "mdl", "validation" (the
        simplest of the laws that do best on validation data) or "kfold" (the same by cross-validation)
    device : str, default "auto"
        "auto", "cpu", "cuda" or "cuda:1"; "auto" takes a GPU for large passes, where there is one
    random_state : int | np.random.RandomState | None, default None
        a seed, a RandomState, or None
    verbose : bool, default False
        show the search: a live table on a terminal, an output in a notebook, lines elsewhere
    callbacks : Callable[[StepReport], object] | Sequence[Callable[[StepReport], object]] | None, default None
        a callable, or several, that get a StepReport after each step; one that returns True ends the search
    checkpoint : str | Path | None, default None
        a file that is kept up to date while the search runs; `resume` goes on from it
    warm_start : bool, default False
        whether another `fit` starts from the front of the last one, and on the same data from where it ended
    max_memory : int | str | None, default None
        bytes that the search may take, a number or a text such as "2GB"; None: chosen from the machine's memory
    shares : Mapping[str, float] | None, default None
        how the search divides its time, such as {"network": 0.5, "reductions": 0}: of the network the least part, of
        any other move the factor that it counts with (1 by default); 0 leaves a move out. `schedule_` has the names

    Attributes
    ----------
    equations_ : pandas.DataFrame
        one row for each law of the front: complexity, loss, score, reward, equation, sympy_format, lambda_format; and
        validation_loss, where rows were held out
    best_expression_ : Expression
        the law that `model_selection` picks, as people write it
    selected_index_ : int
        its row
    front_ : Front
        the front itself, each law as it was found
    training_ : Training
        the rows that it was judged on
    variable_names_ : tuple[str, ...]
        the names that equations use; `feature_names_in_` holds the DataFrame's own
    target_name_ : str
        the name of y in outputs: that of a Series, else "y"
    n_iter_, elapsed_, scored_ : int, float, int
        steps, seconds, and candidates that the network has scored
    stop_reason_, interrupted_ : str, bool
        why the search ended, and whether somebody ended it
    plan_ : str
        layers and inputs of the network
    schedule_ : pandas.DataFrame
        one row for each move: its turns, seconds, part of the time, and what it added to the front

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(1, 3, (30, 2))
    >>> model = PSERegressor(max_iterations=5, max_time=None, random_state=0).fit(X, X[:, 0] ** 2 / X[:, 1])
    >>> print(model.best_expression_)
    x1**2/x2
    """

    _session: FitSession | None = None  # while a fit runs
    _checkpoint: Checkpoint | None = None  # from which `resume` lets the next fit go on
    target_name_ = "y"  # until a fit sets it, and in models that were pickled before it was there

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
        shares: Mapping[str, float] | None = None,
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
        self.shares = shares

    def fit(self, X: object, y: object, sample_weight: object = None, validation: object = None) -> Self:
        """Search for the law y = f(X) of X (rows, features), an array or a DataFrame, and y (rows,).

        `validation`: rows (X, y) or (X, y, sample_weight) that the search does not see; the law is chosen on them.

        Ctrl-C, or `stop` from another thread, ends the search, and the front found so far is the result;
        `interrupted_` is then True. A second Ctrl-C raises KeyboardInterrupt, and the front is kept all the same.
        """
        with self._running() as session, single_threaded(), overflow_allowed():
            outcome = self._search(X, y, sample_weight, validation, session)
        if outcome.error is not None:  # the caller who catches it finds the front in the estimator
            raise outcome.error
        return self

    def stop(self) -> None:
        """Ask a `fit` that runs in another thread to end now, as Ctrl-C does in the main thread."""
        if self._session is not None:
            self._session.stopping.end()

    @classmethod
    def resume(
        cls,
        path: str | Path,
        X: object = None,
        y: object = None,
        sample_weight: object = None,
        *,
        validation: object = None,
        **changes: Any,
    ) -> Self:
        """Go on with the search of a checkpoint until its limits are reached; returns the fitted estimator.

        X, y and `sample_weight` are those of the fit; without them they are read from the file beside the checkpoint.
        `changes` are new values of parameters such as `max_time`; those that decide what the search does (operators,
        layers, …) cannot change. Operators of your own must be given again, since a checkpoint holds no code, and so
        must `validation`. With an iteration limit the result equals that of one fit without a pause.
        """
        names = cls._get_param_names()
        unknown = set(changes) - set(names)
        if unknown:
            raise ValueError(f"changes: {cls.__name__} has no parameter {', '.join(sorted(unknown))}")
        found = open_checkpoint(Path(path), changes, names, with_data=X is None)
        if found.data is not None:
            X, y, sample_weight = found.data.frame(), found.data.y, found.data.weight
        model = cls(**found.parameters)
        model._checkpoint = found.checkpoint
        return model.fit(X, y, sample_weight, validation)

    def predict(self, X: object, index: int | None = None) -> Array:
        """The law's values (rows,) for X (rows, features); `index` picks another row of `equations_`.

        Where the law is not defined, the value is NaN or infinite.
        """
        check_is_fitted(self, "front_")
        refuse_dates_and_masks("X", X)
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

    def latex(self, index: int | None = None, precision: int = SHOWN_DIGITS) -> str:
        """The law in LaTeX, constants to so many significant digits."""
        return to_latex(written(self._expression(index)), precision)

    def latex_table(
        self,
        indices: Iterable[int] | None = None,
        precision: int = SHOWN_DIGITS,
        columns: Sequence[str] = ("equation", "complexity", "loss", "score"),
    ) -> str:
        """The front, or some rows of it, as a LaTeX table (packages amsmath and booktabs)."""
        check_is_fitted(self, "front_")
        laws = rows_of(self.front_)
        chosen = range(len(laws)) if indices is None else list(indices)
        for i in chosen:
            self._expression(i)  # raises an error if there is no such row
        rows = [laws[i] for i in chosen]
        return latex_table(rows, target=self.target_name_, precision=precision, columns=columns)

    @overload
    def export(self, language: Literal["torch"], index: int | None = None) -> ExpressionModule: ...
    @overload
    def export(self, language: Literal["python", "numpy", "c"], index: int | None = None) -> str: ...
    @overload
    def export(self, language: str, index: int | None = None) -> str | ExpressionModule: ...

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

    def score_expression(
        self,
        formula: str | Expression,
        X: object = None,
        y: object = None,
        sample_weight: object = None,
        *,
        start: Mapping[str, float | None] | None = None,
        fit_numbers: bool = False,
    ) -> FittedForm:
        """Loss, complexity and R² of a formula of your own, on the rows of the search or on X and y.

        Names in it that are neither variables nor named constants are fitted, numbers are not (see
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
        training = self._training(X, y, sample_weight)
        declared = check_constants(self.constants, training.columns)
        operators = get_operators(self.operators)
        form = read_form(formula, training.columns, declared, operators, start=start, fit_numbers=fit_numbers)
        result = fit_form(form, training, make_loss(self.loss, training.target))
        return compare_with_front(result, self.front_) if X is None else result

    def uncertainties(
        self, index: int | None = None, X: object = None, y: object = None, sample_weight: object = None
    ) -> pandas.DataFrame:
        """The numbers of a law that are not integers, from left to right, with their standard errors.

        The errors come from the Fisher information of a fit of all these numbers at once, with σ² from the residuals,
        on the rows of the search or on X and y. Where the data do not determine a number, its error is infinite.
        """
        expression = self._expression(index)
        training = self._training(X, y, sample_weight)
        return constant_errors(expression, training, make_loss(self.loss, training.target))

    def report(self, path: str | Path, X: object = None, y: object = None) -> None:
        """Write a page for the browser: the law, the front, plots of the fit, the data and how the search went.

        It is one HTML file that loads nothing else. It shows the data of the fit, or X and y if given.
        """
        check_is_fitted(self, "front_")
        if not isinstance(path, (str, Path)):
            raise TypeError(f"path must be the name of a file, such as 'report.html', not {type(path).__name__}")
        content = ReportContent(
            self.target_name_,
            rows_of(self.front_),
            self.selected_index_,
            summarise_data(self, X, y),
            self.front_.floor,
            run_facts(self.stop_reason_, self.elapsed_, self.n_iter_, self.scored_, self.plan_),
            self.get_params(deep=False),
            squared=self.loss == "mse",
        )
        write_whole(Path(path), report_page(content))

    def __str__(self) -> str:
        if not hasattr(self, "front_"):
            return repr(self)
        return text_table(rows_of(self.front_), self.selected_index_, width=terminal_width())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """What a notebook shows: the front; before a fit, scikit-learn's diagram of the parameters."""
        if not hasattr(self, "front_"):
            shown: dict[str, str] = super()._repr_mimebundle_(**kwargs)
            return shown
        table = front_html(rows_of(self.front_), self.selected_index_, self.target_name_)
        return {"text/plain": str(self), "text/html": table}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # the checks' tiny budgets find no law in random data
        return tags

    @contextmanager
    def _running(self) -> Iterator[FitSession]:
        """Open a session, in which Ctrl-C and `stop` end the fit."""
        self._session = session = FitSession()
        try:
            with ctrl_c_ends(session.stopping):
                yield session
        finally:
            self._session = self._checkpoint = None

    def _search(self, X: object, y: object, sample_weight: object, validation: object, session: FitSession) -> Outcome:
        check_parameters(self.get_params(deep=False))
        choose_devices(self.device, work=0)  # raises an error if there is no such device, before any work
        seed = self._seed()
        data = check_fit_data(self, X, y, sample_weight)
        table, target = data.weighted_rows(int(_DATA_SHARE * memory_limit(self.max_memory)), seed)
        names = column_names(data.columns, self.n_features_in_)
        training = Training.of(table, names, target)
        weighted = data.weight is not None
        settings = self._settings(training, session.budget_for_guesses(self.max_time), seed, weighted=weighted)
        validation_rows = check_validation(self, validation, names)
        task = make_task(names, table, target, settings)
        start = find_start(self, task, data, self._checkpoint)
        if start.state is not None and start.state.seed != seed:  # a search goes on with the seed that it began with
            seed = start.state.seed
            task = make_task(names, table, target, replace(settings, seed=seed))
        rule = rule_while_searching(self.model_selection)
        held_out_rows = self.model_selection == "kfold" or validation_rows is not None
        with observer_for_estimator(lambda _: target_name(y), rule, self.max_time, verbose=self.verbose) as progress:
            outcome = run(
                task,
                seed,
                max_time=self.max_time,
                max_iterations=start.last_iteration(self.max_iterations),
                callbacks=[progress, *as_callbacks(self.callbacks)],
                state=start.state,
                known=start.known,
                keep=start.keeper,
                stopping=session.stopping,
                began=session.began,
                reserve=_CHOICE_SHARE * self.max_time if held_out_rows and self.max_time is not None else 0.0,
            )
        start.write_last_checkpoint(outcome)
        check_found(outcome.front, outcome.error)
        self.training_ = training
        self.variable_names_ = names
        self.target_name_ = target_name(y)
        self.plan_ = str(task.plan)
        budget = session.budget_for_choice(self.max_time)
        held_out = self._held_out_losses(outcome.front, validation_rows, settings.loss, seed, budget)
        self._set_results(outcome, held_out, settings.loss)
        self._last_run = LastRun(outcome.whole, start.signature, self.loss)
        return outcome

    def _held_out_losses(
        self, front: Front, rows: Training | None, loss: Loss, seed: int, budget: Budget
    ) -> HeldOut | None:
        """The losses of the laws on rows that they were not fitted on: folds, or validation rows; None without any."""
        laws = [entry.expression for entry in front]
        if self.model_selection == "kfold":
            part = sample_rows(self.training_.target.rows, _FOLD_ROWS, seed, "rows of cross-validation")
            training = self.training_.at(part)
            found = on_folds(laws, training, loss, loss_floor(loss, training.target), seed, budget)
            if found is None:
                warnings.warn(
                    "the time was over before cross-validation had judged the laws: the law is chosen by 'best'; "
                    "give more max_time",
                    UserWarning,
                    stacklevel=4,
                )
            return found
        return None if rows is None else on_rows(laws, rows, loss, loss_floor(loss, rows.target))

    def _set_results(self, outcome: Outcome, held_out: HeldOut | None, loss: Loss) -> None:
        """Set the fitted attributes from a search that has ended."""
        self.front_: Front = outcome.front
        self.selected_index_ = choose_law(
            self.front_.from_zero(), self.model_selection, held_out, self.training_, robust=loss.robust
        )
        self.best_expression_ = written(self.front_[self.selected_index_].expression)
        self.equations_: pandas.DataFrame = equations_table(
            rows_of(self.front_), self.variable_names_, None if held_out is None else held_out.losses
        )
        self.n_iter_ = outcome.state.iteration
        self.scored_ = outcome.state.scored
        self.elapsed_ = outcome.state.elapsed
        self.stop_reason_ = outcome.reason
        self.interrupted_ = outcome.interrupted
        self.schedule_: pandas.DataFrame = schedule_table(outcome.state)

    def _seed(self) -> int:
        """The seed of a new search, or that of the search that goes on from a checkpoint."""
        if self._checkpoint is not None:
            return self._checkpoint.state.seed
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
            shares=dict(self.shares or {}),
            planned_time=self.max_time,
        )

    def _expression(self, index: int | None) -> Expression:
        check_is_fitted(self, "front_")
        if index is None:
            return self.front_[self.selected_index_].expression
        if isinstance(index, bool) or not isinstance(index, (int, np.integer)):
            raise TypeError(f"index must be a row number of equations_, not {type(index).__name__}")
        if not -len(self.front_) <= index < len(self.front_):
            raise IndexError(f"index {index} is out of range: equations_ has {len(self.front_)} rows")
        return self.front_[int(index)].expression

    def _training(self, X: object, y: object, sample_weight: object) -> Training:
        """The rows of X and y, or without them those of the search."""
        if (X is None) != (y is None):
            raise ValueError("give both X and y, or neither for the rows of the search")
        if X is not None:
            values = validate_data(self, X, dtype=np.float64, reset=False)  # columns of a frame in their order
            return make_training(values, y, sample_weight, self.variable_names_)
        if not hasattr(self, "training_"):
            raise ValueError("this model has come without the rows of its search: give X and y")
        return self.training_
