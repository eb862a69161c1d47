"""benchmarks/random_laws.py: what is run side by side and for an ablation, and what its tables count."""

from __future__ import annotations

import argparse
import importlib.util
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from bench.rows import make_row

from symenum.bench.jobs import Job, Row
from symenum.bench.systems import make_system
from symenum.heads.stages import STAGE_NAMES

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "random_laws.py"
ROOT = SCRIPT.parents[1]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("random_laws_script", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def options_of(script: ModuleType, *arguments: str) -> argparse.Namespace:
    options = script.read_options(argparse.ArgumentParser(), arguments)
    assert isinstance(options, argparse.Namespace)
    return options


def run(number: int, solved: bool, system: str = "symenum", noise: float = 0.0) -> Row:
    found_at = 0.2 if solved else None
    job = Job("random", f"Random-{number}", system, 0, noise)
    return replace(make_row(), job=job, solved=solved, found_at=found_at)


def test_all_means_every_stage_and_the_tokens(script: ModuleType) -> None:
    stages = script.stages_of(["all"])
    assert set(stages) == {*STAGE_NAMES, "tokens"}
    for stage in (*stages, "nothing"):
        make_system(script.system_without(stage))
    with pytest.raises(ValueError, match=r"no stage 'two term'.*two terms"):
        script.stages_of(["two term"])


def test_systems_run_law_by_law_in_turn(script: ModuleType) -> None:
    options = options_of(script, "--laws", "2", "--noise", "0", "0.1", "0", "--against", str(ROOT))
    other = f"symenum_at:path={ROOT}"
    assert script.systems_of(options) == ["symenum", other]
    plan = script.plan_of(script.law_jobs(options), script.systems_of(options))
    assert [(job.problem, job.noise, job.system) for job in plan.jobs[:4]] == [
        ("Random-1", 0.0, "symenum"),
        ("Random-1", 0.0, other),
        ("Random-1", 0.1, "symenum"),
        ("Random-1", 0.1, other),
    ]
    assert len(plan.jobs) == len(set(plan.jobs)) == 8


def test_a_device_is_that_of_all_our_systems_that_name_none(script: ModuleType) -> None:
    systems = ["symenum", "symenum:generator=random", "symenum:device=cpu", "symenum_at:path=/x", "gplearn"]
    arguments = [part for system in systems for part in ("--system", system)]
    assert script.systems_of(options_of(script, *arguments, "--device", "cuda")) == [
        "symenum:device=cuda",
        "symenum:generator=random,device=cuda",
        "symenum:device=cpu",
        "symenum_at:path=/x,device=cuda",
        "gplearn",
    ]
    assert script.systems_of(options_of(script, *arguments)) == systems


def test_only_laws_that_were_searched_and_not_found_without_tokens_go_on(script: ModuleType) -> None:
    jobs = script.law_jobs(options_of(script, "--laws", "4", "--noise", "0", "0.1"))
    none = "symenum:generator=none"
    rows = [
        run(1, True, none),
        run(2, False, none),
        replace(run(3, False, none), ended="out of memory"),
        run(1, False, none, 0.1),
    ]
    assert [(job.problem, job.noise) for job in script.unfound(jobs, rows)] == [("Random-1", 0.1), ("Random-2", 0.0)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--numbers", "0"], "--numbers 1 to 240"),
        (["--cores", "0"], "--cores must be 1 to 2"),
        (["--cores", "2", "--jobs", "2"], "--jobs must be 1 to 1"),
        (["--without", "all", "--system", "symenum"], "--without compares with the whole search"),
    ],
)
def test_options_that_cannot_be_met_are_refused(
    script: ModuleType,
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(script, "available_cores", lambda: 2)
    with pytest.raises(SystemExit):
        options_of(script, *arguments)
    assert message in capsys.readouterr().err


def test_runs_at_the_same_time_share_no_core(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "available_cores", lambda: 16)
    assert options_of(script).jobs == 16
    assert options_of(script, "--cores", "3").jobs == 5


def test_the_ablation_has_the_laws_and_seeds_of_the_whole_search(script: ModuleType) -> None:
    arguments = ["--set", "random_final", "--laws", "4", "--depth", "3", "4", "5", "--seeds", "2", "--noise", "0.01"]
    jobs = script.law_jobs(options_of(script, *arguments))
    assert len(jobs) == 6
    assert {(job.set, job.noise, job.system) for job in jobs} == {("random_final", 0.01, "symenum")}
    plan = script.plan_of(jobs[:2], ["symenum:selection=evidence", "symenum:without=affine"])
    assert len(plan.jobs) == 4
    assert {replace(job, system="symenum") for job in plan.jobs} == set(jobs[:2])


def test_the_tables_count_what_is_recovered_lost_and_won(
    script: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = [run(1, True), run(2, True), run(3, False), run(5, True)]
    script.print_tables(whole, ["symenum"])
    text = capsys.readouterr().out
    assert "3 / 3 of 4" in text
    assert "recovered: 75.0%" in text
    assert "By time" in text
    without = script.system_without("affine")
    parts = [run(1, True, without), run(2, False, without), run(3, True, without)]
    script.print_ablation(whole, parts, {"affine": without, "rational": "symenum:without=rational"})
    lines = capsys.readouterr().out.splitlines()
    (line,) = [line for line in lines if line.startswith("affine")]
    assert line.split()[1:] == ["3", "2", "2", "1", "1", "0.2", "Random-2"]
    assert any(line.split()[1:3] == ["0", "0"] for line in lines if line.startswith("rational"))


def test_several_systems_are_compared_by_depth_by_variables_and_in_pairs(
    script: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    # Laws 1, 2, 3 and 5 have depths 3, 4, 5 and 3; law 5 has three variables, the others two.
    first = [run(1, True), run(2, True), run(3, False), run(5, True)]
    second = [run(number, number == 1, "gplearn") for number in (1, 2, 3, 5)]
    script.print_tables([*first, *second], ["symenum", "gplearn"])
    lines = capsys.readouterr().out.splitlines()
    by_depth, by_variables = ([line for line in lines if line.startswith("symenum ")][i] for i in (0, 1))
    assert [part for part in by_depth.split() if "/" in part] == ["2/2", "1/1", "0/1", "3/4"]
    assert [part for part in by_variables.split() if "/" in part] == ["2/3", "1/1", "3/4"]
    assert any(line.split() == ["symenum", "gplearn", "4", "3", "1", "2", "0", "3.00", "0.5"] for line in lines)
