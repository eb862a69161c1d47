"""`symenum fit`: what it asks of the estimator, what it prints and writes, and that it never loses a front."""

import errno
import json
import math
import os
import signal
from types import SimpleNamespace

import pandas
import pytest
from click.testing import CliRunner

from symenum.cli import fit as fit_module
from symenum.cli import main
from symenum.cli.outputs import read_model
from symenum.core.devices import DeviceLostError
from symenum.estimator import saved_results
from symenum.expressions import evaluate

DATA = "a,b,y\n1,2,3\n2,5,4\n3,7,9\n"
TWENTY_ROWS = "a,b,y\n" + "".join(f"{i},{i % 7},{i * i + i % 7}\n" for i in range(1, 21))
LAW = "y = a**2 + sin(a)"


def test_the_front_and_the_law_are_printed(symenum, table):
    result = symenum("fit", table(DATA))
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["complexity", "loss", "score", "equation"]
    assert [line.startswith(">>>>") for line in lines[1:4]] == [False, False, True]
    assert "2.1235*a" in lines[2]
    assert LAW in lines
    assert "Ended: the time limit of 60 s is over." in lines


def test_progress_goes_to_stderr_as_lines_when_there_is_no_terminal(symenum, table):
    stderr = symenum("fit", table(TWENTY_ROWS)).stderr.splitlines()
    assert len(stderr) == 3  # each step finds a law, and each is chosen
    assert "step 1 (tokens) | 1e+09 candidates, 2.5e+08 a second | loss 4, complexity 0: 1" in stderr[0]
    assert "s left" in stderr[0]


def test_quiet_prints_the_law_and_nothing_else(symenum, table):
    result = symenum("fit", table(DATA.replace("a,", "sin,", 1)), "--quiet")
    assert result.output == "y = sin_**2 + sin(sin_)\n"


def test_how_sure_the_choice_is_stands_below_the_law(symenum, table):
    lines = symenum("fit", table(DATA)).output.splitlines()
    assert lines.index("The fake model is sure.") > next(i for i, line in enumerate(lines) if line.startswith("y = "))


def test_settings_reach_the_estimator(symenum, models, table):
    symenum(
        "fit", table(DATA), "--max-time", "7.5", "--max-iterations", "3", "--operators", "+, *,sin", "--seed", "4",
        "--model-selection", "accuracy", "--token-generator", "mcts", "--top-k", "9", "--layers", "2", "--inputs", "6",
        "--no-constants", "--stop-loss", "1e-8", "--max-complexity", "12", "--device", "cpu", "--sanity", "off",
    )  # fmt: skip
    del models.settings["callbacks"]
    assert models.settings == {
        "max_time": 7.5, "max_iterations": 3, "operators": ["+", "*", "sin"], "random_state": 4,
        "model_selection": "accuracy", "token_generator": "mcts", "top_k": 9, "layers": 2, "inputs": 6,
        "constants": False, "stop_loss": 1e-8, "max_complexity": 12, "device": "cpu", "max_depth": None, "loss": "mse",
        "max_memory": None, "checkpoint": None, "complexity_of_operators": None, "complexity_of_constants": None,
        "select_k_features": None, "denoise": False, "sanity": "off",
    }  # fmt: skip


def test_shares_reach_the_estimator_and_explain_shows_what_ran(symenum, models, table):
    result = symenum("fit", table(DATA), "--share", "reductions=0", "--share", "network=0.5", "--explain")
    assert models.settings["shares"] == {"reductions": 0.0, "network": 0.5}
    assert "move" in result.stdout
    assert "the only move" in result.stdout
    assert symenum("fit", table(DATA), "--share", "network").exit_code == 2


def test_no_time_limit(symenum, models, table):
    symenum("fit", table(DATA), "--max-time", "none", "--operators", "Basic-Koza")
    assert models.settings["max_time"] is None
    assert models.settings["operators"] == "basic_koza"


def test_the_report_shows_the_file_and_runs_nothing_of_it(symenum, table, tmp_path):
    path = table("a,<script>alert(1)</script>,y\n1,2,3\n2,5,4\n3,7,9\n")
    assert symenum("fit", path, "--out", tmp_path / "out").exit_code == 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert str(path) in page
    assert page.count("<svg") == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--max-time", "-1"], "is no time limit: give seconds above 0"),
        (["--max-time", "0"], "is no time limit"),
        (["--max-time", "nan"], "is no time limit"),
        (["--max-time", "inf"], "is no time limit"),
        (["--max-time", "soon"], "is no time limit"),
        (["--max-iterations", "0"], "--max-iterations"),
        (["--stop-loss", "-1"], "0 or more"),
        (["--stop-loss", "nan"], "0 or more"),
        (["--top-k", "0"], "--top-k"),
        (["--operators", "kozza"], "unknown operator"),
        (["--operators", "+,sinn"], "did you mean 'sin'?"),
        (["--operators", ","], "operators is empty"),
        (["--model-selection", "worst"], "worst"),
        (["--seed", "-1"], "--seed"),
        (["--example", "planets"], "one file"),
    ],
)
def test_options_that_make_no_sense_are_refused(symenum, table, options, message):
    result = symenum("fit", table(DATA), *options)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


def test_an_error_of_the_estimator_before_it_begins_is_the_users(symenum, models, table):
    models.error_before_any_step = ValueError("layers = 9 needs 4 TB")
    result = symenum("fit", table(TWENTY_ROWS))
    assert result.exit_code == 2
    assert result.stderr == "Error: --layers = 9 needs 4 TB\n"


def test_the_example_is_ready_to_run(symenum, models):
    result = symenum("fit", "--example", "planets")
    assert result.exit_code == 0, result.output
    assert models.X.columns.tolist() == ["distance_au"]
    assert models.settings["max_time"] == 2.0
    assert "Kepler's third law" in result.stdout
    symenum("fit", "--example", "planets", "--max-time", "9")
    assert models.settings["max_time"] == 9.0


def test_another_target_of_the_example_is_not_compared_with_its_law(symenum):
    result = symenum("fit", "--example", "planets", "--target", "distance_au")
    assert result.exit_code == 0
    assert "Kepler" not in result.stdout


def test_a_target_too_small_to_square_costs_nothing(symenum, table):
    result = symenum("fit", table("a,y\n1,1e-200\n2,2e-200\n"))
    assert result.exit_code == 0
    assert LAW in result.stdout


def test_an_earlier_run_stays_until_the_new_one_is_complete(symenum, models, table, tmp_path):
    symenum("fit", table(DATA), "--out", tmp_path / "out")
    before = (tmp_path / "out" / "front.csv").read_text()
    seen = []

    def look():
        seen.append((tmp_path / "out" / "front.csv").read_text())

    models.between_steps = look
    models.laws = (("7", 2.0),)
    symenum("fit", table(DATA), "--out", tmp_path / "out", "--overwrite")
    assert seen[0] == before
    assert "7" in (tmp_path / "out" / "law.txt").read_text()


def test_a_folder_that_cannot_be_made_is_refused_at_the_start(symenum, models, table, tmp_path):
    (tmp_path / "file").write_text("")
    result = symenum("fit", table(DATA), "--out", tmp_path / "file")
    assert result.exit_code == 2
    assert "--out: the folder" in result.stderr
    assert models.y is None


def test_no_folder_is_made_for_data_that_cannot_be_used(symenum, table, tmp_path):
    assert symenum("fit", table("a,y\n1,3\n2,3\n"), "--out", tmp_path / "out").exit_code == 2
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("quiet", [False, True])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS])
def test_a_disk_that_fails_at_the_end_costs_nothing(symenum, table, tmp_path, monkeypatch, number, quiet):
    def fails(path, text):
        if not path.name.endswith(".labels.json"):  # these are written before the search
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(saved_results, "write_whole", fails)
    monkeypatch.setattr(fit_module, "write_whole", fails)
    result = symenum("fit", table(DATA), "--out", tmp_path / "out", *(["--quiet"] if quiet else []))
    assert result.exit_code == 1
    assert os.strerror(number) in result.stderr
    assert LAW in result.stdout
    assert "2.123456789*a\n" in result.stdout
    assert "Traceback" not in result.output


def test_a_folder_that_vanishes_costs_nothing(symenum, models, table, tmp_path):
    out = tmp_path / "out"

    def remove():
        for path in out.iterdir():
            path.unlink()
        out.rmdir()
        models.between_steps = None

    models.between_steps = remove
    result = symenum("fit", table(DATA), "--out", out)
    assert result.exit_code == 1
    assert LAW in result.stdout


def test_an_interrupted_search_shows_and_writes_what_it_found(symenum, models, table, tmp_path):
    models.interrupted = True
    result = symenum("fit", table(DATA), "--out", tmp_path / "out")
    assert result.exit_code == 0
    assert "You ended the search" in result.stdout
    assert read_model(tmp_path / "out" / "model.json").interrupted


def test_an_interrupt_that_the_estimator_lets_through_is_one_all_the_same(symenum, models, table):
    models.error = KeyboardInterrupt()
    result = symenum("fit", table(DATA))
    assert result.exit_code == 0
    assert "You ended the search" in result.stdout
    assert LAW in result.stdout


def test_an_interrupt_before_anything_was_found_ends_with_1(symenum, models, table):
    models.error_before_any_step = KeyboardInterrupt()
    assert symenum("fit", table(DATA)).exit_code == 1


def test_sigterm_ends_the_search_like_an_interrupt(symenum, models, table):
    models.between_steps = lambda: os.kill(os.getpid(), signal.SIGTERM)
    result = symenum("fit", table(DATA))
    assert result.exit_code == 0
    assert "You ended the search" in result.stdout
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_search_that_breaks_down_loses_nothing(symenum, models, table, tmp_path):
    models.error = RuntimeError("out of luck")
    result = symenum("fit", table(DATA), "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert LAW in result.stdout
    assert "The search failed (RuntimeError: out of luck)" in result.stderr
    assert (tmp_path / "out" / "law.txt").read_text() == f"{LAW}\n"


def test_rounding_is_for_the_eye_only(symenum, table, tmp_path):
    symenum("fit", table(DATA), "--out", tmp_path)
    law = read_model(tmp_path / "model.json").laws[1].expression
    import numpy as np

    assert evaluate(law, {"a": np.array([1.0])}).tolist() == [2.123456789]


def test_what_the_user_knows_reaches_the_estimator(symenum, models, table):
    symenum(
        "fit", table(TWENTY_ROWS), "--loss", "huber", "--guess", "c*a**2", "--guess", "b + d", "--constant", "g=9.81",
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
    assert symenum("fit", table(TWENTY_ROWS), "--validation", other).exit_code == 0
    X, y, weights = models.validation
    assert list(X.columns) == ["a", "b"]
    assert X["a"].tolist() == [2.0, 2.0]
    assert y.tolist() == [5.0, 7.0]
    assert weights is None
    assert len(models.y) == 20


def test_a_part_of_the_rows_is_held_out(symenum, models, table):
    result = symenum("fit", table(TWENTY_ROWS), "--validation-fraction", "0.25", "--seed", "1")
    assert "5 of 20 rows are held out" in result.stderr
    assert (len(models.y), len(models.validation[1])) == (15, 5)
    assert sorted([*models.X["a"], *models.validation[0]["a"]]) == list(range(1, 21))


def test_the_law_is_the_one_that_the_estimator_chose(symenum, models, table, tmp_path):
    models.selected_by = "accuracy"
    result = symenum("fit", table(TWENTY_ROWS), "--validation-fraction", "0.25", "--out", tmp_path / "out")
    assert result.stdout.splitlines()[-1].startswith(("y = ", "With")) or "a**2" in result.stdout
    kept = json.loads((tmp_path / "out" / "model.json").read_text())
    assert kept["selected"] == len(kept["front"]) - 1


def test_standard_errors_are_shown_on_request(symenum, models, table):
    models.uncertainties = pandas.DataFrame({"constant": [2.123456789], "standard_error": [0.0123]})
    assert "±" not in symenum("fit", table(TWENTY_ROWS)).stdout
    assert "2.1234568 ± 0.012" in symenum("fit", table(TWENTY_ROWS), "--errors").stdout


def test_there_is_no_r_squared_of_another_loss(symenum, table):
    assert "R²" in symenum("fit", table(TWENTY_ROWS)).stdout
    assert "R²" not in symenum("fit", table(TWENTY_ROWS), "--loss", "mae").stdout


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
def test_options_that_contradict_each_other_are_refused(symenum, table, options, message):
    result = symenum("fit", table(TWENTY_ROWS), *options)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


def test_a_gpu_that_is_lost_before_the_first_step_is_named(symenum, models, table):
    models.error_before_any_step = DeviceLostError("cuda:0 failed in the middle of a pass")
    result = symenum("fit", table("a,b,y\n1,2,3\n2,5,4\n3,7,9\n"))
    assert result.exit_code == 1
    assert "The GPU failed: use --device cpu. cuda:0 failed" in " ".join(result.stderr.split())
    assert "Traceback" not in result.output


def test_how_sure_the_choice_is_stands_below_a_law_that_the_default_rule_has_chosen(symenum, table) -> None:
    arguments = ["fit", table(DATA), "--seed", "1", "--max-iterations", "3"]
    assert "The fake model is sure." in symenum(*arguments).stdout
    assert "The fake model is sure." not in symenum(*arguments, "--model-selection", "best").stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--share", "network"], "'network' must be a name and a number, such as network=0.5."),
        (["--constant", "g"], "such as g=9.81"),
        (["--complexity-of-operators", "sin"], "such as sin=5"),
    ],
)
def test_an_option_of_numbers_by_name_shows_an_example_of_its_own(symenum, table, options, message):
    result = symenum("fit", table(DATA), *options)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--share", "foo=1"], "--share has 'foo', and these data have no such move; the moves are: "),
        (["--require", "c"], "--require names 'c', which is no variable; there are a, b"),
        (["--guess", "k*m"], "--guess: 'k*m' holds no variable; there are a, b"),
    ],
)
def test_errors_of_the_estimator_name_the_option_and_what_there_is(table, options, message):
    rows = "a,b,y\n" + "".join(f"{i},{i * i % 7},{i + 2}\n" for i in range(12))
    result = CliRunner().invoke(main, ["fit", str(table(rows)), "--max-time", "1", *options])
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert "_variables" not in result.stderr


def test_units_reach_the_estimator_and_are_printed(symenum, models, table):
    arguments = (
        "fit",
        table("flow rate,t [s],y\n1,2,3\n2,5,4\n3,7,9\n"),
        "--units",
        "flow rate=m^3/s,t [s]=s",
        "--units",
        "y=m^3",
    )
    result = symenum(*arguments, "--dimensional-constants", "--constant", "c")
    assert models.settings["units"] == {"flow_rate": "m^3/s", "t_s": "s", "y": "m^3"}
    assert models.settings["dimensional_constants"] is True
    assert models.settings["constants"] == {"c": 299792458.0}
    assert "The fake model has units." in result.stdout


def test_units_stand_in_the_names_of_columns(symenum, models, table):
    symenum("fit", table("v [m/s],t (s),y [m]\n1,2,3\n2,5,4\n3,7,9\n"), "--units", "names")
    assert models.settings["units"] == {"v": "m/s", "t": "s", "y [m]": "m"}
    assert models.X.columns.tolist() == ["v", "t"]
    symenum("fit", table("v [m/s],v [cm/s],y [m]\n1,2,3\n2,5,4\n3,7,9\n"), "--units", "names")
    assert models.X.columns.tolist() == ["v_m_s", "v_cm_s"]  # v would be both
    result = symenum("fit", table(DATA), "--units", "names")
    assert result.exit_code == 2
    assert "the column 'a' has no unit in its name" in result.stderr
    for options in (("--units", "v"), ("--units", "names", "--units", "v=m")):
        assert symenum("fit", table(DATA), *options).exit_code == 2


def test_without_units_nothing_of_them_reaches_the_estimator(symenum, models, table):
    symenum("fit", table(DATA))
    assert "units" not in models.settings
    assert "dimensional_constants" not in models.settings


def test_a_shape_reaches_the_estimator_and_its_verdict_is_printed(symenum, models, table):
    options = ("--shape", "a=increasing", "--shape", "a=convex", "--shape", "y=0..inf", "--shape", "f(0, 0) = 0")
    result = symenum("fit", table(DATA), *options, "--shape-box", "a=0..10")
    expected = {"a": ["increasing", "convex"], "y": (0.0, math.inf), "f": ["f(0, 0) = 0"]}
    assert models.settings["shape"] == expected
    assert models.settings["shape_box"] == {"a": (0.0, 10.0)}
    assert "The shape is proved." in result.stdout
    for wrong in (("--shape", "a"), ("--shape", "a=x..y"), ("--shape-box", "a=3")):
        assert symenum("fit", table(DATA), *wrong).exit_code == 2
    symenum("fit", table(DATA))
    assert "shape" not in models.settings


def test_a_template_reaches_the_estimator(symenum, models, table):
    symenum("fit", table(DATA), "--template", "f(a) + g(b)")
    assert models.settings["template"] == "f(a) + g(b)"
    symenum("fit", table(DATA))
    assert "template" not in models.settings


def test_groups_reach_the_estimator_and_their_constants_are_printed(symenum, models, table):
    result = symenum("fit", table(DATA), "--group", "b")
    assert models.settings["groups"] == "b"
    assert "The fake constants." in result.stdout
    symenum("fit", table(DATA))
    assert "groups" not in models.settings


def test_a_variance_out_of_range_has_no_r_squared() -> None:
    result = SimpleNamespace(settings={}, law=SimpleNamespace(loss=1.0))
    table = SimpleNamespace(row_weights=None, y=pandas.Series([8.9e307, 8.9e307]).to_numpy())
    assert fit_module._r_squared(result, table) == ""
