"""Columns that matter come first: alone, in pairs only, beside copies, and whatever their scale."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from symenum.search.column_screening import ranked_columns


def ranked(X: np.ndarray, y: np.ndarray, **settings) -> list[int]:
    weight = torch.full((len(y),), 1 / len(y), dtype=torch.float64)
    return ranked_columns([*torch.tensor(X.T.copy())], torch.tensor(y), weight, **settings)


@pytest.mark.parametrize(
    ("law", "matter"),
    [
        (lambda X: 3 * X[:, 5] - 2 * X[:, 77], {5, 77}),
        (lambda X: X[:, 4] * X[:, 119] + np.sin(X[:, 199]), {4, 119, 199}),  # neither of the two says anything alone
        (lambda X: np.cos(3 * X[:, 250]), {250}),  # no correlation
        (lambda X: X[:, 9] ** 2 * X[:, 30], {9, 30}),
    ],
)
def test_columns_that_matter_come_first_among_300(law, matter: set[int]) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1000, 300))
    y = law(X) + 0.3 * rng.normal(size=1000)
    assert set(ranked(X, y)[: len(matter)]) == matter


def test_copies_of_columns_come_after_what_they_do_not_explain() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(500, 50))
    X[:, 10:20] = X[:, :10] + 0.3 * rng.normal(size=(500, 10))
    y = X[:, 0] * X[:, 1] + 2 * np.sin(1.5 * X[:, 2]) + X[:, 3] ** 2 - 1.5 * X[:, 4] + 0.3 * rng.normal(size=500)
    assert set(ranked(X, y)[:5]) == {0, 1, 2, 3, 4}


def test_scales_outliers_and_columns_of_two_values_do_not_matter() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 30))
    X[:, 7] = rng.integers(0, 2, 400)
    y = 2 * X[:, 7] + X[:, 3]
    X[:, 3] = np.exp(20 * X[:, 3]) * 1e-30
    X[:, 11] *= 1e30
    y[17] = 1e300
    assert set(ranked(X, y)[:2]) == {3, 7}


def test_every_column_has_one_place_and_the_order_repeats() -> None:
    rng = np.random.default_rng(4)
    for rows, columns in ((2, 3), (5, 1), (900, 40), (50, 80)):
        X = rng.normal(size=(rows, columns))
        y = rng.normal(size=rows)
        order = ranked(X, y, seed=3)
        assert sorted(order) == list(range(columns))
        assert order == ranked(X, y, seed=3)


def test_a_constant_target_is_no_error() -> None:
    assert sorted(ranked(np.random.default_rng(0).normal(size=(20, 4)), np.ones(20))) == [0, 1, 2, 3]


def test_thousands_of_columns_are_judged_alone_and_the_best_of_them_in_pairs() -> None:
    """Memory and time of all pairs would grow with the square of the columns: 5,000 have 2e8 bytes for each matrix."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 3000))
    y = X[:, 17] + X[:, 17] * X[:, 2100] - 2 * X[:, 900] + 0.1 * rng.normal(size=400)
    order = ranked(X, y)
    assert set(order[:2]) == {17, 900}
    assert sorted(order) == list(range(3000))


def test_pairs_of_1000_columns_are_all_judged() -> None:
    rng = np.random.default_rng(6)
    X = rng.normal(size=(600, 1000))
    assert set(ranked(X, X[:, 123] * X[:, 456] + 0.1 * rng.normal(size=600))[:2]) == {123, 456}
