"""The package as a whole: its metadata, its pins, its README, and what importing it does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import symenum

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def pins() -> dict[str, Requirement]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    stripped = (line.split("#")[0].strip() for line in lines)
    requirements = [Requirement(line) for line in stripped if line]
    return {canonicalize_name(requirement.name): requirement for requirement in requirements}


def test_version_is_the_same_in_pyproject_and_package(project: dict[str, Any]) -> None:
    assert project["version"] == symenum.__version__


def test_every_dependency_has_an_exact_pin_within_its_range(project: dict[str, Any]) -> None:
    wanted = [Requirement(text) for text in project["dependencies"] + project["optional-dependencies"]["dev"]]
    pinned = pins()
    for requirement in wanted:
        pin = pinned.get(canonicalize_name(requirement.name))
        assert pin is not None, f"{requirement.name} has no pin in constraints.txt"
        (specifier,) = pin.specifier
        assert specifier.operator == "==", f"{pin} is not an exact pin"
        assert requirement.specifier.contains(specifier.version), f"{pin} is outside {requirement}"


def test_torch_range_stays_open(project: dict[str, Any]) -> None:
    (torch,) = [Requirement(text) for text in project["dependencies"] if text.startswith("torch")]
    assert {specifier.operator for specifier in torch.specifier} == {">="}


def test_readme_opens_with_both_commands() -> None:
    first_screen = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:20]
    for command in ("make demo", "make test"):
        assert any(line.startswith(command) for line in first_screen), f"README's first screen lacks `{command}`"


def test_every_make_target_in_the_readme_exists() -> None:
    used = set(re.findall(r"^make (\w+)", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE))
    made = set(re.findall(r"^(\w+):(?!=)", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert used
    assert used <= made


IMPORT_WATCHED = """
import sys
import torch, sympy, pandas, scipy, rich, numpy  # what they do is not ours

def watch(event, arguments):
    if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        raise AssertionError(f"importing symenum opened {arguments[0]} for writing")
    if event in ("os.mkdir", "os.remove", "os.rename"):
        raise AssertionError(f"importing symenum did {event} on {arguments[0]}")

sys.addaudithook(watch)
import symenum
for name in symenum.__all__:
    getattr(symenum, name)
assert not torch.cuda.is_initialized(), "importing symenum started CUDA"
"""


def test_import_touches_neither_gpu_nor_disk() -> None:
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_WATCHED], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


IMPORT_ALONE = """
import sys

def watch(event, arguments):
    if event == "open" and not str(arguments[0]).endswith((".py", ".pyc")):
        raise AssertionError(f"importing symenum opened {arguments[0]}")

sys.addaudithook(watch)
import symenum
print(*({"torch", "numpy", "pandas", "sympy", "scipy", "sklearn", "rich", "matplotlib", "IPython"} & set(sys.modules)))
"""


def test_import_alone_is_light() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORT_ALONE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [], "import symenum imports what takes seconds"
