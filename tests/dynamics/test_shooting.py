"""Multiple shooting: constants and starts from noisy trajectories, and what it refuses."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from symenum.dynamics.derivatives import SavitzkyGolay, smooth
from symenum.dynamics.shooting import Followed, Nodes, Segment, _Chain, blow_ups, follow
from symenum.expressions import parse

T = np.linspace(0, 10, 201)
ERROR = 0.02


def nodes_of(t: np.ndarray, X: np.ndarray, error: float = ERROR, cuts: tuple[int, ...] = ()) -> Nodes:
    fit = smooth(t, X, SavitzkyGolay().windows(t, X))
    names = tuple(f"x{i + 1}" for i in range(X.shape[1]))
    ends = (0, *cuts, len(t))
    segments = tuple(Segment(a, b) for a, b in itertools.pairwise(ends))
    motion = {name: (fit.values[:, i], fit.first[:, i]) for i, name in enumerate(names)}
    return Nodes(t, X, np.full_like(X, error), names, motion, segments)


def oscillator(noise: float = ERROR, seed: int = 0) -> np.ndarray:
    X = np.column_stack([np.cos(2 * T), -2 * np.sin(2 * T)])
    return X + noise * np.random.default_rng(seed).normal(size=X.shape)


def laws(*texts: str) -> Followed:
    return Followed(tuple(f"x{i + 1}" for i in range(len(texts))), tuple(map(parse, texts)))


@pytest.mark.parametrize("cuts", [(), (60, 130)])
def test_constants_come_back_within_their_standard_errors(cuts: tuple[int, ...]) -> None:
    shot = follow(laws("1.1*x2", "-3.5*x1 - 0.1*x2"), nodes_of(T, oscillator(), cuts=cuts))
    assert shot is not None
    errors = shot.standard_errors()
    assert np.all(np.abs(np.array(shot.constants) - [1, -4, 0]) * [1, 1, 1] < 4 * errors)
    assert np.all(errors < 0.05)
    # A sum of 201 squared errors for each state, less what starts and constants have taken.
    assert np.all(np.abs(shot.chi_square / len(T) - 1) < 0.3)
    assert shot.states.shape == (2, len(T))


def test_standard_errors_are_the_spread_over_many_noises() -> None:
    found = []
    for seed in range(40):
        shot = follow(laws("x2", "-3.9*x1"), nodes_of(T, oscillator(seed=seed)))
        assert shot is not None
        found.append((shot.constants[0], float(shot.standard_errors()[0])))
    values, errors = np.array(found).T
    assert 0.7 < values.std() / errors.mean() < 1.4


def test_inner_constants_are_fitted_too() -> None:
    t = np.linspace(0, 6, 151)
    x = 3 * np.exp(0.8 * t) / (1 + 0.3 * (np.exp(0.8 * t) - 1))
    X = x[:, None] * (1 + 0.01 * np.random.default_rng(1).normal(size=(151, 1)))
    shot = follow(laws("0.6*x1*(1 - x1/12)"), nodes_of(t, X, 0.08))
    assert shot is not None
    rate, capacity = shot.constants
    assert abs(rate - 0.8) < 0.02
    assert abs(capacity - 10) < 0.1


def test_one_equation_is_followed_while_the_others_are_as_measured() -> None:
    shot = follow(Followed(("x2",), (parse("-3*x1"),)), nodes_of(T, oscillator(0.005), 0.005))
    assert shot is not None
    assert abs(shot.constants[0] + 4) < 0.01
    assert shot.chi_square.shape == (1,)


def test_second_order_needs_positions_alone() -> None:
    X = oscillator()[:, :1]
    nodes = nodes_of(T, X)
    fit = smooth(T, X, SavitzkyGolay().windows(T, X))
    motion = {"x1": nodes.motion["x1"], "v": (fit.first[:, 0], fit.second[:, 0])}
    moving = Nodes(T, X, nodes.errors, ("x1",), motion, nodes.segments)
    shot = follow(Followed(("x1", "v"), (parse("v"), parse("-3.8*x1"))), moving)
    assert shot is not None
    assert abs(shot.constants[0] + 4) < 0.05
    assert shot.chi_square.shape == (1,)


@pytest.mark.parametrize("text", ["log(x1 - 5)", "exp(exp(40*x1))", "1/(x1 - x1)", "300*x1**3"])
def test_laws_that_cannot_be_followed_are_none(text: str) -> None:
    assert follow(laws("x2", text), nodes_of(T, oscillator())) is None


def test_a_fit_that_is_far_too_bad_is_given_up() -> None:
    nodes = nodes_of(T, oscillator())
    assert follow(laws("0.5*x1", "0.5*x1"), nodes, hopeless=1000.0) is None
    assert follow(laws("x2", "-3.9*x1"), nodes, hopeless=1000.0) is not None


@pytest.mark.parametrize("intervals", [[1], [7], [16, 5], [30, 1, 12]])
def test_joined_maps_are_those_of_one_after_another(intervals: list[int]) -> None:
    random = np.random.default_rng(0)
    step, added = random.normal(size=(sum(intervals), 2, 2)), random.normal(size=(sum(intervals), 2, 3))
    joined = _Chain(intervals).joined(step, added)
    expected = []
    at = 0
    for count in intervals:
        now = np.concatenate([np.eye(2), np.zeros((2, 3))], axis=1)
        expected.append(now)
        for _ in range(count):
            now = step[at] @ now
            now[:, 2:] += added[at]
            expected.append(now)
            at += 1
    assert np.allclose(joined, np.array(expected))


def test_blow_ups_are_counted() -> None:
    starts = {"x1": np.array([-1.0, 0.1, 1.0, 2.0])}
    size = np.array([2.0])
    assert blow_ups(laws("x1**2"), starts, 0.01, 1500, size) == 3  # within a time of 15, all but the negative start
    assert blow_ups(laws("-x1"), starts, 0.01, 1500, size) == 0
    assert blow_ups(laws("sqrt(x1)"), starts, 0.01, 10, size) == 1
