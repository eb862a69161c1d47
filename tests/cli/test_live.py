"""The live table shows where the search stands, within the terminal, and renews the time left by itself."""

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from symenum.cli.live import LineProgress, LiveProgress
from symenum.enumeration import Candidate
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
    progress = LiveProgress(console, "y", "best", 60.0, clock=lambda: now)
    now = 2.0
    assert "2.0 s, 58 s left" in shown(progress, console)
    now = 5.0
    assert "5.0 s, 55 s left" in shown(progress, console)


def test_the_front_is_shown_with_the_chosen_law_marked(console):
    front = Front((Candidate(parse("x"), 1.0), Candidate(parse("x + sin(x)"), 1e-12)), 0.0, 10)
    progress = LiveProgress(console, "y [m/s]", "best", None)
    progress(report(front))
    text = shown(progress, console)
    assert "step 7 (tokens) | 1.3e+10 candidates, 4e+08 a second" in text
    assert "y [m/s]" in text
    assert [line.split()[0] for line in text.splitlines() if "sin" in line] == [">>>>"]


def test_a_long_front_of_long_laws_fits_the_terminal(console):
    laws = [Candidate(parse(" + ".join(["x*123.456"] * n)), 1.0 / n) for n in range(1, 60)]
    progress = LiveProgress(console, "y", "accuracy", 10.0)
    progress(report(Front(tuple(laws), 0.0, 10)))
    lines = shown(progress, console).splitlines()
    assert len(lines) <= console.height
    assert max(map(len, lines)) <= console.width
    assert any(">>>>" in line for line in lines)


def test_lines_that_nobody_reads_any_more_do_not_end_the_search():
    class Gone(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    progress = LineProgress(Gone(), "best")
    # A callback that answers True would end the search, and so would an error.
    assert not progress(report(Front((Candidate(parse("x"), 1.0),), 0.0, 10)))
    assert not progress(report(Front((Candidate(parse("x"), 0.5),), 0.0, 10)))


def test_it_starts_and_stops_and_leaves_the_screen_to_the_result():
    screen = io.StringIO()
    with LiveProgress(Console(file=screen, force_terminal=True, width=80), "y", "best", 1.0) as progress:
        progress(report(Front((Candidate(parse("x"), 1.0),), 0.0, 10)))
    assert "step 7" in screen.getvalue()
