"""What the documentation shows runs: Python blocks, commands of symenum, and the cells of the notebooks."""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import pkgutil
import re
import shlex
from pathlib import Path
from typing import Any

import pandas
import pytest
from click.testing import CliRunner

import symenum
from symenum import ODERegressor, PSERegressor
from symenum.cli import main
from symenum.display.schedule import schedule_text

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


NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)")
ZERO = 1e-20  # a loss below this is rounding: its digits, and a score that comes from them, differ between machines


def comparable(output: str) -> list[str]:
    """The lines of an output without what differs between machines: losses that are rounding, and runs of spaces."""
    lines = []
    for line in output.strip("\n").splitlines():
        numbers = [float(number) for number in NUMBER.findall(line)]
        if any(0 < abs(number) < ZERO for number in numbers):
            line = re.sub(r"^(>>>>)? +(\d+) +\S+ +\S+", r"\1 \2 ~0", line)
        # Another processor may give other last digits.
        lines.append(" ".join(NUMBER.sub(lambda match: f"{float(match[0]):.4g}", line).split()))
    return lines


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_a_page_shows_runs_and_prints_what_it_shows(page: Path, empty_folder: None) -> None:
    """A block marked `text` after one that is run is what it prints."""
    if "plot_" in page.read_text(encoding="utf-8"):
        pytest.importorskip("matplotlib")
    namespace: dict[str, Any] = {"__name__": "page"}
    printed: str | None = None
    for i, (language, text) in enumerate(blocks(page)):
        where = f"{name_of(page)}, block {i + 1}"
        if language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as stdout:
                run_source(text, where, namespace)
            printed = stdout.getvalue()
        elif language == "sh":
            printed = ""
            for arguments in commands(text):
                result = CliRunner().invoke(main, arguments)
                assert result.exit_code == 0, f"symenum {shlex.join(arguments)}\n{result.output}{result.exception!r}"
                printed += result.stdout
        elif language == "text" and printed is not None:
            assert comparable(text) == comparable(printed), f"{where}: it prints\n{printed}"
        else:
            printed = None


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_says_what_it_is(page: Path) -> None:
    """Else an output could stand there that no test compares."""
    assert {language for language, _ in blocks(page)} <= {"python", "sh", "text", "console"}


def test_the_first_page_names_every_file_of_a_result(empty_folder: None) -> None:
    page = (DOCS / "start.md").read_text(encoding="utf-8")
    result = CliRunner().invoke(main, ["fit", "--example", "planets", "--max-iterations", "1", "--out", "results"])
    assert result.exit_code == 0, result.output
    files = {path.name for path in Path("results").iterdir()}
    beside = {name for name in files if name.startswith("checkpoint.json.") or name == "checkpoint.labels.json"}
    assert len(beside) == 2  # "and two files beside it"
    assert [name for name in sorted(files - beside) if f"`{name}`" not in page] == []


def test_the_table_of_what_ran_when_has_the_columns_of_today() -> None:
    page = (DOCS / "guide" / "watching.md").read_text(encoding="utf-8")
    shown = page.split("--explain\n```\n\n```text\n")[1].split("\n")[0]
    none = pandas.DataFrame(columns=["move", "turns", "seconds", "share", "first", "last", "gain", "error"])
    assert shown == schedule_text(none)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name_of)
def test_a_notebook_runs_from_top_to_bottom_and_prints_what_is_stored(path: Path, empty_folder: None) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    namespace: dict[str, Any] = {"__name__": "notebook"}
    for i, cell in enumerate(cells):
        if cell["cell_type"] == "code":
            with contextlib.redirect_stdout(io.StringIO()) as stdout:
                run_source("".join(cell["source"]), f"{path.name}, cell {i + 1}", namespace)
            shown = "".join("".join(output["text"]) for output in cell["outputs"] if output.get("name") == "stdout")
            assert comparable(shown) == comparable(stdout.getvalue()), f"cell {i + 1} prints\n{stdout.getvalue()}"
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


def test_search_works_from_the_disk_and_asks_no_other_server() -> None:
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert "  - search\n  - offline" in settings
    (stand_in,) = re.findall(r"polyfills: \[(.*iframe-worker.*)\]", settings)
    assert "http" not in (DOCS / stand_in).read_text(encoding="utf-8")


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


@pytest.mark.parametrize("estimator", [PSERegressor, ODERegressor])
def test_docstrings_are_numpydoc_with_the_description_below_the_type(estimator: type) -> None:
    text = inspect.getdoc(estimator) or ""
    sections = text[text.index("Parameters\n") : text.index("Examples\n")]
    entries = re.findall(r"^(\w.*) : (.*)\n( {4}.*)?", sections, re.MULTILINE)
    assert len(entries) > 10
    for names, kind, below in entries:
        assert below, f"{names}: the description belongs on the next line"
        what = kind.partition(", default ")[0].replace("...", "")
        assert re.fullmatch(r"[\w.\[\], |]*", what), f"{names}: {kind} is no type"


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
