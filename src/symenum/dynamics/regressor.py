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
import sympy
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from symenum.core.budget import Budget
from symenum.core.exactness import overflow_allowed
from symenum.core.interrupts import ctrl_c_ends
from symenum.core.threads import single_threaded
from symenum.dynamics.choose_on_trajectories import Chosen, choose_on_trajectories, make_nodes
from symenum.dynamics.derivatives import DERIVATIVES, Differentiator
from symenum.dynamics.discover import Discovery, SystemReport, discover, make_terms
from symenum.dynamics.display import law_table, print_system, system_html, system_latex, system_source, watching
from symenum.dynamics.forms import WeakForm
from symenum.dynamics.noise import Noise, measure_noise
from symenum.dynamics.run_record import end_motion_run, open_motion_run
from symenum.dynamics.selection import BY_TRAJECTORIES, RULES, Judged, choose_jointly, judge_front
from symenum.dynamics.simulate import MAX_SECONDS, MAX_STEPS, right_side, simulate
from symenum.dynamics.system import WEAK, Names, System, derivative_names, make_system
from symenum.dynamics.trajectory import Piece, column_names, make_pieces, names_for, with_measured
from symenum.estimator.parameters import as_callbacks, check_parameters, knows_words_of_pysr
from symenum.expressions import Expression, evaluate, formula_names, to_sympy, written
from symenum.expressions.render import SHOWN_DIGITS
from symenum.fitting.free_constants import free_constants
from symenum.front import Front
from symenum.operators import Operator, get_operators
from symenum.run_directory.layout import RunPlace
from symenum.search import Settings
from symenum.selection.evidence import INDISTINCT

__all__ = ["ODERegressor"]

Array = npt.NDArray[np.float64]
Rows = int | Sequence[int] | Mapping[str, int] | None
"""Rows of `equations_`: one for all states, one for each, or some by state; None: the chosen ones."""

_SEARCH_SHARE = 0.55  # part of the time for the search; fits to the trajectories get the rest, and what is left over
_MIN_SECONDS = 1e-3  # for the equations that come when the time is over: a Budget needs a limit above 0


class ODERegressor(BaseEstimator):  # type: ignore[misc]
    """Laws of motion x' = f(x, u), or q'' = f(q, q', u), from noisy trajectories.

    Parameters
    ----------
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
        the best on held-out pieces), "best", "accuracy" or "reward"
    callbacks : Callable[[SystemReport], object] | Sequence[Callable[[SystemReport], object]] | None, default None
        a callable, or several, that get a SystemReport after each step; one that returns True ends the search
    run_dir : str | Path | RunPlace | None, default None
        a folder that holds the whole run, alive and afterwards: trajectories, steps, laws and results; `symenum studio`
        shows it

    All other parameters are those of PSERegressor.

    Attributes
    ----------
    equations_ : dict[str, pandas.DataFrame]
        for each state the table of its front, with PSERegressor's columns and `heldout_loss`, `chi_square` (what the
        law leaves, in units of what noise alone would leave: about 1 for the truth), `bits` (the description length),
        and `indistinguishable` (the data cannot tell this law from the chosen one)
    best_expressions_ : dict[str, Expression]
        the chosen law of each state, as people write it
    selected_ : dict[str, int]
        its row
    fronts_ : dict[str, Front]
        the fronts themselves, each law as it was found
    state_names_, velocity_names_, acceleration_names_, input_names_ : tuple[str, ...]
        the names that laws use
    noise_ : dict[str, Noise]
        the errors of each state's samples as they were measured: `level`, and whether they grow with the state
    trajectories_ : Chosen | None
        the fit to the trajectories: laws, errors of their constants, bits, chi-square of each state, and the laws that
        were tried in the place of the chosen ones; None where another rule has chosen
    constants_ : pandas.DataFrame
        the constants of the chosen laws as they were fitted, with standard errors; with `trajectories_` only
    alternatives_ : pandas.DataFrame
        the laws that the trajectories cannot tell from the chosen ones, with weights; with `trajectories_` only
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
        system_complexity: int | None = None,
        model_selection: str = BY_TRAJECTORIES,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
        callbacks: Callable[[SystemReport], object] | Sequence[Callable[[SystemReport], object]] | None = None,
        run_dir: str | Path | RunPlace | None = None,
    ) -> None:
        self.operators = operators
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
        self.system_complexity = system_complexity
        self.model_selection = model_selection
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.run_dir = run_dir

    @single_threaded()
    @overflow_allowed()
    def fit(self, X: object, t: object, u: object = None, x_dot: object = None) -> ODERegressor:
        """Search the laws of X (points, states) at the times t (points,), or with the time step t, and inputs u.

        Lists of arrays are several trajectories. Rows with missing values and long pauses are gaps. Ctrl-C ends the
        search and keeps what was found; the laws of equations that were not begun are constants. `x_dot`: measured
        derivatives, of the shape of X, in place of estimated ones; for order 1 only.
        """
        self._check()
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        settings = self._settings(seed)
        if x_dot is not None and self.order != 1:
            raise ValueError("x_dot is for order=1: give positions and velocities as states")
        self._measured = x_dot is not None
        pieces = make_pieces(X, t, u if x_dot is None else with_measured(u, x_dot, X))
        states = pieces[0].X.shape[1]
        self._name(X, u, states, pieces[0].U.shape[1] - (0 if x_dot is None else states))
        system = make_system(pieces, self._names, self.derivative, seed)
        stopping = Budget()
        with open_motion_run(self, pieces, system, stopping.end) as writer:
            begin = time.monotonic()
            self.noise_: dict[str, Noise] = dict(zip(self.state_names_, measure_noise(pieces), strict=True))
            with ctrl_c_ends(stopping), watching(self) as progress:
                observers = [progress, writer, *as_callbacks(self.callbacks)]
                found = self._search(system, settings, seed, stopping, observers)
                self.trajectories_ = self._choose_on_trajectories(system, pieces, found, begin, stopping)
                fronts, rows = self._with_choice(system, [one.front for one in found])
                self.elapsed_ = time.monotonic() - begin
                self._tell_of_choice(found, fronts, rows, observers)
            self._set_results(system, found, fronts, rows)
            end_motion_run(writer, self)
        return self

    def _choose_on_trajectories(
        self, system: System, pieces: Sequence[Piece], found: Sequence[Discovery], begin: float, stopping: Budget
    ) -> Chosen | None:
        """The laws by fits to the trajectories; None where another rule chooses, or no system can be followed."""
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
        chosen = choose_on_trajectories(pools, nodes, noise, names, remaining, stopping, start)
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
        self, system: System, found: Sequence[Discovery], fronts: Sequence[Front], rows: Sequence[int | None]
    ) -> None:
        """Set the fitted attributes from the searches of all equations, and from the choice by trajectories."""
        self.fronts_: dict[str, Front] = dict(zip(self.state_names_, fronts, strict=True))
        self.judged_: tuple[Judged, ...] = tuple(
            judge_front(equation, front, self.model_selection, row)
            for equation, front, row in zip(system.equations, fronts, rows, strict=True)
        )
        selected = [judged.selected for judged in self.judged_]
        if self.system_complexity is not None:
            selected = choose_jointly(fronts, self.judged_, self.system_complexity)
        self.selected_ = dict(zip(self.state_names_, selected, strict=True))
        self.best_expressions_ = {
            name: written(self.fronts_[name][row].expression) for name, row in self.selected_.items()
        }
        self.equations_: dict[str, pandas.DataFrame] = {
            name: law_table(front, judged, (*self._variables, *self.acceleration_names_))
            for (name, front), judged in zip(self.fronts_.items(), self.judged_, strict=True)
        }
        self.stop_reason_ = {name: one.reason for name, one in zip(self.state_names_, found, strict=True)}
        self.n_iter_ = sum(one.iterations for one in found)
        self.scored_ = sum(one.scored for one in found)
        self.interrupted_ = any(one.interrupted for one in found)
        self._size = system.size

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
        parts = [np.atleast_2d(np.asarray(X, dtype=np.float64))]
        if self.input_names_:
            if u is None:
                raise ValueError(f"u is missing: the laws were fitted with inputs {', '.join(self.input_names_)}")
            inputs = np.asarray(u, dtype=np.float64)
            parts.append(inputs[:, None] if inputs.ndim == 1 else inputs)
        values = np.hstack(parts)
        if values.shape[1] != len(self._variables):
            raise ValueError(
                f"X and u must have {len(self._variables)} columns together ({', '.join(self._variables)}), "
                f"not {values.shape[1]}"
            )
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

        For order 2, x0 is positions and then velocities, and so are the columns. u is (times, inputs), linear between
        the times, or a function of time. `max_time` in seconds, of computing.
        """
        laws = self._laws(index)
        times = np.asarray(t, dtype=np.float64)
        start = np.asarray(x0, dtype=np.float64).ravel()
        count = len(laws) * self.order
        if start.shape != (count,) or not np.isfinite(start).all():
            raise ValueError(f"x0 must be {count} finite numbers ({', '.join(self._variables[:count])}), not {x0!r}")
        if times.ndim != 1 or len(times) == 0 or not np.isfinite(times).all() or (np.diff(times) <= 0).any():
            raise ValueError("t must be a sequence of finite, increasing times")
        inputs = self._input(u, times)
        right = right_side(list(laws.values()), self._variables, inputs, self.order, self.acceleration_names_)
        size = np.concatenate([self._size, np.zeros(count - len(self._size))])
        simulation = simulate(right, start, times, size, max_steps=max_steps, max_time=max_time)
        if simulation.stopped is not None:
            warnings.warn(f"{simulation.stopped}; later rows are NaN", RuntimeWarning, stacklevel=2)
        return simulation.states

    def score(self, X: object, t: object, u: object = None) -> float:
        """R² of the derivatives along trajectories, averaged over the states that move."""
        laws = self._laws(None)
        pieces = make_pieces(X, t, u)
        system = make_system(pieces, self._names, self.derivative)
        scores = []
        for equation, law in zip(system.equations, laws.values(), strict=True):
            missing = dict.fromkeys((*self._variables, *self._names.accelerations), np.zeros_like(system.points[:, 0]))
            whole = type(equation)(equation.form, equation.state, {**missing, **equation.columns}, equation.moving)
            if equation.variance > 0:
                scores.append(1 - float(np.mean(whole.residual(law) ** 2)) / equation.variance)
        return float(np.mean(scores)) if scores else 1.0

    def sympy(self, index: Rows = None) -> dict[str, sympy.Expr]:
        """The laws as SymPy expressions, by state."""
        return {name: to_sympy(law) for name, law in self._laws(index).items()}

    def latex(self, index: Rows = None, precision: int = SHOWN_DIGITS) -> str:
        """The system in LaTeX (package amsmath)."""
        return system_latex(self._laws(index), self.order, precision)

    def export(self, language: str, index: Rows = None) -> str:
        """The system as source text: "python", "numpy" or "c"."""
        if self.coupled:
            raise ValueError("laws that are coupled by accelerations have no explicit form to export; use sympy()")
        return system_source(list(self._laws(index).values()), self._variables, language, self.order)

    def __str__(self) -> str:
        if not hasattr(self, "fronts_"):
            return repr(self)
        return print_system(self.fronts_, self.judged_, list(self.selected_.values()), self.order)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """What a notebook shows: the fronts; before a fit, scikit-learn's diagram of the parameters."""
        if not hasattr(self, "fronts_"):
            shown: dict[str, str] = super()._repr_mimebundle_(**kwargs)
            return shown
        table = system_html(self.fronts_, list(self.selected_.values()), self.order)
        return {"text/plain": str(self), "text/html": table}

    @property
    def _names(self) -> Names:
        return Names(self.state_names_, self.input_names_, self.velocity_names_, self.acceleration_names_)

    @property
    def _variables(self) -> tuple[str, ...]:
        return self._names.variables

    def _search(
        self,
        system: System,
        settings: Settings,
        seed: int,
        stopping: Budget,
        observers: Sequence[Callable[[SystemReport], object]],
    ) -> list[Discovery]:
        """Search the law of each equation; each gets an equal share of the time that is left."""
        begin = time.monotonic()
        max_time = self.max_time
        if max_time is not None and self._by_trajectories:
            max_time *= _SEARCH_SHARE
        shared = None if self.coupled else make_terms(system.equations[0], settings)
        bounded = make_terms(system.equations[0], settings, bounded=True) if self._by_trajectories else None
        found: list[Discovery] = []
        planned = None if max_time is None else max_time / len(system.equations)
        settings = replace(settings, planned_time=planned)  # not the time that is left, which depends on the machine
        for i, equation in enumerate(system.equations):
            terms = shared or make_terms(equation, settings)
            remaining = None if max_time is None else max_time - (time.monotonic() - begin)
            share = None if remaining is None else max(remaining, _MIN_SECONDS) / (len(system.equations) - i)
            found.append(
                discover(
                    equation,
                    terms,
                    system.points[:, i],
                    settings,
                    seed,
                    state=self.state_names_[i],
                    bounded=bounded,
                    max_time=share,
                    max_iterations=self.max_iterations,
                    callbacks=observers,
                    stopping=stopping,
                )
            )
        return found

    @property
    def _by_trajectories(self) -> bool:
        """Whether fits to the trajectories choose the laws.

        They do not where derivatives are given, where laws are coupled, or where the system has a limit of complexity.
        """
        plain = self.derivative == WEAK and not self.coupled and self.system_complexity is None
        return self.model_selection == BY_TRAJECTORIES and plain and not self._measured

    def _check(self) -> None:
        parameters = {**self.get_params(deep=False), "model_selection": "best", "max_depth": None}
        check_parameters(parameters)
        if not isinstance(self.constants, bool):
            raise ValueError(f"constants must be True or False for laws of motion, not {self.constants!r}")
        if self.order not in (1, 2):
            raise ValueError(f"order must be 1 or 2, not {self.order!r}")
        if self.coupled and self.order != 2:
            raise ValueError("coupled is for order=2: there are no accelerations in a system of first order")
        if self.model_selection not in RULES:
            known = ", ".join(map(repr, RULES))
            raise ValueError(f"model_selection must be one of {known}, not {self.model_selection!r}")
        if not callable(self.derivative) and self.derivative not in (WEAK, *DERIVATIVES):
            known = ", ".join(map(repr, (WEAK, *DERIVATIVES)))
            raise ValueError(f"derivative must be one of {known}, or a callable, not {self.derivative!r}")

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

    def _laws(self, index: Rows) -> dict[str, Expression]:
        """The law of each state, by the rows of `index`."""
        check_is_fitted(self, "fronts_")
        if index is None:
            rows: Mapping[str, int] = self.selected_
        elif isinstance(index, (int, np.integer)):
            rows = dict.fromkeys(self.state_names_, int(index))
        elif isinstance(index, Mapping):
            rows = {**self.selected_, **index}
        else:
            rows = dict(zip(self.state_names_, index, strict=True))
        unknown = set(rows) - set(self.state_names_)
        if unknown:
            raise ValueError(f"index names {', '.join(sorted(unknown))}; states are {', '.join(self.state_names_)}")
        return {name: self.fronts_[name][rows[name]].expression for name in self.state_names_}

    def _input(self, u: object, t: Array) -> Callable[[float], Array] | None:
        """The inputs as a function of time, (inputs,); None where the laws have none."""
        if not self.input_names_:
            return None
        if callable(u):
            return lambda time: np.atleast_1d(np.asarray(u(time), dtype=np.float64))
        values = np.asarray(u, dtype=np.float64) if u is not None else np.empty(0)
        values = values[:, None] if values.ndim == 1 else values
        if values.shape != (len(t), len(self.input_names_)):
            raise ValueError(f"u must have shape ({len(t)}, {len(self.input_names_)}) or be a function of time")
        return lambda time: np.array([np.interp(time, t, column) for column in values.T])
