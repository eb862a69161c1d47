"""Figures of measured tables as R² against size, and of noisy laws by their errors."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest
from bench.problems.test_measured import write_tables

from symenum.bench.jobs import Job, Row
from symenum.bench.measured_report import error_tables, measured_plots, measured_tables
from symenum.bench.report import html_report, markdown_report
from symenum.bench.systems import Law

from .rows import make_row
from .test_report import MANIFEST

LAWS = (Law("1", 0, 1.0), Law("x1", 1, 0.5), Law("x1 + x2", 5, 0.1))


def measured(table: str, system: str, seed: int, r2: float | None, best: float | None = None, **changes: object) -> Row:
    job = Job("pmlb", table, system, seed)
    row = Row(job, "v", 1.0, "done", seconds=2.0, laws=LAWS, selected=1, test_r2=(0.0, r2, best), r2=r2)
    return replace(row, **changes)  # type: ignore[arg-type]


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Row]:
    monkeypatch.setenv("SYMENUM_DATA", str(write_tables(tmp_path)))
    trees = {"laws": (), "size": 900, "predicted": (1.0,), "test_r2": ()}
    return [
        measured("1_plain", "symenum", 0, 0.5, 0.9),
        measured("1_plain", "symenum", 1, 0.7, 0.8),
        measured("1_plain", "symenum", 2, -5.0, 0.9),
        measured("2_fri_c0_40_2", "symenum", 0, None, 0.4),
        measured("1_plain", "forest", 0, 0.6, **trees),
        measured("2_fri_c0_40_2", "forest", 0, 0.2, **trees),
        measured("1_plain", "linear", 2, 0.1, laws=LAWS[1:2], selected=0, test_r2=(0.1,)),
    ]


def test_sets_and_groups_with_published_figures_beside_them(rows: list[Row]) -> None:
    table = measured_tables(rows)[0]
    by_name = {(line[0], line[1]): dict(zip(table.columns, line, strict=True)) for line in table.cells}
    ours = by_name["pmlb", "symenum"]
    # The tables' medians are 0.5 and -1 (not defined); the best on their fronts 0.9 and 0.4.
    assert (ours["tables"], ours["R² median"], ours["R² mean"], ours["best"]) == ("2", "-0.250", "-0.250", "0.650")
    assert ours["gap"] == f"{(0.4 + 0.1 + 1.9 + 1.4) / 4:.3f}"
    assert ours["worst"] == "-inf"
    assert ours["bad"] == "2"
    assert ours["size"] == "1"
    assert by_name["pmlb", "forest"]["size"] == "900"
    assert by_name["pmlb", "forest"]["best"] == ""
    assert by_name["pmlb: others", "symenum"]["R² median"] == "0.500"
    assert by_name["pmlb: Friedman", "forest"]["R² mean"] == "0.200"
    assert by_name["pmlb: others", "Operon (published)"]["R² median"] == "0.900"
    assert ("pmlb: Friedman", "Operon (published)") not in by_name


def test_a_bad_law_counts_only_where_a_line_is_better(rows: list[Row]) -> None:
    worse = [row if row.job.system != "linear" else replace(row, r2=-0.2) for row in rows]
    table = measured_tables(worse)[0]
    assert table.cells[0][table.columns.index("bad")] == "1"


def test_tables_and_chosen_laws_are_shown(rows: list[Row]) -> None:
    _, by_table, laws = measured_tables(rows)
    line = dict(zip(by_table.columns, by_table.cells[0], strict=True))
    assert line["symenum"] == "0.500 (1) / 0.900"
    assert line["forest"] == "0.600 (900)"
    assert line["Operon (published)"] == "0.900 (40)"
    assert len(laws.cells) == 4
    assert laws.cells[3][3] == "not defined"


def test_the_picture_has_a_dot_for_each_method_inside_the_frame(rows: list[Row]) -> None:
    plots = measured_plots(rows)
    assert len(plots) == 3  # the set and its two groups
    tree = ElementTree.fromstring(plots[0])
    texts = {element.text for element in tree.iter() if element.text}
    assert {"symenum", "forest", "linear", "Operon (published)"} <= texts
    for element in tree.iter():
        for name, most in (("cx", 641.0), ("cy", 341.0)):
            assert -1 <= float(element.get(name, 0)) <= most


def test_a_report_holds_both_kinds_of_sets(rows: list[Row]) -> None:
    text = markdown_report(MANIFEST, [*rows, make_row()])
    assert "## R² against size" in text
    assert "| nguyen | symenum | 1 of 1 |" in text
    assert "pmlb |" not in text.split("## Sets")[1].split("## Problems")[0]
    page = html_report(MANIFEST, [*rows, make_row()])
    assert page.count("<svg") >= 4
    assert "R² against size" not in markdown_report(MANIFEST, [make_row()])


def test_laws_judged_by_their_error_are_counted_chosen_and_on_the_front() -> None:
    def noisy(problem: str, ratios: tuple[float | None, ...], **changes: object) -> Row:
        job = Job("engineering", problem, "symenum", 0)
        row = Row(job, "v", 1.0, "done", seconds=2.0, laws=LAWS, selected=1, judged=1, error_ratios=ratios)
        return replace(row, solved=(ratios[1] or math.inf) <= 3, **changes)  # type: ignore[arg-type]

    rows = [noisy("Pump", (9.0, 1.5, 1.0)), noisy("Diode", (9.0, 2.5, 1.0)), noisy("Fatigue", (9.0, None, 2.0))]
    summary, by_law = error_tables(rows)
    line = dict(zip(summary.columns, summary.cells[0], strict=True))
    assert (line["chosen"], line["on the front"], line["strict"]) == ("2 of 3 (67%)", "3 of 3 (100%)", "1")
    assert line["ratio"] == "2.5"
    assert [cell[3:6] for cell in by_law.cells] == [("yes", "1.5", "1"), ("yes", "2.5", "1"), ("no", "", "2")]
    assert "## Errors against the clean truth" in markdown_report(MANIFEST, rows)


def test_there_are_no_tables_of_what_was_not_run() -> None:
    assert measured_tables([make_row()]) == error_tables([make_row()]) == measured_plots([make_row()]) == []
