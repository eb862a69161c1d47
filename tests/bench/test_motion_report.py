"""Runs of systems in motion: planned, fitted in a process of their own, judged and shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.systems_in_motion import write_systems

from symenum.bench.jobs import Job, Row, make_bench_plan, row_from_json, row_to_json
from symenum.bench.judge.motion import MotionVerdict
from symenum.bench.motion_report import motion_tables
from symenum.bench.report import markdown_report
from symenum.bench.run import Limits, run_plan
from symenum.bench.store import read_rows
from symenum.bench.systems import Law

from .test_report import MANIFEST


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYMENUM_DATA", str(write_systems(tmp_path)))


def row(problem: str, verdict: MotionVerdict | None, ended: str = "done") -> Row:
    laws = (Law("-0.5*x1", 3, 1e-9),)
    return Row(Job("odebench", problem, "symenum", 0, 0.05), "v", 1.0, ended, seconds=2.0, laws=laws, motion=verdict)


def test_shares_count_failed_runs_as_not_reproduced() -> None:
    rows = [
        row("odebench-1", MotionVerdict(0.99, 0.95, True, 1)),
        row("odebench-3", MotionVerdict(0.91, None, False, 0)),
        row("odebench-5", None, "out of time"),
    ]
    shares, laws = motion_tables(rows)
    line = dict(zip(shares.columns, shares.cells[0], strict=True))
    assert (line["reproduced"], line["second start"], line["form"]) == ("66.7%", "33.3%", "33.3%")
    assert line["failed"] == "1"
    assert "-0.5*x1" in laws.cells[0]
    text = markdown_report(MANIFEST, rows)
    assert "## Laws of motion" in text
    assert "## Sets" not in text


def test_rows_are_read_back_with_their_verdict() -> None:
    one = row("odebench-1", MotionVerdict(0.99, None, False, 0))
    assert row_from_json(row_to_json(one)) == one


def test_systems_without_laws_of_motion_are_skipped_with_a_note() -> None:
    plan = make_bench_plan(["odebench"], seeds=None, systems=["symenum", "linear"])
    assert {job.system for job in plan.jobs} == {"symenum"}
    assert any("linear is skipped on odebench" in note for note in plan.notes)


def test_a_run_is_fitted_and_judged(tmp_path: Path) -> None:
    plan = make_bench_plan(["odebench"], seeds=None, systems=["symenum"], problems=["odebench-1"], noise=[0.0])
    run_plan(plan, tmp_path / "out", Limits(max_time=5.0), "v", "symenum bench run odebench")
    _, (only,), _ = read_rows(tmp_path / "out")
    assert only.motion is not None
    assert only.motion.second
    assert only.motion.form
    assert only.solved
