"""The files of a result: whole or not there, the same when read back, and refused where they are something else."""

import csv
import errno
import json
import os

import pytest

from symenum.cli import outputs
from symenum.cli.messages import InputError
from symenum.cli.outputs import Result, model_json, read_model
from symenum.display.table import LawRow
from symenum.expressions import parse

DATA = "a,b,y\n1,2,3\n2,5,4\n3,7,9\n"


def test_results_are_written_and_read_back(symenum, table, tmp_path):
    out = tmp_path / "new" / "folder"
    result = symenum("fit", table(DATA.replace("a,", "a (m),", 1)), "--out", out, "--seed", "1")
    assert result.exit_code == 0, result.output
    written = sorted(path.name for path in out.iterdir() if not path.name.startswith("checkpoint"))
    assert written == ["front.csv", "law.tex", "law.txt", "model.json", "report.html"]
    assert (out / "law.txt").read_text() == "y = a_m**2 + sin(a_m)\n"
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
    law = outputs.LawRow(parse("x"), 0, 0.0, float("inf"), 1.0)
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
        outputs.write_whole(path, "new")
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
