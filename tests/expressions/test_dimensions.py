"""The dimension of an expression, against a change of units: a law with a dimension scales as that says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from symenum.core.dimensions import DIMENSIONLESS, Dimension
from symenum.expressions import DimensionError, Units, evaluate, parse, to_text
from symenum.operators import OPERATORS
from symenum.operators.traits import DimensionRule

M, S, KG = Dimension.of(m=1), Dimension.of(s=1), Dimension.of(kg=1)
KNOWN = Units({"l": M, "d": M, "t": S, "m": KG, "a": DIMENSIONLESS}, M)
FREE = Units(KNOWN.variables, M, free=True)
CHANGED = {"m": 1.7, "s": 0.6, "kg": 2.9}  # how many new units one old unit is


def scale_of(dimension: Dimension) -> float:
    factors = [CHANGED.get(name, 1.0) for name in ("m", "kg", "s", "A", "K", "mol", "cd")]
    return math.prod(factor ** float(power) for factor, power in zip(factors, dimension.exponents, strict=True))


@pytest.mark.parametrize(
    ("text", "unit"),
    [("l + d", "m"), ("l*d", "m**2"), ("l/t", "m/s"), ("sqrt(l*d)", "m"), ("l**2/d", "m"), ("(l*d)**(1/4)", "m**(1/2)"),
     ("sin(l/d)", "1"), ("exp(a)*l", "m"), ("abs(l - d)", "m"), ("sign(l - d)", "1"), ("-l", "m"), ("2*l + d/3", "m"),
     ("m*l**2/t**2", "kg*m**2/s**2"), ("a**a", "1"), ("l**3/(l*d)", "m"), ("pi*l", "m"),
     ("l**0.333333333333333", "m**(1/3)")],
)  # fmt: skip
def test_the_dimension_is_that_by_which_values_scale(text: str, unit: str) -> None:
    law = parse(text)
    found = KNOWN.of(law)
    assert str(found) == unit
    assert found is not None
    rng = np.random.default_rng(0)
    columns = {name: rng.uniform(0.5, 2, 5) for name in KNOWN.variables}
    scaled = {name: column * scale_of(KNOWN.variables[name]) for name, column in columns.items()}
    assert np.allclose(evaluate(law, scaled), evaluate(law, columns) * scale_of(found), rtol=1e-9)


@pytest.mark.parametrize("text", ["l + t", "l + 1", "sin(l)", "log(t)", "l**a", "l**t", "exp(l*t)", "l - m", "cosh(t)"])
def test_what_has_no_dimension_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(DimensionError):
        KNOWN.of(parse(text))
    assert KNOWN.reason(parse(text))


def test_a_law_must_have_the_dimension_of_the_target() -> None:
    assert KNOWN.allows(parse("l + d*sin(a)"))
    assert not KNOWN.allows(parse("l*t"))
    assert KNOWN.consistent(parse("l*t"))
    assert "s" in str(KNOWN.reason(parse("l*t")))


def test_free_numbers_take_the_dimension_that_is_missing() -> None:
    for text in ("3.5*t", "l + 2.5", "sin(1.5*t)*l", "exp(0.5*l*t)*2.5", "2.5*(t + 0.5)"):
        assert FREE.allows(parse(text)), text
    for text in ("sin(t)", "l + t", "l + sin(0.5*t)*t"):
        assert not FREE.allows(parse(text)), text


def test_the_units_of_the_numbers_of_a_law_are_told() -> None:
    found = FREE.of_numbers(parse("3.5*t + sin(1.5*t)*l + 2.5"))
    assert [(number.value, str(unit)) for number, unit in found] == [(3.5, "m/s"), (1.5, "1/s"), (2.5, "m")]


def test_constants_with_names_have_their_own_units() -> None:
    units = Units({"t": S}, M, constants={"c": M / S})
    assert units.allows(parse("c*t", (), {"c": 3e8}))
    assert not units.allows(parse("t", (), {"c": 3e8}))


def test_a_number_that_is_added_to_something_with_a_unit_is_taken_out() -> None:
    assert to_text(KNOWN.repaired(parse("2*l + 0.5"))) == "2*l"
    assert to_text(KNOWN.repaired(parse("0.5 - l"))) == "-l"
    assert to_text(KNOWN.repaired(parse("l*sin(2*a + 0.5)"))) == "l*sin(2*a + 0.5)"
    assert FREE.repaired(parse("2*l + 0.5")) == parse("2*l + 0.5")


@pytest.mark.parametrize(
    ("outer", "unit"),
    [("h", "m"), ("l*h", "1"), ("h/t", "m*s"), ("l/h", "1"), ("sqrt(h)", "m**2"), ("1/h", "1/m"), ("h**2", "m**(1/2)"),
     ("l + h", "m")],
)  # fmt: skip
def test_the_dimension_of_a_hole_is_what_makes_the_whole_right(outer: str, unit: str) -> None:
    assert str(KNOWN.wanted(parse(outer), "h")) == unit


@pytest.mark.parametrize("outer", ["exp(h)", "t + h", "sin(h)"])
def test_where_nothing_fits_there_is_no_dimension_of_the_hole(outer: str) -> None:
    assert KNOWN.wanted(parse(outer), "h") is None


def test_the_rule_of_every_operator_follows_from_role_and_degree() -> None:
    rules = {name: operator.dimension_rule for name, operator in OPERATORS.items()}
    assert {name for name, rule in rules.items() if rule is DimensionRule.NUMBER} == {
        "sin", "cos", "exp", "log", "tanh", "cosh", "sinh", "sigmoid"
    }  # fmt: skip
    assert rules["pow"] is DimensionRule.POWER
    assert rules["mul"] is DimensionRule.PRODUCT
    assert rules["div"] is rules["semidiv"] is DimensionRule.QUOTIENT


def test_a_number_with_a_unit_becomes_a_plain_number_times_named_constants() -> None:
    units = Units({"t": S}, M, constants={"c": M / S, "g": M / S**2})
    values = {"c": 3.0, "g": 9.81}
    law = units.with_constants(parse("6*t + 4.905*t**2"), values)
    assert law is not None
    assert units.allows(law)
    columns = {"t": np.array([1.0, 2.0])}
    assert np.allclose(evaluate(law, columns), [6 + 4.905, 12 + 4 * 4.905])
    assert Units({"t": S}, KG, constants={"c": M / S}).with_constants(parse("2*t"), {"c": 3.0}) is None
