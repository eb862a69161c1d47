"""Periodic functions are judged along their argument."""

from __future__ import annotations

import numpy as np
import pytest

from symenum.bench.judge.plausibility import has_unresolved_wave
from symenum.expressions import parse
from symenum.sanity.region import Region
from symenum.sanity.resolution import is_resolved, waves_end

RNG = np.random.default_rng(0)
DATA = {
    "t": RNG.uniform(280, 400, 40),
    "n": np.arange(280.0, 320.0),
    "x": RNG.uniform(0, 3, 40),
    "z": RNG.uniform(0, 3, 40),
    "heavy": np.exp(RNG.normal(0, 0.5, 40)) + np.array([1000.0] + [0.0] * 39),
}


@pytest.mark.parametrize(
    "text",
    ["sin(2.9991*t)", "cos(t + t + t + 1)", "exp(sin(1e14*x))", "cos(6.2*n)", "sin(3.1*n)", "x + sin(200*x*z)"],
)
def test_waves_that_the_rows_do_not_resolve(text: str) -> None:
    assert not is_resolved(parse(text), DATA)
    assert has_unresolved_wave(parse(text), DATA)


@pytest.mark.parametrize(
    "text", ["sin(0.1*t)", "x*sin(6.28*x)", "sin(x*z)", "cos(2*heavy)", "sin(3)*x", "x**2", "sin(0.5*n)"]
)
def test_waves_that_the_rows_resolve(text: str) -> None:
    assert is_resolved(parse(text), DATA)
    assert not has_unresolved_wave(parse(text), DATA)


@pytest.mark.parametrize("text", ["cos(1/sin(t))", "x*sin(x/(z - 1.5))", "exp(cos(x)/4 + sin(1/(x - 1)))"])
def test_waves_beside_a_pole_of_their_argument_have_no_end(text: str) -> None:
    assert not waves_end(parse(text), Region(DATA))
    assert has_unresolved_wave(parse(text), DATA)


@pytest.mark.parametrize("text", ["sin(2/(x + 1))", "cos(z/exp(x))", "1/(x - 1) + sin(x)", "tanh(1/(x - 1))"])
def test_waves_of_arguments_without_a_pole_end(text: str) -> None:
    assert waves_end(parse(text), Region(DATA))
