"""Observers show where the search stands, within the place they have, and never end it."""

import io
import sys
from types import SimpleNamespace

import pytest
from rich.console import Console

from symenum.display.notebook import NotebookTable
from symenum.display.progress import NoProgress, ProgressLines, observer_for_estimator, sparkline
from symenum.display.terminal import LiveTable
from symenum.engine import Candidate
from symenum.expressions import parse
from symenum.front import Front


def report(front):
    return SimpleNamespace(
        iteration=7, stage="tokens", elapsed=3.0, time_left=57.0, scored=1.3e10, rate=4e8, front=front, message="plan"
    )


def shown(progress, console):
    with console.capture() as capture:
        console.print(progress.render())
    return capture.get()


@pytest.fixture
def console():
    return Console(width=100, height=20, force_terminal=False)


def test_before_the_first_report_the_clock_runs(console):
    now = 0.0
    progress = LiveTable(console, lambda _: "y", "best", 60.0, clock=lambda: now)
    now = 2.0
    assert "2.0 s, 58 s left" in shown(progress, console)
    now = 5.0
    assert "5.0 s, 55 s left" in shown(progress, console)


def test_the_front_is_shown_with_the_chosen_law_marked(console):
    front = Front((Candidate(parse("x"), 1.0), Candidate(parse("x + sin(x)"), 1e-12)), 0.0, 10)
    progress = LiveTable(console, lambda _: "y [m/s]", "best", None)
    progress(report(front))
    text = shown(progress, console)
    assert "step 7 (tokens) | 1.3e+10 candidates, 4e+08 a second" in text
    assert "y [m/s]" in text
    assert [line.split()[0] for line in text.splitlines() if "sin" in line] == [">>>>"]


def test_a_long_front_of_long_laws_fits_the_terminal(console):
    laws = [Candidate(parse(" + ".join(["x*123.456"] * n)), 1.0 / n) for n in range(1, 60)]
    progress = LiveTable(console, lambda _: "y", "accuracy", 10.0)
    progress(report(Front(tuple(laws), 0.0, 10)))
    lines = shown(progress, console).splitlines()
    assert len(lines) <= console.height
    assert max(map(len, lines)) <= console.width
    assert any(">>>>" in line for line in lines)


def test_lines_that_nobody_reads_any_more_do_not_end_the_search():
    class Gone(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    progress = ProgressLines(Gone(), "best")
    # A callback that answers True would end the search, and so would an error.
    assert not progress(report(Front((Candidate(parse("x"), 1.0),), 0.0, 10)))
    assert not progress(report(Front((Candidate(parse("x"), 0.5),), 0.0, 10)))


def test_a_line_comes_only_where_the_chosen_law_is_another_one():
    stream = io.StringIO()
    progress = ProgressLines(stream, "accuracy")
    law = Candidate(parse("x*x"), 0.5)
    progress(report(Front((law,), 0.0, 10)))
    progress(report(Front((Candidate(parse("1"), 2.0), law), 0.0, 10)))  # the front has changed, its best law has not
    progress(report(Front((Candidate(parse("1"), 1.0), law), 0.0, 10)))
    progress(report(Front((law, Candidate(parse("x + sin(x)"), 0.1)), 0.0, 10)))
    lines = stream.getvalue().splitlines()
    assert [line.rpartition(": ")[2] for line in lines] == ["x**2", "x + sin(x)"]


def test_it_starts_and_stops_and_leaves_the_screen_to_the_result():
    screen = io.StringIO()
    with LiveTable(Console(file=screen, force_terminal=True, width=80), lambda _: "y", "best", 1.0) as progress:
        progress(report(Front((Candidate(parse("x"), 1.0),), 0.0, 10)))
    assert "step 7" in screen.getvalue()


def front_of(loss):
    return Front((Candidate(parse("x"), 1.0), Candidate(parse("x + sin(x)"), loss)), 0.0, 10)


@pytest.mark.parametrize("count", [1, 2, 30, 31, 1000])
def test_a_sparkline_is_no_wider_than_asked_and_ends_at_the_last_value(count):
    line = sparkline([float(-i) for i in range(count)], 30)
    assert len(line) == min(count, 30)
    assert line[-1] == "▁"
    assert count == 1 or line[0] == "█"


def test_the_fall_of_the_best_loss_is_drawn(console):
    progress = LiveTable(console, lambda _: "y", "best", None)
    for loss in (1e-1, 1e-3, 0.0):
        progress(report(front_of(loss)))
    assert "best loss 0.1 █" in shown(progress, console)
    assert "▁ 0" in shown(progress, console)


def test_the_losses_of_one_state_are_not_drawn_beside_those_of_another(console, kernel):
    live = LiveTable(console, lambda step: step.message, "best", None)
    notebook = NotebookTable(lambda step: step.message, "best")
    other = report(front_of(5.0))
    other.message = "another"
    for step in (report(front_of(0.1)), report(front_of(0.01)), other):
        live(step)
        notebook(step)
    assert "best loss" not in shown(live, console)
    assert "best loss" not in notebook.html(other)


def test_lines_name_the_state_where_there_are_several():
    stream = io.StringIO()
    lines = ProgressLines(stream, "best", lambda _: "v'")
    lines(report(front_of(0.1)))
    lines(report(front_of(0.1)))
    assert stream.getvalue().startswith("v': 3.0 s, 57 s left | step 7")
    assert stream.getvalue().count("\n") == 1


class FakeKernel:
    """As much of IPython as the notebook's observer uses."""

    def __init__(self):
        self.shown = []

    def get_ipython(self):
        return SimpleNamespace(kernel=self)

    def display(self, page, display_id):
        self.shown.append(page)
        return self

    def update(self, page):
        self.shown.append(page)


@pytest.fixture
def kernel(monkeypatch):
    fake = FakeKernel()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=fake.get_ipython))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(HTML=str, display=fake.display))
    return fake


def test_a_notebook_gets_one_output_that_is_renewed_but_not_flooded_and_ends_with_the_last_step(kernel):
    now = 0.0
    with NotebookTable(lambda _: "<b>y", "best", clock=lambda: now) as progress:
        progress(report(front_of(0.5)))
        progress(report(front_of(0.4)))
        now = 1.0
        progress(report(front_of(0.3)))
        progress(report(front_of(0.25)))
    assert len(kernel.shown) == 3
    assert "0.25" in kernel.shown[-1]
    assert "&lt;b&gt;y" in kernel.shown[-1]
    assert "<b>" not in kernel.shown[-1]
    assert kernel.shown[-1].count("class=chosen") == 1


def test_the_observer_suits_the_place(monkeypatch, kernel):
    assert isinstance(observer_for_estimator(lambda _: "y", "best", None, verbose=False), NoProgress)
    assert isinstance(observer_for_estimator(lambda _: "y", "best", None, verbose=True), NotebookTable)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace()))
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stdout", screen)
    assert isinstance(observer_for_estimator(lambda _: "y", "best", None, verbose=True), ProgressLines)
    screen.isatty = lambda: True
    assert isinstance(observer_for_estimator(lambda _: "y", "best", None, verbose=True), LiveTable)
