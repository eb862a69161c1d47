"""The electro-mechanical positioning system (EMPS): its data, the paper's protocol, and the law to compare with.

Train on the first half, target the acceleration, select by the reward on the second half. The data are not shipped:
$SYMENUM_DATA/emps.csv has four columns without names, position, velocity, acceleration and motor force, 1 ms apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from symenum.expressions import Expression, evaluate, parse
from symenum.fitting.least_squares import least_squares
from symenum.front import Front
from symenum.problems.external import data_file
from symenum.problems.structure import same_structure
from symenum.selection import reward

__all__ = ["EMPS_LAW", "EMPS_VARIABLES", "Emps", "load_emps"]

Array = npt.NDArray[np.float64]

EMPS_VARIABLES = ("q", "qdot", "tau")
EMPS_LAW = parse("tau + qdot + sign(qdot) + 1")
"""The structure of the reference law: a·tau + b·qdot + c·sign(qdot) + d."""
_TRAIN = 5000


@dataclass(frozen=True)
class Emps:
    """X (rows, 3) and the acceleration y (rows,) of both halves; `step` in seconds."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array
    step: float = 1e-3

    def test_loss(self, law: Expression) -> float:
        """The mean square error on the second half."""
        return float(np.mean((_values(law, self.X_test) - self.y_test) ** 2))

    def select(self, front: Front) -> int:
        """The row with the best reward on the second half."""
        rewards = [reward(self.test_loss(entry.expression), entry.complexity) for entry in front]
        return int(np.argmax(np.nan_to_num(rewards, nan=-1.0)))

    def reference_loss(self) -> float:
        """The loss on the second half of the reference law, its coefficients fitted to the first half."""
        columns = [parse(text) for text in ("tau", "qdot", "sign(qdot)", "1")]
        A, B = (np.stack([_values(c, X) for c in columns], axis=1) for X in (self.X, self.X_test))
        fit = least_squares(A, self.y)
        return float(np.mean((B @ fit.coefficients - self.y_test) ** 2))

    def is_law(self, law: Expression) -> bool:
        """Whether it has the form of the reference law."""
        return same_structure(law, EMPS_LAW)


def load_emps() -> Emps:
    """The data as the paper cuts them."""
    table = np.loadtxt(data_file("emps.csv", "emps", "the EMPS benchmark of A. Janot et al."), delimiter=",")
    X, y = table[:, [0, 1, 3]], table[:, 2]
    return Emps(X[:_TRAIN], y[:_TRAIN], X[_TRAIN:], y[_TRAIN:])


def _values(law: Expression, X: Array) -> Array:
    columns = {name: np.ascontiguousarray(X[:, i]) for i, name in enumerate(EMPS_VARIABLES)}
    return np.asarray(evaluate(law, columns), dtype=np.float64)
