"""A file of systems as that of ODEBench: decay, and the logistic map's chaotic cousin, Rössler's."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from scipy.integrate import solve_ivp

__all__ = ["write_systems"]


def write_systems(folder: Path) -> Path:
    """The folder with odebench_odd.json in it."""

    def run(right: object, start: list[float], end: float) -> dict[str, object]:
        t = np.linspace(0, end, 64)
        y = solve_ivp(right, (0, end), start, t_eval=t, rtol=1e-10, atol=1e-12, method="DOP853").y
        return {"t": t.tolist(), "y": y.tolist()}

    def rossler(t: float, x: np.ndarray) -> list[float]:
        return [-x[1] - x[2], x[0] + 0.2 * x[1], 0.2 + x[2] * (x[0] - 5.7)]

    records = [
        {
            "id": 1,
            "dim": 1,
            "eqs": ["-0.5*x_0"],
            "what": "decay",
            "runs": [run(lambda t, x: -0.5 * x, [start], 4.0) for start in (2.0, 1.0)],
        },
        {
            "id": 3,
            "dim": 3,
            "eqs": ["-x_1 - x_2", "x_0 + 0.2*x_1", "0.2 + x_2*(x_0 - 5.7)"],
            "what": "Rössler",
            "runs": [run(rossler, [start, 1.0, 1.0], 300.0) for start in (1.0, 2.0)],
        },
    ]
    (folder / "odebench_odd.json").write_text(json.dumps(records), encoding="utf-8")
    return folder
