"""The search for one equation of motion: sums of terms of the library first, then the estimator's search.

What the search finds on smoothed points is fitted and judged anew on the equation's own rows, so that all laws of a
front have been asked the same question.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import torch

from symenum.core.budget import Budget
from symenum.core.exactness import EXACTNESS
from symenum.core.target import Target
from symenum.core.threads import single_threaded
from symenum.dynamics.equation import ONE, Equation
from symenum.dynamics.terms import Subset, best_subsets, library, normal_equations, term_values
from symenum.expressions import Constant, Expression
from symenum.expressions.candidate import Candidate
from symenum.front import Front
from symenum.search import Settings, StepReport, Task, make_task, run

__all__ = ["Discovery", "SystemReport", "Terms", "discover", "make_terms"]

Array = npt.NDArray[np.float64]

_MAX_TERMS = 6
_MOST_COST = 30  # complexity of a sum that is still read as a law
_FITTED = 2  # sets of each complexity whose coefficients are fitted
_GAIN = 1e-3  # a set that leaves less than a cheaper one by less than this part is not worth a fit
_SAME_COLUMN = 1e-9  # columns whose correlation is nearer to 1 than this are one term
_SUBSETS_TIME = 0.5  # of the time for an equation, at most


@dataclass(frozen=True)
class SystemReport:
    """What callbacks are told: a StepReport's fields, and which state's equation it is about."""

    state: str
    iteration: int
    stage: str
    seconds: float
    elapsed: float
    time_left: float | None
    scored: int
    rate: float
    front: Front
    message: str


@dataclass(frozen=True)
class Terms:
    """The library on one system: distinct terms, and their averages (rows, terms); 1 is not among them."""

    terms: tuple[Expression, ...]
    averages: Array


@dataclass(frozen=True)
class Discovery:
    """The front of one equation, why its search ended, and how much was done."""

    front: Front
    reason: str
    iterations: int = 0
    scored: int = 0
    interrupted: bool = False


def make_terms(equation: Equation, settings: Settings) -> Terms:
    """The terms that are finite along the motion and differ on the rows from all simpler ones, up to a·f + b."""
    kept, values = term_values(library(list(equation.columns), settings.operators), equation.columns)
    if not kept:
        return Terms((), np.empty((equation.form.rows, 0)))
    averages = equation.form.average(values)
    centred = averages - averages.mean(axis=0)
    size = np.linalg.norm(centred, axis=0)
    # A column that hardly varies beside its mean has lost its digits.
    moving = size > EXACTNESS.flat * np.linalg.norm(averages, axis=0)
    unit = centred / np.where(moving, size, 1.0)
    alike = np.triu(np.abs(unit.T @ unit) > 1 - _SAME_COLUMN, 1).any(axis=0)
    which = np.flatnonzero(moving & ~alike)
    return Terms(tuple(kept[i] for i in which), averages[:, which])


@dataclass
class _Finding:
    """The front as it grows; every law is judged once."""

    equation: Equation
    settings: Settings
    front: Front
    judged: set[Expression] = field(default_factory=set)

    def add(self, candidates: Sequence[Candidate]) -> None:
        self.front = self.front.update(candidates, self.settings.max_complexity)

    def learn(self, found: Front) -> None:
        """The laws of a search on points."""
        for entry in found:
            if entry.expression not in self.judged:
                self.judged.add(entry.expression)
                self.add(self.equation.refit(entry.expression))

    @property
    def explained(self) -> bool:
        # Only the law that one would believe: what noise would leave is large beside any wild enough law.
        return self.equation.is_explained(self.front[int(np.argmin(self.equation.bits(self.front)))])


@dataclass(frozen=True)
class _Timer:
    """How long the search for an equation has taken, and how long it still may."""

    clock: Callable[[], float]
    begin: float
    max_time: float | None

    @property
    def elapsed(self) -> float:
        return self.clock() - self.begin

    @property
    def left(self) -> float | None:
        return None if self.max_time is None else max(0.0, self.max_time - self.elapsed)


@dataclass(frozen=True)
class _Audience:
    """The callbacks of one equation: they are told of its own front, not of the one that the search has on points."""

    finding: _Finding
    timer: _Timer
    state: str
    callbacks: Sequence[Callable[[SystemReport], object]]

    def tell(self, report: StepReport) -> bool:
        """Whether that is the end: a callback says so, or a law explains the equation."""
        told = replace(report, front=self.finding.front, elapsed=self.timer.elapsed, time_left=self.timer.left)
        answers = [callback(SystemReport(self.state, **vars(told))) for callback in self.callbacks]
        return any(answers) or self.finding.explained

    def learn_and_tell(self, report: StepReport) -> bool:
        """As `tell`, when the search on points has made a step."""
        self.finding.learn(report.front)
        return self.tell(report)


def discover(
    equation: Equation,
    terms: Terms,
    points: Array,
    settings: Settings,
    seed: int,
    *,
    state: str = "",
    max_time: float | None,
    max_iterations: int | None,
    callbacks: Sequence[Callable[[SystemReport], object]] = (),
    wish: Budget | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Discovery:
    """The front of laws for one equation. `points` (points,): its left side at each point, for the search.

    Ends when noise accounts for all that a law leaves, at a limit, when a callback returns True, or when `wish`, which
    Ctrl-C ends, is over.
    """
    timer = _Timer(clock, clock(), max_time)
    wish = wish or Budget()
    finding = _Finding(equation, settings, _empty_front(equation, settings))
    mean = float(np.mean(equation.left))
    finding.add([c for law in (Constant(0), Constant(mean)) if (c := equation.judge(law)) is not None])
    if equation.variance == 0.0:
        return Discovery(finding.front, "the derivative is constant")
    audience = _Audience(finding, timer, state, callbacks)
    if settings.constants and _try_sums(audience, terms, wish):
        return Discovery(finding.front, _reason(finding), interrupted=wish.over())
    if wish.over():
        return Discovery(finding.front, "interrupted", interrupted=True)
    left = timer.left
    if left is not None and left <= 0:
        return Discovery(finding.front, f"the time limit of {max_time:g} s is over")
    outcome = run(
        _task(equation, points, settings),
        seed,
        max_time=left,
        max_iterations=max_iterations,
        callbacks=[audience.learn_and_tell],
        wish=wish,
    )
    finding.learn(outcome.state.front)
    if isinstance(outcome.error, KeyboardInterrupt):  # the second Ctrl-C
        raise outcome.error
    reason = _reason(finding) if outcome.reason == "a callback asked to stop" else outcome.reason
    done = outcome.state
    return Discovery(finding.front, reason, done.iteration, done.scored, outcome.interrupted)


def _empty_front(equation: Equation, settings: Settings) -> Front:
    # Windows overlap: for the description length only independent rows count.
    return replace(Front.of(equation.target, settings.discount), rows=equation.form.independent)


def _reason(finding: _Finding) -> str:
    if finding.explained:
        return "noise accounts for all that a law leaves"
    return "a callback asked to stop"


def _message(terms: Terms) -> str:
    return f"{len(terms.terms)} terms on {len(terms.averages)} rows"


def _try_sums(audience: _Audience, terms: Terms, wish: Budget) -> bool:
    """Add the best sums of terms to the front and tell of them; whether the search ends with that."""
    finding, timer = audience.finding, audience.timer
    part = None if timer.max_time is None else timer.max_time * _SUBSETS_TIME
    with single_threaded():
        finding.add(_sums_of_terms(finding.equation, terms, finding.settings, Budget(part, stop=wish.over)))
    seconds = timer.elapsed
    return audience.tell(
        StepReport(0, "sums of terms", seconds, seconds, timer.max_time, 0, 0.0, finding.front, _message(terms))
    )


def _sums_of_terms(equation: Equation, terms: Terms, settings: Settings, budget: Budget) -> list[Candidate]:
    """The best sums of each complexity, their coefficients fitted."""
    if not terms.terms:
        return []
    cost = np.array([term.complexity + 2 for term in terms.terms])  # a coefficient and a sign
    rows = len(equation.left)
    most = min(_MAX_TERMS, max(1, equation.form.independent // 3), max(1, rows - 3))
    normal = normal_equations(terms.averages, equation.left, cost)
    subsets = best_subsets(normal, most, min(_MOST_COST, settings.max_complexity), budget)
    found: list[Candidate] = []
    for subset in _worth_fitting(subsets):
        chosen = list(subset.terms)
        inside, averages = [terms.terms[i] for i in chosen], terms.averages[:, chosen]
        found += equation.fit(inside, averages)
        found += equation.fit([*inside, ONE], np.column_stack([averages, np.ones(rows)]))
    return found


def _worth_fitting(subsets: Sequence[Subset]) -> list[Subset]:
    """Those that leave less than every cheaper one, the best few of each complexity."""
    kept: list[Subset] = []
    smallest = np.inf
    for cost in sorted({subset.cost for subset in subsets}):
        here = [s for s in subsets if s.cost == cost and s.left < (1 - _GAIN) * smallest][:_FITTED]
        kept += here
        smallest = min([smallest, *(subset.left for subset in here)])
    return kept


def _task(equation: Equation, points: Array, settings: Settings) -> Task:
    names = list(equation.columns)
    # Copies in torch's own memory, which is aligned: the last digits of some matrix products depend on that.
    X = torch.tensor(np.stack([equation.columns[name] for name in names], axis=1))
    y = torch.tensor(np.ascontiguousarray(points))
    return make_task(names, X, Target(y, torch.full((len(y),), 1 / len(y), dtype=torch.float64)), settings)
