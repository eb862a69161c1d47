"""PDERegressor: laws u_t = F(u, u_x, u_xx, …) of fields on a regular grid, with the conventions of ODERegressor.

It checks parameters and holds results. The rows of the equations are made in `field_equation`, their terms in
`field_terms`; laws are found in `discover` and chosen in `selection`, as those of motion are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from symenum.core.budget import Budget
from symenum.core.exactness import overflow_allowed
from symenum.core.files import write_whole
from symenum.core.interrupts import ctrl_c_ends
from symenum.core.memory import memory_limit
from symenum.core.threads import single_threaded
from symenum.core.user_warnings import warn_user
from symenum.display.progress import observer_for_estimator
from symenum.dynamics.discover import Discovery, SystemReport, discover
from symenum.dynamics.display import FIELD, law_table, title_of
from symenum.dynamics.equation import ONE, Equation, outer_terms
from symenum.dynamics.field_data import AXES, FieldData, check_rates, fields_by_name, like_given, make_field_data
from symenum.dynamics.field_equation import FieldColumns, FieldSystem, make_field_system, make_field_terms
from symenum.dynamics.field_file import FIELDS_FILE, Coefficient, SavedFields
from symenum.dynamics.field_form import best_smoothing, least_points
from symenum.dynamics.field_terms import FieldNames
from symenum.dynamics.noise import Noise
from symenum.dynamics.results import LawsOfStates, Rows
from symenum.dynamics.selection import judge_front
from symenum.dynamics.shared_parts import shared_parts
from symenum.estimator.parameters import as_callbacks, check_parameters, knows_words_of_pysr
from symenum.expressions import Expression, evaluate, to_text, written
from symenum.expressions.algebra import as_sum, simplify
from symenum.fitting.linear import least_squares
from symenum.operators import Operator, get_operators
from symenum.search import Settings
from symenum.selection import DEFAULT_RULE, MODEL_SELECTIONS

__all__ = ["PDERegressor"]

Array = npt.NDArray[np.float64]

_RULES = ("mdl", *(rule for rule in MODEL_SELECTIONS if rule not in (DEFAULT_RULE, "mdl")), "heldout")
_MAX_ORDERS = (4, 2)  # of derivatives, where none is given: in one dimension, and in two
_HIGHEST_ORDER = 6  # windows of higher derivatives would span hundreds of points
_MAX_TERMS = 8  # of a sum: windows are many, and a law in two dimensions has more terms than a law of motion
_TERMS_SHARE = 0.3  # part of the time that averages of the library's terms may take
_MOST_SAMPLES = 6_000_000  # of all fields together: an average of one term then takes a tenth of a second
_MIN_SECONDS = 1e-3  # for the equations that come when the time is over: a Budget needs a limit above 0


class PDERegressor(LawsOfStates, BaseEstimator):  # type: ignore[misc]
    """Laws u_t = F(u, u_x, u_xx, …) of one or several fields on a regular grid of one or two dimensions.

    Both sides of a law are averaged over windows of space and time (the weak form), so that no derivative of noisy
    samples is taken where a term is a derivative of a function of the fields, as u_xx and u*u_x = (u²/2)_x are. What
    cannot be moved to the windows, such as the u_x² in u*u_xx = (u²/2)_xx - u_x², is taken from local polynomials.

    Parameters
    ----------
    operators : str | Iterable[str | Operator], default "arithmetic"
        a set's name ("arithmetic", "koza", …), or a list of signs, names and Operator records: what laws may do with
        the fields, such as sin(u); derivatives in space are always allowed
    max_order : int | None, default None
        the highest order of derivatives in space; None: 4 in one dimension, 2 in two
    max_time : float | None, default 60.0
        seconds for all equations together, or None
    max_iterations : int | None, default None
        steps after which the search of each equation ends
    max_complexity : int, default 50
        of a law
    model_selection : str, default "mdl"
        "mdl" (the shortest description of law and averaged derivatives), "heldout" (the simplest law within a standard
        error of the best on held-out windows), "evidence", "accuracy" or "reward"
    device : str, default "auto"
        as in PSERegressor
    random_state : int | numpy.random.RandomState | None, default None
        the seed of everything random
    verbose : bool, default False
        whether to show the search while it runs
    callbacks : Callable[[SystemReport], object] | Sequence[Callable[[SystemReport], object]] | None, default None
        a callable, or several, that get a SystemReport after each step; one that returns True ends the search
    max_memory : int | str | None, default None
        as in PSERegressor

    Attributes
    ----------
    equations_ : dict[str, pandas.DataFrame]
        for each field the table of its front, with the columns of ODERegressor's tables
    best_expressions_ : dict[str, Expression]
        the chosen law of each field, as people write it: its variables are u, u_x, u_xx, u_xy, …
    selected_ : dict[str, int]
        its row
    fronts_ : dict[str, Front]
        the fronts themselves
    field_names_ : tuple[str, ...]
        the names that laws use: those of the mapping that was given, else u, v, w, or u1, u2, …
    noise_ : dict[str, Noise]
        the errors of each field's samples, as they were measured
    windows_ : dict[str, int]
        half the width of the windows along t, x and y, in points; they follow the noise and the scale of the fields
    constants_ : pandas.DataFrame
        the coefficients of the chosen laws: field, term, value as fitted, and its standard error
    alternatives_ : pandas.DataFrame
        laws that the data cannot tell from the chosen ones: field, equation, and by how many bits they are longer
    shared_parts_ : tuple[SharedPart, ...]
        products that stand in several of the chosen laws, with their coefficient in each
    stop_reason_ : dict[str, str]
        why the search of each equation ended
    elapsed_, n_iter_, scored_, interrupted_ : float, int, int, bool
        seconds, steps, candidates that the network has scored, and whether somebody ended the search

    Examples
    --------
    >>> import numpy as np
    >>> t, x = np.linspace(0, 1, 60), np.linspace(0, 6, 80)
    >>> waves = [np.exp(-0.5 * k**2 * t)[:, None] * np.sin(k * (x - 2 * t[:, None]) + k) for k in (1, 2, 3)]
    >>> model = PDERegressor(max_iterations=1, random_state=0).fit(sum(waves), t, x)
    >>> print(f"u_t = {model.best_expressions_['u']}")
    u_t = u_xx/2 - 2*u_x
    """

    _what = "fields"

    @knows_words_of_pysr
    def __init__(
        self,
        operators: str | Iterable[str | Operator] = "arithmetic",
        *,
        max_order: int | None = None,
        max_time: float | None = 60.0,
        max_iterations: int | None = None,
        max_complexity: int = 50,
        model_selection: str = "mdl",
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
        callbacks: Callable[[SystemReport], object] | Sequence[Callable[[SystemReport], object]] | None = None,
        max_memory: int | str | None = None,
    ) -> None:
        self.operators = operators
        self.max_order = max_order
        self.max_time = max_time
        self.max_iterations = max_iterations
        self.max_complexity = max_complexity
        self.model_selection = model_selection
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.max_memory = max_memory

    @single_threaded()
    @overflow_allowed()
    def fit(self, u: object, t: object, x: object, y: object = None) -> PDERegressor:
        """Search the laws of the fields u at the times t and the places x, or x and y: arrays in even steps, or steps.

        `u`: one field as an array (times, x) or (times, x, y); several as a mapping from names to such arrays, a list
        of them, or one array whose last axis counts the fields. Ctrl-C ends the search and keeps what was found.
        """
        begin = time.monotonic()
        self._check()
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        names, data = self._checked(u, t, x, y)
        self._names = names
        self.field_names_ = names.fields
        system = make_field_system(self._shortened(data), names, seed)
        settings = Settings(
            operators=get_operators(self.operators),
            max_complexity=self.max_complexity,
            device=self.device,
            max_memory=memory_limit(self.max_memory),
            seed=seed,
        )
        stopping = Budget()
        rule = self.model_selection if self.model_selection in MODEL_SELECTIONS else "mdl"
        watching = observer_for_estimator(title_of(FIELD), rule, self.max_time, verbose=self.verbose, several=True)
        with ctrl_c_ends(stopping), watching as progress:
            observers = [progress, *as_callbacks(self.callbacks)]
            found = self._search(system, settings, seed, stopping, observers, begin)
            self.elapsed_ = time.monotonic() - begin
        self._set_results(system, found)
        return self

    def _checked(self, u: object, t: object, x: object, y: object) -> tuple[FieldNames, FieldData]:
        """What fields and derivatives are called, and the checked fields."""
        places = [x] if y is None else [x, y]
        order = self.max_order or _MAX_ORDERS[len(places) - 1]
        in_time, in_space = least_points(order)
        data = make_field_data(u, t, places, [in_time, *(in_space for _ in places)])
        check_rates(data, order)
        names = FieldNames(data.names, AXES[: len(places)], order)
        twice = [name for name in data.names if names.known[name][1] != (0,) * len(places)]
        if twice or len(names.known) < len(data.names):
            raise ValueError(
                f"u has a field called {twice[0]!r}, which is also the name of a derivative of another one: rename it"
            )
        return names, data

    @staticmethod
    def _shortened(data: FieldData) -> FieldData:
        """The fields at fewer times, those in the middle, where there are more samples than can be averaged."""
        fewer = max(_MOST_SAMPLES * data.shape[0] // data.values.size, least_points(1)[0])
        if fewer >= data.shape[0]:
            return data
        begin = (data.shape[0] - fewer) // 2
        warn_user(
            f"u has {data.values.size} samples: the search takes {fewer} of the {data.shape[0]} times, those in the "
            "middle; give a part of the grid to choose others"
        )
        return FieldData(data.names, data.values[:, begin : begin + fewer], data.t[begin : begin + fewer], data.axes)

    def _search(
        self,
        system: FieldSystem,
        settings: Settings,
        seed: int,
        stopping: Budget,
        observers: Sequence[Callable[[SystemReport], object]],
        begin: float,
    ) -> list[Discovery]:
        """Search the law of each field; each gets an equal share of the time that is left."""
        share = None if self.max_time is None else self.max_time * _TERMS_SHARE
        budget = Budget(share, stop=stopping.over)
        terms = make_field_terms(system.equations[0], self._names, settings.operators, _MAX_TERMS, budget)
        found: list[Discovery] = []
        for i, (name, equation) in enumerate(zip(self.field_names_, system.equations, strict=True)):
            left = None if self.max_time is None else self.max_time - (time.monotonic() - begin)
            found.append(
                discover(
                    equation,
                    terms,
                    system.points[:, i],
                    settings,
                    seed,
                    state=name,
                    max_time=None if left is None else max(left, _MIN_SECONDS) / (len(self.field_names_) - i),
                    max_iterations=self.max_iterations,
                    callbacks=observers,
                    stopping=stopping,
                )
            )
        return found

    def _set_results(self, system: FieldSystem, found: Sequence[Discovery]) -> None:
        """Set the fitted attributes from the searches of all equations."""
        fronts = tuple(one.front for one in found)
        judged = tuple(
            judge_front(equation, front, self.model_selection)
            for equation, front in zip(system.equations, fronts, strict=True)
        )
        form = system.equations[0].averager.form
        laws = [front[one.selected].expression for front, one in zip(fronts, judged, strict=True)]
        self._set_found(
            SavedFields(
                self._names,
                fronts,
                judged,
                tuple(_noise(*pair) for pair in zip(form.data.values, form.noise.tolist(), strict=True)),
                tuple(one.reason for one in found),
                form.halves,
                tuple(_coefficients(system.equations, self._names.fields, laws)),
                self.elapsed_,
                sum(one.iterations for one in found),
                sum(one.scored for one in found),
                any(one.interrupted for one in found),
            )
        )

    def _set_found(self, found: SavedFields) -> None:
        """Set the fitted attributes from what a fit has found, now or earlier."""
        self._names = found.names
        fields = self.field_names_ = found.names.fields
        self.fronts_ = dict(zip(fields, found.fronts, strict=True))
        self.judged_ = found.judged
        self.selected_ = {name: one.selected for name, one in zip(fields, found.judged, strict=True)}
        self.best_expressions_ = {name: written(law) for name, law in self._laws(None).items()}
        self.equations_: dict[str, pandas.DataFrame] = {
            name: law_table(front, one, tuple(self._names.known))
            for (name, front), one in zip(self.fronts_.items(), self.judged_, strict=True)
        }
        self.shared_parts_ = shared_parts(self.best_expressions_)
        self.noise_ = dict(zip(fields, found.noise, strict=True))
        self.windows_ = dict(zip(("t", *found.names.axes), found.windows, strict=True))
        self._coefficients = found.constants
        self.stop_reason_ = dict(zip(fields, found.reasons, strict=True))
        self.elapsed_, self.n_iter_ = found.elapsed, found.steps
        self.scored_, self.interrupted_ = found.scored, found.interrupted

    @property
    def constants_(self) -> pandas.DataFrame:
        """One row for each coefficient of the chosen laws: see the class."""
        check_is_fitted(self, "fronts_")
        rows = [(one.field, one.term, one.value, one.error) for one in self._coefficients]
        return pandas.DataFrame(rows, columns=["field", "term", "value", "error"])

    @property
    def alternatives_(self) -> pandas.DataFrame:
        """One row for each law that the data cannot tell from the chosen one: see the class."""
        check_is_fitted(self, "fronts_")
        rows = [
            (name, str(written(entry.expression)), one.bits[i] - one.bits[one.selected])
            for (name, front), one in zip(self.fronts_.items(), self.judged_, strict=True)
            for i, entry in enumerate(front)
            if one.indistinguishable[i] and i != one.selected
        ]
        return pandas.DataFrame(rows, columns=["field", "equation", "bits"])

    def predict(self, u: object, t: object, x: object, y: object = None, index: Rows = None) -> Any:
        """The right-hand sides of the laws, u_t, at all points of a grid, in the form in which u is given.

        Derivatives are those of local polynomials: of noisy fields they are as noisy as such derivatives are.
        `index`: a row of `equations_` for all fields, one for each, or a dictionary of them.
        """
        laws = self._laws(index)
        u = fields_by_name(u, self.field_names_)
        data = self._same_fields(u, t, x, y)
        columns = FieldColumns(data, self._names, best_smoothing(data), smooth=True)
        values = [np.broadcast_to(evaluate(law, columns), data.shape).copy() for law in laws.values()]
        return like_given(u, values)

    def score(self, u: object, t: object, x: object, y: object = None) -> float:
        """R² of the averaged derivatives by time, averaged over the fields that change."""
        laws = self._laws(None)
        u = fields_by_name(u, self.field_names_)
        system = make_field_system(self._same_fields(u, t, x, y), self._names)
        scores = [
            1 - float(np.mean(equation.residual(law) ** 2)) / equation.variance
            for equation, law in zip(system.equations, laws.values(), strict=True)
            if equation.variance > 0
        ]
        return float(np.mean(scores)) if scores else 1.0

    def _same_fields(self, u: object, t: object, x: object, y: object) -> FieldData:
        """Checked fields with as many axes as those of the fit, under the names of the fit."""
        if (y is None) != (len(self._names.axes) == 1):
            raise ValueError(f"x and y: the laws were fitted in {len(self._names.axes)} dimensions of space")
        names, data = self._checked(u, t, x, y)
        if len(names.fields) != len(self.field_names_):
            raise ValueError(f"u has {len(names.fields)} fields, and the laws are those of {len(self.field_names_)}")
        return FieldData(self.field_names_, data.values, data.t, data.axes)

    def save(self, path: str | Path) -> None:
        """Write the laws, their fronts and the settings to a file (JSON) that `load` reads."""
        check_is_fitted(self, "fronts_")
        saved = SavedFields(
            self._names,
            tuple(self.fronts_.values()),
            self.judged_,
            tuple(self.noise_.values()),
            tuple(self.stop_reason_.values()),
            tuple(self.windows_.values()),
            self._coefficients,
            self.elapsed_,
            self.n_iter_,
            self.scored_,
            self.interrupted_,
        )
        write_whole(Path(path), FIELDS_FILE.text(self.get_params(deep=False), saved))

    @classmethod
    def load(cls, path: str | Path, **changes: Any) -> PDERegressor:
        """The fitted estimator that `save` has written. Operators of your own must be given again as `operators`."""
        parameters, saved = FIELDS_FILE.read(Path(path), changes, cls._get_param_names())
        model = cls(**parameters)
        model._set_found(saved)
        return model

    @property
    def _kind(self) -> int:
        """See `LawsOfStates`."""
        return FIELD

    def _check(self) -> None:
        check_parameters({**self.get_params(deep=False), "model_selection": "best"})
        order = self.max_order
        whole = isinstance(order, (int, np.integer)) and not isinstance(order, bool)
        if order is not None and not (whole and 1 <= order <= _HIGHEST_ORDER):
            raise ValueError(f"max_order must be a whole number from 1 to {_HIGHEST_ORDER}, or None, not {order!r}")
        if self.model_selection not in _RULES:
            known = ", ".join(map(repr, _RULES))
            raise ValueError(f"model_selection must be one of {known}, not {self.model_selection!r}")


def _noise(values: Array, level: float) -> Noise:
    """Errors of one size, in the words of trajectories' errors."""
    mean_square = float(np.mean(np.square(values)))
    size = mean_square**0.5
    return Noise(level / size if size > 0 else 0.0, 0.0, mean_square, 0.0)


def _coefficients(
    equations: Sequence[Equation], fields: Sequence[str], laws: Sequence[Expression]
) -> Iterator[Coefficient]:
    """The coefficients of laws by least squares on the rows, with errors for as many rows as are independent."""
    for name, law, equation in zip(fields, laws, equations, strict=True):
        terms = outer_terms(law)
        if as_sum(simplify(law)).number or not terms:
            terms.append(ONE)
        A = equation.averages(terms)
        if not np.isfinite(A).all() or equation.variance == 0.0:
            continue
        size = np.maximum(np.linalg.norm(A, axis=0), np.finfo(np.float64).tiny)
        fit = least_squares(A, equation.left_side)
        # The sum of squares of the rows stands for that of fewer independent ones, of which the terms take some.
        rows, free = len(A), max(1, equation.form.independent - len(terms))
        spread = fit.rms**2 * rows / free
        errors = np.sqrt(spread * np.diag(np.linalg.pinv((A / size).T @ (A / size)))) / size
        for term, value, error in zip(terms, fit.coefficients, errors, strict=True):
            yield Coefficient(name, to_text(term), float(value), float(error))
