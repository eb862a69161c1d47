"""Plots as SVG: well formed for any numbers, inside their frame, with readable axes."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from symenum.display.figures import Figure, Series
from symenum.display.svg import svg_figure

NUMBERS = st.floats(allow_nan=True, allow_infinity=True)


@pytest.mark.parametrize("log_y", [False, True])
@example(points=[(0.0, 5e-324), (1.0, 1.7e308)])
@given(points=st.lists(st.tuples(NUMBERS, NUMBERS), max_size=20))
def test_a_figure_of_any_numbers_is_well_formed_and_inside_its_frame(
    points: list[tuple[float, float]], log_y: bool
) -> None:
    x, y = [x for x, _ in points], [y for _, y in points]
    series = (
        Series("<a>", x, y),
        Series("line", x, y, dots=False, joined="straight", colour=1),
        Series("stairs", x, y, joined="steps", colour=2, large=True),
    )
    plot = svg_figure(Figure("t", "x", "y", series, log_y))
    if not plot:
        return
    for element in ElementTree.fromstring(plot).iter():
        for name, most in (("cx", 641), ("cy", 341), ("x1", 641), ("x2", 641), ("y1", 341), ("y2", 341)):
            assert -1 <= float(element.get(name, 0)) <= most


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-3e8, 5e8), (1.0, 1.0), (1e-310, 2e-310)])
def test_axes_have_readable_numbers(low: float, high: float) -> None:
    plot = svg_figure(Figure("t", "x", "y", (Series("a", [low, high], [low, high]),)))
    assert 2 <= plot.count('text-anchor="end"') <= 12


def test_an_axis_that_counts_has_whole_numbers_only() -> None:
    plot = svg_figure(Figure("t", "x", "y", (Series("a", [1, 3], [5.0, 6.0]),), whole_x=True))
    below = [float(element.text) for element in ElementTree.fromstring(plot).iter() if element.get("y") == "309"]
    assert below == [1.0, 2.0, 3.0]


def test_long_titles_and_labels_stay_inside_the_frame() -> None:
    plot = svg_figure(Figure("t" * 300, "x" * 300, "y" * 300, (Series("a", [1.0], [1.0]),)))
    longest = [element.text or "" for element in ElementTree.fromstring(plot).iter() if len(element.text or "") > 20]
    assert len(longest) == 3
    assert all(text.endswith("…") and len(text) < 90 for text in longest)
