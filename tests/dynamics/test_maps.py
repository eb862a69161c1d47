"""Maps, x(t+1) = f(x(t)): found, iterated, exported, and refused in words where they cannot be."""

from __future__ import annotations

import math

import numpy as np
import pytest

from symenum import ODERegressor, plot_trajectories
from symenum.bench.judge import same_structure
from symenum.dynamics.trajectory import make_map_pieces
from symenum.expressions import parse


def orbit(step, start, count: int = 200) -> np.ndarray:
    states = [np.asarray(start, dtype=float)]
    for _ in range(count - 1):
        states.append(np.asarray(step(*states[-1]), dtype=float))
    return np.array(states)


LOGISTIC = orbit(lambda x: [3.7123 * x * (1 - x)], [0.3])
HENON = orbit(lambda x, y: [1 - 1.4 * x**2 + y, 0.3 * x], [0.1, 0.1])


def quick(**parameters) -> ODERegressor:
    settings = {"operators": "arithmetic", "step": "map", "max_iterations": 1, "max_time": None, "random_state": 0}
    return ODERegressor(**{**settings, **parameters})


@pytest.fixture(scope="module")
def logistic() -> ODERegressor:
    return quick().fit(LOGISTIC)


def test_the_logistic_map_comes_out_to_the_last_digit(logistic: ODERegressor) -> None:
    assert str(logistic.best_expressions_["x1"]) == "3.7123*x1 - 3.7123*x1**2"
    assert logistic.noise_ == {}
    assert logistic.score(LOGISTIC) == pytest.approx(1)


def test_the_henon_map_comes_out_with_two_states() -> None:
    model = quick().fit(HENON)
    assert same_structure(model.best_expressions_["x1"], parse("x2 - x1**2 + 1"))
    assert same_structure(model.best_expressions_["x2"], parse("x1"))


def test_the_ricker_map_with_noise_in_its_steps() -> None:
    random = np.random.default_rng(0)
    orbits = [orbit(lambda n: [n * np.exp(1.8 * (1 - n / 5) + 0.05 * random.normal())], [s], 150) for s in (1, 7)]
    model = quick(operators=["+", "-", "*", "exp"], guesses=["a*x1*exp(b*x1)"], max_time=None).fit(orbits)
    assert same_structure(model.best_expressions_["x1"], parse("x1*exp(1 - x1)")) or same_structure(
        model.best_expressions_["x1"], parse("x1*exp(-x1)")
    )
    values = model.predict([[5.0], [1.0]])[:, 0]
    assert values == pytest.approx([5.0, math.exp(1.44)], rel=0.06)


def test_inputs_and_missing_steps() -> None:
    u = np.sin(np.arange(200.0) ** 2)
    x = np.zeros(200)
    for i in range(199):
        x[i + 1] = 0.5 * x[i] + u[i]
    t = np.arange(200)
    keep = (t < 60) | (t > 70)
    model = quick().fit(x[keep, None], t[keep], u[keep])
    assert same_structure(model.best_expressions_["x1"], parse("x1 + u1"))
    assert model.simulate([0.0], np.arange(200), u)[:, 0] == pytest.approx(x, abs=1e-3)
    assert [len(piece) for piece in make_map_pieces(x[keep], t[keep])] == [60, 129]


def test_it_is_iterated_shown_and_exported(logistic: ODERegressor) -> None:
    assert logistic.simulate([0.3], np.arange(5))[:, 0] == pytest.approx(LOGISTIC[:5, 0], abs=1e-12)
    assert "x1(t+1) =" in str(logistic)
    assert logistic.latex().count("(t+1)") == 1
    namespace: dict[str, object] = {}
    assert "def next_state(state):" in logistic.export("python")
    assert "void next_state" in logistic.export("c")
    with pytest.raises(ValueError, match="a map is a function to call again"):
        logistic.export("scipy")
    assert not namespace
    figure = plot_trajectories(logistic, LOGISTIC, None)
    assert len(figure.axes) == 1


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"order": 2}, "order must be 1 for step"),
        ({"derivative": "spline"}, "derivative must be left out for step"),
        ({"loss": "huber"}, 'loss must be "mse" for step'),
        ({"step": "year"}, "step must be one of 'time', 'map'"),
    ],
)
def test_what_a_map_cannot_have_is_refused(parameters: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        quick(**parameters).fit(LOGISTIC)


def test_wrong_times_and_too_few_steps_are_refused() -> None:
    with pytest.raises(ValueError, match=r't must go in even steps for step="map", and the time 1\.5'):
        quick().fit(LOGISTIC[:20], np.r_[0, 1, 1.5, np.arange(3, 20)])
    with pytest.raises(ValueError, match="X has 4 pairs of a state and the next one, and at least 8"):
        quick().fit(LOGISTIC[:5])
    with pytest.raises(ValueError, match=r't is missing: .* only step="map" needs none'):
        quick(step="time").fit(LOGISTIC)
