"""The verdicts on pairs of equal and nearly equal expressions: nothing equal is missed, nothing else passes."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from symenum.bench.judge import Judge, judge_front, verdict
from symenum.bench.judge.numeric import agree, constant_apart, rounded
from symenum.bench.judge.structure import multiplied_out
from symenum.bench.problems import Problem, Protocol, get_problem
from symenum.expressions import parse, variables


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge() as one:
        yield one


def case(law: str, low: float = 0.5, high: float = 3.0) -> Problem:
    names = tuple(sorted({"x1", *variables(parse(law))}))
    return Problem("case", law, names, low, high, 20)


EQUAL = [
    ("x1 + x1**2", "x1*(x1 + 1)"),
    ("x1**3 + x1**2 + x1", "x1*(x1*(x1 + 1) + 1)"),
    ("sin(x1**2)*cos(x1) - 1", "(sin(x1**2 + x1) + sin(x1**2 - x1))/2 - 1"),
    ("log(x1 + 1) + log(x1**2 + 1)", "log(x1 + x1**2 + x1**3 + 1)"),
    ("x1**x2", "exp(x2*log(x1))"),
    ("sqrt(x1)", "x1**(1/2)"),
    ("sqrt(x1)", "exp(log(x1)/2)"),
    ("sinh(x1)", "exp(x1)/2 - 1/exp(x1)/2"),
    ("cosh(x1)", "(exp(x1) + exp(-x1))/2"),
    ("tanh(x1)", "(exp(2*x1) - 1)/(exp(2*x1) + 1)"),
    ("x1**(2/5)", "(x1**2)**(1/5)"),
    ("(x1 + 1)**3/(x1**2 - x1 + 1)", "(3*x1 + 3*x1**2 + x1**3 + 1)/(x1**2 - x1 + 1)"),
    ("x1/(2*(1 + x2))", "x1/(x2 + x2 + 2)"),
    ("1 + x1*x2/(9 + x1*x2/3)", "(9 + 4*x1*x2/3)/(9 + x1*x2/3)"),
    ("x1*(x2 + x3*sin(x4))", "x1*x3*sin(x4) + x1*x2"),
    ("x1*x2*(1/x3 - 1/x4)", "x1*(x2*(x4 - x3))/(x3*x4)"),
    ("exp(-x1**2/2)", "1/sqrt(exp(x1*x1))"),
    ("exp(-x1**2/2)/sqrt(2*pi)", "exp(-x1*x1/2)*(2*pi)**(-1/2)"),
    ("sqrt((x2 - x1)**2 + (x4 - x3)**2)", "sqrt(x1**2 - 2*x1*x2 + x2**2 + (x3 - x4)**2)"),
    ("x1/sqrt(1 + x2**2/x3**2)", "x1*x3/sqrt(x3**2 + x2**2)"),
    ("x1*x2/(x3*(x4**2 + 1))", "x1/x3*x2/(1 + x4*x4)"),
    ("x1**5/x2**3", "x1*x1*x1*x1*x1/(x2*x2*x2)"),
    ("6*sin(x1)*cos(x2)", "3*(sin(x1 + x2) + sin(x1 - x2))"),
    ("sin(2*x1)", "2*sin(x1)*cos(x1)"),
    ("cos(x1)**2", "1 - sin(x1)**2"),
    ("(x1 + 1e-5)**2 - x1**2", "2e-5*x1 + 1e-10"),
    ("exp(x1) - 1", "2*exp(x1/2)*sinh(x1/2)"),
    ("x1*(exp(x2*x3/x4) - 1)", "x1*exp(x2*x3/x4) - x1"),
    ("0.48*x1**4 + 3.39*x1**3", "x1**3*(0.48*x1 + 3.39)"),
    ("x1**2/4 + x1/3", "(3*x1**2 + 4*x1)/12"),
    ("x1**9 + x1**8 + x1**7", "x1**7*(x1**2 + x1 + 1)"),
    ("log(x1/x2)", "log(x1) - log(x2)"),
    ("abs(x1)", "x1"),
    ("x1*pi", "3.141592653589793*x1"),
    ("x1/3", "0.333333333333333*x1"),
]

DIFFERENT = [
    ("x1 + x1**2", "x1 + x1**2 + 1e-6"),
    ("x1 + x1**2", "x1 + 1.000001*x1**2"),
    ("x1**3 + x1**2 + x1", "x1**3 + x1**2 + 1.0000005*x1"),
    ("sin(x1)", "sin(1.0000004*x1)"),
    ("sin(x1)", "x1 - x1**3/6 + x1**5/120 - x1**7/5040 + x1**9/362880 - x1**11/39916800 + x1**13/6227020800"),
    ("exp(x1/10)", "1 + x1/10 + x1**2/200 + x1**3/6000 + x1**4/240000 + x1**5/12000000 + x1**6/720000000"),
    ("sqrt(x1)", "x1**0.5000002"),
    ("x1**(1/3)", "x1**0.3333334"),
    ("log(x1)", "log(x1 + 1e-6)"),
    ("x1/x2", "x1/(x2 + 1e-7)"),
    ("x1*pi", "3.1415926*x1"),
    ("x1/3", "0.3333333*x1"),
    ("cos(x1)", "1 - x1**2/2 + x1**4/24 - x1**6/720 + x1**8/40320 - x1**10/3628800 + x1**12/479001600"),
    ("tanh(10*x1)", "1 - 2*exp(-20*x1) + 2*exp(-40*x1)"),
    ("x1 + x2", "x1 + x2 + 1e-7*x1*x2"),
    ("x1*x2", "x1*x2*(1 + 1e-7*sin(x1))"),
    ("(x1**5 - 3*x1**3 + 1)/(x1**2 + 1)", "(x1**5 - 3*x1**3 + 1)/(x1**2 + 1.000001)"),
    ("exp(-x1**2)", "exp(-1.0000003*x1**2)"),
    ("x1*(x2 + x3)", "x1*(x2 + x3) + 2e-7"),
    ("x1**2", "x1**2 + 1e-8*exp(x1)"),
    ("sin(x1) + sin(x1 + x1**2)", "sin(x1) + sin(x1 + 1.0000001*x1**2)"),
    ("x1**4/(x1 + x2)", "x1**4/(x1 + x2) + 1e-8*x2**2"),
    ("2*sin(x1)*cos(x2)", "2.0000002*sin(x1)*cos(x2)"),
    ("x1", "sqrt(x1*x1 + 1e-7)"),
    ("x1", "x2"),
    ("x1 + 1", "x1"),
    ("x1 - x2", "x2 - x1"),
]


POINTS = [{f"x{i}": 0.3 + 0.37 * i + shift for i in range(1, 6)} for shift in (0.0, 0.2, 0.55)]


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


def test_sympy_says_yes_to_most_of_what_is_equal_and_no_to_none(judge: Judge) -> None:
    exact = [(law, found) for law, found in EQUAL if "0.333" not in found and "3.14" not in found]
    answers = {(law, found): judge.ask("equal", found, law, 20.0, positive=True, points=POINTS) for law, found in exact}
    assert not [pair for pair, answer in answers.items() if answer == "no"]
    assert list(answers.values()).count("yes") >= 30


@pytest.mark.parametrize(("law", "found"), DIFFERENT)
def test_sympy_never_says_yes_to_what_differs(law: str, found: str, judge: Judge) -> None:
    assert judge.ask("equal", found, law, 20.0, positive=True, points=POINTS) != "yes"


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


def test_srbench_rule_in_numbers() -> None:
    problem = case("x1*x2")
    assert constant_apart(parse("x1*x2 - 3"), problem.expression, problem)
    assert constant_apart(parse("-2*x1*x2"), problem.expression, problem)
    assert not constant_apart(parse("x1*x2 + 1e-6*x1"), problem.expression, problem)
    assert not constant_apart(parse("x1*x9"), problem.expression, problem)


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
