"""The files of a result: whole or not there, the same when read back, and refused where they are something else."""

import csv
import errno
import json
import os
import subprocess
import sys

import pandas
import pytest

from symenum.cli import outputs
from symenum.cli.messages import InputError
from symenum.cli.outputs import Result, model_json, read_model
from symenum.core.files import write_whole
from symenum.display.table import LawRow
from symenum.estimator.saved_results import FittedNumber
from symenum.expressions import parse

DATA = "a,b,y\n1,2,3\n2,5,4\n3,7,9\n"


def test_results_are_written_and_read_back(symenum, table, tmp_path):
    out = tmp_path / "new" / "folder"
    result = symenum("fit", table(DATA.replace("a,", "a (m),", 1)), "--out", out, "--seed", "1")
    assert result.exit_code == 0, result.output
    written = sorted(path.name for path in out.iterdir() if not path.name.startswith("checkpoint"))
    assert written == ["front.csv", "law.py", "law.tex", "law.txt", "model.json", "report.html"]
    assert (out / "law.txt").read_text() == "y = a_m**2 + sin(a_m)\nThe fake model is sure.\n"
    assert r"{a_{m}}^{2} + \sin\left(a_{m}\right)" in (out / "law.tex").read_text()
    rows = list(csv.DictReader((out / "front.csv").read_text().splitlines()))
    assert [row["equation"] for row in rows] == ["1", "2.123456789*a_m", "a_m**2 + sin(a_m)"]
    document = json.loads((out / "model.json").read_text())
    assert document["version"] == 1
    assert document["variables"][0] == {"name": "a_m", "column": "a (m)"}
    assert document["settings"]["random_state"] == 1
    model = read_model(out / "model.json")
    assert model.law.expression == parse("a_m*a_m + sin(a_m)")
    assert model.law.loss == 1e-9
    assert outputs.model_json(model) == (out / "model.json").read_text()


def test_infinite_scores_are_valid_json(tmp_path):
    law = LawRow(parse("x"), 0, 0.0, float("inf"), 1.0)
    path = tmp_path / "model.json"
    path.write_text(outputs.model_json(outputs.Result("y", ("x",), ("x",), (law,), 0)))
    assert read_model(path).law.score == float("inf")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no json", "cannot be read"),
        ("[]", "not a model"),
        ('{"format": "symenum model", "version": 99}', "version 99"),
        ('{"format": "symenum model", "version": 1}', "damaged"),
    ],
)
def test_a_file_that_is_no_model_is_refused(tmp_path, text, message):
    path = tmp_path / "model.json"
    path.write_text(text)
    with pytest.raises(outputs.InputError, match=message):
        read_model(path)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")  # noqa: PTH110
def test_a_disk_that_is_full_at_the_start_is_seen(tmp_path, monkeypatch):
    (tmp_path / f".probe-{os.getpid()}").symlink_to("/dev/full")
    with pytest.raises(outputs.InputError, match="No space left"):
        outputs.prepare_folder(tmp_path)


def test_a_half_written_file_is_never_seen(tmp_path, monkeypatch):
    path = tmp_path / "front.csv"
    path.write_text("old")
    monkeypatch.setattr(os, "fsync", lambda number: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
    with pytest.raises(OSError, match="full"):
        write_whole(path, "new")
    assert path.read_text() == "old"
    assert [found.name for found in tmp_path.iterdir()] == ["front.csv"]


def test_named_constants_are_read_back(tmp_path):
    law = parse("g*x/2", constants={"g": 9.81})
    result = Result("y", ("x",), ("x",), (LawRow(law, law.complexity, 0.0, 0.0, 1.0),), 0, {"constants": {"g": 9.81}})
    path = tmp_path / "model.json"
    path.write_text(model_json(result))
    assert read_model(path).law.expression == law
    path.write_text(model_json(result).replace("9.81", '"fast"'))
    with pytest.raises(InputError, match="damaged"):
        read_model(path)


# The law as code


def test_the_law_is_written_as_code_that_needs_nothing_of_the_package(symenum, table, tmp_path):
    symenum("fit", table(DATA.replace("a,", "a (m),", 1)), "--out", tmp_path / "out")
    source = (tmp_path / "out" / "law.py").read_text()
    assert "symenum" not in "".join(line for line in source.splitlines() if not line.startswith("#"))
    assert "# a_m is the column 'a (m)'" in source
    code = "from law import law; import numpy as np; print(law(0.0, 0.0), law(np.ones(2), 0).shape)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path / "out", capture_output=True, text=True, check=True
    )
    assert done.stdout == "0.0 (2,)\n"


def test_names_in_the_code_are_never_code(tmp_path):
    evil = "\nimport os; os.mkdir('here')"
    law = parse("2*x")
    result = Result(f"y{evil}", ("x",), (f"x{evil}",), (LawRow(law, 1, 0.0, 0.0, 1.0),), 0, source=f"data.csv{evil}")
    outputs.write_results(tmp_path, result)
    subprocess.run([sys.executable, "law.py"], cwd=tmp_path, check=True)
    assert not (tmp_path / "here").exists()


# What --out may overwrite


@pytest.mark.parametrize("name", ["model.json", "report.html", "laws.txt", "checkpoint.json"])
def test_a_folder_that_is_taken_stays_as_it_is(symenum, table, tmp_path, name):
    out = tmp_path / "out"
    out.mkdir()
    (out / name).write_text("mine")
    for number in (2, 3):
        result = symenum("fit", table(DATA), "--out", out, "--quiet")
        assert result.exit_code == 0
        assert f"'{out}' holds {name} already, so the results go to '{out}-{number}'" in " ".join(result.stderr.split())
        assert read_model(tmp_path / f"out-{number}" / "model.json").target == "y"
    assert [(path.name, path.read_text()) for path in out.iterdir()] == [(name, "mine")]


def test_files_of_other_names_do_not_move_the_results(symenum, table, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    assert symenum("fit", table(DATA), "--out", out).exit_code == 0
    assert (out / "notes.txt").read_text() == "mine"
    assert (out / "model.json").exists()
    assert not (tmp_path / "out-2").exists()


def test_overwrite_writes_to_the_folder_that_is_named(symenum, models, table, tmp_path):
    out = tmp_path / "out"
    symenum("fit", table(DATA), "--out", out)
    (out / "notes.txt").write_text("mine")
    models.laws = (("7", 2.0),)
    result = symenum("fit", table(DATA), "--out", out, "--overwrite")
    assert result.exit_code == 0
    assert (out / "law.txt").read_text() == "y = 7\nThe fake model is sure.\n"
    assert (out / "notes.txt").read_text() == "mine"
    assert not (tmp_path / "out-2").exists()


def test_a_folder_without_a_name_of_its_own_is_refused_where_it_is_taken(symenum, table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = table(DATA)
    assert symenum("fit", data, "--out", ".").exit_code == 0
    result = symenum("fit", data, "--out", ".")
    assert result.exit_code == 2
    assert "name another folder, or add --overwrite" in result.stderr


# Standard errors


@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
def test_how_sure_the_choice_is_stands_in_every_file(symenum, table, tmp_path, quiet):
    out = tmp_path / "out"
    result = symenum("fit", table(DATA), "--out", out, *quiet)
    assert ("The fake model is sure." in result.stdout) is not bool(quiet)
    assert (out / "law.txt").read_text().splitlines()[1] == "The fake model is sure."
    assert "<p>The fake model is sure.</p>" in (out / "report.html").read_text(encoding="utf-8")
    assert read_model(out / "model.json").confidence == ("The fake model is sure.",)


def test_another_rule_says_nothing_on_how_sure_the_choice_is(symenum, table, tmp_path):
    result = symenum("fit", table(DATA), "--out", tmp_path / "out", "--model-selection", "accuracy")
    assert "sure" not in result.stdout
    assert read_model(tmp_path / "out" / "model.json").confidence is None
    assert "sure" not in (tmp_path / "out" / "law.txt").read_text()


def test_standard_errors_are_in_every_file(symenum, models, table, tmp_path):
    models.uncertainties = pandas.DataFrame({"constant": [2.123456789], "standard_error": [0.0123]})
    models.selected_by = "accuracy"
    result = symenum("fit", table(DATA), "--errors", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "2.1234568 ± 0.012" in result.stdout
    law, page = ((tmp_path / "out" / name).read_text(encoding="utf-8") for name in ("law.txt", "report.html"))
    assert law.splitlines()[3] == "  2.1234568 ± 0.012"
    assert "Constants and their standard errors" in page
    assert "0.012" in page
    assert read_model(tmp_path / "out" / "model.json").errors == (FittedNumber(2.123456789, 0.0123),)


def test_an_infinite_error_is_written_and_read_back(symenum, models, table, tmp_path):
    models.uncertainties = pandas.DataFrame({"constant": [2.5], "standard_error": [float("inf")]})
    symenum("fit", table(DATA), "--errors", "--out", tmp_path / "out")
    assert read_model(tmp_path / "out" / "model.json").errors == (FittedNumber(2.5, float("inf")),)


def test_errors_that_cannot_be_computed_do_not_cost_the_result(symenum, models, table, tmp_path):
    class Failing:
        def __getitem__(self, name):
            raise ValueError("no rows")

    models.uncertainties = Failing()
    result = symenum("fit", table(DATA), "--errors", "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert "The standard errors could not be computed (ValueError: no rows)" in result.stderr
    assert (tmp_path / "out" / "law.txt").read_text().startswith("y = ")


# Files that were edited


@pytest.mark.parametrize(
    "change",
    [
        {"selected": 3},
        {"selected": True},
        {"rows": "many"},
        {"target": 3},
        {"variables": [{"name": "b", "column": "b"}]},
        {"variables": [{"name": "a", "column": 3}, {"name": "b", "column": "b"}]},
        {"run": {"elapsed": 1}},
        {"standard_errors": [{"constant": "a lot", "standard_error": 1}]},
    ],
)
def test_a_damaged_model_is_refused(symenum, table, tmp_path, change):
    symenum("fit", table(DATA), "--out", tmp_path / "out")
    path = tmp_path / "out" / "model.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(InputError, match="damaged"):
        read_model(path)
