"""Pictures: drawn on the axes given, from the data of the fit or others; a clear word where matplotlib is missing."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas
import pytest

from symenum import ODERegressor, PSERegressor, plot_fit, plot_front, plot_residuals, plot_trajectories
from symenum.display.figures import front_figure
from symenum.display.plots import draw
from symenum.display.table import LawRow
from symenum.expressions import parse

matplotlib = pytest.importorskip("matplotlib")  # optional for users; the extra `dev` has it
matplotlib.use("Agg")
RNG = np.random.default_rng(0)
X = RNG.uniform(1, 3, (40, 2))


@pytest.fixture(autouse=True)
def _no_figure_stays_open():
    from matplotlib import pyplot

    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def model() -> PSERegressor:
    return PSERegressor(max_iterations=2, max_time=None, random_state=0).fit(X, X[:, 0] ** 2 / X[:, 1])


@pytest.fixture
def axes():
    from matplotlib.figure import Figure

    return Figure().subplots()


def test_the_front_marks_the_chosen_law(model, axes) -> None:
    assert plot_front(model, ax=axes) is axes
    (chosen,) = [line for line in axes.lines if line.get_label() == "the chosen law"]
    assert chosen.get_xdata() == [model.front_[model.selected_index_].complexity]
    assert axes.get_yscale() == "log"
    assert axes.get_title() == "y = x1**2/x2"


def test_losses_are_drawn_as_they_are_and_an_exact_zero_at_the_labelled_lower_edge(axes) -> None:
    laws = [LawRow(parse("a"), i, loss, 0.0, 1.0) for i, loss in enumerate([2.0, 1.8e-32, 0.0])]
    draw(front_figure(laws, 2, "loss"), axes)
    dots = next(line for line in axes.lines if line.get_label() == "laws")
    np.testing.assert_array_equal(dots.get_ydata(), [2.0, 1.8e-32, np.nan])
    bottom = axes.get_ylim()[0]
    assert bottom < 1e-32
    triangles = [line for line in axes.lines if line.get_marker() == "v"]
    assert [line.get_ydata().tolist() for line in triangles] == [[bottom], [bottom]]
    assert [text.get_text() for text in axes.texts] == ["0 (exact)"]
    axes.figure.canvas.draw()
    shown = [tick.label1.get_text() for tick in axes.yaxis.get_major_ticks() if tick.get_loc() < 1e-34]
    assert not any(shown)


def test_a_law_of_two_variables_is_shown_as_predicted_against_measured(model, axes) -> None:
    plot_fit(model, ax=axes)
    rows = axes.lines[0]
    np.testing.assert_allclose(rows.get_xdata(), X[:, 0] ** 2 / X[:, 1])
    np.testing.assert_allclose(rows.get_ydata(), rows.get_xdata())


def test_a_law_of_one_variable_is_a_line_among_the_data(axes) -> None:
    x = np.linspace(1, 2, 30)
    one = PSERegressor(max_iterations=20, max_time=None, random_state=0).fit(x[:, None], x**3)
    plot_fit(one, ax=axes)
    np.testing.assert_array_equal(axes.lines[0].get_xdata(), x)
    grid, curve = axes.lines[1].get_data()
    np.testing.assert_allclose(curve, grid**3)


def test_residuals_of_other_data_and_of_another_law(model, axes) -> None:
    other = RNG.uniform(1, 3, (7, 2))
    plot_residuals(model, other, np.ones(7), index=0, ax=axes)
    np.testing.assert_allclose(axes.lines[0].get_ydata(), 1 - model.predict(other, index=0))


def test_what_makes_no_sense_is_refused(model) -> None:
    with pytest.raises(ValueError, match="X and y belong together"):
        plot_fit(model, X)
    with pytest.raises(IndexError, match="out of range"):
        plot_fit(model, index=99)
    with pytest.raises(ValueError, match="features"):
        plot_residuals(model, X[:, :1], X[:, 0])


def test_without_axes_a_figure_is_made(model) -> None:
    axes = plot_front(model)
    axes.figure.canvas.draw()
    assert axes.figure.axes == [axes]
    assert axes.has_data()


@pytest.mark.parametrize(("terms", "columns"), [(4, 1), (12, 1), (40, 1), (4, 3), (40, 3)])
def test_the_title_of_a_long_law_fits_the_figure(model, monkeypatch, terms: int, columns: int) -> None:
    from matplotlib import pyplot

    law = parse(" + ".join(f"{i}.25*x1*sin({i}*x2)" for i in range(1, terms)))
    monkeypatch.setattr(model, "best_expression_", law)
    panels = pyplot.subplots(1, columns, figsize=(9, 4), layout="constrained", squeeze=False)[1]
    axes = plot_front(model, panels[0, -1])
    axes.figure.canvas.draw()
    box = axes.title.get_window_extent()
    assert axes.get_title().endswith("…") == (terms == 40)
    assert axes.get_title().count("\n") <= 2
    assert box.x0 >= 0
    assert box.x1 <= axes.figure.bbox.x1
    assert box.y1 <= axes.figure.bbox.y1


def test_complexities_are_whole_numbers_on_the_axis(axes) -> None:
    one = PSERegressor(max_iterations=1, max_time=None, random_state=0).fit(X, X[:, 0] + X[:, 1])
    plot_front(one, ax=axes)
    axes.figure.canvas.draw()
    assert all(float(tick).is_integer() for tick in axes.get_xticks())


def test_the_name_of_y_is_on_the_axes(axes) -> None:
    pressure = pandas.Series(X[:, 0] * X[:, 1], name="pressure ($)")
    named = PSERegressor(max_iterations=1, max_time=None, random_state=0).fit(X, pressure)
    plot_fit(named, ax=axes)
    axes.figure.canvas.draw()  # a single dollar sign is no mathematics
    assert axes.get_ylabel() == r"pressure (\$), predicted"
    assert axes.get_title() == r"pressure (\$) = x1*x2"


def test_the_report_and_matplotlib_draw_the_same_figures(model, monkeypatch, tmp_path) -> None:
    from symenum.display import plots, report

    drawn, written = [], []
    monkeypatch.setattr(plots, "draw", lambda figure, ax: drawn.append(figure))
    monkeypatch.setattr(report, "svg_figure", lambda figure: written.append(figure) or "")
    for plot in (plot_front, plot_fit, plot_residuals):
        plot(model)
    model.report(tmp_path / "report.html")
    assert len(drawn) == len(written) == 3
    for one, other in zip(drawn, written, strict=True):
        assert (one.x_label, one.y_label, one.log_y) == (other.x_label, other.y_label, other.log_y)
        for a, b in zip(one.series, other.series, strict=True):
            assert (a.label, a.joined, a.dots, a.colour) == (b.label, b.joined, b.dots, b.colour)
            np.testing.assert_array_equal(a.x, b.x)
            np.testing.assert_array_equal(a.y, b.y)


@pytest.mark.parametrize("order", [1, 2])
def test_trajectories_are_drawn_by_state(order: int) -> None:
    t = np.linspace(0, 6, 150)
    states = np.column_stack([np.cos(2 * t), np.sin(2 * t)])[:, : 3 - order]
    quick = {"operators": "arithmetic", "random_state": 0, "max_iterations": 1, "model_selection": "mdl"}
    system = ODERegressor(**quick, order=order).fit(states, t)
    figure = plot_trajectories(system, states, t)
    assert [panel.get_ylabel() for panel in figure.axes] == list(system.state_names_)
    assert all(panel.get_legend() is None for panel in figure.axes)
    figure.canvas.draw()
    assert figure.legends[0].get_window_extent().y0 >= figure.axes[0].get_window_extent().y1  # above the panels
    for i, panel in enumerate(figure.axes):
        measured, simulated = panel.lines
        np.testing.assert_array_equal(measured.get_ydata(), states[:, i])
        np.testing.assert_allclose(simulated.get_ydata(), states[:, i], atol=0.05)


MISSING = """
import sys
sys.modules["matplotlib"] = None  # as if it were not installed
import importlib.util
importlib.util.find_spec = lambda name: None
from symenum.display.plots import new_axes
try:
    new_axes(None)
except ImportError as error:
    print(error)
"""


def test_without_matplotlib_it_says_what_to_type() -> None:
    done = subprocess.run([sys.executable, "-c", MISSING], capture_output=True, text=True, check=True)
    assert "pip install 'symenum[plot]'" in done.stdout
