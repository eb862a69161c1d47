"""Which law of a front to believe when the data are noisy, and which laws the data cannot tell apart.

Three judges: held-out pieces of the trajectories, description length, and what the noise of the samples would leave.
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
from symenum.selection import MODEL_SELECTIONS

__all__ = ["RULES", "Judged", "choose_jointly", "judge_front"]

Array = npt.NDArray[np.float64]

RULES = (*MODEL_SELECTIONS, "heldout")
_BLOCKS = 10
_SIGMAS = 2.0  # a difference of two losses that is smaller than so many of its standard errors is none


@dataclass(frozen=True)
class Judged:
    """For each law of a front: its loss on held-out pieces, its residual in units of the noise, and the marks.

    `selected` is the law to believe; `indistinguishable` are those that leave no more than it does, up to chance.
    """

    heldout: tuple[float, ...]
    chi_square: tuple[float, ...]
    bits: tuple[float, ...]
    selected: int
    indistinguishable: tuple[bool, ...]


def judge_front(equation: Equation, front: Front, rule: str = "mdl") -> Judged:
    """The front as the judges see it.

    `rule`: one of RULES. Description length is the default: it asks each term to pay for having been chosen among
    many. Held-out pieces cannot, since the terms were chosen on all pieces; `heldout` takes the simplest law within
    one standard error of the smallest held-out loss.
    """
    blocks = (np.arange(len(equation.left)) * _BLOCKS) // len(equation.left)
    errors = np.stack([_heldout(equation, entry.expression, blocks) for entry in front])
    means = errors.mean(axis=1)
    bits = equation.bits(front)
    if rule == "heldout":
        selected = _simplest(errors, equation)
    else:
        selected = int(np.argmin(bits)) if rule == "mdl" else front.select(rule)
    chosen = equation.normalised(front[selected].expression)
    same = tuple(_no_worse(equation.normalised(entry.expression), chosen, equation) for entry in front)
    chi_square = tuple(equation.chi_square(entry.expression) for entry in front)
    return Judged(tuple(map(float, means)), chi_square, bits, selected, same)


def choose_jointly(fronts: Sequence[Front], judged: Sequence[Judged], budget: int) -> list[int]:
    """One law of each front, with a sum of complexities of at most `budget` and the least total description length.

    Where even the simplest laws cost more, these are taken.
    """
    # best[c]: the least number of bits for a total complexity of c, and the choices that give it.
    best: dict[int, tuple[float, list[int]]] = {0: (0.0, [])}
    for front, judge in zip(fronts, judged, strict=True):
        grown: dict[int, tuple[float, list[int]]] = {}
        for spent, (bits, chosen) in best.items():
            for i, entry in enumerate(front):
                total = spent + entry.complexity
                better = bits + judge.bits[i]
                if total <= budget and (total not in grown or better < grown[total][0]):
                    grown[total] = (better, [*chosen, i])
        best = grown
    if not best:
        return [0] * len(fronts)
    return min(best.values(), key=lambda entry: entry[0])[1]


def _heldout(equation: Equation, expression: Expression, blocks: npt.NDArray[np.int64]) -> Array:
    """Squared errors (rows,) on each block of a fit of the outer coefficients to all others.

    Rows at the edges of a block share samples with its neighbours: so little that no block is made narrower for it.
    """
    terms = [*outer_terms(expression), ONE]
    A = equation.averages(terms)
    residual = equation.residual(expression)
    if not np.isfinite(A).all() or len(terms) * 3 > len(A):
        return residual**2
    A = A / np.maximum(np.abs(A).max(axis=0), 1e-300)
    whole, right = A.T @ A, A.T @ equation.left
    errors = np.empty(len(A))
    for block in range(blocks.max() + 1):
        inside = blocks == block
        part, y = A[inside], equation.left[inside]
        # What the others' normal equations say; their least norm where two terms are one there.
        coefficients = np.linalg.lstsq(whole - part.T @ part, right - part.T @ y, rcond=EXACTNESS.rank)[0]
        errors[inside] = (y - part @ coefficients) ** 2
    return errors


def _simplest(errors: Array, equation: Equation) -> int:
    """The simplest law whose held-out loss is within one standard error of the smallest."""
    means = errors.mean(axis=1)
    best = int(np.argmin(means))
    error = float(np.std(errors[best])) / np.sqrt(equation.form.independent)
    return int(np.flatnonzero(means <= means[best] + error)[0])


def _no_worse(one: Array, chosen: Array, equation: Equation) -> bool:
    """Whether the squared residuals of a law exceed those of the chosen one by no more than chance."""
    excess = one - chosen
    error = float(np.std(excess)) / np.sqrt(equation.form.independent)
    return bool(np.mean(excess) <= _SIGMAS * error)
