"""Nikuradse's rough pipes: friction against Reynolds number and roughness, and the collapse onto one curve.

$SYMENUM_DATA/nikuradse.csv, not shipped, has three columns without names: log10 Re, log10(100 λ), and the roughness
k = r/k_s. The collapse is that of the paper's code: x = log10(Re √(λ/32) / k), y = λ^(-1/2) + 2 log10(1/k).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from symenum.problems.external import data_file

__all__ = ["Turbulence", "collapse", "load_turbulence"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Turbulence:
    """The collapsed data, x (rows, 1) and y (rows,), and the roughness (rows,) of each row."""

    X: Array
    y: Array
    roughness: Array


def collapse(log_reynolds: Array, log_friction: Array, roughness: Array) -> tuple[Array, Array]:
    """x and y of the universal curve."""
    friction = 10**log_friction / 100
    x = np.log10(10**log_reynolds * np.sqrt(friction / 32) / roughness)
    return x, friction**-0.5 + 2 * np.log10(1 / roughness)


def load_turbulence() -> Turbulence:
    """All 362 rows."""
    table = np.loadtxt(data_file("nikuradse.csv", "turbulence", "the pipe data of J. Nikuradse (1933)"), delimiter=",")
    x, y = collapse(table[:, 0], table[:, 1], table[:, 2])
    return Turbulence(x[:, None], y, table[:, 2])
