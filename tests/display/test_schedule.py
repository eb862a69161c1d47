"""What a search did when: one row for each move, the same in `schedule_`, in the text and after a resumed search."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from symenum import PSERegressor
from symenum.display.schedule import schedule_table, schedule_text
from symenum.front import Front
from symenum.search.state import Record, State, Turn

X = np.random.default_rng(0).uniform(0.5, 3, (30, 2))
Y = np.sin(3 * X[:, 0]) / (X[:, 1] + np.exp(np.cos(X[:, 0] * X[:, 1])))


def test_a_row_has_turns_seconds_and_gain_of_its_move() -> None:
    records = (
        Record("polynomials", turns=1, seconds=1.0, gain=0.5),
        Record("network", turns=2, seconds=3.0, ended=True, error="ValueError: no"),
    )
    turns = (
        Turn(1, "polynomials", 0.0, 1.0, 0.5),
        Turn(2, "network", 1.0, 1.0, 0.0),
        Turn(3, "network", 2.0, 2.0, 0.0),
    )
    table = schedule_table(State(0, 3, Front(), records=records, history=turns)).set_index("move")
    assert list(table.index) == ["polynomials", "network"]
    assert table.loc["network", ["turns", "seconds", "share", "first", "last"]].tolist() == [2, 3.0, 0.75, 1.0, 2.0]
    assert table.loc["polynomials", "gain"] == 0.5
    text = schedule_text(table.reset_index())
    assert "75%" in text
    assert "failed: ValueError: no" in text


def test_the_fitted_model_has_it_and_a_resumed_one_goes_on_with_it(tmp_path: Path) -> None:
    path = tmp_path / "search.json"
    model = PSERegressor(max_iterations=20, max_time=None, random_state=0, checkpoint=path).fit(X, Y)
    assert model.schedule_["turns"].sum() == 20
    assert model.schedule_["share"].sum() == pytest.approx(1.0)
    assert model.schedule_["gain"].sum() > 0
    resumed = PSERegressor.resume(path, max_iterations=23)
    assert resumed.schedule_["turns"].sum() == 23
    assert set(model.schedule_["move"]) <= set(resumed.schedule_["move"])


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ({"network": -1}, "for 'network': a share is a number of at least 0"),
        ({"networks": 1}, "did you mean 'network'"),
        ({"network": "much"}, "shares must be a mapping"),
        ([("network", 0.5)], "shares must be a mapping"),
    ],
)
def test_bad_shares_are_refused_before_the_search(shares, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PSERegressor(max_iterations=1, shares=shares).fit(X, Y)
