"""One pass of all heads: laws come out with their constants, bad input gives an answer or a clear error, never NaN."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest
from heads.tasks import loss_of

from symenum.bench.judge import recovered
from symenum.bench.problems import Problem, get_problem
from symenum.expressions import evaluate, parse, same_function, variables
from symenum.heads import first_pass


def uniform(rows: int, slots: int, seed: int = 0, low: float = -2.0, high: float = 2.0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(low, high, (rows, slots))


@pytest.mark.parametrize(
    "name",
    [
        "Nguyen-1",
        "Nguyen-5c",
        "Nguyen-7",
        "Nguyen-8c",
        "Nguyen-12",
        "R-3*",
        "Livermore-7",
        "Livermore-12",
        "Feynman-10",
    ],
)
def test_benchmark_problems_of_every_kind_are_recovered(name: str) -> None:
    problem = get_problem(name)
    best = first_pass(*problem.sample(0))[0]
    assert recovered(best.expression, problem), str(best)


def test_candidates_are_finite_distinct_and_best_first() -> None:
    X = uniform(30, 2)
    y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=30)
    found = first_pass(X, y, k=7, time_limit=5)
    assert len(found) >= 7
    losses = [candidate.loss for candidate in found]
    assert losses == sorted(losses)
    assert len({candidate.expression for candidate in found}) == len(found)
    for candidate in found:
        assert candidate.loss == pytest.approx(loss_of(candidate.expression, X, y), rel=1e-9)


def test_slots_may_be_expressions_and_are_printed() -> None:
    x = uniform(20, 1, low=0.5)[:, 0]
    z = np.exp(x) + 1
    best = first_pass(z[:, None], 3 * z**2 - z, slots=[parse("exp(t) + 1")])[0]
    assert same_function(best.expression, parse("3*(exp(t) + 1)**2 - (exp(t) + 1)"))
    named = first_pass(np.column_stack([x, z]), x * z, slots=["t", parse("exp(t) + 1")])[0]
    assert str(named.expression) in ("t*(exp(t) + 1)", "(exp(t) + 1)*t")


@pytest.mark.parametrize("value", [0.0, 2.5, -1e9, 1e-12])
def test_constant_y_gives_that_constant(value: float) -> None:
    best = first_pass(uniform(12, 2), np.full(12, value))[0]
    assert not variables(best.expression)
    assert float(evaluate(best.expression, {})) == pytest.approx(value, rel=1e-12)
    assert best.loss <= 1e-20 * value**2


def test_y_with_zeros_and_negative_values() -> None:
    X = uniform(25, 1)
    X[3] = 0.0
    y = X[:, 0] ** 3 - X[:, 0]
    assert same_function(first_pass(X, y)[0].expression, parse("x1**3 - x1"))


@pytest.mark.parametrize("rows", [1, 2, 3, 5])
def test_fewer_rows_than_terms(rows: int) -> None:
    X = uniform(rows, 3)
    found = first_pass(X, X[:, 0] * X[:, 1] + 1, time_limit=20)
    assert len(found) >= 1
    assert all(np.isfinite(candidate.loss) for candidate in found)


def test_duplicated_constant_and_zero_columns() -> None:
    x = uniform(30, 2)
    X = np.column_stack([x[:, 0], x[:, 0], np.zeros(30), np.full(30, 3.0), x[:, 1]])
    found = first_pass(X, x[:, 0] * x[:, 1] - 2)
    assert all(np.isfinite(candidate.loss) for candidate in found)
    assert found[0].loss < 1e-25
    assert str(first_pass(X[:, :2], 3 * x[:, 0])[0].expression) == "3*x1"  # not spread over two equal columns
    falling = first_pass(np.column_stack([x[:, 0], np.full(30, 9.81)]), 9.81 * x[:, 0] ** 2 / 2, slots=["t", "g"])
    assert str(falling[0].expression) == "4.905*t**2"  # the data cannot say which power of g it is
    only_constant = first_pass(np.full((10, 1), 2.0), np.arange(10.0), time_limit=20)
    assert only_constant[0].loss == pytest.approx(8.25)


@pytest.mark.parametrize("scale_x", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("scale_y", [1e-8, 1e8])
def test_extreme_scales(scale_x: float, scale_y: float) -> None:
    X = uniform(30, 2, low=0.5)
    y = scale_y * (X[:, 0] / X[:, 1] + 2 * X[:, 0])
    found = first_pass(X * scale_x, y, time_limit=20)
    assert found[0].loss <= 1e-24 * np.mean(y**2)
    assert all(np.isfinite(candidate.loss) for candidate in found)


def test_large_offset() -> None:
    X = uniform(40, 2)
    y = np.sin(X[:, 0]) * X[:, 1] + 1e6
    found = first_pass(X, y, time_limit=20)
    assert found[0].loss <= 1e-18
    assert "sin(x1)" in str(found[0].expression)


def test_row_weights_decide() -> None:
    X = uniform(40, 1)
    y = np.where(np.arange(40) < 20, X[:, 0] ** 2 + 1, np.exp(3 * X[:, 0]))
    weight = np.where(np.arange(40) < 20, 1.0, 0.0)
    assert same_function(first_pass(X, y, sample_weight=weight)[0].expression, parse("x1**2 + 1"))


def test_under_noise_the_law_is_among_the_candidates_and_constants_are_not_forced() -> None:
    X = uniform(200, 2)
    clean = 1.37 * X[:, 0] * X[:, 1] + 2
    y = clean + 0.05 * np.random.default_rng(1).normal(size=200)
    found = first_pass(X, y, time_limit=8)  # found at once; nothing ends the pass, as no law is exact
    noise = np.mean((y - clean) ** 2)
    assert found[0].loss <= 1.02 * noise
    simple = [candidate for candidate in found if candidate.complexity <= 3 and candidate.loss <= 1.02 * noise]
    assert simple, str(found)
    assert all("x1*x2" in str(candidate.expression) for candidate in simple)
    assert not any("1.37*" in str(candidate.expression) for candidate in simple)


def test_a_time_limit_and_a_stop_flag_are_kept() -> None:
    X = uniform(50, 5, low=1)
    y = np.random.default_rng(0).normal(size=50)
    start = time.perf_counter()
    found = first_pass(X, y, time_limit=0.5)
    assert time.perf_counter() - start < 4  # a single step of a head is not cut short
    assert not found.complete
    assert len(found) >= 1
    stopped = first_pass(X, y, stop=lambda: True)
    assert not stopped.complete
    assert 1 <= len(stopped) <= 2  # the mean, and a nice number near it


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"values": [[1.0], [float("nan")]], "y": [1.0, 2.0]}, "NaN"),
        ({"values": [[1.0], [2.0]], "y": [1.0, float("inf")]}, "y has NaN"),
        ({"values": [[1.0], [2.0]], "y": [1.0]}, "y must have shape"),
        ({"values": [[1.0], [2.0]], "y": [1.0, 2.0], "k": 0}, "k must be"),
        ({"values": [[1.0], [2.0]], "y": [1.0, 2.0], "slots": "x"}, "slots must be"),
        ({"values": [[1.0], [2.0]], "y": [1.0, 2.0], "slots": ["a", "b"]}, "slots must be a sequence of 1"),
        ({"values": [[1.0, 2.0]] * 2, "y": [1.0, 2.0], "slots": ["a", "a"]}, "slots must differ"),
        ({"values": [[1.0], [2.0]], "y": [1.0, 2.0], "sample_weight": [-1, 1]}, "sample_weight"),
        ({"values": [[1.0], [2.0]], "y": [1.0, 2.0], "operators": "nope"}, "unknown operator set"),
    ],
)
def test_bad_input_is_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        first_pass(**arguments)


FOLDER = Path(os.environ.get("SYMENUM_DATA", "")) / "fifty_dim"  # too large for the repository


@pytest.mark.skipif(
    "SYMENUM_DATA" not in os.environ or not FOLDER.is_dir(),
    reason="needs fifty_dim/ in the folder that SYMENUM_DATA names",
)
@pytest.mark.parametrize("number", [2, 16])
def test_a_law_of_twelve_among_fifty_variables_is_found(number: int) -> None:
    table = np.loadtxt(FOLDER / f"synthetic_50d_{number}.csv", delimiter=",")
    law = (FOLDER / f"synthetic_50d_{number}.txt").read_text(encoding="utf-8").strip().replace("x_", "x")
    problem = Problem("fifty", law, tuple(f"x{i + 1}" for i in range(50)), -1.0, 1.0, len(table))
    assert recovered(first_pass(table[:, :-1], table[:, -1])[0].expression, problem)
