"""Which law of a front to believe when the data are noisy, and which laws the data cannot tell apart.

Three measures of a law: its loss on held-out blocks of rows, its description length, and its residual in units of what
the noise of the samples would leave. Laws of tables are chosen in `symenum.selection`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from symenum.core.exactness import EXACTNESS
from symenum.dynamics.equation import ONE, Equation, outer_terms
from symenum.expressions import Expression
from symenum.front import Front
from symenum.selection import DEFAULT_RULE, MODEL_SELECTIONS

__all__ = [
    "BY_TRAJECTORIES",
    "BY_VALIDATION",
    "RULES",
    "Judged",
    "choose_jointly",
    "choose_on_validation",
    "judge_front",
]

Array = npt.NDArray[np.float64]

BY_TRAJECTORIES = "trajectories"
"""The rule that fits laws to the trajectories themselves: see `choose_on_trajectories`."""
BY_VALIDATION = "validation"
"""The rule that chooses on trajectories which the search has not seen."""
RULES = (BY_TRAJECTORIES, *(rule for rule in MODEL_SELECTIONS if rule != DEFAULT_RULE), "heldout", BY_VALIDATION)
"""Rules of `ODERegressor(model_selection=…)`."""
_BLOCKS = 10  # blocks of rows in time, each held out once: the usual number
_SIGMAS = 2.0  # standard errors that the difference of two losses must exceed to count: 95 % of chance
_ROWS_PER_TERM = 3  # rows that each term of a law needs to be fitted without a block
_MIN_SIZE = 1e-300  # near the smallest normal double: smaller columns are divided by this


@dataclass(frozen=True)
class Judged:
    """The measures of each law of a front, and the choice.

    `heldout`: losses on held-out blocks. `chi_square`: mean square residuals in units of what noise alone would leave.
    `bits`: description lengths. `selected`: the index of the law to believe. `indistinguishable`: whether a law leaves
    no more than the selected one, up to chance.
    """

    heldout: tuple[float, ...]
    chi_square: tuple[float, ...]
    bits: tuple[float, ...]
    selected: int
    indistinguishable: tuple[bool, ...]


def judge_front(equation: Equation, front: Front, rule: str = "mdl", chosen: int | None = None) -> Judged:
    """The measures of all laws of the front, and the choice by one of RULES, unless a law is `chosen` already.

    Description length is the default: each term pays for having been chosen among many. Held-out blocks cannot see
    that, since the terms were chosen on all rows. "heldout" takes the simplest law within one standard error of the
    smallest held-out loss.
    """
    blocks = (np.arange(len(equation.left_side)) * _BLOCKS) // len(equation.left_side)
    errors = np.stack([_heldout(equation, entry.expression, blocks) for entry in front])
    means = errors.mean(axis=1)
    bits = equation.bits(front)
    if chosen is not None:
        selected = chosen
    elif rule == "heldout":
        selected = _simplest(errors, equation)
    else:
        selected = int(np.argmin(bits)) if rule in ("mdl", BY_TRAJECTORIES, BY_VALIDATION) else front.select(rule)
    left = equation.normalised(front[selected].expression)
    same = tuple(_no_worse(equation.normalised(entry.expression), left, equation) for entry in front)
    chi_square = tuple(equation.chi_square(entry.expression) for entry in front)
    return Judged(tuple(map(float, means)), chi_square, bits, selected, same)


def choose_on_validation(equation: Equation, front: Front) -> tuple[Array, int]:
    """The losses (laws,) on the rows of an equation that the search has not seen, and the law to believe by them.

    It is the simplest law whose loss is within one standard error of the least. A law that is not finite there has an
    infinite loss.
    """
    errors = np.stack([np.square(equation.residual(entry.expression)) for entry in front])
    losses = np.where(np.isfinite(errors).all(axis=1), errors.mean(axis=1), np.inf)
    if not np.isfinite(losses).any():
        return losses, 0
    best = int(np.argmin(losses))
    error = float(np.std(errors[best])) / np.sqrt(equation.form.independent)
    return losses, int(np.flatnonzero(losses <= losses[best] + error)[0])


def choose_jointly(fronts: Sequence[Front], judged: Sequence[Judged], max_complexity: int) -> list[int]:
    """The index of a law of each front: the least sum of description lengths with at most that sum of complexities.

    Where even the simplest laws are more complex together, these are taken.
    """
    # best[c]: the least number of bits for a total complexity of c, and the choices that give it.
    best: dict[int, tuple[float, list[int]]] = {0: (0.0, [])}
    for front, judge in zip(fronts, judged, strict=True):
        grown: dict[int, tuple[float, list[int]]] = {}
        for spent, (bits, chosen) in best.items():
            for i, entry in enumerate(front):
                total = spent + entry.complexity
                better = bits + judge.bits[i]
                if total <= max_complexity and (total not in grown or better < grown[total][0]):
                    grown[total] = (better, [*chosen, i])
        best = grown
    if not best:
        return [0] * len(fronts)
    return min(best.values(), key=lambda entry: entry[0])[1]


def _heldout(equation: Equation, expression: Expression, blocks: npt.NDArray[np.int64]) -> Array:
    """Squared errors (rows,) on each block, with the outer coefficients fitted on all other blocks.

    `blocks` (rows,): the block of each row. Rows at the edges of a block share a few samples with the next one; that
    is neglected.
    """
    terms = [*outer_terms(expression), ONE]
    A = equation.averages(terms)
    residual = equation.residual(expression)
    if not np.isfinite(A).all() or len(terms) * _ROWS_PER_TERM > len(A):
        return residual**2
    A = A / np.maximum(np.abs(A).max(axis=0), _MIN_SIZE)
    normal, right = A.T @ A, A.T @ equation.left_side
    errors = np.empty(len(A))
    for block in range(blocks.max() + 1):
        inside = blocks == block
        part, y = A[inside], equation.left_side[inside]
        # The normal equations of the other blocks; of least norm where two terms are equal there.
        coefficients = np.linalg.lstsq(normal - part.T @ part, right - part.T @ y, rcond=EXACTNESS.rank)[0]
        errors[inside] = (y - part @ coefficients) ** 2
    return errors


def _simplest(errors: Array, equation: Equation) -> int:
    """The simplest law whose held-out loss is within one standard error of the smallest."""
    means = errors.mean(axis=1)
    best = int(np.argmin(means))
    error = float(np.std(errors[best])) / np.sqrt(equation.form.independent)
    return int(np.flatnonzero(means <= means[best] + error)[0])


def _no_worse(law: Array, chosen: Array, equation: Equation) -> bool:
    """Whether the squared residuals (rows,) of a law exceed those of the chosen one by no more than chance."""
    excess = law - chosen
    error = float(np.std(excess)) / np.sqrt(equation.form.independent)
    return bool(np.mean(excess) <= _SIGMAS * error)
