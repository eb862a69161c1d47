"""Units are read as people write them, and what is none is refused with what is wrong."""

from __future__ import annotations

import pytest

from symenum.core.dimensions import DIMENSIONLESS, Dimension
from symenum.estimator.unit_text import read_unit, unit_in_name

NEWTON = Dimension.of(kg=1, m=1, s=-2)


@pytest.mark.parametrize(
    "text",
    ["N", "kg*m/s^2", "kg m s-2", "kg·m·s⁻²", "kg*m/(s*s)", "kg m/s/s", "kg*m*s**-2", "J/m", " kN ", "kg^(1/1) m s^-2"],
)
def test_the_newton_however_it_is_written(text: str) -> None:
    assert read_unit(text).dimension == NEWTON


@pytest.mark.parametrize(
    ("text", "factor"),
    [("km", 1e3), ("µm", 1e-6), ("μm", 1e-6), ("um", 1e-6), ("g", 1e-3), ("kWh", 3.6e6), ("10^3 m", 1e3), ("min", 60.0),
     ("cm2", 1e-4), ("1/ms", 1e3), ("kΩ", 1e3), ("mmol/L", 1.0), ("km^2", 1e6), ("%", 0.01)],
)  # fmt: skip
def test_prefixes_are_factors(text: str, factor: float) -> None:
    assert read_unit(text).factor == pytest.approx(factor, rel=1e-12)


@pytest.mark.parametrize("text", ["", "1", "rad", "deg", "°", "%", "m/m", "sr"])
def test_numbers_and_angles_are_dimensionless(text: str) -> None:
    assert read_unit(text).dimension == DIMENSIONLESS


def test_roots_of_units_are_units() -> None:
    assert read_unit("V/Hz^(1/2)").dimension == read_unit("V s^0.5").dimension


@pytest.mark.parametrize(
    ("text", "why"),
    [("furlong", "not known"), ("m/", "missing at the end"), ("(m", "missing at the end"),
     ("(m^2^3", "not closed"), ("m^x", "a power is a number"),
     ("m$", "no meaning"), ("°C", "convert the column to K"), ("m**(1/0)", "divided by 0"), ("*m", "should"),
     ("m)", "should"), ("m" * 300, "at most 200"), ("metr", "not known"), ("0 m", "no factor")],
)  # fmt: skip
def test_what_is_no_unit_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_unit(text)


@pytest.mark.parametrize("value", [3, None, ["m"], b"m"])
def test_what_is_no_text_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="a unit is a text"):
        read_unit(value)


def test_units_in_names_of_columns() -> None:
    assert unit_in_name("speed [m/s]") == ("speed", "m/s")
    assert unit_in_name("mass (kg)") == ("mass", "kg")
    assert unit_in_name("flow rate (in) [m^3/(s kg)]") == ("flow rate (in)", "m^3/(s kg)")
    assert unit_in_name("speed") is None
