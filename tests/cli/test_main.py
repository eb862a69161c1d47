"""The commands as a user starts them, in a process of their own."""

import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import symenum as package
from symenum.cli import main

COMMAND = [sys.executable, "-m", "symenum"]


def start(*arguments, **options):
    return subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False, **options)


def test_version_and_help():
    assert start("--version").stdout == f"symenum {package.__version__}\n"
    overview = start("--help").stdout
    assert "symenum fit data.csv --target y" in overview
    for name in main.list_commands(None):
        assert start(name, "--help").stdout
        assert re.search(rf"^  {name} +[A-Z].*\.$", overview, re.MULTILINE)
    assert "--max-time" in start("fit", "--help").stdout


def test_help_and_errors_do_not_wait_for_torch(tmp_path):
    code = (
        "import sys\nfrom symenum.cli import main\n"
        "try:\n    main(sys.argv[1:])\nfinally:\n    assert not {'torch', 'sympy', 'pandas'} & set(sys.modules)"
    )
    for arguments, status in [(["--help"], 0), (["fit", "--help"], 0), (["fit", str(tmp_path / "none.csv")], 2)]:
        done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stderr
        assert "Traceback" not in done.stderr


def test_the_overview_imports_no_command_and_no_numpy():
    """On two free cores it takes less than 0.1 s; here the modules are counted, since the clock depends on the load."""
    code = (
        "import sys\nfrom symenum.cli import main\ntry:\n    main(['--help'])\nfinally:\n"
        "    print([one for one in sys.modules if one.startswith('symenum.cli.') or one == 'numpy'], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "['symenum.cli.messages']"


@pytest.mark.parametrize(
    ("name", "message"), [("fitt", "Did you mean 'fit'?"), ("data.csv", "To search a table: symenum fit data.csv")]
)
def test_what_is_no_command_is_answered_with_one(tmp_path, name, message):
    (tmp_path / "data.csv").write_text("a,y\n1,2\n2,4\n")
    result = start(name, cwd=tmp_path)
    assert result.returncode == 2
    assert message in " ".join(result.stderr.split())


def test_devices():
    done = start("devices")
    assert done.returncode == 0
    for pattern in (
        r"^CPU: +\d+.* cores",
        r"^memory: +[\d.]+ GiB, of which a search takes up to [\d.]+ GiB$",
        r"^torch: +\d",
        r"^(CUDA|cuda:0): +",
        r"^auto: +(cpu \(.+\)|cuda:0 for large passes, cpu for small ones)$",
    ):
        assert re.search(pattern, done.stdout, re.MULTILINE), done.stdout


def test_planets_give_keplers_law(tmp_path):
    done = start("fit", "--example", "planets", "--seed", 0, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    exponents = re.findall(r"distance_au\*\*\(?([\d./]+)", (tmp_path / "law.txt").read_text())
    assert "Kepler's third law" in done.stdout
    assert exponents == ["3/2"] or [float(value) for value in exponents] == [pytest.approx(1.5, abs=1e-3)]


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_keeps_what_was_found(tmp_path):
    random = np.random.default_rng(0)
    x = random.uniform(1, 3, (60, 3))
    y = np.sin(x[:, 0] * x[:, 1]) + x[:, 2] + random.normal(0, 0.1, 60)
    data = tmp_path / "data.csv"
    np.savetxt(data, np.column_stack([x, y]), delimiter=",", header="a,b,c,y", comments="")
    process = subprocess.Popen(
        [*COMMAND, "fit", str(data), "--max-time", "300", "--out", str(tmp_path / "out")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    first = process.stderr.readline()
    assert "step" in first, first
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    assert "You ended the search" in stdout
    assert ">>>>" in stdout
    assert (tmp_path / "out" / "law.txt").read_text().startswith("y = ")
    assert "Traceback" not in stderr


def test_a_name_that_the_terminal_cannot_show_does_not_cost_the_result(tmp_path):
    data = tmp_path / "data.csv"
    data.write_text("θ,y\n" + "".join(f"{i},{2 * i}\n" for i in range(1, 9)), encoding="utf-8")
    done = start("fit", data, "--max-time", 5, env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert done.returncode == 0, done.stderr
    assert "\ny = 2*" in done.stdout
