"""The symbolic verdict: SymPy answers in time or not at all, and never yes to what differs."""

from __future__ import annotations

import time

import pytest
from bench.judge.laws import DIFFERENT, EQUAL

from symenum.bench.judge import Judge

POINTS = [{f"x{i}": 0.3 + 0.37 * i + shift for i in range(1, 6)} for shift in (0.0, 0.2, 0.55)]


def test_sympy_says_yes_to_most_of_what_is_equal_and_no_to_none(judge: Judge) -> None:
    exact = [(law, found) for law, found in EQUAL if "0.333" not in found and "3.14" not in found]
    answers = {(law, found): judge.ask("equal", found, law, 20.0, positive=True, points=POINTS) for law, found in exact}
    assert not [pair for pair, answer in answers.items() if answer == "no"]
    assert list(answers.values()).count("yes") >= 30


@pytest.mark.parametrize(("law", "found"), DIFFERENT)
def test_sympy_never_says_yes_to_what_differs(law: str, found: str, judge: Judge) -> None:
    assert judge.ask("equal", found, law, 5.0, positive=True, points=POINTS) != "yes"


ONE = "(sin(x1*x2 + x3)**2 + cos(x1*x2 + x3)**2)**(5/7)"


SLOW = (
    "x1*(exp(x2*x3/(x4*x5)) - 1)*sqrt(x1**2 + x2**2 + x3**2)"
    "*(x1 + x2 + x3 + x4 + x5)**9/(x1**(1/3) + x2**(1/5) + sqrt(x3 + sqrt(x4 + sqrt(x5))))**7"
)


def test_a_question_that_takes_too_long_ends_in_time_and_the_next_one_is_answered(judge: Judge) -> None:
    assert judge.ask("equal", "x1", "x1", 20.0) == "yes"
    begin = time.monotonic()
    answer = judge.ask("srbench", f"{SLOW}/{ONE} + 1", SLOW, 1.0, positive=True)
    assert time.monotonic() - begin < 3.0
    assert answer == "out of time"
    assert judge.ask("equal", "x1 + x1", "2*x1", 20.0) == "yes"


def test_what_sympy_cannot_read_is_a_failed_question_and_not_the_end(judge: Judge) -> None:
    assert judge.ask("equal", "x1 +", "x1", 20.0) == "failed"
    assert judge.ask("equal", "x1", "x1", 20.0) == "yes"
