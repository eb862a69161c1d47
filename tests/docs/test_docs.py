"""What the documentation shows runs: Python blocks, commands of symenum, and the cells of the notebooks."""

from __future__ import annotations

import json
import pkgutil
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import symenum
from symenum import PSERegressor
from symenum.cli import main

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
NOTEBOOKS = sorted(DOCS.rglob("*.ipynb"))
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[tuple[str, str]]:
    """The language and the text of each block of a page."""
    return [(match[1], match[2]) for match in BLOCK.finditer(page.read_text(encoding="utf-8"))]


def commands(block: str) -> list[list[str]]:
    """The lines of a shell block that are commands of symenum, without comments."""
    lines = [shlex.split(line, comments=True) for line in block.replace("\\\n", " ").splitlines()]
    return [line[1:] for line in lines if line and line[0] == "symenum"]


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_thread: None) -> None:
    """Examples write files; figures must not need a screen."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")


def run_source(source: str, where: str, namespace: dict[str, Any]) -> None:
    exec(compile(source, where, "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_a_page_shows_runs(page: Path, empty_folder: None) -> None:
    if "plot_" in page.read_text(encoding="utf-8"):
        pytest.importorskip("matplotlib")
    namespace: dict[str, Any] = {"__name__": "page"}
    for i, (language, text) in enumerate(blocks(page)):
        if language == "python":
            run_source(text, f"{name_of(page)}, block {i + 1}", namespace)
        elif language == "sh":
            for arguments in commands(text):
                result = CliRunner().invoke(main, arguments)
                assert result.exit_code == 0, f"symenum {shlex.join(arguments)}\n{result.output}{result.exception!r}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name_of)
def test_a_notebook_runs_from_top_to_bottom(path: Path, empty_folder: None) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    namespace: dict[str, Any] = {"__name__": "notebook"}
    for i, cell in enumerate(cells):
        if cell["cell_type"] == "code":
            run_source("".join(cell["source"]), f"{path.name}, cell {i + 1}", namespace)
    pyplot.close("all")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name_of)
def test_the_outputs_of_a_notebook_come_from_one_run_without_errors(path: Path) -> None:
    cells = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert outputs
    assert not [output for output in outputs if output["output_type"] == "error" or output.get("name") == "stderr"]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files_that_are_there(page: Path) -> None:
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / link).exists(), f"{name_of(page)} links to {link}"


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in [*DOCS.rglob("*.md"), *NOTEBOOKS]:
        assert f": {page.relative_to(DOCS).as_posix()}\n" in navigation


def test_every_parameter_is_on_the_page_of_tables() -> None:
    page = (DOCS / "guide" / "table.md").read_text(encoding="utf-8")
    assert [name for name in PSERegressor().get_params() if f"`{name}=" not in page] == []


def test_every_public_name_is_in_the_reference() -> None:
    page = (DOCS / "api.md").read_text(encoding="utf-8")
    assert [name for name in symenum.__all__ if not re.search(rf"\b{name}\b", page)] == []


@pytest.mark.parametrize(
    "entry", re.findall(r"^::: (\S+)$", (DOCS / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
)
def test_every_entry_of_the_reference_exists(entry: str) -> None:
    assert pkgutil.resolve_name(entry) is not None


def test_the_layout_names_every_part_in_the_order_of_imports() -> None:
    page = (DOCS / "developing.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)(?:/|\.py)` \|", page, re.MULTILINE)
    package = Path(symenum.__file__).parent
    parts = {path.stem for path in package.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert set(listed) == parts - {"__init__", "__main__"}
    architecture = (ROOT / "tests" / "test_architecture.py").read_text(encoding="utf-8")
    order = re.findall(r'^    "(\w+)",$', architecture.split("ORDER = (")[1].split(")")[0], re.MULTILINE)
    assert listed == [part for part in order if part not in ("__init__", "__main__")]


def test_there_are_blocks_to_run() -> None:
    languages = [language for page in PAGES for language, _ in blocks(page)]
    assert languages.count("python") >= 20
    assert languages.count("sh") >= 4
    assert len(NOTEBOOKS) == 3
