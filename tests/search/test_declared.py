"""Numbers that are multiples of declared constants get their names, and no others."""

from __future__ import annotations

import math

import pytest

from symenum.expressions import evaluate
from symenum.search.declared import declared_number

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
