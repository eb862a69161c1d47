"""Figures and pages made of rows."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from symenum.bench.report import (
    by_problem,
    by_set,
    html_report,
    markdown_report,
    published_problem,
    published_set,
    wilson,
)
from symenum.bench.systems import Law
from symenum.display.svg import bars, points, steps

from .rows import make_row

MANIFEST = {
    "version": "0.1.0",
    "max_time": 5.0,
    "cores": 1,
    "memory": 1 << 30,
    "machine": {"cpu": "A <fast> one", "cores": 2, "memory_gb": 24, "gpu": "none", "load": "0.1"},
    "versions": {"Python": "3.11"},
    "commands": ["symenum bench run nguyen"],
}
ROWS = [
    make_row(),
    make_row(seed=1, solved=False, numeric=False, symbolic="no", seconds=5.0, r2=0.5),
    make_row(
        seed=2, ended="out of time", words="it\nhung", laws=(), seconds=None, solved=False, r2=None, symbolic=None
    ),
    make_row(
        "Nguyen-5",
        "pyoperon",
        solved=False,
        numeric=True,
        symbolic="no",
        laws=(Law("x1 < 2 | 3", 1, float("inf")),),
        judged=0,
    ),
]


@pytest.mark.parametrize(("hits", "total"), [(0, 1), (0, 20), (10, 20), (20, 20), (97, 100)])
def test_wilson_holds_the_share_and_never_leaves_the_unit_interval(hits: int, total: int) -> None:
    low, high = wilson(hits, total)
    assert 0 <= low <= hits / total <= high <= 1
    assert high - low < 1


def test_groups_count_what_is_there() -> None:
    ours, theirs = by_set(ROWS)
    assert (ours.system, len(ours.rows), ours.solved, ours.failed) == ("symenum", 3, 1, 1)
    assert ours.recovery == pytest.approx(1 / 3)
    assert ours.accurate == pytest.approx(1 / 3)
    assert ours.seconds == 5.0
    assert ours.seconds_solved == 0.25
    assert [row.disagree for row in theirs.rows] == [True]
    assert theirs.seconds_solved is None
    assert len(by_problem(ROWS)) == 2


def test_markdown_has_the_figures_the_published_ones_and_what_failed() -> None:
    text = markdown_report(MANIFEST, ROWS)
    assert "| nguyen | symenum | 1 of 3 | 33.3% (6 to 79) |" in text
    assert "PSE (published)" in text
    assert "out of time" in text
    assert "verdicts disagree" in text
    assert "`symenum bench run nguyen`" in text
    widths = {
        line.replace("\\|", "").count("|")
        for line in text.split("## Not solved")[1].split("##")[0].splitlines()
        if "|" in line
    }
    assert len(widths) == 1


def test_the_page_is_one_file_with_its_plots_and_nothing_from_outside() -> None:
    page = html_report(MANIFEST, ROWS)
    assert page.count("<svg") >= 2
    assert "A &lt;fast&gt; one" in page
    assert "src=" not in page
    assert "href=" not in page
    assert "x1 &lt; 2" in page


def test_rows_of_another_version_are_said() -> None:
    assert "other versions" in markdown_report(MANIFEST, [make_row(version="0.0.9")])
    assert "other versions" not in markdown_report(MANIFEST, [make_row()])


def test_a_report_of_nothing_is_a_report() -> None:
    assert "0 runs" in markdown_report(MANIFEST, [])
    assert "<html" in html_report(MANIFEST, [])


@pytest.mark.parametrize(
    "plot",
    [
        steps("a & b", {"one": [(0.01, 0.5), (100.0, 1.0)], "<two>": [(1.0, 0.5)]}, "seconds", "share"),
        points("front", {"one": [(0, 1e-30), (5, 10.0)], "none": []}, "complexity", "loss"),
        bars("bars", {"set": {"one": (0.5, 0.3, 0.7)}, "other": {"two": (1.0, 0.8, 1.0)}}, "share"),
    ],
)
def test_plots_are_well_formed_and_inside_their_frame(plot: str) -> None:
    tree = ElementTree.fromstring(plot)
    for element in tree.iter():
        for name in ("x", "cx", "x1", "x2"):
            assert -1 <= float(element.get(name, 0)) <= 641
        for name in ("y", "cy", "y1", "y2"):
            assert -1 <= float(element.get(name, 0)) <= 341


def test_plots_of_nothing_are_nothing() -> None:
    assert steps("t", {"one": []}, "x", "y") == points("t", {}, "x", "y") == bars("t", {}, "y") == ""


def test_published_figures_are_the_papers() -> None:
    assert {figure.method: figure.recovery for figure in published_problem("Feynman-8")}["PSE"] == 10
    assert {figure.method: figure.seconds for figure in published_problem("R-1*")}["PSE"] == 44.35
    assert {figure.method: figure.recovery for figure in published_set("feynman")}["PSE"] == 94
    assert {figure.method: figure.recovery for figure in published_set("srbench_130", 0.01)}["PSE"] == 41.2
    assert published_set("deep") == ()
    assert published_problem("Deep-1") == ()
