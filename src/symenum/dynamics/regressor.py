"""ODERegressor: laws of motion from trajectories, with the conventions of PSERegressor.

It checks parameters, names variables and holds results. The equations are made in `system`, their laws found in
`discover` and chosen in `selection`.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from symenum.core.budget import Budget
from symenum.core.devices import choose_devices
from symenum.core.exactness import overflow_allowed
from symenum.core.files import write_whole
from symenum.core.interrupts import ctrl_c_ends
from symenum.core.memory import memory_limit
from symenum.core.threads import single_threaded
from symenum.dynamics.choose_on_trajectories import MOST_STATES, Chosen, choose_on_trajectories, make_nodes
from symenum.dynamics.derivatives import DERIVATIVES, Differentiator
from symenum.dynamics.discover import Discovery, Progress, SystemReport, discover, make_terms
from symenum.dynamics.display import (
    MAP,
    law_table,
    system_source,
    watching,
)
from symenum.dynamics.equation import Equation
from symenum.dynamics.forms import WeakForm
from symenum.dynamics.knowledge import settings_of_each, without_forbidden
from symenum.dynamics.motion_file import MOTION_FILE, SavedChoice, SavedSystem
from symenum.dynamics.noise import Noise, measure_noise
from symenum.dynamics.outliers import without_outliers
from symenum.dynamics.persistence import (
    MotionKeeper,
    SavedMotion,
    checkpoint_path,
    open_motion_checkpoint,
    signature_of,
)
from symenum.dynamics.report import motion_report
from symenum.dynamics.results import LawsOfStates, Rows
from symenum.dynamics.run_record import end_motion_run, open_motion_run
from symenum.dynamics.selection import (
    BY_TRAJECTORIES,
    BY_VALIDATION,
    RULES,
    Judged,
    choose_jointly,
    choose_on_validation,
    judge_front,
)
from symenum.dynamics.shared_parts import SharedPart, shared_parts
from symenum.dynamics.simulate import MAX_SECONDS, MAX_STEPS, iterate, right_side, simulate
from symenum.dynamics.system import WEAK, Names, System, derivative_names, make_map, make_system
from symenum.dynamics.trajectory import (
    Piece,
    by_name,
    check_rates,
    column_names,
    make_map_pieces,
    make_pieces,
    names_for,
    real_numbers,
    with_measured,
)
from symenum.estimator.parameters import as_callbacks, check_parameters, knows_words_of_pysr
from symenum.estimator.saved_results import CHECKPOINT, MOTION_MODEL
from symenum.expressions import Expression, evaluate, formula_names, written
from symenum.fitting.free_constants import free_constants
from symenum.front import Front
from symenum.heads.operator_grammar import Prior
from symenum.operators import Operator, get_operators
from symenum.run_directory.layout import RunPlace
from symenum.search import Settings
from symenum.selection.evidence import INDISTINCT

__all__ = ["ODERegressor"]

Array = npt.NDArray[np.float64]

_SEARCH_SHARE = 0.55  # part of the time for the search; fits to the trajectories get the rest, and what is left over
_UNEXPLAINED = 0.2  # part of the variance of the rates: less may be a term that is small, more is no law of motion
_BEYOND_NOISE = 25.0  # chi-square of what a law leaves that is five times as large as noise would
_LOSSES = ("mse", "huber")
_STEPS = ("time", "map")
_MIN_SECONDS = 1e-3  # for the equations that come when the time is over: a Budget needs a limit above 0


class ODERegressor(LawsOfStates, BaseEstimator):  # type: ignore[misc]
    """Laws of motion x' = f(x, u), q'' = f(q, q', u), or x(t+1) = f(x(t), u(t)), from noisy trajectories.

    Parameters
    ----------
    step : str, default "time"
        "time" for laws of motion in time, "map" for x(t+1) = f(x(t)): there t is a count of steps and may be None
    order : int, default 1
        1, or 2 for mechanical systems, whose states are positions
    coupled : bool, default False
        for order 2, whether a law may hold the accelerations of other states, as Lagrange's equations do; they are then
        solved together
    derivative : str | Differentiator, default "weak"
        "weak" (needs no derivative), "savitzky_golay", "spline", "central", or a callable of (t, X) that gives a
        `Motion`
    max_time : float | None, default 60.0
        seconds for all equations together, or None
    max_iterations : int | None, default None
        steps after which the search of each equation ends
    system_complexity : int | None, default None
        if given, laws are chosen jointly: the least description length of the whole system with at most this sum of
        complexities
    model_selection : str, default "trajectories"
        "trajectories" (laws are fitted to the trajectories themselves, starts and constants, and the system with the
        shortest description of laws and residuals is chosen; where that is not possible, as "mdl"), "mdl" (the
        shortest description of law and averaged derivatives), "heldout" (the simplest law within a standard error of
        the best on held-out pieces), "validation" (the same on trajectories that are given to `fit`, where it is the
        default), "best", "accuracy" or "reward"
    forbidden_variables : Sequence[str] | Mapping[str, Sequence[str]] | None, default None
        variables that no law may hold, or by state those that its law may not
    guesses : Sequence[str] | Mapping[str, Sequence[str]] | None, default None
        formulas to begin with, for all laws or by state, such as {"x1": ["a*x1 - b*x1*x2"]}; names that are no
        variables are constants to be fitted
    units : Mapping[str, str] | None, default None
        the units of all states and inputs, and of the time `t` (`time`, where a state is called t), such as {"x1": "m",
        "t": "s"}; those of velocities follow. No law then adds a length to a time, or takes the sine of a length
    dimensional_constants : bool, default True
        with units: whether constants may have the unit that is missing at their place, as rates have; else they are
        plain numbers
    loss : str, default "mse"
        "mse", or "huber": samples that lie far off a smooth motion are pulled in, so that they do not decide
    checkpoint : str | Path | None, default None
        a file that is kept up to date while the search runs; `resume` goes on from it
    callbacks : Callable[[SystemReport], object] | Sequence[Callable[[SystemReport], object]] | None, default None
        a callable, or several, that get a SystemReport after each step; one that returns True ends the search
    run_dir : str | Path | RunPlace | None, default None
        a folder that holds the whole run, alive and afterwards: trajectories, steps, laws, checkpoint and results;
        `resume` goes on from it, and `symenum studio` shows it

    All other parameters are those of PSERegressor.

    Attributes
    ----------
    equations_ : dict[str, pandas.DataFrame]
        for each state the table of its front, with PSERegressor's columns and `heldout_loss`, `chi_square` (what the
        law leaves, in units of what noise alone would leave: about 1 for the truth), `bits` (the description length),
        and `indistinguishable` (the data cannot tell this law from the chosen one); `validation_loss`, where there were
        validation trajectories
    best_expressions_ : dict[str, Expression]
        the chosen law of each state, as people write it
    selected_ : dict[str, int]
        its row
    fronts_ : dict[str, Front]
        the fronts themselves, each law as it was found
    state_names_, velocity_names_, acceleration_names_, input_names_ : tuple[str, ...]
        the names that laws use
    noise_ : dict[str, Noise]
        the errors of each state's samples as they were measured: `level`, and whether they grow with the state; of a
        map, whose samples need not be smooth, they cannot be measured, and this is empty
    trajectories_ : Chosen | None
        the fit to the trajectories: laws, errors of their constants, bits, chi-square of each state, and the laws that
        were tried in the place of the chosen ones; None where another rule has chosen
    constants_ : pandas.DataFrame
        the constants of the chosen laws as they were fitted, with standard errors; with `trajectories_` only
    alternatives_ : pandas.DataFrame
        the laws that the trajectories cannot tell from the chosen ones, with weights; with `trajectories_` only
    shared_parts_ : tuple[SharedPart, ...]
        products that stand in several of the chosen laws, such as x1*x2, with their coefficient in each
    stop_reason_ : dict[str, str]
        why the search of each equation ended
    elapsed_, n_iter_, scored_, interrupted_ : float, int, int, bool
        seconds, steps, candidates that the network has scored, and whether somebody ended the search

    Examples
    --------
    >>> import numpy as np
    >>> t = np.linspace(0, 10, 200)
    >>> X = np.column_stack([np.cos(2 * t), np.sin(2 * t)])
    >>> model = ODERegressor(operators="arithmetic", random_state=0).fit(X, t)
    >>> for state, law in model.best_expressions_.items():
    ...     print(f"{state}' = {law}")
    x1' = -2*x2
    x2' = 2*x1
    """

    @knows_words_of_pysr
    def __init__(
        self,
        operators: str | Iterable[str | Operator] = "koza",
        *,
        step: str = "time",
        order: int = 1,
        coupled: bool = False,
        derivative: str | Differentiator = WEAK,
        max_time: float | None = 60.0,
        max_iterations: int | None = None,
        layers: int | None = None,
        inputs: int | None = None,
        token_generator: str = "gp",
        constants: bool = True,
        constant_range: tuple[float, float] = (-3.0, 3.0),
        top_k: int = 30,
        discount: float = 0.99,
        max_complexity: int = 50,
        max_depth: int | None = None,
        nested_constraints: Mapping[str, Mapping[str, int]] | None = None,
        constraints: Mapping[str, int | tuple[int, int]] | None = None,
        variable_operators: Mapping[str, Iterable[str | Operator]] | None = None,
        forbidden_variables: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
        guesses: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
        units: Mapping[str, str] | None = None,
        dimensional_constants: bool = True,
        loss: str = "mse",
        system_complexity: int | None = None,
        model_selection: str = BY_TRAJECTORIES,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
        callbacks: Callable[[SystemReport], object] | Sequence[Callable[[SystemReport], object]] | None = None,
        checkpoint: str | Path | None = None,
        run_dir: str | Path | RunPlace | None = None,
        max_memory: int | str | None = None,
    ) -> None:
        self.operators = operators
        self.step = step
        self.order = order
        self.coupled = coupled
        self.derivative = derivative
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
        self.forbidden_variables = forbidden_variables
        self.guesses = guesses
        self.units = units
        self.dimensional_constants = dimensional_constants
        self.loss = loss
        self.system_complexity = system_complexity
        self.model_selection = model_selection
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.run_dir = run_dir
        self.max_memory = max_memory

    def fit(
        self, X: object, t: object = None, u: object = None, x_dot: object = None, *, validation: object = None
    ) -> ODERegressor:
        """Search the laws of X (points, states) at the times t (points,), or with the time step t, and inputs u.

        Lists of arrays are several trajectories. Rows with missing values and long pauses are gaps. Ctrl-C ends the
        search and keeps what was found; the laws of equations that were not begun are constants. `x_dot`: measured
        derivatives, of the shape of X, in place of estimated ones; for order 1 only. `validation`: trajectories (X, t)
        or (X, t, u) that the search does not see; the laws are chosen on them.
        """
        self._check()
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        if x_dot is not None and (self.order != 1 or self.step == "map"):
            raise ValueError('x_dot is for order=1 and step="time": give positions and velocities as states')
        self._measured = x_dot is not None
        X, u = by_name("X", X, column_names(X)), by_name("u", u, column_names(u))
        x_dot = by_name("x_dot", x_dot, column_names(X), named=False)
        pieces = self._pieces(X, t, u if x_dot is None else with_measured(u, x_dot, X))
        states = pieces[0].X.shape[1]
        self._name(X, u, states, pieces[0].U.shape[1] - (0 if x_dot is None else states))
        return self._fit(pieces, validation, seed, None)

    @classmethod
    def resume(
        cls,
        path: str | Path,
        X: object = None,
        t: object = None,
        u: object = None,
        x_dot: object = None,
        *,
        validation: object = None,
        **changes: Any,
    ) -> ODERegressor:
        """Go on with the search of a checkpoint until its limits are reached; returns the fitted estimator.

        `path`: the checkpoint, or the folder of a run (`run_dir`, or --out of the command line), which then goes on. X,
        t, u and x_dot are those of the fit; without them they are read from the file beside the checkpoint. `changes`
        are new values of parameters such as `max_time`; those that decide what the search does cannot change. With an
        iteration limit and without a time limit the result equals that of one fit without a pause.
        """
        names = cls._get_param_names()
        unknown = set(changes) - set(names)
        if unknown:
            raise ValueError(f"changes: {cls.__name__} has no parameter {', '.join(sorted(unknown))}")
        if Path(path).is_dir():  # the folder of a run goes on in the same folder
            changes = {"run_dir": str(path), **changes}
            path = Path(path) / CHECKPOINT
        saved = open_motion_checkpoint(Path(path), changes, names, with_data=X is None)
        model = cls(**saved.parameters)
        model._check()
        model._measured = saved.measured
        called = saved.names
        model.state_names_, model.input_names_ = called.states, called.inputs
        model.velocity_names_, model.acceleration_names_ = called.velocities, called.accelerations
        pieces = saved.pieces
        if pieces is None:
            if saved.measured != (x_dot is not None):
                raise ValueError(f"x_dot: the search began {'with' if saved.measured else 'without'} it")
            X, u = model.in_order_of_fit(X, u)
            x_dot = by_name("x_dot", x_dot, called.states, named=False)
            pieces = tuple(model._pieces(X, t, u if x_dot is None else with_measured(u, x_dot, X)))
        if signature_of(pieces, called, saved.measured, model.get_params(deep=False)) != saved.signature:
            raise ValueError(
                "X, t, u and x_dot are not those of the checkpoint (or its settings were changed): give the data that "
                "the search began with, or start anew with fit"
            )
        return model._fit(pieces, validation, saved.seed, saved)

    @classmethod
    def saved_parameters(cls, path: str | Path) -> dict[str, Any]:
        """The parameters of the search in a checkpoint."""
        return open_motion_checkpoint(Path(path), {}, cls._get_param_names(), with_data=False).parameters

    def trajectories_of_fit(self) -> tuple[list[Array], list[Array], list[Array] | None]:
        """The pieces without gaps that the laws were fitted to: states, times, and inputs where there are any."""
        self._check_has_trajectories()
        count = len(self.input_names_)
        inputs = [piece.U[:, :count] for piece in self._of_fit] if count else None
        return [piece.X for piece in self._of_fit], [piece.t for piece in self._of_fit], inputs

    @single_threaded()
    @overflow_allowed()
    def _fit(self, given: Sequence[Piece], validation: object, seed: int, saved: SavedMotion | None) -> ODERegressor:
        """Search the laws of the pieces, from the beginning or from where a saved search stood."""
        held_out = self._held_out(validation, given[0])
        pieces = without_outliers(given) if self.loss == "huber" else given
        system = without_forbidden(self._system(pieces, seed), self.state_names_, self.forbidden_variables)
        settings = settings_of_each(self, system, self._names, self._settings(seed), seed, is_map=self.step == "map")
        before = 0.0 if saved is None else saved.elapsed
        stopping = Budget()
        begin = time.monotonic()
        keeper = self._keeper(given, seed, saved, lambda: before + time.monotonic() - begin)
        with open_motion_run(self, pieces, system, stopping.end, before) as writer:
            measurable = self.step == "time"
            measured = zip(self.state_names_, measure_noise(pieces), strict=True) if measurable else ()
            self.noise_: dict[str, Noise] = dict(measured)
            with ctrl_c_ends(stopping), watching(self) as progress:
                observers = [progress, writer, *as_callbacks(self.callbacks)]
                so_far = [None] * len(system.equations) if saved is None else list(saved.progress)
                try:
                    found = self._search(system, settings, seed, stopping, observers, so_far, keeper)
                    known = None if saved is None else saved.chosen
                    priors = [one.prior for one in settings]
                    self.trajectories_ = self._choose_on_trajectories(
                        system, pieces, found, priors, begin, stopping, known, keeper
                    )
                finally:
                    if keeper is not None:
                        keeper.end()
                fronts, rows = self._with_choice(system, [one.front for one in found])
                self.elapsed_ = before + time.monotonic() - begin
                self._tell_of_choice(found, fronts, rows, observers)
            self._set_results(system, found, fronts, rows, held_out)
            self._of_fit = tuple(given)
            end_motion_run(writer, self)
        return self

    def _pieces(self, X: object, t: object, u: object) -> list[Piece]:
        """The checked trajectories."""
        if self.step == "map":
            return make_map_pieces(X, t, u)
        if t is None:
            raise ValueError('t is missing: give the times, or a time step; only step="map" needs none')
        pieces = make_pieces(X, t, u)
        check_rates(pieces, self.order)
        return pieces

    def in_order_of_fit(self, X: object, u: object = None) -> tuple[object, object]:
        """X and u with the columns of their DataFrames in the order of the fit, by their names.

        Arrays stay as they are. An error where other columns are there.
        """
        states, inputs = self.state_names_, self.input_names_
        X = by_name("X", X, states, named=self._named)
        return X, by_name("u", u, inputs or None, named=inputs != names_for(None, len(inputs), "u"))

    def _system(self, pieces: Sequence[Piece], seed: int = 0) -> System:
        """The equations of the pieces."""
        if self.step == "map":
            return make_map(pieces, self._names)
        return make_system(pieces, self._names, self.derivative, seed)

    def _held_out(self, validation: object, piece: Piece) -> System | None:
        """The equations of the validation trajectories; None where there are none."""
        if validation is None:
            if self.model_selection == BY_VALIDATION:
                raise ValueError('model_selection="validation" needs trajectories: give fit validation=(X, t)')
            return None
        if self._measured:
            raise ValueError("validation is not for measured derivatives (x_dot)")
        if not isinstance(validation, (tuple, list)) or len(validation) not in (2, 3):
            raise ValueError("validation must be (X, t) or (X, t, u)")
        X, t = validation[:2]
        u = validation[2] if len(validation) == 3 else None
        try:
            X, u = self.in_order_of_fit(X, u)
            pieces = self._pieces(X, t, u)
        except ValueError as error:
            raise ValueError(f"validation: {error}") from error
        if (pieces[0].X.shape[1], pieces[0].U.shape[1]) != (piece.X.shape[1], piece.U.shape[1]):
            raise ValueError("validation must have the same states and inputs as X and u")
        return self._system(pieces)

    def _keeper(
        self, pieces: Sequence[Piece], seed: int, saved: SavedMotion | None, elapsed: Callable[[], float]
    ) -> MotionKeeper | None:
        """Who writes the checkpoint; None where there is none."""
        path = checkpoint_path(self.checkpoint, self.run_dir)
        if path is None:
            return None
        progress = [None] * len(self.state_names_) if saved is None else saved.progress
        parameters = self.get_params(deep=False)
        return MotionKeeper.make(path, pieces, self._names, self._measured, parameters, seed, progress, elapsed)

    def _choose_on_trajectories(
        self,
        system: System,
        pieces: Sequence[Piece],
        found: Sequence[Discovery],
        priors: Sequence[Prior],
        begin: float,
        stopping: Budget,
        known: Sequence[Expression] | None,
        keeper: MotionKeeper | None,
    ) -> Chosen | None:
        """The laws by fits to the trajectories; None where another rule chooses, or no system can be followed.

        `known`: the laws that an earlier search had come to; they are taken where the time ends before better ones are
        found. `keeper` gets each better system.
        """
        if not self._by_trajectories or stopping.over():
            return None
        remaining = None if self.max_time is None else max(self.max_time - (time.monotonic() - begin), _MIN_SECONDS)
        moving = [i for i, equation in enumerate(system.equations) if equation.variance > 0.0]
        if not moving:
            return None
        names = self._names.of_states(moving)
        noise = [self.noise_[name] for name in names.states]
        form = system.equations[0].form
        windows = [grid.windows[moving] for grid in form.grids] if isinstance(form, WeakForm) else None
        nodes = make_nodes([replace(piece, X=piece.X[:, moving]) for piece in pieces], names, noise, windows)
        pools = [found[i].pool for i in moving]
        by_averages = [found[i].front[int(np.argmin(system.equations[i].bits(found[i].front)))] for i in moving]
        start = [one.expression for one in by_averages]
        keep = None if keeper is None else keeper.keep_system
        own = [priors[i] for i in moving]
        chosen = choose_on_trajectories(pools, nodes, noise, names, remaining, stopping, start, known, keep, own)
        if chosen is None:
            return None
        judged = [system.equations[i].judge(law) for i, law in zip(moving, chosen.laws, strict=True)]
        return None if None in judged else chosen

    def _with_choice(self, system: System, fronts: list[Front]) -> tuple[list[Front], list[int | None]]:
        """The fronts with the laws that trajectories have chosen, and the rows of these; None where they have not."""
        rows: list[int | None] = [None] * len(fronts)
        if self.trajectories_ is not None:
            moving = [i for i, equation in enumerate(system.equations) if equation.variance > 0.0]
            self._moving = tuple(self.state_names_[i] for i in moving)
            for i, law in zip(moving, self.trajectories_.laws, strict=True):
                candidate = system.equations[i].judge(law)
                assert candidate is not None  # `_choose_on_trajectories` has asked
                fronts[i] = fronts[i].with_law(fronts[i].weighed(candidate))
                rows[i] = [entry.expression for entry in fronts[i]].index(law)
        return fronts, rows

    def _tell_of_choice(
        self,
        found: Sequence[Discovery],
        fronts: Sequence[Front],
        rows: Sequence[int | None],
        observers: Sequence[Callable[[SystemReport], object]],
    ) -> None:
        """Tell those who watch of the fronts that have got a law by a fit to the trajectories."""
        left = None if self.max_time is None else max(0.0, self.max_time - self.elapsed_)
        for i, (state, one, front) in enumerate(zip(self.state_names_, found, fronts, strict=True)):
            if rows[i] is None:
                continue
            message = f"{len(one.pool)} forms fitted to the trajectories"
            stage = "fits to trajectories"
            report = SystemReport(one.iterations, stage, 0.0, self.elapsed_, left, 0, 0.0, front, message, state=state)
            for observer in observers:
                observer(report)

    def _set_results(
        self,
        system: System,
        found: Sequence[Discovery],
        fronts: Sequence[Front],
        rows: Sequence[int | None],
        held_out: System | None,
    ) -> None:
        """Set the fitted attributes from the searches of all equations, and from the choice by trajectories.

        `held_out`: the equations of validation trajectories, on which the laws are chosen unless another rule is set.
        """
        judged = tuple(
            judge_front(equation, front, self.model_selection, row)
            for equation, front, row in zip(system.equations, fronts, rows, strict=True)
        )
        selected = [one.selected for one in judged]
        losses: list[Array] | None = None
        if held_out is not None:
            whole = [self._with_all_columns(held_out, i) for i in range(len(fronts))]
            found_there = [choose_on_validation(one, front) for one, front in zip(whole, fronts, strict=True)]
            losses = [loss for loss, _ in found_there]
            if self.model_selection in (BY_VALIDATION, BY_TRAJECTORIES):
                selected = [row for _, row in found_there]
        if self.system_complexity is not None:
            selected = choose_jointly(fronts, judged, self.system_complexity)
        if any(row is not None and row != chosen for row, chosen in zip(rows, selected, strict=True)):
            self.trajectories_ = None  # its constants are those of other laws
        self._set_found(
            SavedSystem(
                self._names,
                self._measured,
                tuple(fronts),
                tuple(replace(one, selected=row) for one, row in zip(judged, selected, strict=True)),
                tuple(self.noise_.values()),
                tuple(one.reason for one in found),
                None if losses is None else tuple(tuple(map(float, loss)) for loss in losses),
                tuple(map(float, system.size)),
                tuple(float(values[0]) for values in system.columns.values()),
                None if self.trajectories_ is None else SavedChoice.of(self.trajectories_, self._moving),
                self.elapsed_,
                sum(one.iterations for one in found),
                sum(one.scored for one in found),
                any(one.interrupted for one in found),
            )
        )
        asked_to_stop = self.interrupted_ or "a callback asked to stop" in self.stop_reason_.values()
        if self.step == "time" and self.system_complexity is None and not asked_to_stop:
            self._warn_of_unexplained(system)

    def _set_found(self, found: SavedSystem) -> None:
        """Set the fitted attributes from what a fit has found, now or earlier."""
        self._found = found
        self.state_names_, self.input_names_ = found.names.states, found.names.inputs
        self.velocity_names_, self.acceleration_names_ = found.names.velocities, found.names.accelerations
        self._measured = found.measured
        self.fronts_: dict[str, Front] = dict(zip(self.state_names_, found.fronts, strict=True))
        self.judged_: tuple[Judged, ...] = found.judged
        self.noise_ = dict(zip(self.state_names_, found.noise, strict=False))  # a map has none
        self.selected_ = {name: one.selected for name, one in zip(self.state_names_, found.judged, strict=True)}
        self.best_expressions_ = {
            name: written(self.fronts_[name][row].expression) for name, row in self.selected_.items()
        }
        self.equations_: dict[str, pandas.DataFrame] = {
            name: law_table(front, judged, (*self._variables, *self.acceleration_names_))
            for (name, front), judged in zip(self.fronts_.items(), self.judged_, strict=True)
        }
        if found.validation is not None:
            for table, loss in zip(self.equations_.values(), found.validation, strict=True):
                table.insert(2, "validation_loss", loss)
        self.shared_parts_: tuple[SharedPart, ...] = shared_parts(self.best_expressions_)
        self.trajectories_ = None if found.choice is None else found.choice.chosen()
        self._moving = () if found.choice is None else found.choice.moving
        self.stop_reason_ = dict(zip(self.state_names_, found.reasons, strict=True))
        self.elapsed_, self.n_iter_ = found.elapsed, found.steps
        self.scored_, self.interrupted_ = found.scored, found.interrupted

    def save(self, path: str | Path) -> None:
        """Write the laws, their fronts, the choice and the settings to a file (JSON) that `load` reads."""
        check_is_fitted(self, "fronts_")
        write_whole(Path(path), self.saved_text())

    def saved_text(self) -> str:
        """What `save` writes."""
        return MOTION_FILE.text(self.get_params(deep=False), self._found)

    @classmethod
    def load(cls, path: str | Path, **changes: Any) -> ODERegressor:
        """The fitted estimator that `save` has written, or that the folder of a run holds; nothing is searched.

        Trajectories are not kept: `report` and `trajectories_of_fit` are for the estimator that was fitted. Operators
        of your own must be given again as `operators`; `changes` are other values of parameters.
        """
        file = Path(path) / MOTION_MODEL if Path(path).is_dir() else Path(path)
        if not file.exists() and file.with_name(CHECKPOINT).exists():
            raise ValueError(f"'{path}' holds a search without results: go on with ODERegressor.resume('{path}')")
        fixed = [name for name in ("step", "order", "coupled") if name in changes]
        if fixed:
            raise ValueError(f"{fixed[0]} cannot change when laws are loaded: they are laws of another kind")
        parameters, found = MOTION_FILE.read(file, changes, cls._get_param_names())
        model = cls(**parameters)
        model._check()
        if (found.names.order, bool(found.names.accelerations)) != (model.order, bool(model.coupled)):
            raise ValueError(f"'{file}' is damaged: its laws are not of the order that its parameters say")
        model._set_found(found)
        return model

    def _warn_of_unexplained(self, system: System) -> None:
        """Warn of states whose chosen laws leave far more than noise can: something that drives them is not known."""
        unexplained = []
        for equation, (state, row) in zip(system.equations, self.selected_.items(), strict=True):
            entry = self.fronts_[state][row]
            beyond_noise = equation.chi_square(entry.expression) > _BEYOND_NOISE
            if entry.loss > _UNEXPLAINED * equation.variance and beyond_noise:
                unexplained.append(state)
        if unexplained:
            higher = "" if self.order == 2 else "; order=2, if only positions were measured"
            warnings.warn(
                f"no law was found that accounts for how {', '.join(unexplained)} move: more than a fifth of the "
                "variance of the rates is left, and it is not noise. A state or an input may be missing: give it "
                f"in X or u{higher}; or search longer, or with more operators",
                UserWarning,
                stacklevel=7,  # to the caller of `fit` or `resume`, past their decorators
            )

    @property
    def constants_(self) -> pandas.DataFrame:
        """One row for each constant of the chosen laws, from left to right: its state, value and standard error."""
        chosen = self._trajectories("constants_")
        rows = [
            (state, value, error)
            for state, law, errors in zip(self._moving, chosen.fitted, chosen.errors, strict=True)
            for value, error in zip(free_constants(law, integers=False), errors, strict=True)
        ]
        return pandas.DataFrame(rows, columns=["state", "value", "error"])

    @property
    def alternatives_(self) -> pandas.DataFrame:
        """One row for the chosen law of each state, and for each that the trajectories cannot tell from it.

        `bits`: by how much the description of the whole system grows, all other laws as chosen; a longer law must gain
        two bits to be chosen, so that this may be a little below 0. `weight`: the
        probability of being the law of the state, among those that are named here.
        """
        chosen = self._trajectories("alternatives_")
        parts = []
        for state, others in zip(self._moving, chosen.others, strict=True):
            near = [(law, bits) for law, bits in others if bits <= INDISTINCT / math.log(2)]
            shares = np.exp2([-bits for _, bits in near])
            parts += [
                (state, str(written(law)), bits, float(share))
                for (law, bits), share in zip(near, shares / shares.sum(), strict=True)
            ]
        return pandas.DataFrame(parts, columns=["state", "equation", "bits", "weight"])

    def _trajectories(self, name: str) -> Chosen:
        """The fit to the trajectories, or an error that says what to do where there is none."""
        check_is_fitted(self, "fronts_")
        if self.trajectories_ is None:
            raise AttributeError(
                f"{name} needs laws that fits to the trajectories have chosen, and here they have not: fit with "
                'model_selection="trajectories" and derivative="weak", without coupled, x_dot and system_complexity'
            )
        return self.trajectories_

    def predict(self, X: object, u: object = None, index: Rows = None) -> Array:
        """The derivatives (points, states) for states X (for order 2: positions, then velocities) and inputs u.

        `index`: a row of `equations_` for all states, one for each, or a dictionary of them.
        """
        laws = self._laws(index)
        states = self.moving_names
        X = by_name("X", X, states, named=self._named)
        values = real_numbers("X", X)
        shape = values.shape
        if len(shape) < 2:  # the points of a single state, or one point of several
            values = values.reshape((-1, 1) if len(states) == 1 else (1, -1))
        if values.ndim != 2 or values.shape[1] != len(states):
            raise ValueError(
                f"X must have {len(states)} columns ({', '.join(states)}), one row for each point, not shape {shape}"
            )
        values = np.hstack([values, self._inputs_at(u, len(values))])
        if self.coupled:
            right = right_side(list(laws.values()), self._variables, None, 1, self.acceleration_names_)
            return np.stack([right(0.0, row) for row in values])
        columns = {name: np.ascontiguousarray(values[:, i]) for i, name in enumerate(self._variables)}
        return np.stack([np.asarray(evaluate(law, columns)) for law in laws.values()], axis=1)

    def simulate(
        self,
        x0: object,
        t: object,
        u: object = None,
        index: Rows = None,
        *,
        max_time: float | None = MAX_SECONDS,
        max_steps: int = MAX_STEPS,
    ) -> Array:
        """The motion (times, states) from x0 at t[0]; NaN, with a warning, from where it cannot be followed.

        Of a map: one state for each entry of t, the first being x0; where it overflows, it stays at infinity or NaN.
        For order 2, x0 is positions and then velocities, and so are the columns. u is (times, inputs), linear between
        the times, or a function of time. `max_time` in seconds, of computing.
        """
        laws = self._laws(index)
        times = real_numbers("t", t, "a sequence of increasing times")
        start = real_numbers("x0", by_name("x0", x0, self.moving_names, named=self._named)).ravel()
        count = len(laws) * self.order
        if start.shape != (count,) or not np.isfinite(start).all():
            raise ValueError(f"x0 must be {count} finite numbers ({', '.join(self._variables[:count])}), not {x0!r}")
        if times.ndim != 1 or len(times) == 0 or not np.isfinite(times).all() or (np.diff(times) <= 0).any():
            raise ValueError("t must be a sequence of finite, increasing times")
        inputs = self._input(u, times)
        if self.step == "map":
            return iterate(right_side(list(laws.values()), self._variables, inputs, 1), start, times)
        right = right_side(list(laws.values()), self._variables, inputs, self.order, self.acceleration_names_)
        size = np.zeros(count)
        size[: len(laws)] = self._found.size
        simulation = simulate(right, start, times, size, max_steps=max_steps, max_time=max_time)
        if simulation.stopped is not None:
            warnings.warn(f"{simulation.stopped}; later rows are NaN", RuntimeWarning, stacklevel=2)
        return simulation.states

    def score(self, X: object, t: object = None, u: object = None) -> float:
        """R² of the derivatives (of a map: of next states) along trajectories, averaged over the states that move."""
        laws = self._laws(None)
        X, u = self.in_order_of_fit(X, u)
        pieces = self._pieces(X, t, u)
        if (pieces[0].X.shape[1], pieces[0].U.shape[1]) != (len(laws), len(self.input_names_)):
            raise ValueError(
                f"X and u must have the states and inputs of the fit, {', '.join((*laws, *self.input_names_))}: "
                f"{len(laws)} and {len(self.input_names_)} columns, not {pieces[0].X.shape[1]} and "
                f"{pieces[0].U.shape[1]}"
            )
        system = self._system(pieces)
        scores = []
        for i, (equation, law) in enumerate(zip(system.equations, laws.values(), strict=True)):
            whole = self._with_all_columns(system, i)
            if equation.variance > 0:
                scores.append(1 - float(np.mean(whole.residual(law) ** 2)) / equation.variance)
        return float(np.mean(scores)) if scores else 1.0

    def _with_all_columns(self, system: System, number: int) -> Equation:
        """An equation with all variables that a law may hold; those that do not move in these data are 0 in it."""
        equation = system.equations[number]
        missing = dict.fromkeys((*self._variables, *self._names.accelerations), np.zeros_like(system.points[:, 0]))
        return replace(equation, columns={**missing, **system.columns}, _normalised={})

    def export(self, language: str, index: Rows = None) -> str:
        """The system as source text: "python", "numpy", "c", "scipy", "modelica" or "latex".

        "scipy" is Python with a function that solves the system by `scipy.integrate.solve_ivp`; "modelica" a model
        whose start is that of the first trajectory.
        """
        if self.coupled:
            raise ValueError("laws that are coupled by accelerations have no explicit form to export; use sympy()")
        if language == "latex":
            return self.latex(index)
        start = dict(zip(self._variables, self._found.start, strict=False))
        return system_source(self._laws(index), self._variables, language, self._kind, start)

    def report(self, path: str | Path) -> None:
        """Write all about the fit to one HTML page: laws, constants, alternatives, motion, fronts and settings."""
        self._check_has_trajectories()
        write_whole(Path(path), motion_report(self))

    def _check_has_trajectories(self) -> None:
        check_is_fitted(self, "fronts_")
        if not hasattr(self, "_of_fit"):
            raise ValueError(
                "the trajectories of the fit are not in the file that this model was loaded from: fit it again, or go "
                "on with its checkpoint (ODERegressor.resume)"
            )

    @property
    def _kind(self) -> int:
        """The order of the laws' left sides, as `symenum.dynamics.display` takes it: MAP for the next state."""
        return MAP if self.step == "map" else self.order

    @property
    def _names(self) -> Names:
        return Names(self.state_names_, self.input_names_, self.velocity_names_, self.acceleration_names_)

    @property
    def moving_names(self) -> tuple[str, ...]:
        """The states; for order 2 the velocities behind them."""
        return (*self.state_names_, *self.velocity_names_)

    @property
    def _named(self) -> bool:
        """Whether the states have names that the user has given."""
        return self.state_names_ != names_for(None, len(self.state_names_), "x")

    @property
    def _variables(self) -> tuple[str, ...]:
        return self._names.variables

    def _search(
        self,
        system: System,
        settings: Sequence[Settings],
        seed: int,
        stopping: Budget,
        observers: Sequence[Callable[[SystemReport], object]],
        progress: Sequence[Progress | None],
        keeper: MotionKeeper | None,
    ) -> list[Discovery]:
        """Search the law of each equation, each by its settings; each gets an equal share of the time that is left.

        `progress`: how far earlier searches have come with each.
        """
        begin = time.monotonic()
        max_time = self.max_time
        # Fits to the trajectories of more states are not tried, and need neither time nor forms of their own.
        followed = self._by_trajectories and sum(one.variance > 0.0 for one in system.equations) <= MOST_STATES
        if max_time is not None and followed:
            max_time *= _SEARCH_SHARE
        # Terms differ by the user's knowledge, and where a law must not hold its own acceleration.
        shared = None if self.coupled or self._knows_by_state else make_terms(system.equations[0], settings[0])
        bounded = None
        if followed and shared is not None:
            bounded = make_terms(system.equations[0], settings[0], bounded=True)
        found: list[Discovery] = []
        # Of the first equation's share, and not of the time that is left, which depends on the machine.
        planned = None if max_time is None else max_time / len(system.equations)
        for i, (equation, own) in enumerate(zip(system.equations, settings, strict=True)):
            terms = shared or make_terms(equation, own)
            if followed and shared is None:
                bounded = make_terms(equation, own, bounded=True)
            remaining = None if max_time is None else max_time - (time.monotonic() - begin)
            share = None if remaining is None else max(remaining, _MIN_SECONDS) / (len(system.equations) - i)
            found.append(
                discover(
                    equation,
                    terms,
                    system.points[:, i],
                    replace(own, planned_time=planned),
                    seed,
                    state=self.state_names_[i],
                    bounded=bounded,
                    max_time=share,
                    max_iterations=self.max_iterations,
                    callbacks=observers,
                    stopping=stopping,
                    progress=progress[i],
                    keep=None if keeper is None else keeper.of_equation(i),
                )
            )
        return found

    @property
    def _knows_by_state(self) -> bool:
        """Whether the user knows different things of different laws."""
        return self.forbidden_variables is not None

    @property
    def _by_trajectories(self) -> bool:
        """Whether fits to the trajectories choose the laws.

        They do not where derivatives are given, where laws are coupled, where the system has a limit of complexity, and
        in maps, which are followed for one step at a time.
        """
        plain = self.derivative == WEAK and not self.coupled and self.system_complexity is None and self.step == "time"
        return self.model_selection == BY_TRAJECTORIES and plain and not self._measured

    def _check(self) -> None:
        parameters = {**self.get_params(deep=False), "model_selection": "best"}
        check_parameters(parameters)
        choose_devices(self.device, work=0)  # a device that is not there is refused even where no pass needs one
        if not isinstance(self.constants, bool):
            raise ValueError(f"constants must be True or False for laws of motion, not {self.constants!r}")
        if self.step not in _STEPS:
            raise ValueError(f"step must be one of {', '.join(map(repr, _STEPS))}, not {self.step!r}")
        if self.loss not in _LOSSES:
            raise ValueError(
                f"loss must be one of {', '.join(map(repr, _LOSSES))} for laws of motion, not {self.loss!r}: samples "
                "are fitted by least squares, and huber pulls outliers in before"
            )
        if self.order not in (1, 2):
            raise ValueError(f"order must be 1 or 2, not {self.order!r}")
        if self.step == "map":
            self._check_map()
        if self.coupled and self.order != 2:
            raise ValueError("coupled is for order=2: there are no accelerations in a system of first order")
        if self.model_selection not in RULES:
            known = ", ".join(map(repr, RULES))
            raise ValueError(f"model_selection must be one of {known}, not {self.model_selection!r}")
        if not callable(self.derivative) and self.derivative not in (WEAK, *DERIVATIVES):
            known = ", ".join(map(repr, (WEAK, *DERIVATIVES)))
            raise ValueError(f"derivative must be one of {known}, or a callable, not {self.derivative!r}")

    def _check_map(self) -> None:
        """Refuse what a map cannot have."""
        if self.order != 1:
            raise ValueError(
                f'order must be 1 for step="map", not {self.order!r}: give the state before as a further column'
            )
        if self.derivative != WEAK:
            raise ValueError(f'derivative must be left out for step="map", which has none, not {self.derivative!r}')
        if self.loss != "mse":
            raise ValueError(f'loss must be "mse" for step="map", not {self.loss!r}: its samples need not be smooth')

    def _settings(self, seed: int) -> Settings:
        return Settings(
            operators=get_operators(self.operators),
            layers=self.layers,
            inputs=self.inputs,
            token_generator=self.token_generator,
            constants=self.constants,
            constant_range=(float(self.constant_range[0]), float(self.constant_range[1])),
            top_k=self.top_k,
            discount=self.discount,
            max_complexity=self.max_complexity,
            device=self.device,
            max_memory=memory_limit(self.max_memory),
            seed=seed,
        )

    def _name(self, X: object, u: object, states: int, inputs: int) -> None:
        """Set the names that laws use, for so many states and inputs."""
        names = (*names_for(column_names(X), states, "x"), *names_for(column_names(u), inputs, "u"))
        if len(set(names)) < len(names):
            raise ValueError(f"states and inputs must have different names, not {', '.join(names)}")
        in_formulas = tuple(formula_names(names).values())
        self.state_names_, self.input_names_ = in_formulas[:states], in_formulas[states:]
        self.velocity_names_ = derivative_names(self.state_names_, in_formulas) if self.order == 2 else ()
        taken = (*in_formulas, *self.velocity_names_)
        self.acceleration_names_ = derivative_names(self.state_names_, taken, "_ddot") if self.coupled else ()

    def _input(self, u: object, t: Array) -> Callable[[float], Array] | None:
        """The inputs as a function of time, (inputs,); None where the laws have none."""
        if callable(u) and self.input_names_:
            return lambda time: np.atleast_1d(np.asarray(u(time), dtype=np.float64))
        values = self._inputs_at(u, len(t), " or be a function of time")
        if not np.isfinite(values).all():
            raise ValueError("u must be finite at all times of a simulation")
        return (lambda time: np.array([np.interp(time, t, column) for column in values.T])) if values.size else None

    def _inputs_at(self, u: object, points: int, otherwise: str = "") -> Array:
        """The inputs (points, inputs) that belong to so many points; `otherwise`: what else they may be."""
        count = len(self.input_names_)
        if u is None:
            if count:
                raise ValueError(
                    f"u is missing: the laws were fitted with inputs {', '.join(self.input_names_)}, so it must have "
                    f"shape ({points}, {count}){otherwise}"
                )
            return np.empty((points, 0))
        if not count:
            raise ValueError("u: the laws were fitted without inputs, leave it out")
        _, u = self.in_order_of_fit(None, u)
        values = real_numbers("u", u)
        values = values[:, None] if values.ndim == 1 else values
        if values.shape != (points, count):
            raise ValueError(f"u must have shape ({points}, {count}){otherwise}, not {values.shape}")
        return values
