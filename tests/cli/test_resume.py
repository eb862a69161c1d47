"""`symenum resume`, with the real search."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from symenum.cli import main
from symenum.cli.outputs import read_model


def symenum(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0.5, 3, (2, 30))
    path = tmp_path / "data.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["length (m)", "b", "speed"])
        writer.writerows(zip(a, b, np.sin(3 * a) / (b + 2) + 0.05 * rng.normal(size=30), strict=True))
    return path


QUICK = ("--max-time", "none", "--seed", 1, "--operators", "arithmetic", "--layers", 2, "--inputs", 4, "--no-constants")


def test_a_search_goes_on_as_if_it_had_not_ended(data: Path, tmp_path: Path) -> None:
    whole = symenum("fit", data, *QUICK, "--max-iterations", 5, "--out", tmp_path / "whole")
    part = symenum("fit", data, *QUICK, "--max-iterations", 2, "--out", tmp_path / "part")
    resumed = symenum("resume", tmp_path / "part", "--max-iterations", 5)
    assert [result.exit_code for result in (whole, part, resumed)] == [0, 0, 0], resumed.output
    before, after = read_model(tmp_path / "whole" / "model.json"), read_model(tmp_path / "part" / "model.json")
    assert after.laws == before.laws
    assert (after.target, after.columns, after.source) == ("speed", ("length (m)", "b"), str(data))
    assert resumed.stdout == whole.stdout


def test_a_checkpoint_alone_is_enough(data: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    assert symenum("fit", data, *QUICK, "--max-iterations", 2, "--checkpoint", kept).exit_code == 0
    resumed = symenum("resume", kept, "--max-iterations", 3, "-q")
    assert resumed.exit_code == 0, resumed.output
    assert resumed.stdout.startswith("speed = ")


def test_a_search_that_is_at_its_end_before_the_first_step_has_its_results(tmp_path: Path) -> None:
    line = tmp_path / "line.csv"
    line.write_text("a,y\n" + "".join(f"{i},{2 * i}\n" for i in range(1, 12)))
    for command in (("fit", line, "--max-iterations", 1, "--out"), ("resume",)):
        result = symenum(*command, tmp_path / "out")
        assert result.exit_code == 0, result.output
        assert result.stdout.endswith("y = 2*a\nIt equals the data up to rounding.\n")
        assert "equals the data" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / "checkpoint.json").write_text("{}"), "is no checkpoint of symenum"),
        (lambda folder: (folder / "checkpoint.json").unlink(), "cannot be read"),
        (lambda folder: (folder / "checkpoint.labels.json").write_text("[]"), "does not belong to a checkpoint"),
        (lambda folder: (folder / "checkpoint.labels.json").unlink(), "cannot be read"),
    ],
    ids=["checkpoint", "no checkpoint", "labels", "no labels"],
)
def test_what_is_no_checkpoint_ends_with_2(data: Path, tmp_path: Path, spoil, message: str) -> None:
    out = tmp_path / "out"
    symenum("fit", data, *QUICK, "--max-iterations", 1, "--out", out)
    spoil(out)
    result = symenum("resume", out)
    assert result.exit_code == 2
    assert message in result.stderr


def test_rows_that_were_held_out_are_named_again(data: Path, tmp_path: Path) -> None:
    out, rule = tmp_path / "out", ("--model-selection", "validation")
    symenum("fit", data, *QUICK, *rule, "--validation-fraction", 0.25, "--max-iterations", 1, "--out", out)
    refused = symenum("resume", out)
    assert refused.exit_code == 2
    assert "name them with --validation FILE" in " ".join(refused.stderr.split())
    chosen = [
        symenum("resume", out, "--max-iterations", 2, "-q", *how)
        for how in (("--validation", data), ("--model-selection", "accuracy"))
    ]
    assert [result.exit_code for result in chosen] == [0, 0], chosen[0].output
    kept = read_model(out / "model.json")
    assert kept.selected == len(kept.laws) - 1


def test_a_size_that_is_none_ends_with_2(data: Path) -> None:
    result = symenum("fit", data, "--max-memory", "much")
    assert result.exit_code == 2
    assert "max_memory must be" in result.stderr
