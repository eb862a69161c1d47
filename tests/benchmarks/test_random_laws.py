"""benchmarks/random_laws.py: what is run for an ablation, and what its tables count."""

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


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("random_laws_script", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(number: int, solved: bool, system: str = "symenum") -> Row:
    return replace(make_row(), job=Job("random", f"Random-{number}", system, 0), solved=solved)


def test_all_means_every_stage_and_the_tokens(script: ModuleType) -> None:
    stages = script.stages_of(["all"])
    assert set(stages) == {*STAGE_NAMES, "tokens"}
    for stage in (*stages, "nothing"):
        make_system(script.system_without(stage))
    with pytest.raises(ValueError, match=r"no stage 'two term'.*two terms"):
        script.stages_of(["two term"])


def test_the_ablation_has_the_laws_and_seeds_of_the_whole_search(script: ModuleType) -> None:
    options = argparse.Namespace(set="random_final", numbers=None, laws=4, depth=[3, 4, 5], seeds=2, noise=0.01)
    whole = script.whole_plan(options)
    assert len(whole.jobs) == 6
    assert {(job.set, job.noise, job.system) for job in whole.jobs} == {("random_final", 0.01, "symenum")}
    plan = script.ablation_plan(whole.jobs[:2], ["nothing", "affine"])
    assert len(plan.jobs) == 4
    assert {replace(job, system="symenum") for job in plan.jobs} == set(whole.jobs[:2])


def test_the_tables_count_what_is_recovered_lost_and_won(
    script: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = [run(1, True), run(2, True), run(3, False), run(5, True)]
    script.print_recovery(whole)
    text = capsys.readouterr().out
    assert "3 / 3 of 4" in text
    assert "recovered: 75.0%" in text
    without = script.system_without("affine")
    parts = [run(1, True, without), run(2, False, without), run(3, True, without)]
    script.print_ablation(whole, parts, ["affine", "rational"])
    lines = capsys.readouterr().out.splitlines()
    (line,) = [line for line in lines if line.startswith("affine")]
    assert line.split()[1:] == ["3", "2", "2", "1", "1", "0.2", "Random-2"]
    assert any(line.split()[1:3] == ["0", "0"] for line in lines if line.startswith("rational"))
