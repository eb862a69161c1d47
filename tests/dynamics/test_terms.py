"""The best sets of terms are those that brute force finds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from symenum.core.budget import Budget
from symenum.dynamics.terms import best_subsets, bounded_terms, normal_equations, term_values
from symenum.operators import get_operators


def brute_force(A, y, cost, size, total):
    best = np.inf
    for terms in itertools.combinations(range(A.shape[1]), size):
        if cost[list(terms)].sum() == total:
            columns = np.column_stack([A[:, list(terms)], np.ones(len(y))])
            left = y - columns @ np.linalg.lstsq(columns, y, rcond=None)[0]
            best = min(best, left @ left / ((y - y.mean()) @ (y - y.mean())))
    return best


@pytest.mark.parametrize("seed", range(3))
def test_the_best_of_each_size_and_complexity(seed: int) -> None:
    random = np.random.default_rng(seed)
    A = random.normal(size=(60, 12))
    cost = random.integers(1, 4, 12)
    y = A[:, 1] - 2 * A[:, 4] + 0.5 * A[:, 9] + 0.3 * random.normal(size=60)
    found = best_subsets(normal_equations(A, y, cost), 4, 20, Budget())
    for size, total in {(len(subset.terms), subset.cost) for subset in found if len(subset.terms) <= 3}:
        best = min(s.unexplained for s in found if (len(s.terms), s.cost) == (size, total))
        if size <= 2:
            assert best == pytest.approx(brute_force(A, y, cost, size, total), abs=1e-9)
    truth = next(s for s in found if s.terms == (1, 4, 9))
    assert truth.unexplained == pytest.approx(brute_force(A, y, cost, 3, truth.cost), abs=1e-9)


def test_a_repeated_column_adds_nothing() -> None:
    random = np.random.default_rng(0)
    A = random.normal(size=(40, 3))
    A = np.column_stack([A, A[:, 0], np.ones(40)])
    found = best_subsets(normal_equations(A, A[:, 0] + A[:, 1], np.ones(5, dtype=int)), 3, 10, Budget())
    assert all(np.isfinite(subset.unexplained) for subset in found)
    assert not any({0, 3} <= set(subset.terms) for subset in found)


def test_time_is_kept() -> None:
    budget = Budget(1e-9)
    A = np.random.default_rng(0).normal(size=(40, 10))
    assert best_subsets(normal_equations(A, A[:, 0], np.ones(10, dtype=int)), 6, 50, budget)


def test_terms_that_saturate_follow_the_values_and_the_operators() -> None:
    columns = {"x": np.linspace(1.0, 5.0, 50), "y": np.linspace(-2.0, 2.0, 50)}
    texts = {str(term) for term in bounded_terms(columns, get_operators("koza"))}
    assert "x/(x + 3.0)" in texts or "x/(x + 3)" in texts
    assert any(text.startswith("y*") and "exp" in text for text in texts)
    # y changes its sign: y + c would have a pole.
    assert not any(text.startswith("y/(y + ") for text in texts)
    finite, _ = term_values(bounded_terms(columns, get_operators("koza")), columns)
    assert len(finite) == len(texts)


def test_without_quotients_or_with_many_variables_no_term_saturates() -> None:
    columns = {"x": np.linspace(1.0, 5.0, 50)}
    assert bounded_terms(columns, get_operators(["+", "-", "*"])) == []
    assert not any("exp" in str(term) for term in bounded_terms(columns, get_operators("arithmetic")))
    many = {f"x{i}": columns["x"] + i for i in range(9)}
    assert bounded_terms(many, get_operators("koza")) == []


def test_without_time_there_are_single_terms_only() -> None:
    random = np.random.default_rng(0)
    A = random.normal(size=(40, 5))
    normal = normal_equations(A, A[:, 0] + A[:, 1], np.arange(1, 6))
    found = best_subsets(normal, 3, 20, Budget(stop=lambda: True))
    assert sorted(subset.terms for subset in found) == [(i,) for i in range(5)]
