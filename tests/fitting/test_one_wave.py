"""Two waves of one frequency as one: the same function, one term fewer; and none where there is nothing to join."""

from __future__ import annotations

import math

import numpy as np
import pytest

from symenum import PSERegressor
from symenum.expressions import Expression, evaluate, parse
from symenum.fitting import free_constants
from symenum.fitting.one_wave import with_one_wave

COLUMNS = {name: np.random.default_rng(at).uniform(0.3, 2.0, 50) for at, name in enumerate("xyz")}


def values(law: Expression) -> np.ndarray:
    return np.asarray(evaluate(law, COLUMNS))


@pytest.mark.parametrize(
    "text",
    [
        "3*sin(2*x) + 4*cos(2*x) + 1",
        "sin(x) - cos(x)",
        "-2*cos(x*y - 1) - 0.5*sin(x*y + 2)",
        "cos(x + x - 1) + 20*cos(x + x - 2) + x",
        "exp(-x)*(sin(3*x) + 0.2*cos(3*x))",
        "y*sin(x)/z + 2*y*cos(x)/z",
        "log(4 + sin(x) + cos(x))",
    ],
)
def test_the_one_wave_is_the_same_function(text: str) -> None:
    law = parse(text)
    (one,) = with_one_wave(law)
    np.testing.assert_allclose(values(one), values(law), rtol=1e-12)
    assert one.complexity < law.complexity
    assert len([part for part in ("sin", "cos") for _ in range(str(one).count(part))]) == 1


def test_fitted_frequencies_that_are_nearly_one_become_one() -> None:
    (one,) = with_one_wave(parse("3*sin(1.99*x) + 3*cos(2.01*x)"))
    assert free_constants(one) == pytest.approx([math.sqrt(18), 1.99, math.pi / 4])


def test_of_three_waves_each_two_that_fit_are_joined() -> None:
    joined = [str(one) for one in with_one_wave(parse("sin(x) + cos(x) + 2*sin(3*x) + cos(3*x)"))]
    assert len(joined) == 2
    assert all(len(with_one_wave(parse(one))) == 1 for one in joined)


@pytest.mark.parametrize(
    "text",
    ["sin(x)*cos(x)", "sin(x) + cos(y)", "sin(x) + cos(2*x)", "y*sin(x) + z*cos(x)", "sin(2) + cos(2)", "sin(x)"],
)
def test_waves_that_are_not_of_one_frequency_stay(text: str) -> None:
    assert with_one_wave(parse(text)) == []


def test_waves_that_cancel_are_no_wave() -> None:
    assert with_one_wave(parse("sin(x) - sin(x)")) == []


def test_a_search_finds_a_wave_with_its_phase() -> None:
    x = np.linspace(0.5, 3.0, 60)[:, None]
    y = 0.7 * np.sin(2.3 * x[:, 0] + 0.8)
    model = PSERegressor(["+", "-", "*", "sin", "cos"], max_time=20, random_state=0).fit(x, y)
    assert str(model.best_expression_) == "0.7*sin(2.3*x1 + 0.8)"
