"""The report of a fit: one page that needs nothing else, says what was found, and runs nothing of the user's."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import numpy as np
import pytest

from symenum.display.figures import DataSummary, front_figure, law_on_rows
from symenum.display.report import ReportContent, report_page
from symenum.display.svg import svg_figure
from symenum.display.table import LawRow
from symenum.expressions import parse

EVIL = "<img src=x onerror=alert(1)>"
X = np.column_stack([np.linspace(-1, 3, 50), np.linspace(5, 2, 50)])


def content(law: str, y: np.ndarray, columns: tuple[str, str] = ("a", "b"), **more: object) -> ReportContent:
    laws = [LawRow(parse("1"), 0, 2.0, 0.0, 0.4), LawRow(parse(law), 7, 0.0, 5.0, 0.9)]
    data = DataSummary.of(X, y, ("a", "b"), columns, "y")
    return ReportContent("y", laws, 1, data, **more)


class Tags(HTMLParser):
    """Collects the elements and attributes of a page, and checks that they are closed in order."""

    VOID = frozenset({"meta"})

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.attributes: set[str] = set()
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attributes}
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attributes}

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def finish(self) -> None:
        assert self._open == []


def read(page: str) -> Tags:
    tags = Tags()
    tags.feed(page)
    tags.finish()
    return tags


def test_the_page_is_whole_and_needs_nothing_from_outside() -> None:
    page = report_page(content("a*b", X[:, 0] * X[:, 1], run={"ended": "in time"}, settings={"max_time": 60}))
    tags = read(page)
    assert {"math", "svg", "table", "style"} <= tags.seen
    assert not tags.seen & {"script", "link", "img", "iframe"}
    assert not tags.attributes & {"src", "href"}
    assert "in time" in page
    assert "max_time" in page
    assert page.count("<svg") == 3
    assert "R² = 1." in page


def test_nothing_of_the_users_is_markup() -> None:
    y = X[:, 0] * X[:, 1]
    harmless = content("a*b", y, (EVIL, "b"), run={EVIL: EVIL}, settings={EVIL: EVIL})
    data = DataSummary.of(X, y, ("a", "b"), (EVIL, "b"), EVIL)
    hostile = ReportContent(EVIL, harmless.laws, 1, data, harmless.run, harmless.settings)
    tags = read(report_page(hostile))
    assert "img" not in tags.seen
    assert "onerror" not in tags.attributes


def test_a_law_of_one_variable_is_drawn_as_a_line_between_the_data() -> None:
    fitted = law_on_rows(parse("a**2"), DataSummary.of(X, X[:, 0] ** 2, ("a", "b"), ("a", "b")))
    assert fitted.x is not None
    assert fitted.x[0] == "a"
    grid, curve = fitted.curve
    np.testing.assert_allclose(curve, grid**2)
    assert (grid[0], grid[-1]) == (-1.0, 3.0)
    assert not fitted.residual.any()


def test_rows_where_the_law_is_undefined_are_counted_and_said() -> None:
    page = report_page(content("log(a)*b", X[:, 1]))
    assert re.search(r"At \d+ of these rows the law has no finite value", page)
    read(page)


def test_of_many_rows_some_are_kept_and_it_says_so() -> None:
    rows = np.linspace(0, 1, 30_000)[:, None]
    data = DataSummary.of(rows, rows[:, 0], ("a",), ("a",))
    assert (data.rows, len(data.y)) == (30_000, 1000)
    assert (data.y[0], data.y[-1]) == (0.0, 1.0)
    page = report_page(ReportContent("y", [LawRow(parse("a"), 0, 0.0, 0.0, 1.0)], 0, data))
    assert "1000 of 30000 rows" in page


def test_a_wide_table_is_not_kept_whole() -> None:
    wide = np.zeros((5000, 400))
    data = DataSummary.of(wide, wide[:, 0], [f"x{i}" for i in range(400)], [f"x{i}" for i in range(400)])
    assert data.X.size <= 100_000


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_data_of_any_scale_are_drawn(scale: float) -> None:
    page = report_page(content("a", scale * X[:, 0]))
    for plot in re.findall("<svg.*?</svg>", page):
        numbers = re.findall(r'c[xy]="([^"]*)"', plot)
        assert numbers
        assert all(np.isfinite(float(number)) for number in numbers)
        ElementTree.fromstring(plot)


def test_a_constant_target_and_a_single_value_are_drawn() -> None:
    page = report_page(content("2", np.full(50, 2.0)))
    read(page)
    assert "<svg" in page
    assert "nan" not in page


def test_without_data_the_page_says_so() -> None:
    page = report_page(ReportContent("y", [LawRow(parse("a"), 0, 0.5, 0.0, 0.6)], 0, None))
    assert "not with the model" in page
    assert page.count("<svg") == 1


def test_an_exact_law_has_a_place_on_a_logarithmic_axis() -> None:
    laws = [LawRow(parse("a"), i, loss, 0.0, 1.0) for i, loss in enumerate([float("inf"), 2.0, 1.8e-32, 0.0])]
    figure = front_figure(laws, 3, "loss")
    every, chosen = figure.series
    assert (list(every.x), list(every.y)) == ([1, 2, 3], [2.0, 1.8e-32, 0.0])  # the values themselves
    assert (list(chosen.x), list(chosen.y)) == ([3], [0.0])
    plot = svg_figure(figure)
    assert plot.count(">0 (exact)<") == 1
    assert plot.count('z" fill=') == 2  # a triangle for each series instead of a dot
    assert ">0 (exact)<" not in svg_figure(front_figure(laws[:3], 2, "loss"))
    assert ">0 (exact)<" in svg_figure(front_figure(laws[3:], 0, "loss"))


def test_a_report_says_what_the_loss_is_where_the_target_has_errors() -> None:
    sentence = "The loss is the mean squared error, rows weighted by 1/error², in squared units of y."
    assert sentence in report_page(content("a + b", X.sum(axis=1), weighted_by_errors=True))
    assert "weighted" not in report_page(content("a + b", X.sum(axis=1)))
