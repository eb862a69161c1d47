"""The numeric verdict: nothing equal is missed, and nothing that differs in the seventh digit passes."""

from __future__ import annotations

import pytest
from bench.judge.laws import DIFFERENT, EQUAL, case

from symenum.bench.judge.numeric import agree, constant_apart
from symenum.expressions import parse


def test_there_are_sixty_pairs() -> None:
    assert len(EQUAL) + len(DIFFERENT) >= 60


@pytest.mark.parametrize(("law", "found"), EQUAL)
def test_what_is_equal_is_found_equal_by_numbers(law: str, found: str) -> None:
    problem = case(f"{law} + 0*x1" if "x1" not in law else law)
    assert agree(parse(found), problem.expression, problem)
    assert agree(problem.expression, problem.expression, problem)


@pytest.mark.parametrize(("law", "found"), DIFFERENT)
def test_what_differs_in_the_seventh_digit_is_told_apart_by_numbers(law: str, found: str) -> None:
    problem = case(law)
    assert not agree(parse(found), problem.expression, problem)


def test_extended_precision_decides_where_doubles_cannot() -> None:
    # (x + 1)**9 - … loses all its digits near x = 0 in doubles.
    law = "((x1 + 1)**9 - 1 - 9*x1 - 36*x1**2)/x1**3"
    same = "84 + 126*x1 + 126*x1**2 + 84*x1**3 + 36*x1**4 + 9*x1**5 + x1**6"
    problem = case(law, 1e-6, 2e-6)
    assert agree(parse(same), problem.expression, problem)
    assert not agree(parse(f"{same} + 1e-6"), problem.expression, problem)


def test_a_law_with_a_hole_in_its_domain_is_not_the_law() -> None:
    problem = case("x1**2 + x1", -1, 1)
    assert not agree(parse("sqrt(x1)**2*x1 + x1"), problem.expression, problem)
    positive = case("x1**2 + x1", 0.5, 1)
    assert agree(parse("sqrt(x1)**2*x1 + x1"), positive.expression, positive)


def test_srbench_rule_in_numbers() -> None:
    problem = case("x1*x2")
    assert constant_apart(parse("x1*x2 - 3"), problem.expression, problem)
    assert constant_apart(parse("-2*x1*x2"), problem.expression, problem)
    assert not constant_apart(parse("x1*x2 + 1e-6*x1"), problem.expression, problem)
    assert not constant_apart(parse("x1*x9"), problem.expression, problem)
