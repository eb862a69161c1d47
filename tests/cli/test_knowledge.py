"""Options of `symenum fit` for what the user knows, for rows held out, and for standard errors."""

import json

import pandas
import pytest

from symenum.cli.messages import InputError
from symenum.cli.outputs import Result, model_json, read_model
from symenum.display.table import LawRow
from symenum.expressions import parse

DATA = "a,b,y\n" + "".join(f"{i},{i % 7},{i * i + i % 7}\n" for i in range(1, 21))


def test_what_the_user_knows_reaches_the_estimator(symenum, models, table):
    symenum(
        "fit", table(DATA), "--loss", "huber", "--guess", "c*a**2", "--guess", "b + d", "--constant", "g=9.81",
        "--require", "a,b", "--max-depth", "6",
    )  # fmt: skip
    wanted = {
        "loss": "huber", "guesses": ["c*a**2", "b + d"], "constants": {"g": 9.81}, "required_variables": ["a", "b"],
        "max_depth": 6,
    }  # fmt: skip
    assert {name: models.settings[name] for name in wanted} == wanted
    assert models.validation is None


def test_a_second_table_is_held_out(symenum, models, table):
    other = table("y,b,a\n5,1,2\n7,3,2\n", "other.csv")
    assert symenum("fit", table(DATA), "--validation", other).exit_code == 0
    X, y, weights = models.validation
    assert list(X.columns) == ["a", "b"]
    assert X["a"].tolist() == [2.0, 2.0]
    assert y.tolist() == [5.0, 7.0]
    assert weights is None
    assert len(models.y) == 20


def test_a_part_of_the_rows_is_held_out(symenum, models, table):
    result = symenum("fit", table(DATA), "--validation-fraction", "0.25", "--seed", "1")
    assert "5 of 20 rows are held out" in result.stderr
    assert (len(models.y), len(models.validation[1])) == (15, 5)
    assert sorted([*models.X["a"], *models.validation[0]["a"]]) == list(range(1, 21))


def test_the_law_is_the_one_that_the_estimator_chose(symenum, models, table, tmp_path):
    models.selected_by = "accuracy"
    result = symenum("fit", table(DATA), "--validation-fraction", "0.25", "--out", tmp_path / "out")
    assert result.stdout.splitlines()[-1].startswith(("y = ", "With")) or "a*a" in result.stdout
    kept = json.loads((tmp_path / "out" / "model.json").read_text())
    assert kept["selected"] == len(kept["front"]) - 1


def test_standard_errors_are_shown_on_request(symenum, models, table):
    models.uncertainties = pandas.DataFrame({"constant": [2.123456789], "standard_error": [0.0123]})
    assert "±" not in symenum("fit", table(DATA)).stdout
    assert "2.1234568 ± 0.012" in symenum("fit", table(DATA), "--errors").stdout


def test_there_is_no_r_squared_of_another_loss(symenum, table):
    assert "R²" in symenum("fit", table(DATA)).stdout
    assert "R²" not in symenum("fit", table(DATA), "--loss", "mae").stdout


def test_named_constants_are_read_back(tmp_path):
    law = parse("g*x/2", constants={"g": 9.81})
    kept = Result("y", ("x",), ("x",), (LawRow(law, law.complexity, 0.0, 0.0, 1.0),), 0, {"constants": {"g": 9.81}})
    path = tmp_path / "model.json"
    path.write_text(model_json(kept))
    assert read_model(path).law.expression == law
    path.write_text(model_json(kept).replace("9.81", '"fast"'))
    with pytest.raises(InputError, match="damaged"):
        read_model(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--constant", "g=fast"], "must be a name and a number"),
        (["--constant", "g=9.81", "--no-constants"], "contradict"),
        (["--model-selection", "validation"], "--validation FILE or --validation-fraction"),
        (["--validation-fraction", "0.01"], "too few on one side"),
        (["--validation-fraction", "1.5"], "validation-fraction"),
        (["--validation", "nowhere.csv"], "nowhere.csv"),
        (["--validation", "nowhere.csv", "--validation-fraction", "0.5"], "not both"),
    ],
)
def test_options_that_make_no_sense_are_refused(symenum, table, options, message):
    result = symenum("fit", table(DATA), *options)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
