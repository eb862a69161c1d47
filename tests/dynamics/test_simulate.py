"""Simulation agrees with what is known, and always ends."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from symenum import make_operator
from symenum.dynamics.simulate import right_side, simulate
from symenum.expressions import apply, evaluate, parse
from symenum.operators import OPERATORS, get_operator

T = np.linspace(0, 5, 60)


def run(laws, start, t=T, **limits):
    names = [f"x{i + 1}" for i in range(len(laws))]
    return simulate(
        right_side([parse(law) for law in laws], names, None, 1), np.array(start), t, **{"max_time": None, **limits}
    )


def test_a_known_motion() -> None:
    done = run(["x2", "-x1"], [0.0, 1.0])
    assert done.stopped is None
    np.testing.assert_allclose(done.states, np.column_stack([np.sin(T), np.cos(T)]), atol=1e-6)


def test_second_order_and_inputs() -> None:
    right = right_side([parse("u1 - q")], ["q", "q_dot", "u1"], lambda t: np.array([t]), 2)
    done = simulate(right, np.array([0.0, 0.0]), T, max_time=None)
    np.testing.assert_allclose(done.states[:, 0], T - np.sin(T), atol=1e-6)


def test_a_blow_up_ends_with_nan() -> None:
    done = run(["x1**2"], [1.0])
    assert done.stopped is not None
    finite = np.isfinite(done.states[:, 0])
    assert finite[0]
    assert not finite[-1]
    np.testing.assert_allclose(done.states[finite, 0], 1 / (1 - T[finite]), rtol=1e-4)


@pytest.mark.parametrize("law", ["log(x1 - 2)", "1/(x1 - 1)"])
def test_a_start_outside_the_domain_is_said(law: str) -> None:
    done = run([law], [1.0])
    assert "not defined" in (done.stopped or "")


def test_leaving_the_domain_ends() -> None:
    done = run(["-1 - sqrt(x1)"], [1.0])
    assert done.stopped is not None
    assert np.isnan(done.states[-1, 0])


def test_steps_and_time_are_bounded() -> None:
    fast = ["1000000*x2", "-1000000*x1"]
    done = run(fast, [1.0, 0.0], np.linspace(0, 1e3, 10), max_steps=50)
    assert "50 steps" in (done.stopped or "")
    ticks = itertools.count()  # a clock that goes on by a second with each look at it
    done = run(fast, [1.0, 0.0], np.linspace(0, 1e3, 10), max_time=3, clock=lambda: next(ticks))
    assert "more than 3 s" in (done.stopped or "")
    assert next(ticks) == 5


def test_every_operator_means_what_it_means_elsewhere() -> None:
    for name, operator in OPERATORS.items():
        values = [1.3, 0.7][: operator.arity]
        law = apply(operator, *(parse(f"x{i + 1}") for i in range(operator.arity)))
        right = right_side([law, parse("0")], ["x1", "x2"], None, 1)
        columns = {f"x{i + 1}": np.array([value]) for i, value in enumerate(values)}
        expected = evaluate(law, columns)[0]
        assert right(0.0, np.array([1.3, 0.7]))[0] == pytest.approx(expected), name


def test_an_operator_of_ones_own() -> None:
    cube = make_operator("cubed", lambda x: x * x * x)
    law = apply(get_operator(cube), parse("x1"))
    assert right_side([law], ["x1"], None, 1)(0.0, np.array([2.0]))[0] == 8.0
