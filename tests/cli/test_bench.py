"""`symenum bench` as users meet it: what it prints, what it refuses, and that it resumes."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.problems.test_measured import write_tables
from click.testing import CliRunner

from symenum.cli import main
from symenum.run_directory import Status, read_run


def bench(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["bench", *map(str, arguments)])
    return result.exit_code, result.output


def test_list_names_every_set() -> None:
    code, text = bench("list")
    assert code == 0
    for name in ("nguyen", "srbench_130", "fifty_dim"):
        assert name in text


def test_the_folder_of_results_has_a_name_unless_one_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, text = bench("run", "nguyen", "--problem", "Nguyen-8", "--max-time", 5)
    assert code == 0, text
    assert (tmp_path / "bench-results" / "bench.json").is_file()


def test_run_report_and_resume(tmp_path: Path) -> None:
    request = ("run", "nguyen", "--problem", "Nguyen-1", "--max-time", 10, "--out", tmp_path / "out")
    code, text = bench(*request, "--run-dirs", tmp_path / "runs")
    assert code == 0, text
    kept = read_run(tmp_path / "runs" / "nguyen__Nguyen-1__symenum__s0")
    assert kept.status is Status.FINISHED
    assert kept.source == "nguyen, Nguyen-1 by symenum, seed 0"
    assert "[1/1] Nguyen-1 by symenum, seed 0: solved" in text
    assert "| nguyen | symenum | 1 of 1 |" in text
    code, text = bench(*request)
    assert code == 0
    assert "1 of 1 runs are done already" in text
    assert "[1/1]" not in text
    assert (tmp_path / "out" / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    code, text = bench("report", tmp_path / "out")
    assert code == 0
    assert "100.0%" in text
    code, text = bench(*request[:4], "--max-time", 20, "--out", tmp_path / "out")
    assert code == 2
    assert "max_time 10.0 (now 20.0)" in text


def test_measured_tables_are_split_judged_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYMENUM_DATA", str(write_tables(tmp_path)))
    request = ("run", "pmlb", "real", "--systems", "linear", "--seeds", 1, "--max-time", 5)
    request = (*request, "--out", tmp_path / "out")
    code, text = bench(*request)
    assert code == 0, text
    assert "[3/3]" in text  # three tables
    assert "1_plain by linear, seed 0: R² 1.000" in text
    assert "## R² against size" in text
    assert "| pmlb: Friedman | linear | 1 | 1.000 | 1.000 |" in text
    assert "| pmlb: others | Operon (published) | 1 | 0.900 |" in text
    assert "## Tables" not in text
    assert "## Tables" in (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    code, text = bench(*request)
    assert "3 of 3 runs are done already" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "nguyan"), "did you mean 'nguyen'"),
        (("run", "nguyen", "--systems", "symenumm"), "did you mean 'symenum'"),
        (("run", "nguyen", "--noise", "loud"), "could not convert"),
        (("run", "nguyen", "--share", "3"), "share"),
        (("ablation", "generator"), "Did you mean 'generators'?"),
    ],
)
def test_a_wrong_word_is_one_clear_message(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    code, text = bench(*arguments, "--out", tmp_path / "out")
    assert code == 2
    assert message in text
    assert "Traceback" not in text
    assert not (tmp_path / "out").exists()


def test_a_set_without_its_files_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SYMENUM_DATA", raising=False)
    code, text = bench("run", "fifty_dim", "--out", tmp_path)
    assert code == 2
    assert "SYMENUM_DATA" in text
    assert "https://" in text


def test_a_report_of_no_results_is_refused(tmp_path: Path) -> None:
    code, text = bench("report", tmp_path)
    assert code == 2
    assert "holds no results" in text


def test_an_ablation_of_the_engine_prints_its_table(tmp_path: Path) -> None:
    code, text = bench("ablation", "inputs", "--out", tmp_path)
    assert code == 0
    assert "| koza | 5 | 33,705 |" in text
    assert "<svg" in (tmp_path / "inputs.html").read_text(encoding="utf-8")
