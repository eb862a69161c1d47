"""The search for one equation of motion: sums of terms of the library first, then the estimator's search.

The estimator's search works on smoothed points. Its laws are fitted and judged again on the equation's own rows, so
that the losses of all laws of a front compare.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import torch

from symenum.core.budget import Budget
from symenum.core.exactness import EXACTNESS
from symenum.core.target import Target
from symenum.core.threads import single_threaded
from symenum.dynamics.equation import ONE, Equation
from symenum.dynamics.terms import Subset, best_subsets, bounded_terms, library, normal_equations, term_values
from symenum.expressions import Constant, Expression
from symenum.expressions.candidate import Candidate
from symenum.fitting.free_constants import form_of
from symenum.front import Front
from symenum.search import Settings, State, StepReport, Task, make_task, run
from symenum.search.run import time_is_over
from symenum.selection import description_length

__all__ = ["Discovery", "Progress", "SystemReport", "Terms", "discover", "distinct_terms", "make_terms"]

Array = npt.NDArray[np.float64]

_SHARE_IS_OVER = "its share of the time limit is over"  # the equations divide the limit among them
_COEFFICIENT_COST = 2  # complexity of a term's coefficient and sign, beside the term's own
_MIN_FREE_ROWS = 3  # rows beyond the terms of a sum: one for the intercept, two to judge the fit by
_SAME_COLUMN = 1e-9  # columns whose correlation differs from ±1 by less than this are one term, up to rounding

# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_MAX_TERMS = 6  # terms of a sum
_MAX_COMPLEXITY = 30  # of a sum that is still read as a law
_ROWS_PER_TERM = 3  # independent rows that each term of a sum needs
_FITTED_SETS = 2  # sets of each complexity whose coefficients are fitted
_MIN_GAIN = 1e-3  # least relative improvement on the cheaper sets that makes a set worth a fit
_MAX_BOUNDED_TERMS = 3  # of a sum with terms that saturate: each has one or two constants inside
_MAX_BESIDE_BOUNDED = 200  # simplest terms of the library that stand beside those that saturate
_ONE_SATURATING = 3  # of so many forms of the pool one has terms that saturate
_POOL = 120  # forms that are kept for the choice by trajectories: of each, a fit takes 10 to 30 ms
_MIN_LOSS = 1e-300  # near the smallest normal double: logarithms are taken of losses of at least this
_COPIES_OF_TERMS = 4  # values of all terms as a list, as a table, its averages, and their products with windows
_BYTES = 8  # of a number
_SUMS_SHARE = 0.5  # part of the time for an equation that sums of terms may take


@dataclass(frozen=True, kw_only=True)
class SystemReport(StepReport):
    """What callbacks are told: a StepReport, and which state's equation it is about."""

    state: str


@dataclass(frozen=True)
class Progress:
    """How far the search for one equation has come; from here it goes on as if it had not ended.

    `forms` and `saturating`: the candidates that the pool is made of. `judged`: laws of the search on points that were
    fitted to the equation's rows. `sums_done`: whether sums of terms were all judged. `state`: of the search on points,
    None where it has not begun.
    """

    front: Front
    forms: tuple[Candidate, ...]
    saturating: tuple[Candidate, ...]
    judged: tuple[Expression, ...]
    sums_done: bool
    state: State | None


@dataclass(frozen=True)
class Terms:
    """The terms of the library that are distinct on the rows, without 1, and their averages (rows, terms).

    `most`: terms of a sum.
    """

    terms: tuple[Expression, ...]
    averages: Array
    most: int = _MAX_TERMS


@dataclass(frozen=True)
class Discovery:
    """The front of one equation, why its search ended, its iterations, and the candidates that were scored.

    `pool`: of each form that was fitted the best candidate, on the front or not, the best forms first.
    """

    front: Front
    reason: str
    iterations: int = 0
    scored: int = 0
    interrupted: bool = False
    pool: tuple[Candidate, ...] = ()


def make_terms(equation: Equation, settings: Settings, *, bounded: bool = False) -> Terms:
    """The terms that are finite along the motion and differ on the rows from a·f + b for each simpler term f.

    `bounded`: those that saturate, too. Terms that the user's knowledge forbids are left out, and the most complex ones
    where all of them would take more than the memory.
    """
    wanted = library(list(equation.columns), settings.operators)
    if bounded:
        wanted = [*wanted[:_MAX_BESIDE_BOUNDED], *bounded_terms(equation.columns, settings.operators)]
    if settings.prior.forbids_parts:
        wanted = [term for term in wanted if settings.prior.allows_part(term)]
    points = len(next(iter(equation.columns.values())))
    wanted = wanted[: max(1, settings.max_memory // (_COPIES_OF_TERMS * _BYTES * points))]
    finite, values = term_values(wanted, equation.columns)
    if not finite:
        return Terms((), np.empty((equation.form.rows, 0)))
    return distinct_terms(finite, equation.form.average(values))


def distinct_terms(terms: Sequence[Expression], averages: Array, most: int = _MAX_TERMS) -> Terms:
    """The terms whose averages (rows, terms) differ from a·f + b for each earlier one f; `most` of them in a sum."""
    centred = averages - averages.mean(axis=0)
    size = np.linalg.norm(centred, axis=0)
    # Of a column that hardly varies beside its mean only rounding is left.
    varying = size > EXACTNESS.flat * np.linalg.norm(averages, axis=0)
    unit = centred / np.where(varying, size, 1.0)
    repeated = np.triu(np.abs(unit.T @ unit) > 1 - _SAME_COLUMN, 1).any(axis=0)
    which = np.flatnonzero(varying & ~repeated)
    return Terms(tuple(terms[int(i)] for i in which), averages[:, which], most)


@dataclass
class _GrowingFront:
    """The front of an equation as it grows; each law of the search is judged once."""

    equation: Equation
    settings: Settings
    front: Front
    judged: dict[Expression, None] = field(default_factory=dict)
    forms: dict[Expression, Candidate] = field(default_factory=dict)
    saturating: dict[Expression, Candidate] = field(default_factory=dict)

    def add(self, candidates: Sequence[Candidate]) -> None:
        self.remember(candidates)
        self.front = self.front.update(self._allowed(candidates), self.settings.max_complexity)

    def remember(self, candidates: Sequence[Candidate], *, saturating: bool = False) -> None:
        """Keep the best candidate of each form for the choice by trajectories."""
        forms = self.saturating if saturating else self.forms
        for candidate in self._allowed(candidates):
            form = form_of(candidate.expression)
            if form not in forms or candidate.loss < forms[form].loss:
                forms[form] = candidate

    def _allowed(self, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        """Those that the user's knowledge allows."""
        prior = self.settings.prior
        return [one for one in candidates if prior.allows(one.expression)] if prior.active else candidates

    def forget_poor(self) -> None:
        """Leave out forms that are too far behind for the pool, so that a checkpoint need not hold thousands."""
        saturating = [one for form, one in self.saturating.items() if form not in self.forms]
        kept = self._by_bits(self.forms.values())[:_POOL]
        self.forms = {form_of(one.expression): one for one in kept}
        best = self._by_bits(saturating)[: _POOL // _ONE_SATURATING]
        self.saturating = {form_of(one.expression): one for one in best}

    def progress(self, state: State | None, *, sums_done: bool) -> Progress:
        """How far the search has come, with the state of the search on points."""
        forms, saturating = tuple(self.forms.values()), tuple(self.saturating.values())
        return Progress(self.front, forms, saturating, tuple(self.judged), sums_done, state)

    def go_on(self, progress: Progress) -> None:
        """Take over what an earlier search has found."""
        self.front = progress.front
        self.forms = {form_of(one.expression): one for one in progress.forms}
        self.saturating = {form_of(one.expression): one for one in progress.saturating}
        self.judged = dict.fromkeys(progress.judged)

    def pool(self) -> tuple[Candidate, ...]:
        """The best candidates of all forms; every third is a sum with terms that saturate, where there are any.

        The inner constants of these are not fitted yet, so that their losses do not compare with those of others.
        """
        plain = self._by_bits(self.forms.values())[:_POOL]
        saturating = self._by_bits(one for form, one in self.saturating.items() if form not in self.forms)
        for place, candidate in enumerate(saturating[: _POOL // _ONE_SATURATING]):
            plain.insert(_ONE_SATURATING * (place + 1) - 1, candidate)
        return tuple(plain)

    def _by_bits(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """The candidates that are not too complex, by their description lengths on the rows."""
        rows = self.equation.form.independent
        floor = EXACTNESS.squares * self.equation.variance

        def bits(candidate: Candidate) -> float:
            residual = 0.5 * rows * math.log2(max(candidate.loss, floor, _MIN_LOSS))
            return residual + description_length(candidate.expression, rows)

        return sorted((one for one in candidates if one.complexity <= self.settings.max_complexity), key=bits)

    def learn(self, found: Front) -> None:
        """Add the laws that the search on points has found, fitted to the equation's rows."""
        for entry in found:
            if entry.expression not in self.judged:
                self.judged[entry.expression] = None
                self.add(self.equation.refit(entry.expression))

    @property
    def explained(self) -> bool:
        """Whether noise accounts for all that the law of the shortest description leaves.

        Other laws are not asked: with steep enough slopes noise would account for anything.
        """
        return self.equation.is_explained(self.front[int(np.argmin(self.equation.bits(self.front)))])


@dataclass(frozen=True)
class _Timer:
    """How many seconds the search for an equation has taken, and how many it still may take."""

    clock: Callable[[], float]
    begin: float
    max_time: float | None

    @property
    def elapsed(self) -> float:
        return self.clock() - self.begin

    @property
    def remaining(self) -> float | None:
        return None if self.max_time is None else max(0.0, self.max_time - self.elapsed)


@dataclass(frozen=True)
class _Observers:
    """The callbacks of one equation; they get the equation's own front, not that of the search on points."""

    growing: _GrowingFront
    timer: _Timer
    state: str
    callbacks: Sequence[Callable[[SystemReport], object]]

    def tell(self, report: StepReport) -> bool:
        """Report to all callbacks; True where the search must end: a callback says so, or a law explains all."""
        own = replace(report, front=self.growing.front, elapsed=self.timer.elapsed, time_left=self.timer.remaining)
        answers = [callback(SystemReport(**vars(own), state=self.state)) for callback in self.callbacks]
        return any(answers) or self.growing.explained

    def learn_and_tell(self, report: StepReport) -> bool:
        """Add the finds of a step of the search on points, then as `tell`."""
        self.growing.learn(report.front)
        return self.tell(report)


def discover(
    equation: Equation,
    terms: Terms,
    points: Array,
    settings: Settings,
    seed: int,
    *,
    state: str = "",
    bounded: Terms | None = None,
    max_time: float | None,
    max_iterations: int | None,
    callbacks: Sequence[Callable[[SystemReport], object]] = (),
    stopping: Budget | None = None,
    progress: Progress | None = None,
    keep: Callable[[Progress], object] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Discovery:
    """The front of laws for one equation. `points` (points,): its left side at each point, for the search.

    `bounded`: terms with those that saturate among them; sums of these join the pool, not the front. `progress`: from
    where the search goes on; `keep` gets it after the sums of terms and after each whole step.

    Ends when noise accounts for all that a law leaves, at a limit (`max_time` in seconds), when a callback returns
    True, or when the budget `stopping` is over, which Ctrl-C ends.
    """
    timer = _Timer(clock, clock(), max_time)
    stopping = stopping or Budget()
    growing = _GrowingFront(equation, settings, _empty_front(equation, settings))
    if progress is None:
        mean = float(np.mean(equation.left_side))
        growing.add([c for law in (Constant(0), Constant(mean)) if (c := equation.judge(law)) is not None])
        for guess in settings.guesses:
            growing.add(equation.refit(guess))
    else:
        growing.go_on(progress)
    if equation.variance == 0.0:
        return Discovery(growing.front, "the derivative is constant", pool=growing.pool())
    observers = _Observers(growing, timer, state, callbacks)
    done = None if progress is None else progress.state
    sums_done = progress is not None and progress.sums_done
    if sums_done and growing.explained:
        return Discovery(growing.front, _reason(growing), *_counts(done), pool=growing.pool())
    if settings.constants and not sums_done:
        ends, sums_done = _try_sums(observers, terms, bounded, stopping)
        if keep is not None:
            keep(growing.progress(done, sums_done=sums_done))
        if ends:
            return Discovery(growing.front, _reason(growing), interrupted=stopping.over(), pool=growing.pool())
    if stopping.over():
        return Discovery(growing.front, "interrupted", *_counts(done), True, growing.pool())
    remaining = timer.remaining
    if remaining is not None and remaining <= 0:
        return Discovery(growing.front, _SHARE_IS_OVER, *_counts(done), pool=growing.pool())

    def keep_step(state: State, front: Front) -> None:
        if state.iteration > 0:  # before the first step there is nothing to learn
            growing.learn(front)
        if keep is not None:
            keep(growing.progress(state, sums_done=sums_done))

    outcome = run(
        _task(equation, points, settings),
        seed,
        max_time=remaining,
        max_iterations=max_iterations,
        callbacks=[observers.learn_and_tell],
        state=done,
        keep=keep_step,
        stopping=stopping,
    )
    growing.learn(outcome.state.front)
    if keep is not None:
        keep(growing.progress(outcome.whole, sums_done=sums_done))
    if isinstance(outcome.error, KeyboardInterrupt):  # the second Ctrl-C
        raise outcome.error
    reason = _reason(growing) if outcome.reason == "a callback asked to stop" else outcome.reason
    if remaining is not None and reason == time_is_over(remaining):
        reason = _SHARE_IS_OVER
    return Discovery(growing.front, reason, *_counts(outcome.state), outcome.interrupted, growing.pool())


def _counts(state: State | None) -> tuple[int, int]:
    """The iterations of a search on points, and the candidates that its network has scored."""
    return (0, 0) if state is None else (state.iteration, state.scored)


def _empty_front(equation: Equation, settings: Settings) -> Front:
    """A front without entries. Its number of rows is that of the independent ones: windows overlap."""
    return replace(Front.of(equation.target, settings.discount), rows=equation.form.independent)


def _reason(growing: _GrowingFront) -> str:
    """Why a search has ended that a callback or `explained` has ended."""
    if growing.explained:
        return "noise accounts for all that a law leaves"
    return "a callback asked to stop"


def _message(terms: Terms) -> str:
    return f"{len(terms.terms)} terms on {len(terms.averages)} rows"


def _try_sums(observers: _Observers, terms: Terms, bounded: Terms | None, stopping: Budget) -> tuple[bool, bool]:
    """Add the best sums of terms to the front and report them; whether the search ends with that.

    Second, whether there was time for all of them.
    """
    growing, timer = observers.growing, observers.timer
    seconds = None if timer.max_time is None else timer.max_time * _SUMS_SHARE
    with single_threaded():
        budget = Budget(seconds, stop=stopping.over)
        candidates, others = _sums_of_terms(growing.equation, terms, growing.settings, budget)
        growing.add(candidates)
        growing.remember(others)
        if bounded is not None:
            growing.remember(_plain_sums(growing.equation, bounded, growing.settings, budget), saturating=True)
        growing.forget_poor()
        whole = not budget.over()
    elapsed = timer.elapsed
    report = StepReport(0, "sums of terms", elapsed, elapsed, timer.max_time, 0, 0.0, growing.front, _message(terms))
    return observers.tell(report), whole


def _sums_of_terms(
    equation: Equation, terms: Terms, settings: Settings, budget: Budget
) -> tuple[list[Candidate], list[Candidate]]:
    """The best sums of terms of each complexity, with and without an intercept, their coefficients fitted.

    Second, sums that fit little worse: noise may have put the true one behind others.
    """
    if not terms.terms:
        return [], []
    cost = np.array([term.complexity + _COEFFICIENT_COST for term in terms.terms])
    rows = len(equation.left_side)
    max_terms = min(terms.most, max(1, equation.form.independent // _ROWS_PER_TERM), max(1, rows - _MIN_FREE_ROWS))
    normal = normal_equations(terms.averages, equation.left_side, cost)
    subsets = best_subsets(normal, max_terms, min(_MAX_COMPLEXITY, settings.max_complexity), budget)
    found: list[Candidate] = []
    others: list[Candidate] = []
    worth = set(_worth_fitting(subsets))
    for subset in subsets:
        chosen = list(subset.terms)
        inside, averages = [terms.terms[i] for i in chosen], terms.averages[:, chosen]
        if subset in worth:
            found += equation.fit(inside, averages)
            found += equation.fit([*inside, ONE], np.column_stack([averages, np.ones(rows)]))
        elif subset.cost <= _MAX_COMPLEXITY and not budget.over():
            others += equation.fit_plainly(inside, averages)
            others += equation.fit_plainly([*inside, ONE], np.column_stack([averages, np.ones(rows)]))
    return found, others


def _plain_sums(equation: Equation, terms: Terms, settings: Settings, budget: Budget) -> list[Candidate]:
    """The best sums of a few terms, with and without an intercept, their coefficients as they are."""
    if not terms.terms or budget.over():
        return []
    cost = np.array([term.complexity + _COEFFICIENT_COST for term in terms.terms])
    normal = normal_equations(terms.averages, equation.left_side, cost)
    most = min(_MAX_BOUNDED_TERMS, max(1, equation.form.independent // _ROWS_PER_TERM))
    found: list[Candidate] = []
    ones = np.ones((len(equation.left_side), 1))
    for subset in best_subsets(normal, most, min(_MAX_COMPLEXITY, settings.max_complexity), budget):
        if budget.over():
            break
        chosen = list(subset.terms)
        inside, averages = [terms.terms[i] for i in chosen], terms.averages[:, chosen]
        found += equation.fit_plainly(inside, averages)
        found += equation.fit_plainly([*inside, ONE], np.hstack([averages, ones]))
    return found


def _worth_fitting(subsets: Sequence[Subset]) -> list[Subset]:
    """The two best sets of each complexity that leave less than every cheaper set."""
    chosen: list[Subset] = []
    smallest = np.inf
    for cost in sorted({subset.cost for subset in subsets}):
        here = [s for s in subsets if s.cost == cost and s.unexplained < (1 - _MIN_GAIN) * smallest][:_FITTED_SETS]
        chosen += here
        smallest = min([smallest, *(subset.unexplained for subset in here)])
    return chosen


def _task(equation: Equation, points: Array, settings: Settings) -> Task:
    """The task of the search on points: the left side `points` (points,) as a function of the motion."""
    names = list(equation.columns)
    # Copies in torch's memory, which is aligned: the last digits of some matrix products depend on the alignment.
    X = torch.tensor(np.stack([equation.columns[name] for name in names], axis=1))
    y = torch.tensor(np.ascontiguousarray(points))
    return make_task(names, X, Target(y, torch.full((len(y),), 1 / len(y), dtype=torch.float64)), settings)
