"""Terms that stand in several laws of a system are found and written once."""

from __future__ import annotations

import numpy as np
import pytest
from dynamics.motions import motion
from dynamics.test_choose_on_trajectories import choose, pool

from symenum.dynamics.shared_parts import shared_parts, ties
from symenum.expressions import parse

T = np.linspace(0, 8, 161)


def found(*laws: str) -> list[str]:
    parts = shared_parts({f"x{i + 1}": parse(law) for i, law in enumerate(laws)})
    return [str(one) for one in parts]


def test_the_order_of_factors_and_the_sign_do_not_matter() -> None:
    assert found("2*x1 - 0.3*x1*x2", "0.3*x2*x1 - x2") == ["x1*x2: -0.3 in the law of x1, +0.3 in the law of x2"]
    assert found("-k*x1/(1 + x2)".replace("k", "2"), "5*x1/(x2 + 1)") != []
    assert found("x1*sin(x2)", "x2 - 4*sin(x2)*x1")[0].endswith("+1 in the law of x1, -4 in the law of x2")


def test_states_alone_and_parts_of_one_law_are_none() -> None:
    assert found("2*x1", "3*x1 - x2") == []
    assert found("x1*x2 + x1**2", "x3", "x1") == []


def test_what_one_loses_others_gain_is_balanced() -> None:
    (part,) = shared_parts({"a": parse("-0.5*a*b"), "b": parse("-0.5*a*b"), "c": parse("a*b")})
    assert part.balanced
    assert list(part.coefficients) == ["a", "b", "c"]
    (other,) = shared_parts({"a": parse("-0.5*a*b"), "b": parse("0.4*a*b")})
    assert not other.balanced


def test_constants_of_one_term_in_two_laws_may_be_one() -> None:
    (tie,) = ties([parse("1.5*x1 - 0.3*x1*x2"), parse("0.31*x2*x1 - 2.5*x2")])
    assert (tie.first, tie.second) == (1, 2)
    assert ties([parse("1.5*x1"), parse("2.5*x1")]) == []
    assert ties([parse("sin(1.5*x1*x2)"), parse("2.5*x1*x2")]) == []


@pytest.mark.parametrize(("rate", "one"), [("1.37", True), ("1.9", False)])
def test_a_coefficient_is_shared_where_the_data_allow_it_and_only_there(rate: str, one: bool) -> None:
    X = motion(["1.84*x1 - 1.37*x1*x2", f"{rate}*x1*x2 - 2.8*x2"], (3.0, 1.0), T)
    X = X * (1 + 0.01 * np.random.default_rng(0).normal(size=X.shape))
    chosen = choose(X, pool("2*x1 - 1.4*x1*x2"), pool("1.5*x1*x2 - 3*x2"), t=T)
    parts = shared_parts(dict(zip(("x1", "x2"), chosen.laws, strict=True)))
    assert parts[0].balanced == one
    assert abs(parts[0].coefficients["x1"] + 1.37) < 0.03
