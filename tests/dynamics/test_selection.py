"""The law to believe, the laws that cannot be told apart, and one budget for a system."""

from __future__ import annotations

import numpy as np
import pytest
from dynamics.motions import motion, noisy

from symenum.dynamics.equation import outer_terms
from symenum.dynamics.selection import RULES, choose_jointly, judge_front
from symenum.dynamics.system import Names, make_system
from symenum.dynamics.trajectory import make_pieces
from symenum.expressions import parse
from symenum.front import Front

T = np.linspace(0, 40, 800)
LORENZ_LIKE = ("x2", "x1 - 0.85*x2 - x1*x3", "x1**2 - 0.5*x3")


@pytest.fixture(scope="module")
def system():
    X = noisy(motion(LORENZ_LIKE, (0.1, 0.2, 0.4), T), 0.05)
    return make_system(make_pieces(X, T), Names(("x1", "x2", "x3")), "weak")


def front_of(equation, *laws: str) -> Front:
    candidates = [candidate for law in laws for candidate in equation.refit(parse(law))]
    return Front.of(equation.target).update(candidates)


@pytest.mark.parametrize("state", range(3))
def test_noise_accounts_for_what_the_truth_leaves(system, state: int) -> None:
    equation = system.equations[state]
    assert 0.5 < equation.chi_square(parse(LORENZ_LIKE[state])) < 2
    assert equation.chi_square(parse("x1*x2")) > 10


def test_the_truth_is_chosen_and_its_variants_marked(system) -> None:
    equation = system.equations[2]
    front = front_of(equation, "x1**2", "x1**2 - x3", "x1**2 - x3 + x1*x2", "x1**2 - x3 + x2 + x1*x2 + x2**3")
    judged = judge_front(equation, front)
    chosen = front[judged.selected].expression
    assert set(map(str, outer_terms(chosen))) == {"x1**2", "x3"}
    assert judged.indistinguishable[-1]
    assert not judged.indistinguishable[0]
    assert judged.chi_square[0] > 5


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_gives_a_row(system, rule: str) -> None:
    equation = system.equations[2]
    front = front_of(equation, "x1**2", "x1**2 - x3", "x1**2 - x3 + x1*x2")
    assert 0 <= judge_front(equation, front, rule).selected < len(front)


def test_a_budget_is_kept_and_spent_well(system) -> None:
    fronts = [front_of(e, law, "x1*x2", "x3 + x1") for e, law in zip(system.equations, LORENZ_LIKE, strict=True)]
    judged = [judge_front(e, f) for e, f in zip(system.equations, fronts, strict=True)]
    free = choose_jointly(fronts, judged, 1000)
    assert free == [int(np.argmin(judge.bits)) for judge in judged]
    cost = sum(front[i].complexity for front, i in zip(fronts, free, strict=True))
    tight = choose_jointly(fronts, judged, cost - 1)
    assert sum(front[i].complexity for front, i in zip(fronts, tight, strict=True)) < cost
    assert choose_jointly(fronts, judged, -1) == [0, 0, 0]
