"""Numbers that are multiples of declared constants get their names, and no others."""

from __future__ import annotations

import math

import pytest

from symenum.expressions import evaluate
from symenum.search.named_constants import declared_number

DECLARED = {"g": 9.81, "c": 299792458.0, "k": -1.5e-3}


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (9.81, "g"),
        (-9.81, "-g"),
        (4.905, "g/2"),
        (1 / 9.81, "1/g"),
        (3 * 9.81**2 / 4, "3*g**2/4"),
        (math.sqrt(9.81), "sqrt(g)"),
        (2 / 9.81, "2/g"),
        (299792458.0**2, "c**2"),
        (9.81 / 299792458.0, "g/c"),
        (-0.75e-3, "k/2"),
        (0.75e-3, "-(k/2)"),
    ],
)
def test_multiples_are_recognised(value: float, name: str) -> None:
    found = declared_number(value, 1e-12 * abs(value), DECLARED)
    assert str(found) == name
    assert float(evaluate(found, {})) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(("value", "window"), [(9.9, 0.01), (9.81, 2.0), (4.9, 0.2), (7.123, 1e-9), (2.5, 1e-12)])
def test_what_may_be_chance_is_not(value: float, window: float) -> None:
    assert declared_number(value, window, {"g": 9.81, "h": 10.0}) is None


@pytest.mark.parametrize("value", [1e200, 1e-200, 1e-300, -1e308])
def test_constants_of_any_size_may_be_declared(value: float) -> None:
    declared = {"big": value, "g": 9.81}
    assert str(declared_number(4.905, 1e-6, declared)) == "g/2"
    assert str(declared_number(value, abs(value) * 1e-12, declared)) == "big"


def test_a_constant_whose_inverse_is_infinite_is_no_unit() -> None:
    assert declared_number(4.905, 1e-6, {"small": 5e-324}) is None
