"""The guard's promises: a figure below its floor fails and is named, floors never go down, nothing is left out."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "guard.py"
KNOWN = {"commit": "c", "date": "d", "machine": "m", "load": "0.0"}


@pytest.fixture(scope="module")
def guard() -> ModuleType:
    spec = importlib.util.spec_from_file_location("guard_under_test", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for the names in their annotations
    spec.loader.exec_module(module)
    return module


class Guard:
    """The guard on a file of floors, with given numbers in place of measurements."""

    def __init__(self, module: ModuleType, path: Path) -> None:
        self.module, self.path = module, path

    def set_floors(self, **floors: object) -> None:
        self.path.write_text(json.dumps({f"six/{name}": floor for name, floor in floors.items()}), encoding="utf-8")

    def floor(self, name: str) -> float:
        return json.loads(self.path.read_text(encoding="utf-8"))[f"six/{name}"]["floor"]

    def run(self, raising: bool = False, json_path: Path | None = None, **values: float) -> int:
        figures = {f"six/{name}": self.module.Figure(value) for name, value in values.items()}
        return self.module.run(
            ["six"], self.path, raising=raising, json_path=json_path, measuring=lambda part: figures, known=KNOWN
        )


@pytest.fixture
def on(guard: ModuleType, tmp_path: Path) -> Guard:
    return Guard(guard, tmp_path / "floor.json")


def test_figures_at_their_floors_pass(on: Guard) -> None:
    on.set_floors(nguyen={"floor": 12}, r={"floor": 3})
    assert on.run(nguyen=12, r=4) == 0


def test_a_figure_below_its_floor_fails_and_is_named(on: Guard, capsys: pytest.CaptureFixture[str]) -> None:
    on.set_floors(nguyen={"floor": 12}, r={"floor": 3})
    assert on.run(nguyen=11, r=3) == 1
    said = capsys.readouterr().err
    assert "six/nguyen: BELOW" in said
    assert "six/r" not in said


def test_a_figure_that_is_no_number_fails(on: Guard) -> None:
    on.set_floors(nguyen={"floor": 12})
    assert on.run(nguyen=float("nan")) == 1


def test_a_tolerance_accepts_that_much_and_no_more(on: Guard) -> None:
    on.set_floors(count={"floor": 33, "tolerance": 2, "reason": "the clock"})
    assert on.run(count=31) == 0
    assert on.run(count=30) == 1
    on.set_floors(ratio={"floor": 8.0, "tolerance_share": 0.25, "reason": "a noisy machine"})
    assert on.run(ratio=6.0) == 0
    assert on.run(ratio=5.9) == 1


def test_a_tolerance_without_a_reason_is_refused(on: Guard, guard: ModuleType) -> None:
    on.set_floors(count={"floor": 33, "tolerance": 2})
    with pytest.raises(guard.GuardError, match="six/count has a tolerance but no reason"):
        on.run(count=33)


def test_a_figure_that_was_not_measured_fails_and_is_named(on: Guard, capsys: pytest.CaptureFixture[str]) -> None:
    on.set_floors(nguyen={"floor": 12}, r={"floor": 3})
    assert on.run(nguyen=12) == 1
    assert "six/r: NOT MEASUREMENTS" in capsys.readouterr().err


def test_a_part_that_fails_is_said_and_fails(on: Guard, guard: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(part: str) -> None:
        raise guard.PartError("it broke like this")

    on.set_floors()
    code = guard.run(["six"], on.path, raising=True, json_path=None, measuring=fail, known=KNOWN)
    assert code == 1
    assert "it broke like this" in capsys.readouterr().out


def test_parts_that_were_not_asked_for_are_not_missed(on: Guard, guard: ModuleType) -> None:
    on.path.write_text(json.dumps({"six/r": {"floor": 3}, "emps/law found": {"floor": 1}}), encoding="utf-8")
    assert on.run(r=3) == 0


@pytest.mark.parametrize("floors", [{}, {"nguyen": {"floor": None}}])
def test_a_figure_without_a_floor_is_said_and_fails(
    floors: dict[str, object], on: Guard, capsys: pytest.CaptureFixture[str]
) -> None:
    on.set_floors(**floors)
    assert on.run(nguyen=12) == 1
    assert "six/nguyen: NO FLOOR: run make guard-raise" in capsys.readouterr().err


def test_only_raise_writes_floors(on: Guard) -> None:
    on.set_floors(nguyen={"floor": 11})
    before = on.path.read_text(encoding="utf-8")
    on.run(nguyen=12, r=3)
    assert on.path.read_text(encoding="utf-8") == before


def test_raise_puts_floors_up_and_sets_new_ones(on: Guard) -> None:
    on.set_floors(nguyen={"floor": 11, "tolerance": 1, "reason": "the clock"})
    assert on.run(raising=True, nguyen=12, r=3) == 0
    assert (on.floor("nguyen"), on.floor("r")) == (12, 3)
    assert on.run(nguyen=11, r=3) == 0, "the tolerance stays"


def test_raise_never_lowers_a_floor(on: Guard, capsys: pytest.CaptureFixture[str]) -> None:
    on.set_floors(nguyen={"floor": 12}, r={"floor": 3}, feynman={"floor": 15})
    assert on.run(raising=True, nguyen=11, r=float("nan")) == 1
    assert (on.floor("nguyen"), on.floor("r"), on.floor("feynman")) == (12, 3, 15)
    assert "six/nguyen: BELOW" in capsys.readouterr().err


def test_json_holds_all_figures_and_where_they_come_from(on: Guard, tmp_path: Path) -> None:
    on.set_floors(nguyen={"floor": 12})
    on.run(json_path=tmp_path / "out.json", nguyen=12)
    record = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert record["figures"]["six/nguyen"]["value"] == 12
    assert {"commit", "date", "machine"} <= set(record)


def test_the_floors_of_the_repository_can_be_read(guard: ModuleType) -> None:
    parts = {name.partition("/")[0] for name in guard.read_floors(guard.FLOORS)}
    assert parts == set(guard.PARTS), "each part has its floors, and no floor is of a part that is gone"


@pytest.mark.parametrize("data", [None, "nowhere"])
def test_missing_data_are_an_error_that_says_what_to_set(data: str | None, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "SYMENUM_DATA"}
    if data is not None:
        environment["SYMENUM_DATA"] = str(tmp_path / data)
    done = subprocess.run(
        [sys.executable, SCRIPT, "--only", "emps"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "SYMENUM_DATA" in done.stderr
    assert "emps.csv" in done.stderr
