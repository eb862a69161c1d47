"""One problem: what it refuses, and the noise on its target."""

from __future__ import annotations

import numpy as np
import pytest

from symenum.bench.problems import Problem, with_noise


def test_a_law_with_an_unknown_variable_or_a_grid_in_two_is_refused() -> None:
    with pytest.raises(ValueError, match="x3"):
        Problem("odd", "x1 + x3", ("x1", "x2"), 0, 1, 10)
    with pytest.raises(ValueError, match="equidistant"):
        Problem("odd", "x1 + x2", ("x1", "x2"), 0, 1, 10, "equidistant")


def test_noise_is_the_papers_or_srbenchs() -> None:
    y = np.random.default_rng(0).uniform(5, 6, 200_000)
    assert with_noise(y, 0.0, "std", 1) is y
    for kind, scale in (("std", y.std()), ("rms", np.sqrt(np.mean(y**2)))):
        noisy = with_noise(y, 0.1, kind, 1)  # type: ignore[arg-type]
        assert (noisy - y).std() == pytest.approx(0.1 * scale, rel=0.01)
        assert np.array_equal(noisy, with_noise(y, 0.1, kind, 1))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="noise level"):
        with_noise(y, -1.0, "std", 0)
