"""What a law may look like: nesting, depth, operators on variables, variables that must be there."""

from __future__ import annotations

import pytest

from symenum.expressions import parse
from symenum.heads.operator_grammar import NO_PRIOR, Prior
from symenum.operators import get_operators


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("sin(x)", True),
        ("sin(x) + sin(y)", True),
        ("sin(sin(x))", False),
        ("sin(x + cos(y))", False),
        ("cos(sin(x))", True),
        ("sin(2*(x + exp(sin(y))))", False),
        ("exp(exp(x))", True),
        ("exp(exp(exp(x)))", False),
        ("exp(exp(x) + exp(y))", True),
    ],
)
def test_nesting_counts_on_one_way_down(text: str, allowed: bool) -> None:
    prior = Prior(nested={"sin": {"sin": 0, "cos": 0}, "exp": {"exp": 1}})
    assert prior.allows(parse(text)) is allowed


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("2*t + 3", True),
        ("sin(t)*x", True),
        ("sin(t/2)", True),
        ("exp(t)", False),
        ("exp(x)*t", True),
        ("exp(x*t)", False),
        ("t/x", False),
        ("1/x", True),
    ],
)
def test_only_some_operators_act_on_a_variable(text: str, allowed: bool) -> None:
    prior = Prior(variable_operators={"t": get_operators(["+", "*", "sin"])})
    assert prior.allows(parse(text)) is allowed


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("2*t + 3", True), ("-t/x**2 + sin(x)", True), ("(t - 1)*(x + 2)*exp(x)", True), ("sin(x)", True),
        ("t*(x + t)", False), ("t**2", False), ("x/t", False), ("sin(t)", False), ("x + exp(0.1*t)", False),
        ("sqrt(t*x)", False), ("2**t", False),
    ],
)  # fmt: skip
def test_a_law_is_a_straight_line_in_some_variables(text: str, allowed: bool) -> None:
    prior = Prior(straight=("t",))
    assert prior.forbids_parts
    assert prior.allows_part(parse(text)) is prior.allows(parse(text)) is allowed


def test_depth_and_required_variables() -> None:
    assert Prior(max_depth=2).allows(parse("sin(x)*y"))
    assert not Prior(max_depth=2).allows(parse("sin(x + y)*y"))
    assert Prior(required=("x", "y")).allows(parse("x + y"))
    assert not Prior(required=("x", "y")).allows(parse("x + 1"))
    assert not Prior(required=("x", "y")).allows(parse("y*sin(x)/y"))
    assert Prior(required=("x", "y")).allows_part(parse("x + 1"))


def test_nothing_known_allows_all() -> None:
    assert not NO_PRIOR.active
    assert NO_PRIOR.allows(parse("sin(sin(sin(x)))"))
