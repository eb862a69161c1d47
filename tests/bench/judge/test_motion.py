"""Verdicts on laws of motion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bench.systems_in_motion import write_systems

from symenum.bench.judge.motion import judge_motion, judged_points
from symenum.bench.problems import get_set
from symenum.expressions import parse


@pytest.fixture
def problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("SYMENUM_DATA", str(write_systems(tmp_path)))
    return get_set("odebench")


def test_the_true_laws_reproduce_both_runs_and_have_the_form(problems: Any) -> None:
    for problem in problems.problems():
        verdict = judge_motion(problem.laws, problem)
        assert verdict.reproduced
        assert verdict.second
        assert verdict.form
        assert verdict.forms == len(problem.laws)


def test_a_law_of_another_form_may_reproduce_one_run_only(problems: Any) -> None:
    problem = problems.problem("odebench-1")
    # x' = -0.4*x² falls from 2 much as the exponential does, but far more slowly from 1.
    verdict = judge_motion([parse("-0.4*x1**2")], problem)
    assert verdict.reproduced
    assert not verdict.second
    assert not verdict.form


def test_laws_that_blow_up_or_are_not_defined_reproduce_nothing(problems: Any) -> None:
    problem = problems.problem("odebench-1")
    for law in ("5*x1**3", "-2 - sqrt(x1 - 1)", "log(-x1)"):
        verdict = judge_motion([parse(law)], problem)
        assert verdict.r2 is None
        assert not verdict.reproduced


def test_only_chaotic_motion_is_judged_on_a_part_of_its_run(problems: Any) -> None:
    regular, chaotic = problems.problems()
    assert [judged_points(regular, run) for run in regular.runs] == [64, 64]
    # Rössler's exponent is 0.07: the first Lyapunov time is near 14 of 300.
    assert all(judged_points(chaotic, run) == 16 for run in chaotic.runs)
