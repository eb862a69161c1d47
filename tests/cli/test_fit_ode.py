"""`symenum fit-ode`: a trajectory in, the laws out, and clear words for what cannot be used."""

from __future__ import annotations

import csv
import os
import re
import signal

import numpy as np
import pandas
import pytest

from symenum import ODERegressor
from symenum.run_directory import Status, read_run

T = np.linspace(0, 12, 300)


@pytest.fixture
def swing(tmp_path):
    """A harmonic oscillator with a gap, and a column of text."""
    path = tmp_path / "swing.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["t", "x", "v", "note"])
        rows = zip(T, np.cos(2 * T), -2 * np.sin(2 * T), strict=True)
        writer.writerows([*row, "ok"] for i, row in enumerate(rows) if not 100 < i < 130)
    return path


DEFAULT = ("--operators", "arithmetic", "--max-iterations", "1", "--seed", "0")
QUICK = (*DEFAULT, "--model-selection", "mdl")  # fits to the trajectories take seconds


def test_laws_fronts_and_files(symenum, swing, tmp_path) -> None:
    out = tmp_path / "out"
    result = symenum("fit-ode", swing, "--time", "t", "--drop", "note", "--out", out, *QUICK)
    assert result.exit_code == 0
    assert "x' = v" in result.output
    assert ">>>>" in result.output
    assert (out / "laws.txt").read_text().splitlines()[0] == "x' = v"
    assert "def system(t, state):" in (out / "system.py").read_text()
    assert (out / "fronts.csv").read_text().startswith("state,row,complexity,loss,heldout_loss,chi_square")
    assert "\\dot{x}" in (out / "system.tex").read_text()
    run = read_run(out)
    assert (run.kind, run.status, run.targets) == ("motion", Status.FINISHED, ("x", "v"))
    assert run.source.endswith("swing.csv")


def test_quiet_prints_laws_only(symenum, swing) -> None:
    result = symenum("fit-ode", swing, "--time", "t", "--states", "x,v", "-q", *DEFAULT)
    assert result.output.splitlines() == ["x' = v", "v' = -4*x"]


def test_second_order_with_an_input(symenum, swing) -> None:
    result = symenum("fit-ode", swing, "--time", "t", "--states", "x", "--order", "2", "-q", *QUICK)
    assert result.output.startswith("x'' = -")


def test_the_progress_of_second_order_names_the_second_derivative(symenum, swing) -> None:
    result = symenum("fit-ode", swing, "--time", "t", "--states", "x", "--order", "2", *QUICK)
    lines = [line for line in result.stderr.splitlines() if "step" in line]
    assert lines
    assert all(line.startswith("x'': ") for line in lines)


def test_laws_in_a_pipe_are_never_cut(symenum, tmp_path) -> None:
    random = np.random.default_rng(0)
    path = tmp_path / "noisy.csv"
    x = np.cos(2 * T) + 0.3 * np.cos(5 * T) + 0.05 * random.normal(size=len(T))
    np.savetxt(path, np.column_stack([T, x]), delimiter=",", header="t,a_long_name_of_a_state", comments="")
    result = symenum("fit-ode", path, "--time", "t", "--order", "2", "--max-iterations", "3", "--seed", "0")
    assert max(map(len, result.stdout.splitlines())) > 120
    assert "…" not in result.stdout


def test_a_run_in_the_folder_is_not_overwritten(symenum, swing, tmp_path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "laws.txt").write_text("mine")
    command = ("fit-ode", swing, "--time", "t", "--drop", "note", "--out", out, *QUICK)
    assert symenum(*command).exit_code == 0
    assert (out / "laws.txt").read_text() == "mine"
    assert (tmp_path / "out-2" / "laws.txt").read_text().startswith("x' = v")
    assert symenum(*command, "--overwrite").exit_code == 0
    assert (out / "laws.txt").read_text().startswith("x' = v")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--time", "time"), "no column 'time'"),
        (("--time", "t"), "no number"),
        (("--time", "t", "--states", "y"), "no column 'y'"),
        (("--time", "x", "--states", "v"), "name the column that tells trajectories apart with --trajectory"),
        (("--time", "note", "--states", "v"), "no number. Give the times as numbers"),
        (("--time", "t", "--drop", "x,v,note"), "no column left for a state"),
    ],
)
def test_what_cannot_be_used_is_said(symenum, swing, options, message: str) -> None:
    result = symenum("fit-ode", swing, *options, *QUICK)
    assert result.exit_code == 2
    assert message in result.output


def test_the_rule_of_validation_asks_for_its_table(symenum, swing) -> None:
    result = symenum("fit-ode", swing, "--time", "t", *QUICK, "--model-selection", "validation")
    assert result.exit_code == 2
    assert "--model-selection validation needs --validation FILE" in " ".join(result.output.split())


def test_columns_of_one_name_are_refused(symenum, table) -> None:
    path = table("t,x,x\n" + "\n".join(f"{i},{i},{i}" for i in range(20)) + "\n")
    assert "more than one column called x" in symenum("fit-ode", path, "--time", "t").output


def test_several_trajectories_by_a_column(symenum, tmp_path) -> None:
    path = tmp_path / "two.csv"
    lines = ["run,t,x"] + [f"{run},{t},{(1 + run) * np.exp(-t)}" for run in (0, 1) for t in T[:150]]
    path.write_text("\n".join(lines))
    result = symenum("fit-ode", path, "--time", "t", "--trajectory", "run", "-q", *QUICK)
    assert result.output.startswith("x' = -")


def test_choices_are_those_of_the_estimator():
    from symenum.cli.fit_ode import fit_ode_command
    from symenum.dynamics.derivatives import DERIVATIVES
    from symenum.dynamics.selection import RULES
    from symenum.dynamics.system import WEAK

    choices = {option.name: option.type for option in fit_ode_command.params}
    assert set(choices["model_selection"].choices) == set(RULES)
    assert set(choices["derivative"].choices) == {WEAK, *DERIVATIVES}


def test_sigterm_ends_the_search_with_its_laws(symenum, swing, monkeypatch) -> None:
    from symenum.dynamics import ODERegressor

    fit = ODERegressor.fit

    def terminated(self, *data, **more):
        def send(report) -> None:
            if not sent:
                sent.append(report)
                os.kill(os.getpid(), signal.SIGTERM)

        sent: list[object] = []
        self.callbacks = [*self.callbacks, send]
        return fit(self, *data, **more)

    monkeypatch.setattr(ODERegressor, "fit", terminated)
    result = symenum("fit-ode", swing, "--time", "t", "--states", "x,v", "--seed", "0")
    assert result.exit_code == 0
    assert "x' = v" in result.output
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


@pytest.fixture
def noisy(tmp_path):
    """A damped oscillator with noise, whose laws have fitted constants and rivals."""
    path = tmp_path / "noisy.csv"
    x = np.exp(-0.123456 * T) * np.cos(2 * T)
    v = np.gradient(x, T)
    rows = np.column_stack([T, x, v]) + np.random.default_rng(0).normal(0, 0.004, (len(T), 3)) * [0, 1, 1]
    np.savetxt(path, rows, delimiter=",", header="t,x,v", comments="")
    return path


def test_laws_are_shown_with_five_digits_and_written_with_all_of_them(symenum, noisy, tmp_path) -> None:
    result = symenum("fit-ode", noisy, "--time", "t", "--out", tmp_path / "out", *QUICK)
    shown = result.stdout.split("The laws, with five digits of each constant:\n")[1]
    assert re.search(r"\d\.\d{4}", shown)
    assert not re.search(r"\d{7}", shown)
    assert re.search(r"\d{12}", (tmp_path / "out" / "laws.txt").read_text())


def test_an_equation_ends_with_its_share_of_the_time_and_not_with_a_limit_that_nobody_has_set(symenum, noisy) -> None:
    result = symenum("fit-ode", noisy, "--time", "t", "--states", "x", "--max-time", "0.4", "--seed", "0")
    assert "x: ended, its share of the time limit is over." in result.stdout


def test_a_folder_of_laws_of_motion_is_resumed(symenum, noisy, tmp_path) -> None:
    out = tmp_path / "out"
    options = ("--time", "t", "--operators", "+,-,*", "--seed", "0", "--model-selection", "mdl")
    symenum("fit-ode", noisy, *options, "--max-iterations", "1", "--out", out, "-q")
    assert (out / "checkpoint.json").exists()
    (out / "laws.txt").unlink()
    result = symenum("resume", out, "--max-iterations", "2", "-q")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("x' = ")
    assert (out / "laws.txt").read_text() == result.stdout
    assert "Laws of motion of x, v" in (out / "report.html").read_text()
    (out / "checkpoint.json").unlink()
    assert "of an older version, which kept no checkpoint" in " ".join(symenum("resume", out).stderr.split())


def test_a_map_needs_no_times_and_validation_no_checkpoint(symenum, tmp_path) -> None:
    x = [0.3]
    for _ in range(120):
        x.append(3.7 * x[-1] * (1 - x[-1]))
    pandas.DataFrame({"n": x}).to_csv(tmp_path / "map.csv", index=False)
    pandas.DataFrame({"n": x[60:]}).to_csv(tmp_path / "other.csv", index=False)
    options = ("--operators", "arithmetic", "--max-iterations", "1", "--seed", "0", "-q")
    result = symenum("fit-ode", tmp_path / "map.csv", "--step", "map", "--validation", tmp_path / "other.csv", *options)
    assert result.stdout == "n(t+1) = 3.7*n - 3.7*n**2\n"
    assert "--step map needs none" in " ".join(symenum("fit-ode", tmp_path / "map.csv").stderr.split())


def test_units_are_those_of_the_columns_and_of_the_time(symenum, tmp_path) -> None:
    path = tmp_path / "swing.csv"
    frame = pandas.DataFrame({"clock": T, "a place": np.cos(T), "v": -np.sin(T)})
    frame.to_csv(path, index=False)
    units = ("--units", "a place=m,v=m/s")
    found = symenum("fit-ode", path, "--time", "clock", *units, "--units", "clock=s", "-q", *QUICK)
    assert found.output.splitlines()[-2:] == ["a_place' = v", "v' = -a_place"]
    without = symenum("fit-ode", path, "--time", "clock", *units, *QUICK)
    assert "--units says nothing of the time: add clock=s" in " ".join(without.stderr.split())


def test_a_guess_names_its_state(symenum, swing) -> None:
    found = symenum("fit-ode", swing, "--time", "t", "--states", "x,v", "--guess", "v=a*x + b*v", "-q", *QUICK)
    assert found.stdout.splitlines()[1] == "v' = -4*x"
    wrong = symenum("fit-ode", swing, "--time", "t", "--drop", "note", "--guess", "a*x", *QUICK)
    assert "--guess must be STATE=FORMULA" in " ".join(wrong.stderr.split())


def test_laws_of_motion_are_computed_for_another_table(symenum, swing, table, tmp_path) -> None:
    out = tmp_path / "out"
    symenum("fit-ode", swing, "--time", "t", "--drop", "note", "--out", out, "-q", *QUICK)
    other = table("v,when,x\n1.5,0,0.25\n,1,2\n-3,2,-1\n")
    result = symenum("predict", out, other)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "v,when,x,x',v'"
    assert [float(cell) for cell in lines[1].split(",")[-2:]] == pytest.approx([1.5, -1.0])
    assert lines[2].split(",")[-2] == ""
    assert "x' = v" in result.stderr
    assert "In 1 of 3 rows a value is missing" in " ".join(result.stderr.split())
    assert symenum("predict", out / "motion.json", other, "-q").stdout == result.stdout


@pytest.mark.parametrize(
    ("spoil", "columns", "options", "message"),
    [
        (lambda file: None, "x,w", (), "has no column 'v', which the laws are of"),
        (lambda file: None, "x,v", ("--index", "99"), "equations_['x'] has the rows 0 to"),
        (lambda file: file.write_text("{}"), "x,v", (), "is no file of ODERegressor.save"),
        (lambda file: file.unlink(), "x,v", (), "is one of symenum fit-ode, whose laws are of motion: system.py"),
    ],
    ids=["column", "row", "damaged", "older version"],
)
def test_laws_of_motion_that_cannot_be_computed_are_said(
    symenum, swing, table, tmp_path, spoil, columns: str, options, message: str
) -> None:
    out = tmp_path / "out"
    symenum("fit-ode", swing, "--time", "t", "--drop", "note", "--out", out, "-q", *QUICK)
    spoil(out / "motion.json")
    result = symenum("predict", out, table(f"{columns}\n1,2\n3,4\n5,6\n"), *options)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_the_mark_of_laws_that_are_as_good_is_explained_where_there_is_one(symenum, noisy, swing) -> None:
    explained = "~ marks laws that the data cannot tell from the chosen one."
    marked = symenum("fit-ode", noisy, "--time", "t", *QUICK).stdout
    assert "   ~" in marked
    assert marked.count(explained) == 1
    table = pandas.read_csv(noisy)
    quick = {"operators": "arithmetic", "max_iterations": 1, "random_state": 0, "model_selection": "mdl"}
    model = ODERegressor(**quick).fit(table[["x", "v"]], table["t"])
    assert explained in str(model)
