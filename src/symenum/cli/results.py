"""What a search has found, as plain values that can be shown, written and read back.

Between the estimator and the screen or the disk: knows the shape of a front, and neither how it was found nor where it
goes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from symenum.watch.observer import FrontLike, short_text

if TYPE_CHECKING:
    from symenum.expressions import Expression

__all__ = ["Course", "Law", "Model", "Result", "Search", "error_lines", "front_lines", "laws_of", "r_squared"]


class Model(Protocol):
    """The fitted estimator, as far as the command line needs it."""

    front_: Any
    interrupted_: bool
    stop_reason_: str
    selected_index_: int
    elapsed_: float
    n_iter_: int
    scored_: int
    plan_: str

    def uncertainties(self, index: int | None = None) -> Any: ...


class Search(Protocol):
    """What is to be fitted."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **held_out: Any) -> Model: ...


@dataclass(frozen=True)
class Course:
    """How a search went: time, steps, what its network scored and looks like; and the loss that is rounding only."""

    elapsed: float
    steps: int
    scored: int
    plan: str
    floor: float

    @staticmethod
    def of(model: Model | None, last: Any) -> Course:
        """Of a search that came to its end, which may be there before the first step, or of its last report."""
        if model is not None:
            return Course(model.elapsed_, model.n_iter_, model.scored_, model.plan_, model.front_.floor)
        return Course(last.elapsed, last.iteration, last.scored, last.message, last.front.floor)


@dataclass(frozen=True)
class Law:
    """One row of the front."""

    expression: Expression
    complexity: int
    loss: float
    score: float
    reward: float


@dataclass(frozen=True)
class Result:
    """All that is kept of a run. `names` are the variables' names in the laws, `columns` those in the file."""

    target: str
    names: tuple[str, ...]
    columns: tuple[str, ...]
    laws: tuple[Law, ...]
    selected: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    stop_reason: str = ""
    interrupted: bool = False
    rows: int = 0
    source: str = ""

    @property
    def law(self) -> Law:
        """The law to believe."""
        return self.laws[self.selected]


def laws_of(front: FrontLike) -> tuple[Law, ...]:
    """The rows of a front, by complexity ascending."""
    return tuple(
        Law(entry.expression, int(entry.complexity), float(entry.loss), float(score), float(reward))
        for entry, score, reward in zip(front, front.scores(), front.rewards(), strict=True)
    )


def r_squared(rest: float) -> str:
    """R² for the part of the variance that is left: what is nearly 1 is told by what is missing."""
    return f"R² = {1 - rest:.4g}" if rest > 1e-3 or rest == 0 else f"R² = 1 - {rest:.2g}"


def front_lines(laws: Sequence[Law], selected: int) -> list[str]:
    """The front as text, >>>> at the chosen row; constants are rounded. Laws come last: no line has to be cut."""
    lines = [f"     {'complexity':>10}  {'loss':>11}  {'score':>9}  equation"]
    for i, law in enumerate(laws):
        mark = ">>>>" if i == selected else ""
        lines.append(
            f"{mark:4} {law.complexity:>10}  {law.loss:>11.4g}  {law.score:>9.3g}  {short_text(law.expression)}"
        )
    return lines


def error_lines(uncertainties: Any) -> list[str]:
    """The constants of a law with their standard errors, from left to right."""
    if not len(uncertainties):
        return ["The law has no fitted constants."]
    pairs = zip(uncertainties["constant"], uncertainties["standard_error"], strict=True)
    return ["Its constants and their standard errors:", *(f"  {value:.8g} ± {error:.2g}" for value, error in pairs)]
