"""Noise on a target, as the two protocols define it."""

from __future__ import annotations

from typing import Literal

import numpy as np

from symenum.problems.problem import Array

__all__ = ["NoiseKind", "with_noise"]

NoiseKind = Literal["std", "rms"]
"""`std`: the paper's, level·std(y) (supplement, "Summary of Problem Sets"); `rms`: SRBench's, level·√mean(y²)."""


def with_noise(y: Array, level: float, kind: NoiseKind, seed: int) -> Array:
    """y (rows,) with Gaussian noise of that level; level 0 gives y back unchanged."""
    if not level >= 0:
        raise ValueError(f"the noise level must be a number of at least 0, not {level!r}")
    if level == 0:
        return y
    scale = float(np.std(y)) if kind == "std" else float(np.sqrt(np.mean(np.square(y))))
    noisy: Array = y + level * scale * np.random.default_rng([seed, 71]).standard_normal(len(y))
    return noisy
