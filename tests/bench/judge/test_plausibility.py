"""The check from outside sees poles and fast waves, and nothing where there is none."""

from __future__ import annotations

import numpy as np
import pytest

from symenum.bench.judge.plausibility import has_pole_in_box, has_unresolved_wave
from symenum.expressions import parse

RNG = np.random.default_rng(0)
DATA = {"a": RNG.uniform(0.5, 3, 60), "b": RNG.uniform(0.5, 3, 60)}
Y = np.array([5.0])


@pytest.mark.parametrize("text", ["0.01/(a - 1.2345)", "1/(a - b)", "1/(a - 2.2)**2", "log(b - 1)", "a/(b - 2)**3"])
def test_poles(text: str) -> None:
    assert has_pole_in_box(parse(text), DATA, Y)


@pytest.mark.parametrize("text", ["1/(a + b)", "exp(3*a)", "tanh(1/(a - 2))", "a*b - 3", "2"])
def test_no_poles(text: str) -> None:
    assert not has_pole_in_box(parse(text), DATA, Y)


def test_waves() -> None:
    assert has_unresolved_wave(parse("a + sin(1000*b)"), DATA)
    assert not has_unresolved_wave(parse("a + sin(10*b)"), DATA)
