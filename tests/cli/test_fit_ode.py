"""`symenum fit-ode`: a trajectory in, the laws out, and clear words for what cannot be used."""

from __future__ import annotations

import csv
import os
import signal

import numpy as np
import pytest

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


QUICK = ("--operators", "arithmetic", "--max-iterations", "1", "--seed", "0")


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


def test_quiet_prints_laws_only(symenum, swing) -> None:
    result = symenum("fit-ode", swing, "--time", "t", "--states", "x,v", "-q", *QUICK)
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
        (("--time", "x", "--states", "v"), "must increase"),
        (("--time", "t", "--drop", "x,v,note"), "no column left for a state"),
    ],
)
def test_what_cannot_be_used_is_said(symenum, swing, options, message: str) -> None:
    result = symenum("fit-ode", swing, *options, *QUICK)
    assert result.exit_code == 2
    assert message in result.output


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

    def terminated(self, *data):
        def send(report) -> None:
            if not sent:
                sent.append(report)
                os.kill(os.getpid(), signal.SIGTERM)

        sent: list[object] = []
        self.callbacks = [*self.callbacks, send]
        return fit(self, *data)

    monkeypatch.setattr(ODERegressor, "fit", terminated)
    result = symenum("fit-ode", swing, "--time", "t", "--states", "x,v", "--seed", "0")
    assert result.exit_code == 0
    assert "x' = v" in result.output
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
