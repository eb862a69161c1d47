"""`units` of PSERegressor: every law of the front has the target's unit; what cannot be is refused, with the reason."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas
import pytest

from symenum import PSERegressor
from symenum.estimator.physical_constants import PHYSICAL_CONSTANTS, named_constants
from symenum.estimator.units import read_units

RNG = np.random.default_rng(0)
ROWS = 80
TABLE = pandas.DataFrame({"m": RNG.uniform(1, 3, ROWS), "v": RNG.uniform(1, 3, ROWS), "h": RNG.uniform(1, 3, ROWS)})
ENERGY = pandas.Series(TABLE.m * TABLE.v**2 / 2 + 9.81 * TABLE.m * TABLE.h, name="E")
UNITS = {"m": "kg", "v": "m/s", "h": "m", "E": "J"}


def model(**settings: object) -> PSERegressor:
    return PSERegressor(["+", "-", "*", "/"], max_time=None, max_iterations=6, random_state=0, **settings)


def test_every_law_of_the_front_has_the_unit_of_the_target() -> None:
    y = TABLE.m * TABLE.v**2 / 2 + 0.05 * RNG.normal(size=ROWS)
    fitted = model(units=UNITS).fit(TABLE, y.rename("E"))
    units = read_units(fitted, fitted.variable_names_, ["m", "v", "h"], "E", ())
    assert units is not None
    assert all(units.allows(entry.expression) for entry in fitted.front_)
    assert str(fitted.best_expression_) in ("m*v**2/2", "0.5*m*v**2", "m*v*v/2") or "m" in str(fitted.best_expression_)
    assert fitted.unit_lines()[0].startswith("Units: E [kg*m**2/s**2]")


def test_constants_may_have_the_unit_that_is_missing_if_the_user_says_so() -> None:
    fitted = model(units=UNITS, dimensional_constants=True).fit(TABLE, ENERGY)
    assert fitted.front_.has_law()
    assert "[m/s**2]" in fitted.unit_lines()[1], fitted.unit_lines()


def test_named_constants_bring_their_units() -> None:
    fitted = model(units={**UNITS, "g": "m/s^2"}, constants={"g": 9.81}).fit(TABLE, ENERGY)
    assert "g" in str(fitted.best_expression_)
    assert fitted.front_.has_law()


def test_constants_of_nature_have_names_values_and_units() -> None:
    assert named_constants(["c", "k_B"]) == {"c": 299792458.0, "k_B": 1.380649e-23}
    mass = RNG.uniform(1, 3, ROWS)
    fitted = model(units={"m": "kg", "E": "J"}, constants=["c"]).fit(
        pandas.DataFrame({"m": mass}), pandas.Series(mass * 299792458.0**2, name="E")
    )
    assert str(fitted.best_expression_) in ("c**2*m", "m*c**2")
    with pytest.raises(ValueError, match=r"'cc'.*no constant of nature"):
        model(constants=["cc"]).fit(TABLE, ENERGY)
    assert len(PHYSICAL_CONSTANTS) > 15


def test_units_in_the_names_of_columns() -> None:
    table = TABLE.rename(columns={"m": "mass [kg]", "v": "speed (m/s)", "h": "height [m]"})
    y = pandas.Series(TABLE.m * TABLE.v**2, name="energy [J]")
    fitted = model(units="names").fit(table, y)
    assert fitted.variable_names_ == ("mass", "speed", "height")
    assert {"mass", "speed"} <= set(str(fitted.best_expression_).replace("*", " ").split())
    assert np.allclose(fitted.predict(table), y)
    with pytest.raises(ValueError, match="finds no unit in the name 'm'"):
        model(units="names").fit(TABLE, ENERGY)


def test_a_plain_array_as_target_takes_the_one_name_that_is_left() -> None:
    assert model(units=UNITS).fit(TABLE, (TABLE.m * TABLE.v**2).to_numpy()).front_.has_law()


@pytest.mark.parametrize(
    ("units", "why"),
    [
        ({**UNITS, "x": "m"}, "names 'x', which is no column"),
        ({"m": "kg", "v": "m/s", "E": "J"}, "says nothing of 'h'"),
        ({**UNITS, "v": "furlong"}, "units of 'v'.*'furlong' is not known"),
        ({"m": "kg", "v": "m/s", "h": "m", "E": "V"}, "no law of .* has the unit of the target.*none of them has A"),
        ({"m": "kg", "v": "kg/s", "h": "kg", "E": "J"}, "none of them has m"),
        ({"m": "kg m", "v": "m kg", "h": "1", "E": "kg"}, "do not combine"),
        ("columns", "units must be a mapping"),
        (3, "units must be a mapping"),
    ],
)
def test_units_that_cannot_be_are_refused(units: object, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        model(units=units).fit(TABLE, ENERGY)


def test_constants_with_units_need_units() -> None:
    with pytest.raises(ValueError, match="dimensional_constants=True needs units"):
        model(dimensional_constants=True).fit(TABLE, ENERGY)


def test_a_guess_of_another_unit_is_refused_with_the_reason() -> None:
    with pytest.raises(ValueError, match=r"guesses holds .* which units forbid: .* unit"):
        model(units=UNITS, guesses=["m*v"]).fit(TABLE, ENERGY)


def test_a_search_with_units_goes_on_from_its_checkpoint_as_if_it_had_not_ended(tmp_path: Path) -> None:
    y = (ENERGY + 0.05 * RNG.normal(size=ROWS)).rename("E")
    settings = {"units": {**UNITS, "g": "m/s^2"}, "constants": {"g": 9.81}, "checkpoint": tmp_path / "run.json"}
    whole = model(units=settings["units"], constants=settings["constants"]).set_params(max_iterations=12).fit(TABLE, y)
    model(**settings).fit(TABLE, y)
    resumed = PSERegressor.resume(tmp_path / "run.json", max_iterations=12)
    assert [str(one.expression) for one in resumed.front_] == [str(one.expression) for one in whole.front_]


def test_a_target_with_its_unit_in_the_name_is_listed_with_one_unit() -> None:
    named = TABLE.rename(columns={name: f"{name} [{UNITS[name]}]" for name in TABLE})
    fitted = model(units="names").fit(named, (TABLE.m * TABLE.v**2).rename("E [J]"))
    assert fitted.unit_lines()[0].startswith("Units: E [kg*m**2/s**2], ")


def test_a_saved_model_knows_its_units(tmp_path: Path) -> None:
    fitted = model(units=UNITS).fit(TABLE, (TABLE.m * TABLE.v**2).rename("E"))
    fitted.save(tmp_path / "result")
    assert PSERegressor.load(tmp_path / "result").unit_lines() == fitted.unit_lines()
    fitted.report(tmp_path / "report.html")
    assert "Units: E [kg*m**2/s**2]" in (tmp_path / "report.html").read_text(encoding="utf-8")
