"""The verdicts together: which form of a law counts, which law of a front, and by which rule."""

from __future__ import annotations

import pytest
from bench.judge.laws import case

from symenum.bench.judge import Judge, judge_front, verdict
from symenum.bench.judge.numeric import rounded
from symenum.bench.judge.structure import multiplied_out
from symenum.bench.problems import Problem, Protocol, get_problem
from symenum.expressions import parse


def test_constants_are_rounded_as_the_protocol_says(judge: Judge) -> None:
    problem = get_problem("Nguyen-1c")
    near = parse("3.3904*x1**3 + 2.1196*x1**2 + 1.7801*x1 + 0.0004")
    assert verdict(near, problem, Protocol(decimals=2), judge).solved
    assert not verdict(near, problem, Protocol(decimals=4), judge).solved
    assert not verdict(parse("3.4*x1**3 + 2.12*x1**2 + 1.78*x1"), problem, Protocol(decimals=2), judge).solved
    assert str(rounded(parse("2.0003*sin(1.0001*x1)**3 + x1/3"), 2)) == "2*sin(x1)**3 + x1/3"


def test_a_constant_that_is_spread_over_factors_is_judged_by_its_product(judge: Judge) -> None:
    spread = parse("(2.6155047*x1 + 2.6155047)*(0.71585739*x1)*(0.53409433*x1) + x1")
    assert verdict(spread, get_problem("Nguyen-1"), Protocol(), judge).solved
    assert multiplied_out(parse("sin(x1)/(x1 + 1)"), 3) is not None


SRBENCH = Protocol("srbench", 3, "selected", "rms")


@pytest.mark.parametrize(
    ("found", "law", "solved"),
    [
        ("3*x1*x2", "x1*x2", True),
        ("x1*x2 + 7", "x1*x2", True),
        ("1.0003*x1*x2", "x1*x2", True),
        ("x1*x2 + 0.00004*x1", "x1*x2", True),
        ("x1*x2 + 0.01*x1", "x1*x2", False),
        ("x1/x2", "x1*x2", False),
        ("0*x1", "x1*x2", False),
        ("2*x1*x2 + 1", "x1*x2", False),
        ("exp(-x1**2/2)*0.399", "exp(-x1**2/2)/sqrt(2*pi)", True),
    ],
)
def test_srbench_forgives_an_added_or_multiplied_constant(found: str, law: str, solved: bool, judge: Judge) -> None:
    assert verdict(parse(found), case(law), SRBENCH, judge).solved == solved


def test_a_root_on_another_branch_outside_of_the_data_is_no_objection(judge: Judge) -> None:
    law = "(1 + x2/x1)/sqrt(1 - x2**2/x1**2)*x3"
    problem = Problem("branch", law, ("x1", "x2", "x3"), (3.0, 1.0, 1.0), (10.0, 2.0, 5.0), 20)
    found = verdict(parse("x3*sqrt((x1 + x2)/(x1 - x2))"), problem, SRBENCH, judge)
    assert found.solved
    assert found.symbolic != "no"


def test_a_constant_as_a_double_is_no_objection(judge: Judge) -> None:
    found = verdict(parse("1.1090536506409416*sqrt(x1)"), get_problem("Nguyen-8c"), Protocol(decimals=2), judge)
    assert found.solved


def test_a_law_with_a_hole_is_not_filled_by_multiplying_out(judge: Judge) -> None:
    problem = case("x1", -1, 1)
    for text in ("sqrt(x1)**2", "sqrt(x1)*sqrt(x1)", "sqrt(x1**2)", "(x1**4)**(1/4)", "sqrt(-x1)*sqrt(-x1)"):
        assert not verdict(parse(text), problem, Protocol(), judge).solved, text
    positive = case("x1")
    assert verdict(parse("sqrt(x1)**2"), positive, Protocol(), judge).solved


def test_an_exponent_is_rounded_as_the_protocol_says_and_no_more(judge: Judge) -> None:
    problem = case("x1**2")
    assert verdict(parse("x1**2.004"), problem, Protocol(decimals=2), judge).solved
    assert not verdict(parse("x1**2.004"), problem, Protocol(decimals=3), judge).solved
    assert str(multiplied_out(parse("x1**(1/3)*2"), 2)).startswith("2*x1**0.333333")


def test_with_noise_the_protocol_may_ask_for_the_structure(judge: Judge) -> None:
    problem, protocol = case("3*x1 + sin(x1)"), Protocol(noisy_rule="structure")
    near = parse("3.1*x1 + 0.9*sin(1.02*x1) + 0.01")
    assert not verdict(near, problem, protocol.at(0.0), judge).solved
    assert verdict(near, problem, protocol.at(0.01), judge).solved
    assert Protocol("srbench").at(0.01).rule == "srbench"


def test_any_law_of_the_front_counts_unless_the_protocol_judges_the_chosen_one(judge: Judge) -> None:
    problem = get_problem("Nguyen-1")
    front = [parse(text) for text in ("x1", "x1**3 + x1**2 + x1", "x1**3 + x1**2 + 1.01*x1")]
    index, found = judge_front(front, 0, problem, Protocol(), judge)
    assert (index, found.solved, found.numeric, found.symbolic) == (1, True, True, "yes")
    index, found = judge_front(front, 0, problem, SRBENCH, judge)
    assert (index, found.solved) == (0, False)
    index, found = judge_front(front[:1], 0, problem, Protocol(), judge)
    assert (index, found.solved, found.symbolic) == (0, False, "no")
