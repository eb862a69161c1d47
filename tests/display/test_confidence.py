"""The sentences say what the numbers say, and no more."""

from __future__ import annotations

from symenum.display.confidence import confidence_lines, exhausted_line
from symenum.expressions import parse
from symenum.expressions.candidate import Candidate
from symenum.search.exhausted import Exhausted
from symenum.selection import Alternative, Verdict

LAW = parse("2*x")


def other(text: str, weight: float) -> Alternative:
    return Alternative(Candidate(parse(text), 1.0), weight)


def test_no_law_here() -> None:
    (line,) = confidence_lines(Verdict(LAW, 0.5, (other("x", 0.5),), exact=False, beats_mean=False, beats_line=False))
    assert line.startswith("No law here")


def test_no_more_than_a_line() -> None:
    lines = confidence_lines(Verdict(LAW, 1.0, (), exact=False, beats_mean=True, beats_line=False))
    assert "straight line" in lines[0]
    assert "20 times less probable" in lines[1]


def test_noise_that_grows_is_said() -> None:
    first, _ = confidence_lines(Verdict(LAW, 1.0, (), exact=False, beats_mean=True, beats_line=True, noise_grows=True))
    assert "errors grow" in first
    assert "weighed by the size of their errors" in first


def test_others_are_named_with_their_weights() -> None:
    others = other("sin(x)", 0.2), other("1.23456*x", 0.15), other("x", 0.05)
    (line,) = confidence_lines(Verdict(LAW, 0.6, others, exact=False, beats_mean=True, beats_line=True))
    assert line == (
        "Probably right: the data cannot tell it (60%) from 3 other laws: sin(x) (20%); 1.2346*x (15%) and others."
    )
    (line,) = confidence_lines(Verdict(LAW, 0.4, others[:1], exact=False, beats_mean=True, beats_line=True))
    assert line.startswith("Far from sure: the data cannot tell it (40%) from one other law: sin(x)")


def test_an_exact_law_needs_no_more_words() -> None:
    assert confidence_lines(Verdict(LAW, 1.0, (), exact=True, beats_mean=True, beats_line=True)) == [
        "It equals the data up to rounding."
    ]


def test_what_was_exhausted() -> None:
    text = exhausted_line(Exhausted(3, 12_287_702, LAW, 0.000493))
    assert "up to 3 operators" in text
    assert "12,287,702" in text
    assert "below 0.000493" in text
    assert "up to one operator of" in exhausted_line(Exhausted(1, 5, LAW, 1.0))
