"""`symenum resume`, with the real search."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pandas
import pytest
from click.testing import CliRunner, Result

from symenum import PSERegressor, make_operator
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


def test_errors_of_measurement_are_kept(data: Path, tmp_path: Path) -> None:
    errors = ("--y-error", 0.05, "--x-error", "b=0.1")
    whole = symenum("fit", data, *QUICK, *errors, "--max-iterations", 4, "--out", tmp_path / "whole")
    part = symenum("fit", data, *QUICK, *errors, "--max-iterations", 2, "--out", tmp_path / "part")
    resumed = symenum("resume", tmp_path / "part", "--max-iterations", 4)
    assert [result.exit_code for result in (whole, part, resumed)] == [0, 0, 0], resumed.output
    assert "Chi-square" in whole.stdout
    assert resumed.stdout == whole.stdout


def test_validation_rows_are_encoded_like_those_of_the_first_search(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    colours = ["red", "green", "blue"]
    rows = [
        f"2024-01-{day:02},{colours[day % 3]},{day + 2 * (day % 3) + 0.1 * rng.normal():.6f}" for day in range(1, 29)
    ]
    table, other = tmp_path / "data.csv", tmp_path / "other.csv"
    table.write_text("\n".join(["when,colour,y", *rows[:20]]))
    other.write_text("\n".join(["when,colour,y", *rows[20:]]))
    encoded = ("--one-hot", "colour", "--max-iterations", 2, "--seed", 0, "--out", tmp_path / "out")
    assert symenum("fit", table, *encoded).exit_code == 0
    resumed = symenum("resume", tmp_path / "out", "--max-iterations", 3, "--validation", other)
    assert resumed.exit_code == 0, resumed.output
    assert "when" in resumed.stdout


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
        (
            lambda folder: (folder / "checkpoint.json").unlink(),
            "holds no checkpoint.json: name a folder of --out",
        ),
        (lambda folder: (folder / "checkpoint.labels.json").write_text("[]"), "does not belong to a checkpoint"),
    ],
    ids=["checkpoint", "no checkpoint", "labels"],
)
def test_what_is_no_checkpoint_ends_with_2(data: Path, tmp_path: Path, spoil, message: str) -> None:
    out = tmp_path / "out"
    symenum("fit", data, *QUICK, "--max-iterations", 1, "--out", out)
    spoil(out)
    result = symenum("resume", out)
    assert result.exit_code == 2
    assert message in result.stderr


def test_the_laws_alone_are_no_search_to_go_on_with(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text("{}")
    result = symenum("resume", tmp_path / "model.json")
    assert result.exit_code == 2
    assert "name its folder, or the checkpoint beside it" in " ".join(result.stderr.split())


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


# A checkpoint that was made in Python


SETTINGS = {"operators": "arithmetic", "layers": 2, "inputs": 4, "constants": False, "max_time": None}


@pytest.mark.parametrize("named", [False, True], ids=["array", "frame"])
def test_a_checkpoint_of_python_goes_on(tmp_path: Path, named: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 3, (30, 2))
    y = X[:, 0] / (X[:, 1] + 2) + 0.05 * rng.normal(size=30)
    table = pandas.DataFrame(X, columns=["length (m)", "b"]) if named else X
    checkpoint = tmp_path / "run" / "checkpoint.json"
    whole = PSERegressor(**SETTINGS, max_iterations=4, random_state=0).fit(table, y)
    PSERegressor(**SETTINGS, max_iterations=2, random_state=0, checkpoint=checkpoint).fit(table, y)
    resumed = symenum("resume", checkpoint, "--max-iterations", 4, "--out", tmp_path / "out")
    assert resumed.exit_code == 0, resumed.output
    assert f"y = {whole.best_expression_}" in resumed.stdout
    kept = read_model(tmp_path / "out" / "model.json")
    assert [law.expression for law in kept.laws] == [entry.expression for entry in whole.front_]
    assert kept.columns == (("length (m)", "b") if named else ("x1", "x2"))
    in_folder = symenum("resume", checkpoint.parent, "--max-iterations", 5, "-q")
    assert in_folder.exit_code == 0, in_folder.output
    assert (checkpoint.parent / "report.html").exists()


def test_rows_to_choose_on_may_be_named_for_a_checkpoint_of_python(tmp_path: Path) -> None:
    X = np.linspace(1, 3, 40).reshape(20, 2)
    y = X[:, 0] * X[:, 1] + np.sin(9 * X[:, 0])
    checkpoint, rows = tmp_path / "checkpoint.json", tmp_path / "rows.csv"
    PSERegressor(**SETTINGS, max_iterations=1, checkpoint=checkpoint).fit(X, y)
    pandas.DataFrame({"x1": X[:, 0], "x2": X[:, 1], "y": y}).to_csv(rows, index=False)
    result = symenum("resume", checkpoint, "--validation", rows, "--max-iterations", 2)
    assert result.exit_code == 0, result.output
    assert "feature names" not in result.output


def test_code_of_the_users_own_is_named_in_the_refusal(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint.json"
    power = make_operator("third_power", lambda x: x**3)
    PSERegressor(["+", power], max_iterations=1, checkpoint=checkpoint).fit([[1.0], [2.0], [4.0]], [1.0, 3.0, 2.0])
    result = symenum("resume", checkpoint)
    assert result.exit_code == 2
    assert "operators of your own (add, third_power)" in result.stderr
    assert "goes on with PSERegressor.resume" in " ".join(result.stderr.split())


def test_another_run_is_not_overwritten_by_one_that_goes_on(data: Path, tmp_path: Path) -> None:
    for name in ("one", "other"):
        symenum("fit", data, *QUICK, "--max-iterations", 1, "--out", tmp_path / name)
    before = (tmp_path / "other" / "model.json").read_text()
    result = symenum("resume", tmp_path / "one", "--max-iterations", 2, "--out", tmp_path / "other")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "other" / "model.json").read_text() == before
    assert (tmp_path / "other-2" / "model.json").exists()
