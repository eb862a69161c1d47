"""The benchmark problems are complete, reproducible, and their own recovery test accepts the law and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from symenum.bench.judge import recovered
from symenum.bench.problems import PROBLEM_SETS, Problem, get_problem, problem_set
from symenum.expressions import parse

every = pytest.mark.parametrize("problem", problem_set("all"), ids=lambda problem: problem.name)


def test_there_are_the_papers_61() -> None:
    sizes = {name: len(problems) for name, problems in PROBLEM_SETS.items() if name != "deep"}
    assert sizes == {"nguyen": 12, "nguyen_c": 6, "r": 3, "r_star": 3, "livermore": 22, "feynman": 15}
    names = [problem.name for problem in problem_set("paper")]
    assert len(set(names)) == 61


def test_the_deep_ones_are_our_own_and_deeper_than_a_pass() -> None:
    deep = problem_set("deep")
    assert len(deep) >= 12
    assert all(problem.expression.depth > 3 for problem in deep)
    assert set(problem_set("all")) == {*problem_set("paper"), *deep}


@every
def test_samples_are_finite_reproducible_and_in_range(problem: Problem) -> None:
    X, y = problem.sample(3)
    again, y_again = problem.sample(3)
    assert np.array_equal(X, again)
    assert np.array_equal(y, y_again)
    assert X.shape == (problem.rows, len(problem.variables))
    assert np.isfinite(y).all()
    assert problem.low <= X.min()
    assert X.max() <= problem.high


@every
def test_the_law_is_its_own_recovery(problem: Problem) -> None:
    assert len(problem.fresh()[1]) == 1000
    assert recovered(problem.expression, problem)
    assert not recovered(parse(f"{problem.expression} + 0.0001*x1"), problem)


def test_seeds_differ_where_samples_are_random() -> None:
    assert not np.array_equal(get_problem("Nguyen-1").sample(0)[0], get_problem("Nguyen-1").sample(1)[0])
    assert np.array_equal(get_problem("R-1").sample(0)[0], get_problem("R-1").sample(1)[0])


def test_equal_by_identity_counts_and_a_smaller_domain_does_not() -> None:
    nguyen = get_problem("Nguyen-5")
    assert recovered(parse("(sin(x1**2 + x1) + sin(x1**2 - x1))/2 - 1"), nguyen)
    assert not recovered(parse("sqrt(x1)**2*x1**2 + x1**2 + x1"), get_problem("Nguyen-1"))
    assert not recovered(parse("x1 + x9"), get_problem("Nguyen-1"))


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="nguyen_c"):
        problem_set("nope")
    with pytest.raises(ValueError, match="Livermore-14"):
        get_problem("Nguyen-99")
