"""PSERegressor: the search with scikit-learn's interface.

A thin shell. `fit` checks parameters and data, makes the task, runs the search and chooses a law. What a fitted model
says of its laws stands in `law_results`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import check_random_state
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.devices import choose_devices
from symenum.core.exactness import overflow_allowed
from symenum.core.interrupts import ctrl_c_ends
from symenum.core.memory import memory_limit
from symenum.core.seeds import sample_rows
from symenum.core.target import Target, Training
from symenum.core.threads import single_threaded
from symenum.core.user_warnings import warn_user
from symenum.display.progress import observer_for_estimator
from symenum.display.schedule import schedule_table
from symenum.estimator.data import FitData, check_fit_data, check_validation, target_name
from symenum.estimator.grouped_files import with_labels
from symenum.estimator.grouped_search import fit_groups
from symenum.estimator.islands import CLUSTER_MEMORY, on_cluster
from symenum.estimator.knowledge import check_found, prior_knowledge
from symenum.estimator.law_results import LawResults
from symenum.estimator.parameters import as_callbacks, check_parameters, knows_words_of_pysr
from symenum.estimator.persistence import LastRun, Start, find_start, open_checkpoint, run_place
from symenum.estimator.preparation import denoised
from symenum.estimator.run_record import end_run, open_run
from symenum.estimator.saved_results import CHECKPOINT
from symenum.estimator.several_targets import Targets, split_targets
from symenum.expressions import Expression
from symenum.expressions.candidate import Candidate
from symenum.fitting.effective_variance import MeasurementErrors, chi_square, fit_effective_variance
from symenum.fitting.fit_under_loss import with_loss
from symenum.fitting.losses import Loss
from symenum.fitting.recognise import count_fitted_constants
from symenum.front import Front
from symenum.operators import Operator, get_operators
from symenum.run_directory.layout import RunPlace
from symenum.sanity.shapes import Shape
from symenum.search import Outcome, Settings, StepReport, Task, make_task, run
from symenum.search.believed import with_most_probable
from symenum.search.checkpoint import Checkpoint
from symenum.search.front_update import loss_floor
from symenum.search.keeping_shape import keeping_shape
from symenum.selection import DEFAULT_RULE, HeldOut, choose_law, on_folds, on_rows, rule_while_searching

if TYPE_CHECKING:
    from typing_extensions import Self  # in `typing` from Python 3.11 on

__all__ = ["PSERegressor"]

Array = npt.NDArray[np.float64]

# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_DATA_SHARE = 0.25  # share of max_memory for the rows that laws are judged on
_CHOICE_SHARE = 0.1  # share of max_time for choosing a law on held-out rows, after the last step,
_LEAST_CHOICE = 0.5  # and so many seconds, even where the last step took longer than it should,
_LATEST_CHOICE = 0.6  # but not beyond so many seconds after max_time
_FOLD_ROWS = 10_000  # rows that cross-validation looks at, drawn at random: a loss then has an error of 1 to 2%
_GUESSES_SHARE = 0.3  # largest share of max_time for fitting the constants of guesses, before the first step
_ERRORS_SHARE = 0.05  # of max_time, but a second at least: most seconds for the last fit where inputs have errors


# Of a model with several targets: attributes that its columns share, and those that are lists.
_SAME_FOR_ALL = ("n_features_in_", "feature_names_in_", "variable_names_", "plan_")
_OF_EACH = (
    *("front_", "equations_", "best_expression_", "selected_index_", "training_", "schedule_", "stop_reason_"),
    "selection_mask_",
)


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


class PSERegressor(LawResults):
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
        any other move the factor that it counts with (1 for most); 0 leaves a move out. `schedule_` has the names
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

    _session: FitSession | None = None  # while a fit runs
    _checkpoint: Checkpoint | None = None  # from which `resume` lets the next fit go on
    _column: PSERegressor | None = None  # while a fit on several targets runs: the model of the present column

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
            fit_groups(self, X, y, sample_weight, (validation, y_error, x_error), variable_names)
            return self
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
        for model, name in zip(models, targets.names, strict=True):
            model.target_name_ = name
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
