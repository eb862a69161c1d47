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
from typing import TYPE_CHECKING, Any, Literal, cast, overload

import numpy as np
import numpy.typing as npt
import pandas
import sympy
import torch
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.devices import choose_devices
from symenum.core.exactness import overflow_allowed
from symenum.core.files import write_whole
from symenum.core.interrupts import ctrl_c_ends
from symenum.core.memory import memory_limit
from symenum.core.seeds import sample_rows
from symenum.core.target import Target, Training, refuse_dates_and_masks
from symenum.core.threads import single_threaded
from symenum.core.user_warnings import warn_user
from symenum.display.confidence import confidence_lines, exhausted_line
from symenum.display.figures import summarise_data
from symenum.display.latex import latex_table
from symenum.display.notebook import front_html
from symenum.display.progress import observer_for_estimator
from symenum.display.report import ReportContent, report_page, run_facts
from symenum.display.schedule import schedule_table
from symenum.display.table import LawRow, equations_table, rows_of, short_text, terminal_width, text_table
from symenum.estimator.data import FitData, check_fit_data, check_validation, make_training, target_name
from symenum.estimator.formulas import (
    FittedForm,
    check_constants,
    compare_with_front,
    constant_errors,
    fit_form,
    read_form,
)
from symenum.estimator.grouped_files import (
    check_labels,
    file_of_group,
    groups_document,
    numbers_of,
    read_groups,
    with_labels,
)
from symenum.estimator.grouped_fit import (
    GroupedKnowledge,
    GroupedModel,
    GroupedTable,
    check_groups,
    choose_form,
    grouped_equations,
    not_for_groups,
    searched_groups,
)
from symenum.estimator.islands import CLUSTER_MEMORY, on_cluster
from symenum.estimator.knowledge import check_found, prior_knowledge
from symenum.estimator.parameters import as_callbacks, check_parameters, knows_words_of_pysr
from symenum.estimator.persistence import (
    LastRun,
    Start,
    checkpoint_path,
    find_start,
    json_parameters,
    make_keeper,
    open_checkpoint,
    open_saved,
    run_place,
    signature_of,
)
from symenum.estimator.preparation import denoised
from symenum.estimator.run_record import end_run, open_run
from symenum.estimator.saved_results import (
    CHECKPOINT,
    Origin,
    Result,
    RunSummary,
    files_of_a_run,
    stated_confidence,
    write_results,
)
from symenum.estimator.several_targets import Targets, index_of_each, of_each_target, one_target_only, split_targets
from symenum.estimator.shape_text import read_shape
from symenum.estimator.units import read_units, unit_lines
from symenum.expressions import (
    Expression,
    ExpressionModule,
    evaluate,
    to_c,
    to_jax,
    to_latex,
    to_numpy_source,
    to_python,
    to_sympy,
    to_torch,
    written,
)
from symenum.expressions.candidate import Candidate
from symenum.expressions.render import SHOWN_DIGITS
from symenum.fitting.effective_variance import MeasurementErrors, chi_square, fit_effective_variance
from symenum.fitting.fit_under_loss import with_loss
from symenum.fitting.losses import Loss, make_loss
from symenum.fitting.recognise import count_fitted_constants
from symenum.front import Front
from symenum.operators import Operator, get_operators
from symenum.run_directory.layout import RunPlace
from symenum.sanity import Policy
from symenum.sanity.shapes import Shape
from symenum.search import Outcome, Settings, StepReport, Task, make_task, run
from symenum.search.believed import with_most_probable
from symenum.search.checkpoint import Checkpoint
from symenum.search.exhausted import exhaust
from symenum.search.front_update import loss_floor
from symenum.search.keeping_shape import keeping_shape
from symenum.search.state import State
from symenum.selection import (
    DEFAULT_RULE,
    Alternative,
    HeldOut,
    alternatives_by_noise,
    choose_law,
    find_alternatives,
    make_band,
    make_verdict,
    noise_around,
    noise_may_grow,
    on_folds,
    on_rows,
    rule_while_searching,
)
from symenum.selection.growing_noise import NoiseAround

if TYPE_CHECKING:
    from typing_extensions import Self  # in `typing` from Python 3.11 on

__all__ = ["PSERegressor"]

Array = npt.NDArray[np.float64]

_EXPORTS = ("python", "numpy", "jax", "torch", "c")
# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_DATA_SHARE = 0.25  # share of max_memory for the rows that laws are judged on
_CHOICE_SHARE = 0.1  # share of max_time for choosing a law on held-out rows, after the last step,
_LEAST_CHOICE = 0.5  # and so many seconds, even where the last step took longer than it should,
_LATEST_CHOICE = 0.6  # but not beyond so many seconds after max_time
_FOLD_ROWS = 10_000  # rows that cross-validation looks at, drawn at random: a loss then has an error of 1 to 2%
_GUESSES_SHARE = 0.3  # largest share of max_time for fitting the constants of guesses, before the first step
_POLICY_ROWS = 20_000  # rows that the policy looks at for alternatives, drawn at random: as many as the evidence does
_SEARCH_OF_GROUPS = 0.6  # share of max_time for the searches of single groups; the rest is for fits to all of them
_GROUPS_IN_A_REPORT = 50  # groups whose constants a report shows: more would be no page to read
_ERRORS_SHARE = 0.05  # of max_time, but a second at least: most seconds for the last fit where inputs have errors


# Of a model with several targets: attributes that its columns share, and those that are lists.
_SAME_FOR_ALL = ("n_features_in_", "feature_names_in_", "variable_names_", "plan_")
_OF_EACH = (
    *("front_", "equations_", "best_expression_", "selected_index_", "training_", "schedule_", "stop_reason_"),
    "selection_mask_",
)


class _OfASearch:
    """An attribute that a search sets, and no file holds: where a model was loaded, an error says so."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, model: object, owner: type) -> Any:
        if model is None:
            return self
        message = f"'{owner.__name__}' object has no attribute '{self.name}'"
        if hasattr(model, "front_"):
            message += ": it tells how a search went, and this model was loaded from a file, which holds the laws only"
        raise AttributeError(message, name=self.name, obj=model)


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
        remaining = max_time - (time.monotonic() - self.began)
        seconds = max(remaining, min(_LEAST_CHOICE, remaining + _LATEST_CHOICE))
        return Budget(max(seconds, 1e-9))  # a budget must be above zero


@dataclass(frozen=True)
class PreparedFit:
    """A fit before its search: checked data, the task, where it starts, and what the target is called.

    `rows`: the numbers of the rows of `training` among those of `data`. `validation`: rows that are held out.
    """

    data: FitData
    rows: npt.NDArray[np.int64]
    training: Training
    task: Task
    start: Start
    validation: Training | None
    target: str


@dataclass(frozen=True)
class Problem:
    """What a fit searches: the table (rows, features) and its target, the numbers of the rows, and the settings."""

    names: tuple[str, ...]
    table: Tensor
    target: Target
    rows: npt.NDArray[np.int64]
    training: Training
    settings: Settings

    def task(self, seed: int | None = None) -> Task:
        """The task; `seed`: another one than that of the settings."""
        settings = self.settings if seed is None else replace(self.settings, seed=seed)
        return make_task(self.names, self.table, self.target, settings)


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
    constants : bool | Mapping[str, float] | Sequence[str], default True
        whether laws may hold fitted constants; or named constants such as {"g": 9.81}, or names of constants of nature
        such as ["c", "k_B"], which laws show by their names (fitted ones are allowed too)
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
    constraints : Mapping[str, int | tuple[int, int]] | None, default None
        the largest complexity of what an operator acts on, such as {"pow": (-1, 1), "sin": 5}; -1 for any
    complexity_of_operators : Mapping[str, int] | None, default None
        what operators add to complexity, such as {"sin": 5}; the others keep their own weights
    complexity_of_constants : int | None, default None
        what each number adds to complexity; None: nothing
    complexity_of_variables : int | Mapping[str, int] | None, default None
        what each variable adds to complexity, a number or a mapping such as {"x1": 2}; None: nothing
    variable_operators : Mapping[str, Iterable[str | Operator]] | None, default None
        the only operators that may act on a variable and on what holds it, such as {"angle": ["sin", "cos", "*"]};
        numbers may scale and shift it in any case
    required_variables : Sequence[str] | None, default None
        names of variables that every law must hold
    forbidden_variables : Sequence[str] | None, default None
        names of variables that no law may hold
    units : Mapping[str, str] | str | None, default None
        the units of all columns and of the target, such as {"v": "m/s", "m": "kg", "E": "J"}; or "names", where the
        columns are called speed [m/s], mass (kg). Only laws of the target's unit are found
    dimensional_constants : bool, default False
        with units: whether fitted constants may have the unit that is missing at their place; else they are plain
        numbers
    template : str | None, default None
        a law that is known in part, such as "a*f(x1)*g(x2, x3) + h(x1)": functions that no operator is called by are
        found, names that are no variables are fitted
    shape : Mapping[str, Any] | Sequence[str] | None, default None
        what is known of how laws behave, such as {"x1": "increasing", "x2": "convex", "y": "positive"}, or a list of
        conditions such as ["f(0) = 0", "f -> 1 for x1 -> inf"]; `equations_` says of each law whether it is proved
    shape_box : Mapping[str, tuple[float, float]] | None, default None
        where `shape` must hold, such as {"x1": (0, 10)}; of other variables, where the data are
    groups : str | None, default None
        the name of a column that says which group a row is of: one form for all groups, and constants of their own
        where groups differ; `constants_` has them
    select_k_features : int | None, default None
        the number of variables to search with, those that matter most to a random forest; None: all
    denoise : bool, default False
        whether y is smoothed by a Gaussian process before the search; losses are then those of the smooth y
    guesses : Sequence[str | Expression] | None, default None
        formulas to begin with, such as "a*x1**2 + b"; names that are no variables are constants to be fitted
    loss : str | Loss | Callable[..., float], default "mse"
        what laws are fitted and ranked by: "mse", "mae", "huber", "log_cosh", "relative" (the mean square of
        (prediction - y)/y), a callable (y, prediction) or (y, prediction, weights) that returns one number, or Huber or
        LogCosh of symenum.fitting.losses with a scale of its own. Scans are least squares, whatever the loss is
    model_selection : str, default "evidence"
        "evidence" (the most probable law; with validation data, "validation"), "best" (PySR's rule; the same),
        "accuracy", "reward", "mdl", "validation" (the simplest of the laws that do best on validation data) or
        "kfold" (the same by cross-validation)
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
    run_dir : str | Path | RunPlace | None, default None
        a folder that holds the whole run, alive and afterwards: problem, steps, laws, checkpoint and results; `resume`
        goes on from it, and `symenum studio` shows it
    warm_start : bool, default False
        whether another `fit` starts from the front of the last one, and on the same data from where it ended
    max_memory : int | str | None, default None
        bytes that the search may take, a number or a text such as "2GB"; None: chosen from the machine's memory
    missing : str, default "auto"
        rows with missing cells: "drop" leaves them out, and a warning counts them; "impute" puts the median of its
        column in place of a missing cell of X; "error" refuses them; "auto" is "drop" for a DataFrame and "error" for
        an array
    shares : Mapping[str, float] | None, default None
        how the search divides its time, such as {"network": 0.5, "reductions": 0}: of the network the least part, of
        any other move the factor that it counts with (2.5 for growth, reductions and exact meetings, else 1); 0 leaves
        a move out. `schedule_` has the names
    sanity : str, default "on"
        whether laws that no scientist would print stay off the front: "on", "allow_poles" (poles and undefined points
        among the data are allowed), or "off" (everything is); `refused_` counts those kept off
    cluster : Any, default None
        where the search runs: an address such as "tcp://host:8786" (Dask) or "ray://host:10001", a number of processes
        on this machine, a Dask client or cluster, or an executor of concurrent.futures; None: in this process

    Attributes
    ----------
    equations_ : pandas.DataFrame
        one row for each law of the front: complexity, loss, score, reward, equation, sympy_format, lambda_format;
        validation_loss, where rows were held out; chi_square and reduced_chi_square, where errors were given
    best_expression_ : Expression
        the law that `model_selection` picks, as people write it
    selected_index_ : int
        its row
    front_ : Front
        the front itself, each law as it was found
    alternatives_ : DataFrame
        the laws that the data cannot tell from the chosen one, with their weights
    training_ : Training
        the rows that it was judged on
    variable_names_ : tuple[str, ...]
        the names that equations use; `feature_names_in_` holds the DataFrame's own
    selection_mask_ : numpy.ndarray | None
        with `select_k_features`, for each feature whether the search has used it; else None
    target_name_ : str
        the name of y in outputs: that of a Series, else "y"
    n_iter_, elapsed_, scored_ : int, float, int
        steps, seconds, and candidates that the network has scored
    stop_reason_, interrupted_ : str, bool
        why the search ended, and whether somebody ended it
    plan_ : str
        layers and inputs of the network
    refused_ : dict[str, int]
        how often a law was kept off the front, by the reason in words; see `sanity`
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

    n_iter_: int
    scored_: int
    elapsed_: float
    interrupted_: bool
    schedule_: pandas.DataFrame = cast(Any, _OfASearch())
    refused_: dict[str, int] = cast(Any, _OfASearch())
    _session: FitSession | None = None  # while a fit runs
    _checkpoint: Checkpoint | None = None  # from which `resume` lets the next fit go on
    _column: PSERegressor | None = None  # while a fit on several targets runs: the model of the present column
    _noise_is_known = False  # whether the fit was told how large the errors of the rows are
    _confidence: tuple[str, ...] | None = None  # the sentences of `confidence`, once they are known
    _origin = Origin()  # of a model that was loaded: where the table came from, and how it was read
    target_name_ = "y"  # until a fit sets it, and in models that were pickled before it was there

    @knows_words_of_pysr
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
        constants: bool | Mapping[str, float] | Sequence[str] = True,
        constant_range: tuple[float, float] = (-3.0, 3.0),
        top_k: int = 30,
        discount: float = 0.99,
        max_complexity: int = 50,
        max_depth: int | None = None,
        nested_constraints: Mapping[str, Mapping[str, int]] | None = None,
        constraints: Mapping[str, int | tuple[int, int]] | None = None,
        complexity_of_operators: Mapping[str, int] | None = None,
        complexity_of_constants: int | None = None,
        complexity_of_variables: int | Mapping[str, int] | None = None,
        variable_operators: Mapping[str, Iterable[str | Operator]] | None = None,
        required_variables: Sequence[str] | None = None,
        forbidden_variables: Sequence[str] | None = None,
        units: Mapping[str, str] | str | None = None,
        dimensional_constants: bool = False,
        template: str | None = None,
        shape: Mapping[str, Any] | Sequence[str] | None = None,
        shape_box: Mapping[str, tuple[float, float]] | None = None,
        groups: str | None = None,
        select_k_features: int | None = None,
        denoise: bool = False,
        guesses: Sequence[str | Expression] | None = None,
        loss: str | Loss | Callable[..., float] = "mse",
        model_selection: str = "evidence",
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
        callbacks: Callable[[StepReport], object] | Sequence[Callable[[StepReport], object]] | None = None,
        checkpoint: str | Path | None = None,
        run_dir: str | Path | RunPlace | None = None,
        warm_start: bool = False,
        max_memory: int | str | None = None,
        missing: str = "auto",
        shares: Mapping[str, float] | None = None,
        sanity: str = "on",
        cluster: Any = None,
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
        self.constraints = constraints
        self.complexity_of_operators = complexity_of_operators
        self.complexity_of_constants = complexity_of_constants
        self.complexity_of_variables = complexity_of_variables
        self.variable_operators = variable_operators
        self.required_variables = required_variables
        self.forbidden_variables = forbidden_variables
        self.units = units
        self.dimensional_constants = dimensional_constants
        self.template = template
        self.shape = shape
        self.shape_box = shape_box
        self.groups = groups
        self.select_k_features = select_k_features
        self.denoise = denoise
        self.guesses = guesses
        self.loss = loss
        self.model_selection = model_selection
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.run_dir = run_dir
        self.warm_start = warm_start
        self.max_memory = max_memory
        self.missing = missing
        self.shares = shares
        self.sanity = sanity
        self.cluster = cluster

    def fit(
        self,
        X: object,
        y: object,
        sample_weight: object = None,
        validation: object = None,
        variable_names: Sequence[str] | None = None,
        *,
        y_error: object = None,
        x_error: object = None,
    ) -> Self:
        """Search for the law y = f(X) of X (rows, features), an array or a DataFrame, and y (rows,).

        Of a y (rows, targets) each column gets a search of its own, with an equal part of `max_time`. `estimators_` are
        the models of the columns; attributes and what methods return are then lists.

        `validation`: rows (X, y) or (X, y, sample_weight) that the search does not see; the law is chosen on them.
        `variable_names`: names for the columns of an array, in place of x1, x2, …

        `y_error`: standard errors of y, one number or one for each row. Rows count by 1/y_error² (times
        `sample_weight`), and `equations_` has the chi-square of each law. `x_error`: standard errors of the inputs, by
        name ({"x1": 0.1}; a number, or one for each row) or as an array (features,) or (rows, features); 0 is exact.
        The laws of the front are then fitted again by effective variance.

        Ctrl-C, or `stop` from another thread, ends the search, and the front found so far is the result;
        `interrupted_` is then True. A second Ctrl-C raises KeyboardInterrupt, and the front is kept all the same.
        """
        self.__dict__.pop("grouped_", None)
        if self.groups is not None:
            return self._fit_groups(X, y, sample_weight, (validation, y_error, x_error), variable_names)
        targets = split_targets(y, validation)
        if targets is not None:
            return self._fit_targets(X, targets, sample_weight, variable_names)
        self.__dict__.pop("estimators_", None)
        with self._running() as session, single_threaded(), overflow_allowed():
            fit = self._prepare(X, y, sample_weight, validation, variable_names, session, y_error, x_error)
            outcome = self._search(fit, session)
        if outcome.error is not None:  # the caller who catches it finds the front in the estimator
            raise outcome.error
        return self

    def stop(self) -> None:
        """Ask a `fit` that runs in another thread to end now, as Ctrl-C does in the main thread."""
        if self._session is not None:
            self._session.stopping.end()
        if self._column is not None:
            self._column.stop()

    @classmethod
    def resume(
        cls,
        path: str | Path,
        X: object = None,
        y: object = None,
        sample_weight: object = None,
        *,
        validation: object = None,
        y_error: object = None,
        x_error: object = None,
        **changes: Any,
    ) -> Self:
        """Go on with the search of a checkpoint until its limits are reached; returns the fitted estimator.

        `path`: the checkpoint, or the folder of a run (`run_dir`, or --out of the command line), which then goes on.
        X, y, `sample_weight` and errors are those of the fit; without them they are read from the file beside the
        checkpoint. `changes` are new values of parameters such as `max_time`; those that decide what the search does
        (operators, layers, …) cannot change. Operators of your own must be given again, since a checkpoint holds no
        code, and so must `validation`. With an iteration limit the result equals that of one fit without a pause.
        """
        names = cls._get_param_names()
        unknown = set(changes) - set(names)
        if unknown:
            raise ValueError(f"changes: {cls.__name__} has no parameter {', '.join(sorted(unknown))}")
        if Path(path).is_dir():  # the folder of a run goes on in the same folder
            changes = {"run_dir": str(path), **changes}
            path = Path(path) / CHECKPOINT
        found = open_checkpoint(Path(path), changes, names, with_data=X is None)
        if found.data is not None:
            X, y, sample_weight = found.data.frame(), found.named_target(), found.data.weight
            groups = found.checkpoint.about.get("groups")
            X = X if groups is None else with_labels(X, groups)
            y_error, x_error = found.data.y_error, found.data.x_error
        model = cls(**found.parameters)
        model._checkpoint = found.checkpoint
        return model.fit(X, y, sample_weight, validation, found.names, y_error=y_error, x_error=x_error)

    @classmethod
    def load(cls, path: str | Path, **changes: Any) -> Any:
        """The fitted estimator that `save` or `symenum fit --out` has written, or a checkpoint; nothing is searched.

        `path`: the folder, its model.json, or a checkpoint. Operators of your own, and a loss that is a callable, must
        be given again as `changes`, since files hold no code. The rows of the fit come with a checkpoint only; without
        them `uncertainties` and `score_expression` need X and y.
        """
        names = cls._get_param_names()
        unknown = set(changes) - set(names)
        if unknown:
            raise ValueError(f"changes: {cls.__name__} has no parameter {', '.join(sorted(unknown))}")
        saved = open_saved(Path(path), changes, names)
        model = cls(**saved.parameters)
        model.variable_names_ = saved.names
        model.n_features_in_ = len(saved.names)
        model.target_name_ = saved.target
        if saved.columns is not None:
            model.feature_names_in_ = np.array(saved.columns, dtype=object)
        if saved.training is not None:
            model.training_ = saved.training
        model.plan_, model.stop_reason_, model.interrupted_ = saved.run.plan, saved.stop_reason, saved.interrupted
        model.n_iter_, model.scored_, model.elapsed_ = saved.run.steps, saved.run.scored, saved.run.elapsed
        if saved.groups is None:
            model._set_front(saved.front, saved.selected, None)
        else:
            model._set_groups(read_groups(saved.groups, saved.front), saved.selected, saved.front)
        model._confidence = saved.confidence
        model._origin = saved.origin
        return model

    @one_target_only
    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the result to a folder: model.json, which `load` reads, front.csv, law.txt, law.tex and law.py.

        The files are plain data; only law.py is code, for you to use. A folder that holds a run of symenum is an error
        (FileExistsError) unless `overwrite`.
        """
        check_is_fitted(self, "front_")
        folder = Path(path)
        taken = files_of_a_run(folder)
        if taken and not overwrite:
            raise FileExistsError(f"'{folder}' holds {taken[0]} already: name another folder, or give overwrite=True")
        folder.mkdir(parents=True, exist_ok=True)
        grouped: GroupedModel | None = getattr(self, "grouped_", None)
        names = self.variable_names_ if grouped is None else grouped.all_names
        columns = getattr(self, "feature_names_in_", [None] * len(names))
        settings = json_parameters(self.get_params(deep=False))
        if isinstance(self.random_state, (int, np.integer)):
            settings["random_state"] = int(self.random_state)
        result = Result(
            self.target_name_,
            names,
            tuple(None if column is None else str(column) for column in columns),
            rows_of(self.front_),
            self.selected_index_,
            settings,
            self.stop_reason_,
            self.interrupted_,
            self.front_.rows,
            self._origin.source,
            RunSummary.of(self),
            self._origin.errors,
            self._stated_confidence(),
            self._origin.encoding,
            None if grouped is None else groups_document(grouped),
        )
        write_results(folder, result)

    @overload
    def predict(
        self, X: object, index: int | Sequence[int] | None = None, *, return_std: Literal[False] = False
    ) -> Array: ...
    @overload
    def predict(
        self, X: object, index: int | Sequence[int] | None = None, *, return_std: bool
    ) -> Array | tuple[Array, Array]: ...

    def predict(
        self, X: object, index: int | Sequence[int] | None = None, *, return_std: bool = False
    ) -> Array | tuple[Array, Array]:
        """The law's values (rows,) for X (rows, features); `index` picks another row of `equations_`.

        With several targets the values are (rows, targets), and `index` may be a list.

        Where the law is not defined, the value is NaN or infinite. With `return_std` also the standard deviations
        (rows,) of these values around the true ones: from the errors of the constants, from `alternatives_`, and from
        what the residuals show that the law has missed. The noise of a new measurement is not in them.
        """
        check_is_fitted(self, "front_")
        if hasattr(self, "grouped_"):
            if return_std:
                raise ValueError("return_std is not for a model with groups")
            self._expression(cast(int | None, index))  # raises an error if there is no such row
            return self.grouped_.predict(X, self.selected_index_ if index is None else cast(int, index))
        if hasattr(self, "estimators_"):
            each = index_of_each(index, len(self.estimators_))
            columns_of = [
                one.predict(X, row, return_std=return_std) for one, row in zip(self.estimators_, each, strict=True)
            ]
            if return_std:
                means, deviations = zip(*columns_of, strict=True)
                return np.column_stack(means), np.column_stack(deviations)
            return np.column_stack(columns_of)
        refuse_dates_and_masks("X", X)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        columns = {name: np.ascontiguousarray(rows[:, i]) for i, name in enumerate(self.variable_names_)}
        law = self._expression(cast(int | None, index))
        predicted: Array = evaluate(law, columns)
        if not return_std:
            return predicted
        alternatives = self._alternatives_of_best() if law == self.best_expression_ else self._find_alternatives(law)
        band = make_band(law, alternatives, self.training_, self._noise_around(law))
        return predicted, band.std({name: torch.tensor(column) for name, column in columns.items()})

    @property
    def alternatives_(self) -> pandas.DataFrame:
        """The laws that the data cannot tell from the chosen one, of all that the search has kept; by falling weight.

        A weight is the probability that the law is the right one, if one of these is; a law is its form, whatever the
        digits of its constants and the way to write it. A law is left out if it is 20 times less probable than the
        chosen one, or if `sanity` refuses it.
        """
        check_is_fitted(self, "front_")
        if hasattr(self, "grouped_"):
            raise ValueError("alternatives_ is not for a model with groups: see equations_ and constants_")
        found = self._alternatives_of_best()
        laws = [LawRow(one.law.expression, one.law.complexity, one.law.loss, 0.0, 0.0) for one in found]
        table = equations_table(laws, self.variable_names_).drop(columns=["score", "reward"])
        table.insert(0, "weight", [one.weight for one in found])
        return table

    def confidence(self) -> list[str]:
        """How sure the choice is, in sentences, as `symenum fit` prints them.

        They say whether other laws explain the data as well, whether any law is better than the mean and than a
        straight line, and which laws were ruled out for certain: for this all laws a*f + b with f of a few operators
        are tried, which may take a second. A saved result has the sentences with it.
        """
        check_is_fitted(self, "front_")
        if self._confidence is None:
            self._confidence = tuple(self._find_confidence())
        return list(self._confidence)

    def _stated_confidence(self) -> tuple[str, ...] | None:
        """What files say of how sure the choice is; None where the rows of the fit are not there to tell."""
        if self._confidence is None and not hasattr(self, "training_"):
            return None
        return stated_confidence(self, self.model_selection)

    def _find_confidence(self) -> list[str]:
        training = self._training_of_fit("confidence()")
        loss = make_loss(self.loss, training.target)
        law, alternatives = self.best_expression_, self._alternatives_of_best()
        noise = self._noise_around(law)
        rows = training if noise is None else noise.weigh(training)
        verdict = make_verdict(law, alternatives, rows, self.front_.floor, loss, noise_grows=noise is not None)
        lines = confidence_lines(verdict)
        found = exhaust(training, get_operators(self.operators)) if loss.is_squared and not verdict.exact else None
        return lines if found is None else [*lines, exhausted_line(found)]

    @of_each_target
    def shape_lines(self, index: int | None = None) -> list[str]:
        """Whether a law is proved to keep `shape`, in a sentence; empty where nothing is known of it."""
        law = self._expression(index)
        if "shape" not in self.equations_.columns:
            return []
        mark = str(self.equations_["shape"].iloc[self.selected_index_ if index is None else index])
        shown = f"The shape is {mark}" if mark == "proved" else f"The shape of {short_text(law)}: {mark}"
        return [f"{shown}."]

    @of_each_target
    def unit_lines(self, index: int | None = None) -> list[str]:
        """Which units a law is in, in sentences; with `dimensional_constants` also those of its numbers.

        Empty where the model has no `units`.
        """
        law, names = written(self._expression(index)), self.variable_names_
        labels = getattr(self, "feature_names_in_", names)
        if hasattr(self, "grouped_"):  # its constants are numbers like others: those of the first group
            names = labels = self.grouped_.names
            law = written(self.grouped_.of_group(self.selected_index_ if index is None else index, 0))
        units = read_units(self, names, [str(label) for label in labels], self.target_name_, ())
        return [] if units is None else unit_lines(law, units, self.target_name_)

    @of_each_target
    def get_best(self, index: int | None = None) -> pandas.Series:
        """The chosen row of `equations_`, or that of another index."""
        self._expression(index)
        return self.equations_.iloc[self.selected_index_ if index is None else index]

    @of_each_target
    def sympy(self, index: int | None = None) -> sympy.Expr:
        """The law as a SymPy expression."""
        return to_sympy(self._expression(index))

    @of_each_target
    def latex(self, index: int | None = None, precision: int = SHOWN_DIGITS) -> str:
        """The law in LaTeX, constants to so many significant digits."""
        return to_latex(written(self._expression(index)), precision)

    @of_each_target
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
    def export(self, language: Literal["python", "numpy", "jax", "c"], index: int | None = None) -> str: ...
    @overload
    def export(self, language: str, index: int | None = None) -> str | ExpressionModule: ...

    @of_each_target
    def export(self, language: str, index: int | None = None) -> str | ExpressionModule:
        """The law as source text ("python", "numpy", "jax", "c") or as a torch module ("torch")."""
        expression, names = self._expression(index), self.variable_names_
        if hasattr(self, "grouped_"):
            law = self.grouped_.laws[self.selected_index_ if index is None else index]
            names = (*self.grouped_.names, *law.names)
        if language == "python":
            return to_python(expression, names)
        if language == "numpy":
            return to_numpy_source(expression, names)
        if language == "jax":
            return to_jax(expression, names)
        if language == "c":
            return to_c(expression, names)
        if language == "torch":
            return to_torch(expression, names)
        raise ValueError(f"language must be one of {', '.join(map(repr, _EXPORTS))}, not {language!r}")

    @not_for_groups
    @one_target_only
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
        result = replace(result, complexity=self.front_.complexity_of(result.expression))
        return compare_with_front(result, self.front_) if X is None else result

    @not_for_groups
    @of_each_target
    def uncertainties(
        self, index: int | None = None, X: object = None, y: object = None, sample_weight: object = None
    ) -> pandas.DataFrame:
        """The numbers of a law that are not integers, from left to right, with their standard errors.

        The errors come from the Fisher information of a fit of all these numbers at once, with σ² from the residuals,
        on the rows of the search or on X and y. Where the data do not determine a number, its error is infinite.
        """
        expression = self._expression(index)
        training = self._training(X, y, sample_weight)
        noise = self._noise_around(expression) if X is None else None
        training = training if noise is None else noise.weigh(training)
        return constant_errors(expression, training, make_loss(self.loss, training.target))

    @one_target_only
    def report(self, path: str | Path, X: object = None, y: object = None, *, errors: bool = False) -> None:
        """Write a page for the browser: the law, the front, plots of the fit, the data and how the search went.

        It is one HTML file that loads nothing else. It shows the data of the fit, or X and y if given; with `errors`
        also the standard errors of the law's constants.
        """
        check_is_fitted(self, "front_")
        if not isinstance(path, (str, Path)):
            raise TypeError(f"path must be the name of a file, such as 'report.html', not {type(path).__name__}")
        content = ReportContent(
            self.target_name_,
            rows_of(self.front_),
            self.selected_index_,
            summarise_data(self, X, y),
            run_facts(self.stop_reason_, self.elapsed_, self.n_iter_, self.scored_, self.plan_),
            self.get_params(deep=False),
            squared=self.loss == "mse",
            errors=[tuple(row) for row in self.uncertainties(None, X, y).to_numpy().tolist()] if errors else None,
            confidence=(
                *(self._stated_confidence() or ()),
                *self.shape_lines(),
                *self.unit_lines(),
                *self._group_lines(),
            ),
            weighted_by_errors="chi_square" in self.equations_.columns,
        )
        write_whole(Path(path), report_page(content))

    def __str__(self) -> str:
        if not hasattr(self, "front_"):
            return repr(self)
        if hasattr(self, "estimators_"):
            return "\n\n".join(
                f"{name} =\n{one}" for name, one in zip(self.target_names_, self.estimators_, strict=True)
            )
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
        tags.target_tags.multi_output = True
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

    def _fit_targets(
        self, X: object, targets: Targets, sample_weight: object, variable_names: Sequence[str] | None
    ) -> Self:
        """Fit a model for each column; one that is not begun when the search is ended gets a single step."""
        for name in ("checkpoint", "run_dir"):
            if getattr(self, name) is not None:
                raise ValueError(f"{name} is for one target: fit each column of y with a {name} of its own")
        count = len(targets.columns)
        known = getattr(self, "estimators_", None)
        goes_on = self.warm_start and known is not None and len(known) == count
        shared = {**self.get_params(deep=False), "max_time": None if self.max_time is None else self.max_time / count}
        models: list[PSERegressor] = []
        with self._running() as session:
            for i, (column, rows) in enumerate(zip(targets.columns, targets.validation, strict=True)):
                self._column = known[i] if goes_on and known is not None else clone(self)
                steps = 1 if session.stopping.over() or any(one.interrupted_ for one in models) else self.max_iterations
                self._column.set_params(**{**shared, "max_iterations": steps})
                try:
                    models.append(self._column.fit(X, column, sample_weight, rows, variable_names))
                finally:
                    self._column = None
        self.estimators_, self.target_names_, self.nout_ = models, targets.names, count
        for name in _SAME_FOR_ALL:
            if hasattr(models[0], name):
                setattr(self, name, getattr(models[0], name))
        for name in _OF_EACH:
            setattr(self, name, [getattr(one, name) for one in models])
        self.n_iter_, self.scored_ = sum(one.n_iter_ for one in models), sum(one.scored_ for one in models)
        self.elapsed_, self.interrupted_ = sum(one.elapsed_ for one in models), any(one.interrupted_ for one in models)
        return self

    def _prepare(
        self,
        X: object,
        y: object,
        sample_weight: object,
        validation: object,
        variable_names: Sequence[str] | None,
        session: FitSession,
        y_error: object,
        x_error: object,
    ) -> PreparedFit:
        """Check parameters and data, and make the task of the search."""
        check_parameters(self.get_params(deep=False))
        choose_devices(self.device, work=0)  # raises an error if there is no such device, before any work
        seed = self._seed()
        data = check_fit_data(self, X, y, sample_weight, y_error, x_error, variable_names)
        problem = self._problem(data, seed, session.budget_for_guesses(self.max_time))
        validation_rows = check_validation(self, validation, data.variables)
        task = problem.task()
        start = find_start(self, task, data, self._checkpoint)
        if start.state is not None and start.state.seed != seed:  # a search goes on with the seed that it began with
            task = problem.task(start.state.seed)
        self._noise_is_known = y_error is not None or x_error is not None
        return PreparedFit(data, problem.rows, problem.training, task, start, validation_rows, target_name(y))

    def _problem(self, data: FitData, seed: int, budget: Budget) -> Problem:
        """What the parameters make of checked data; the same here and on the workers of a cluster."""
        table, target, rows = data.weighted_rows(int(_DATA_SHARE * self._memory_limit()), seed)
        if self.denoise:
            target = denoised(table, target)
        training = Training.of(table, data.variables, target)
        weighted = data.total_weight is not None
        settings = self._settings(training, budget, seed, weighted=weighted, labels=data.labels, target=data.target)
        return Problem(data.variables, table, target, rows, training, settings)

    def _memory_limit(self) -> int:
        """Bytes that the search may take. On a cluster not what this machine allows: all workers must plan alike."""
        if self.max_memory is None and self.cluster is not None:
            return CLUSTER_MEMORY
        return memory_limit(self.max_memory)

    def _search(self, fit: PreparedFit, session: FitSession) -> Outcome:
        """Search, choose a law and set the results; all of it in the folder of the run, where there is one."""
        rule = rule_while_searching(self.model_selection)
        with open_run(self, fit.data, fit.training, fit.target, fit.start, rule, session.stopping.end) as writer:
            outcome = self._run(fit, session, rule, writer)
            fit.start.write_last_checkpoint(outcome)
            check_found(outcome.front, outcome.error)
            self.training_ = fit.training
            outcome = self._choose(fit, outcome, session)
            end_run(writer, self, outcome, run_place(self.run_dir))
        return outcome

    def _run(self, fit: PreparedFit, session: FitSession, rule: str, writer: Callable[[StepReport], object]) -> Outcome:
        """The search itself, step by step until its end."""
        held_out_rows = self.model_selection == "kfold" or fit.validation is not None
        last = fit.start.last_iteration(self.max_iterations)
        with (
            on_cluster(self, fit, last, session.began) as islands,
            observer_for_estimator(lambda _: fit.target, rule, self.max_time, verbose=self.verbose) as progress,
        ):
            return run(
                fit.task,
                fit.task.settings.seed,
                max_time=self.max_time,
                max_iterations=last,
                callbacks=[progress, writer, *as_callbacks(self.callbacks)],
                state=fit.start.state,
                known=fit.start.known,
                keep=fit.start.keeper if islands is None else islands.keep,
                stopping=session.stopping,
                began=session.began,
                reserve=_CHOICE_SHARE * self.max_time if held_out_rows and self.max_time is not None else 0.0,
                advance=islands,
            )

    def _choose(self, fit: PreparedFit, outcome: Outcome, session: FitSession) -> Outcome:
        """Choose the law and set all results; the outcome comes back with the front from which it was chosen."""
        settings = fit.task.settings
        budget = session.budget_for_choice(self.max_time)
        kept = keeping_shape(fit.task, outcome.front, outcome.state)
        outcome = replace(outcome, front=kept.front)
        outcome, believed = self._with_most_probable(fit, outcome, budget)
        errors = fit.data.errors(fit.data.variables, fit.rows)
        if errors is not None and errors.x:
            fitted = self._fitted_with_errors(outcome.front, errors, settings.loss, session)
            outcome = replace(outcome, front=fitted)
        self.variable_names_ = fit.data.variables
        chosen = np.array([name not in settings.forbidden for name in self.variable_names_])
        self.selection_mask_ = None if self.select_k_features is None else chosen
        self.target_name_ = fit.target
        self.plan_ = str(fit.task.plan)
        held_out = self._held_out_losses(outcome.front, fit.validation, settings.loss, settings.seed, budget)
        self._set_results(outcome, held_out, settings.loss, believed)
        if settings.shape is not None:
            self.refused_ = {**self.refused_, **kept.refused}
            self._add_shape(settings.shape)
        if errors is not None:
            self._add_chi_square(errors)
        self._last_run = LastRun(outcome.whole, fit.start.signature, self.loss)
        return outcome

    def _with_most_probable(
        self, fit: PreparedFit, outcome: Outcome, budget: Budget
    ) -> tuple[Outcome, Candidate | None]:
        """The outcome with the most probable law on its front, and that law, where the default rule chooses by it."""
        y = fit.training.target.y
        by_rows = fit.task.settings.loss.rows(y, y) is not None  # else a user's loss, which may take long
        if (
            self.model_selection != DEFAULT_RULE
            or fit.validation is not None
            or outcome.error is not None
            or not by_rows
        ):
            return outcome, None
        front, believed = with_most_probable(
            fit.task, outcome.front, outcome.state, budget, noise_is_known=self._noise_is_known
        )
        if front != outcome.front:
            outcome = replace(outcome, front=front)
            fit.start.write_last_checkpoint(outcome)
        return outcome, believed

    def _fitted_with_errors(self, front: Front, errors: MeasurementErrors, loss: Loss, session: FitSession) -> Front:
        """The front with its constants fitted by effective variance; losses are those of the search."""
        columns, target = self.training_.columns, self.training_.target
        seconds = None if self.max_time is None else max(1.0, _ERRORS_SHARE * self.max_time)
        budget = Budget(seconds, stop=session.stopping.over)
        laws = [entry.expression for entry in front]
        fitted = fit_effective_variance(laws, columns, target.y, target.weight, errors, budget=budget)
        candidates = [with_loss(law, columns, target.y, target.weight, loss) for law in fitted]
        return replace(front, entries=()).update(candidates)

    def _add_shape(self, shape: Shape) -> None:
        """Put into `equations_` whether each law is proved to keep the shape, and warn where none keeps it."""
        self.equations_["shape"] = [shape.mark(entry.expression) for entry in self.front_]
        broken = shape.broken(self.front_[self.selected_index_].expression)
        if broken:
            warn_user(
                f"no law that was found keeps the shape ({', '.join(broken)} is broken by the chosen one): the front "
                "holds the best that nearly do, and equations_ says what each breaks; search longer, or ask for less",
                UserWarning,
            )

    def _add_chi_square(self, errors: MeasurementErrors) -> None:
        """Put chi-square into `equations_`, and chi-square over the number of rows without that of the constants."""
        columns, y = self.training_.columns, self.training_.target.y
        laws = [entry.expression for entry in self.front_]
        totals = [chi_square(law, columns, y, errors) for law in laws]
        spare = [len(y) - count_fitted_constants(law) for law in laws]
        reduced = [total / rows if rows > 0 else np.nan for total, rows in zip(totals, spare, strict=True)]
        self.equations_.insert(2, "chi_square", totals)
        self.equations_.insert(3, "reduced_chi_square", reduced)

    def _held_out_losses(
        self, front: Front, rows: Training | None, loss: Loss, seed: int, budget: Budget
    ) -> HeldOut | None:
        """The losses of the laws on rows that they were not fitted on: folds, or validation rows; None without any."""
        laws = [entry.expression for entry in front]
        if self.model_selection == "kfold":
            part = sample_rows(self.training_.target.rows, _FOLD_ROWS, seed, "rows of cross-validation")
            training = self.training_.at(part)
            floor = 0.0 if budget.over() else loss_floor(loss, training.target)  # a user's loss may take long
            found = on_folds(laws, training, loss, floor, seed, budget)
            if found is None:
                warn_user(
                    "the time was over before cross-validation had judged the laws: the law is chosen by 'evidence'; "
                    "give more max_time",
                    UserWarning,
                )
            return found
        return None if rows is None else on_rows(laws, rows, loss, loss_floor(loss, rows.target))

    def _set_front(self, front: Front, selected: int, held_out_losses: Sequence[float] | None) -> None:
        """Set the attributes that show the laws of a front, of which row `selected` is chosen."""
        self.front_: Front = front
        self.selected_index_ = selected
        self.best_expression_ = written(front[selected].expression)
        self.equations_: pandas.DataFrame = equations_table(rows_of(front), self.variable_names_, held_out_losses)
        self._kept: tuple[Candidate, ...] = tuple(front)
        self._alternatives: tuple[Alternative, ...] | None = None  # found when they are asked for,
        self._confidence = None  # and so is this
        self._origin = Origin()

    def _set_results(self, outcome: Outcome, held_out: HeldOut | None, loss: Loss, believed: Candidate | None) -> None:
        """Set the fitted attributes from a search that has ended; `believed`: the most probable law, if it decides."""
        if believed in outcome.front.entries:
            chosen = outcome.front.entries.index(believed)
        else:
            front = outcome.front.from_zero()
            chosen = choose_law(front, self.model_selection, held_out, self.training_, loss)
        self._set_front(outcome.front, chosen, None if held_out is None else held_out.losses)
        self._kept = (*outcome.front, *filter(outcome.front.may_hold, outcome.state.runners_up))
        self.n_iter_ = outcome.state.iteration
        self.scored_ = outcome.state.scored
        self.elapsed_ = outcome.state.elapsed
        self.stop_reason_ = outcome.reason
        self.interrupted_ = outcome.interrupted
        self.schedule_ = schedule_table(outcome.state)
        self.refused_ = {one.reason: one.count for one in outcome.state.refused}

    def _fit_groups(
        self, X: object, y: object, sample_weight: object, others: tuple[object, ...], variable_names: object
    ) -> Self:
        """One form for all groups: a few groups are searched, and what was found is fitted to all of them."""
        check_parameters(self.get_params(deep=False))
        if any(one is not None for one in others):
            raise ValueError("validation, y_error and x_error are not for groups yet: leave them out")
        if split_targets(y, None) is not None:
            raise ValueError("groups is for one target: fit each column of y with groups of its own")
        table = check_groups(self, X, y, sample_weight, cast(Any, variable_names))
        target, seed, path = target_name(y), self._seed(), checkpoint_path(self)
        training = table.rows().training
        known = GroupedKnowledge(
            read_units(self, table.names, table.labels_of_columns, target, ()),
            read_shape(self.shape, self.shape_box, table.names, target, training.columns),
        )
        empty = GroupedModel((), table.column, table.labels, table.names, table.place)
        before = self._checkpoint
        data, parameters = None, self.get_params(deep=False)
        signature = ""
        if path is not None:
            check_labels(table)
            data = numbers_of(table, target)
            signature = signature_of(data, parameters)
            if before is not None and before.signature != signature:
                raise ValueError(
                    "X, y and sample_weight are not those of the checkpoint (or its settings were changed): give the "
                    "data that the search began with, or start anew with fit"
                )
            front = Front.of(training.target)
            about = {"groups": groups_document(empty), "selected": 0}
            make_keeper(path, data, parameters, signature, about).write(State(seed, 0, front), front)
        start = Start(signature=signature, state=None if before is None else before.state)
        rule = rule_while_searching(self.model_selection)
        earlier = 0.0 if before is None else before.state.elapsed
        with self._running() as session:
            facts = data if data is not None else numbers_of(table, target)
            with open_run(self, facts, training, target, start, rule, session.stopping.end) as writer:
                models = self._search_groups(table, session, seed, path, going_on=before is not None, writer=writer)
                laws = [(one._kept, one.front_.rows) for one in models]
                elapsed = time.monotonic() - session.began
                left = None if self.max_time is None else max(1.0, self.max_time - elapsed)
                budget = Budget(left)
                found, chosen, front = choose_form(laws, table, get_operators(self.operators), budget, seed, known)
                self.target_name_ = target
                self._set_groups(replace(empty, laws=found), chosen, front)
                own = self.grouped_.in_rows(chosen, table.codes_of_counted)
                self.training_ = Training({**training.columns, **own}, training.target)
                self.n_iter_, self.scored_ = sum(one.n_iter_ for one in models), sum(one.scored_ for one in models)
                self.elapsed_ = earlier + time.monotonic() - session.began
                self.interrupted_ = any(one.interrupted_ for one in models)
                self.stop_reason_ = f"{len(models)} of {len(table.labels)} groups were searched, and all were fitted"
                self.plan_, self.schedule_, self.refused_ = models[0].plan_, models[0].schedule_, models[0].refused_
                if known.shape is not None:
                    self._mark_groups(known)
                state = State(seed, self.n_iter_, front, scored=self.scored_, elapsed=self.elapsed_)
                if path is not None and data is not None:
                    about = {"groups": groups_document(self.grouped_), "selected": chosen}
                    make_keeper(path, data, parameters, signature, about).write(state, front)
                outcome = Outcome(state, front, self.stop_reason_, state, self.interrupted_)
                end_run(writer, self, outcome, run_place(self.run_dir))
        return self

    def _search_groups(
        self,
        table: GroupedTable,
        session: FitSession,
        seed: int,
        path: Path | None,
        *,
        going_on: bool,
        writer: Callable[[StepReport], object],
    ) -> list[PSERegressor]:
        """The searches of single groups, each with a checkpoint of its own beside that of the whole, if it has one."""
        searched = searched_groups(table)
        seconds = None if self.max_time is None else _SEARCH_OF_GROUPS * self.max_time / len(searched)
        box = {} if self.shape is None else {**table.box, **(self.shape_box or {})}
        models: list[PSERegressor] = []
        for number, group in enumerate(searched):
            if models and (session.stopping.over() or models[-1].interrupted_):
                break
            file = None if path is None else file_of_group(path, number)
            steps, began = sum(one.n_iter_ for one in models), time.monotonic() - session.began

            def told(report: StepReport, steps: int = steps, began: float = began) -> list[object]:
                whole = replace(report, iteration=steps + report.iteration, elapsed=began + report.elapsed)
                return [tell(whole) for tell in (writer, *as_callbacks(self.callbacks))]

            settings: dict[str, Any] = {
                **{"groups": None, "max_time": seconds, "random_state": seed, "warm_start": False, "run_dir": None},
                **{"callbacks": lambda report, told=told: any(told(report)), "checkpoint": file},
                **({"shape_box": box} if box else {}),
            }
            self._column = type(self)(**{**self.get_params(deep=False), **settings})
            if going_on and file is not None and file.exists():
                names = self._get_param_names()
                self._column._checkpoint = open_checkpoint(file, {}, names, with_data=False).checkpoint
            try:
                with warnings.catch_warnings():
                    # Whether the law of all groups keeps the shape is told in the end.
                    warnings.filterwarnings("ignore", message="no law that was found keeps the shape")
                    models.append(self._column.fit(*table.part(group)))
            finally:
                self._column = None
        return models

    def _mark_groups(self, known: GroupedKnowledge) -> None:
        """Put into `equations_` whether each law keeps the shape in all groups, and warn where none does."""
        grouped = self.grouped_
        self.equations_["shape"] = [known.mark(law, grouped.labels) for law in grouped.laws]
        mark = str(self.equations_["shape"].iloc[self.selected_index_])
        if mark.startswith("broken"):
            warn_user(
                f"no law that was found keeps the shape in all groups ({mark}): search longer, or ask for less",
                UserWarning,
            )

    def _group_lines(self) -> list[str]:
        """The constants of the first groups, in lines for a report; empty without groups."""
        if not hasattr(self, "grouped_"):
            return []
        table = self.constants_.head(_GROUPS_IN_A_REPORT)
        rows = [", ".join(f"{name} = {value:.5g}" for name, value in row.items()) for _, row in table.iterrows()]
        lines = [f"{self.grouped_.column} {label}: {row}." for label, row in zip(table.index, rows, strict=True) if row]
        more = len(self.constants_) - len(table)
        return [*lines, f"{more} more groups are in constants.csv of a saved result."] if more > 0 else lines

    def _set_groups(self, grouped: GroupedModel, chosen: int, front: Front) -> None:
        """Set the attributes that show the laws of groups."""
        self.grouped_ = grouped
        self.front_, self.selected_index_ = front, chosen
        self.best_expression_ = written(front[chosen].expression)
        self.equations_ = grouped_equations(grouped.laws)
        self.constants_: pandas.DataFrame = grouped.constants(chosen)
        self.variable_names_ = (*grouped.names, *grouped.laws[chosen].names)
        self.n_features_in_ = len(grouped.names) + 1
        self.__dict__.pop("feature_names_in_", None)
        self._kept, self._alternatives, self._confidence, self._origin = tuple(front), (), (), Origin()

    def _seed(self) -> int:
        """The seed of a new search, or that of the search that goes on from a checkpoint."""
        if self._checkpoint is not None:
            return self._checkpoint.state.seed
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _settings(
        self,
        training: Training,
        budget: Budget,
        seed: int,
        *,
        weighted: bool,
        labels: Sequence[str] | None = None,
        target: str = "y",
    ) -> Settings:
        known = prior_knowledge(self, training, budget, seed, weighted=weighted, labels=labels, target=target)
        return Settings(
            operators=get_operators(self.operators),
            loss=known.loss,
            prior=known.prior,
            forbidden=known.forbidden,
            guesses=known.guesses,
            declared=known.declared,
            final_units=known.final_units,
            template=known.template,
            shape=known.shape,
            weights=known.weights,
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
            max_memory=self._memory_limit(),
            seed=seed,
            shares=dict(self.shares or {}),
            planned_time=self.max_time,
            sanity=self.sanity,
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

    def _alternatives_of_best(self) -> tuple[Alternative, ...]:
        """Those of the chosen law, found once."""
        if self._alternatives is None:
            self._alternatives = self._find_alternatives(self.best_expression_)
        return self._alternatives

    def _find_alternatives(self, law: Expression) -> tuple[Alternative, ...]:
        """The alternatives of a law; where the noise grows, with constants that suit it."""
        training = self._training_of_fit("alternatives_, or a band of predict,")
        loss = make_loss(self.loss, training.target)
        floor, on_front = self.front_.floor, {entry.expression for entry in self.front_}
        part = training.at(sample_rows(training.target.rows, _POLICY_ROWS, 0, "rows that alternatives are judged on"))
        shape = read_shape(self.shape, self.shape_box, self.variable_names_, self.target_name_, training.columns)
        policy = Policy.of(part.columns, part.target, training.columns, sanity=self.sanity, shape=shape)

        def allowed(one: Candidate) -> bool:
            return one.expression in on_front or policy.reason(one.expression, exact=one.loss <= floor) is None

        noise = self._noise_around(law)
        if noise is None:
            return find_alternatives(law, self._kept, training, floor, loss, allowed)
        return alternatives_by_noise(law, self._kept, training, noise, floor, loss, allowed)

    def _noise_around(self, law: Expression) -> NoiseAround | None:
        """The noise around a law, if the rows of the search say that it grows with the law's values.

        Only the default rule looks for such noise, and only where the user has not said how large it is.
        """
        if self.model_selection != DEFAULT_RULE or self._noise_is_known:
            return None
        training = self.training_
        if self.front_.has_law() or not noise_may_grow(training, make_loss(self.loss, training.target)):
            return None
        laws = [law, *(entry.expression for entry in self.front_)]
        return noise_around(law, laws, training, self.front_.floor)

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

    def _training_of_fit(self, what: str) -> Training:
        """The rows of the search; where a model has come without them, an error says what to do for `what`."""
        if not hasattr(self, "training_"):
            raise ValueError(
                f"{what} needs the rows of the search, which model.json does not hold: fit again, or load the "
                "checkpoint of the search, which has its rows beside it (symenum fit --out results writes one: "
                "load('results/checkpoint.json'))"
            )
        return self.training_
