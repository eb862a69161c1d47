"""CONTRIBUTING.md is followed from outside the package: each example in an empty folder, in a process of its own."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL))
COMMANDS = [
    shlex.split(line)[1:]
    for block in re.findall(r"^```sh\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, source in FILES.items():
        (tmp_path / name).write_text(source, encoding="utf-8")
    return tmp_path


def run(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{shlex.join(arguments)}\n{done.stdout}{done.stderr}"
    return done.stdout


def promised(name: str) -> list[str]:
    """What the comments behind `print` say that a file prints."""
    return re.findall(r"^ +print\(.*\)  # (.*)$", FILES[name], re.MULTILINE)


def test_there_is_an_example_of_each_part() -> None:
    parts = ["operator", "head", "generator", "loss", "rival", "problems"]
    assert list(FILES) == [f"my_{part}.py" for part in parts]
    assert len(COMMANDS) == 2
    assert "```python" not in re.sub(r"^```python\n# my_\w+\.py$", "", TEXT, flags=re.MULTILINE)  # no block is left out


@pytest.mark.parametrize("name", ["my_operator.py", "my_head.py"])
def test_an_example_prints_what_the_page_says(folder: Path, name: str) -> None:
    assert run(folder, name).splitlines() == promised(name)


def test_the_operator_occurs_in_the_law() -> None:
    assert "erf(x1)" in promised("my_operator.py")[0]


def test_the_law_of_the_head_is_found_in_its_own_move() -> None:
    law, stage = promised("my_head.py")
    assert "abs(x1 - 2.5)" in law
    assert stage == "broken line"


def test_the_generator_has_learned_and_its_state_was_read_back(folder: Path) -> None:
    assert run(folder, "my_generator.py").splitlines() == promised("my_generator.py")
    document = json.loads((folder / "search.json").read_text(encoding="utf-8"))
    assert document["token_generator"] == "ratios"
    turns = {record["move"]: record["turns"] for record in document["state"]["records"]}
    assert turns == {"combine": 1, "network": 5}
    assert document["state"]["generator"] == {"done": 4}  # what the fifth brought is learned in a sixth


def test_the_loss_is_what_the_law_is_fitted_by(folder: Path) -> None:
    below = float(run(folder, "my_loss.py"))
    assert promised("my_loss.py") == ["about 0.9"]
    assert abs(below - 0.9) < 0.03  # least squares gives 0.62


def test_the_set_is_listed_and_the_rival_gets_a_row(folder: Path) -> None:
    listing, running = COMMANDS
    assert re.search(r"^coffee +2 +Laws of a cup of coffee$", run(folder, "-m", "symenum", *listing), re.MULTILINE)
    table = run(folder, "-m", "symenum", *running)
    assert "| coffee | straight_line | 1 of 2 |" in table
    rows = [json.loads(path.read_text(encoding="utf-8")) for path in (folder / "results" / "runs").iterdir()]
    assert {row["job"]["problem"]: row["solved"] for row in rows} == {"warming": True, "cooling": False}


def test_every_make_target_on_the_page_exists() -> None:
    made = set(re.findall(r"^([\w-]+):(?!=)", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    used = set(re.findall(r"^make ([a-z][\w-]*)", TEXT, flags=re.MULTILINE))
    assert used - made == set()
