"""The package as a whole: metadata, pins, README, the files around it, and what importing it does."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml
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


def test_the_version_has_one_home(project: dict[str, Any]) -> None:
    assert "version" not in project
    assert project["dynamic"] == ["version"]
    assert symenum.__version__ == symenum.version.__version__
    text = re.escape(symenum.__version__)
    holders = [path.name for path in (ROOT / "src").rglob("*.py") if re.search(text, path.read_text(encoding="utf-8"))]
    assert holders == ["version.py"]


def test_changelog_and_citation_are_those_of_this_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## \[?(\d+\.\d+\.\d+)\]?", changelog, flags=re.MULTILINE)
    assert versions[0] == symenum.__version__
    assert versions == sorted(versions, reverse=True)
    assert read_yaml(ROOT / "CITATION.cff")["version"] == symenum.__version__


def read_yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


YAML_FILES = [ROOT / "CITATION.cff", ROOT / ".pre-commit-config.yaml", *sorted((ROOT / ".github").rglob("*.yml"))]


@pytest.mark.parametrize("path", YAML_FILES, ids=lambda path: path.name)
def test_yaml_files_can_be_read(path: Path) -> None:
    assert isinstance(read_yaml(path), dict)


def test_issue_templates_have_what_github_asks_for() -> None:
    forms = [path for path in YAML_FILES if path.parent.name == "ISSUE_TEMPLATE" and path.name != "config.yml"]
    assert {path.stem for path in forms} == {"bug", "wrong_law", "feature"}
    for path in forms:
        form = read_yaml(path)
        assert {"name", "description", "body"} <= set(form)
        names = [part["id"] for part in form["body"]]
        assert len(set(names)) == len(names)
        assert all(part["attributes"]["label"] for part in form["body"])


def test_citation_has_what_the_format_asks_for() -> None:
    citation = read_yaml(ROOT / "CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    (paper,) = citation["references"]
    assert {"type", "title", "authors"} <= set(paper)
    assert [author["family-names"] for author in paper["authors"]][0::6] == ["Ruan", "Sun"]


def test_workflow_tests_the_versions_that_the_metadata_name(project: dict[str, Any]) -> None:
    jobs = read_yaml(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]
    named = [text.split()[-1] for text in project["classifiers"] if re.search(r":: 3\.\d+$", text)]
    assert jobs["test"]["strategy"]["matrix"]["python-version"] == named
    assert project["requires-python"] == f">={named[0]}"
    commands = {step["run"].split()[1] for job in jobs.values() for step in job["steps"] if "run" in step}
    assert commands == {"lint", "test", "docs", "release-check"}


def test_pre_commit_has_the_ruff_of_make_lint() -> None:
    hooks = read_yaml(ROOT / ".pre-commit-config.yaml")["repos"][0]["hooks"]
    wanted = [f"ruff{pins()['ruff'].specifier}"]
    assert [hook["additional_dependencies"] for hook in hooks] == [wanted, wanted]


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
    assert any(line.startswith("pip install symenum --extra-index-url") for line in first_screen)  # torch without CUDA
    for command in ("make demo", "make test"):
        assert any(line.startswith(command) for line in first_screen), f"README's first screen lacks `{command}`"


def test_the_readme_works_on_the_registrys_page(project: dict[str, Any]) -> None:
    """There is no file beside it there: links and pictures are absolute, and lead to files of this repository."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    repository = project["urls"]["Repository"]
    raw = repository.replace("https://github.com", "https://raw.githubusercontent.com")
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert len(links) > 20
    for link in links:
        assert link.startswith("https://"), link
        for base in (f"{repository}/blob/main/", f"{raw}/main/"):
            if link.startswith(base):
                assert (ROOT / link.removeprefix(base)).is_file(), link
    pictures = {link.rpartition("/")[2] for link in links if link.endswith(".png")}
    assert pictures == {"front.png", "report.png", "studio-live.png"}
    assert {"Homepage", "Repository", "Issues", "Changelog", "Documentation"} <= set(project["urls"])


def test_figures_beside_peers_stand_in_the_results() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = readme.split("## Beside its peers")[1].split("##")[0]
    shares = re.findall(r"\d+\.\d%", section)
    assert len(shares) > 20
    results = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
    assert [share for share in shares if share not in results] == []


def test_the_source_archive_has_what_its_tests_read(tmp_path: Path) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("an unpacked source archive: it is the archive that would be compared")
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    listed = tracked.stdout.splitlines()
    copy = tmp_path / "copy"
    for name in listed:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy / name)
    build = "import setuptools.build_meta, sys; print(setuptools.build_meta.build_sdist(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", build, str(tmp_path)], cwd=copy, capture_output=True, text=True, check=True
    )
    with tarfile.open(tmp_path / done.stdout.split()[-1]) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert [name for name in listed if name not in inside] == []


def test_every_make_target_in_the_readme_exists() -> None:
    used = set(re.findall(r"^make ([\w-]+)", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE))
    made = set(re.findall(r"^([\w-]+):(?!=)", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
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


def test_the_estimator_imports_no_parts_of_scikit_learn_that_few_searches_use() -> None:
    command = "import sys; from symenum import PSERegressor; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    assert not {"sklearn.ensemble", "sklearn.gaussian_process", "matplotlib", "rich"} & set(done.stdout.split())


def test_a_test_that_writes_into_the_working_tree_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for write in (
        lambda: Path("file.json").write_text("{}", encoding="utf-8"),
        lambda: Path("results").mkdir(),
        lambda: Path("absent").replace("file.json"),
    ):
        with pytest.raises(pytest.fail.Exception, match="into the working tree: use tmp_path"):
            write()
    assert not Path("file.json").exists()
    assert not Path("results").exists()
