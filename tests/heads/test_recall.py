"""Heads against a brute force: what `scan` hands back is no worse than the ten best by numpy.linalg.lstsq.

Coefficients of what comes back may be snapped, which a head allows up to the standard error of each: a loss may be
above the least-squares one by that much. Nothing else may be lost between scan and candidates.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np
import pytest
import torch
from heads.tasks import features_of, make_response

from symenum.core.budget import Budget
from symenum.expressions import evaluate
from symenum.heads import Affine, Combine, Features, Head, Response, SumOfTerms, TwoTerms
from symenum.operators import get_operator, get_operators
from symenum.scans.pairs import best_pairs, best_single
from symenum.scans.products import build_factors
from symenum.scans.projection import orthonormal

ROWS = 30
BEST = 10


def data(kind: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Data without a law, so that many candidates are near each other, in the shapes that are hard on rounding."""
    random = np.random.default_rng(seed)
    X = random.uniform(0.5, 2.0, (ROWS, 2))
    y = random.normal(size=ROWS)
    if kind == "collinear":
        X[:, 1] = X[:, 0] * (1 + 1e-5 * random.normal(size=ROWS))
    elif kind == "offset":
        y += 1e6
    elif kind == "small":
        X, y = 1e-8 * X, 1e-8 * y
    elif kind == "large":
        X, y = 1e8 * X, 1e8 * y
    return X, y


KINDS = ("plain", "collinear", "offset", "small", "large")
each = pytest.mark.parametrize(("kind", "seed"), list(itertools.product(KINDS, range(2))))


def residual(columns: list[np.ndarray], y: np.ndarray) -> float:
    """The mean square residual of y on 1 and the columns, by lstsq on columns of one size; inf where they are one."""
    centred = [column - column.mean() for column in columns]
    norms = [np.linalg.norm(column) for column in centred]
    if any(norm <= 1e-11 * np.linalg.norm(column) for norm, column in zip(norms, columns, strict=True)):
        return np.inf
    A = np.column_stack([column / norm for column, norm in zip(centred, norms, strict=True)])
    target = y - y.mean()
    left = target - A @ np.linalg.lstsq(A, target, rcond=1e-14)[0]
    return float(np.mean(left**2))


def check(found: list[float], truth: list[float], coefficients: int) -> None:
    """The best that came back against the best there are, one by one."""
    allowed = 1 + 2.5 * coefficients / ROWS
    assert len(found) >= BEST // 2  # of nearly collinear columns not all pairs are fitted: some are one to rounding
    for loss, least in zip(found[:BEST], truth[:BEST], strict=False):
        assert loss <= least * allowed


def losses_of(head: Head, features: Features, response: Response) -> list[float]:
    """Several times as many as are compared: a head may write one function in several ways."""
    return distinct(candidate.loss for candidate in head.scan(features, response, 6 * BEST, Budget()))


def distinct(values: Iterable[float]) -> list[float]:
    """Losses of different candidates: functions that are one up to a·f + b have one loss, and count once."""
    kept: list[float] = []
    for value in sorted(value for value in values if np.isfinite(value)):
        if not kept or value > kept[-1] * (1 + 1e-11):
            kept.append(value)
    return kept


def independent(v: np.ndarray, w: np.ndarray) -> bool:
    """Whether neither is constant, nor one of them a·other + b."""
    if min(np.ptp(v) / abs(v).max(), np.ptp(w) / abs(w).max()) < 1e-9:
        return False
    return abs(np.corrcoef(v, w)[0, 1]) < 1 - 1e-9


@each
def test_affine_recalls_the_best_products_and_sums(kind: str, seed: int) -> None:
    X, y = data(kind, seed)
    response = make_response(X, y)
    features = features_of(response, 1, operators="arithmetic")
    V = features.values.numpy()
    for sign in ("mul", "add"):
        operator = get_operator(sign)
        pairs = itertools.combinations_with_replacement(V, 2)
        truth = distinct(residual([v * w if sign == "mul" else v + w], y) for v, w in pairs)
        check(losses_of(Affine((operator,)), features, response), truth, 2)


@each
def test_two_terms_recalls_the_best_pairs(kind: str, seed: int) -> None:
    X, y = data(kind, seed)
    response = make_response(X, y)
    features = features_of(response, 1, operators="arithmetic")
    V = features.values.numpy()
    truth = distinct(residual([v, w], y) for v, w in itertools.combinations(V, 2) if independent(v, w))
    check(losses_of(TwoTerms(), features, response), truth, 3)


@each
def test_combine_recalls_the_best_expressions(kind: str, seed: int) -> None:
    X, y = data(kind, seed)
    response = make_response(X, y)
    features = features_of(response, 1, operators="arithmetic")
    V = features.values.numpy()
    truth = [float(np.mean((v + w - y) ** 2)) for v, w in itertools.combinations_with_replacement(V, 2)]
    truth += [float(np.mean((v * w - y) ** 2)) for v, w in itertools.combinations_with_replacement(V, 2)]
    head = Combine(get_operators(["+", "*"]))
    assert losses_of(head, features, response)[:BEST] == pytest.approx(distinct(truth)[:BEST], rel=1e-9)


@each
def test_sum_of_terms_finds_nothing_worse_than_the_best_pairs(kind: str, seed: int) -> None:
    X, y = data(kind, seed)
    response = make_response(X, y)
    operators = get_operators("arithmetic")
    found = SumOfTerms(operators, max_terms=2).scan(features_of(response, 0), response, BEST, Budget())
    factors = build_factors(response.data.stand_ins, torch.from_numpy(X.T.copy()), operators).values.numpy()
    products = [*factors, *(a * b for a, b in itertools.combinations_with_replacement(factors, 2))]
    truth = distinct(residual([v, w], y) for v, w in itertools.combinations(products, 2) if independent(v, w))
    best = min(candidate.loss for candidate in found)
    assert best <= truth[0] * (1 + 2.5 * 3 / ROWS)
    for candidate in found:
        again = evaluate(candidate.expression, {f"x{i + 1}": X[:, i].copy() for i in range(2)})
        assert candidate.loss == pytest.approx(float(np.mean((again - y) ** 2)), rel=1e-9, abs=1e-300)


def positive_task(seed: int) -> tuple[np.ndarray, np.ndarray, torch.Tensor]:
    random = np.random.default_rng(seed)
    X = random.uniform(0.5, 2.0, (25, 2))
    y = np.exp(random.normal(size=25))  # no law: only the ranking is of interest
    response = make_response(X, y)
    V = features_of(response, 1).values
    return X, y, V[(V != 0).all(dim=1)]


def relative(columns: Sequence[np.ndarray], background: list[np.ndarray], t: np.ndarray) -> float:
    """The residual norm of t on background and columns, relative to that on the background alone."""

    def residual_norm(A: np.ndarray) -> float:
        return float(np.linalg.norm(t - A @ np.linalg.lstsq(A, t, rcond=None)[0]))

    return residual_norm(np.column_stack([*background, *columns])) / residual_norm(np.column_stack(background))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("features", [1, 2])
def test_powers_recall_the_ten_best_on_logarithms(seed: int, features: int) -> None:
    X, y, V = positive_task(seed)
    logs = V.abs().log()
    background = [np.ones(25), *np.log(X).T]
    t, Q = torch.from_numpy(np.log(y)), orthonormal(torch.from_numpy(np.stack(background)))
    found = best_single(logs, t, Q, 10)[1] if features == 1 else best_pairs(logs, t, Q, width=10).residual
    own = [
        row for row in logs.numpy() if relative((row,), background, row + 1e-3 * np.log(y)) > 1e-6
    ]  # not in the background
    truth = sorted(relative(rows, background, np.log(y)) for rows in itertools.combinations(own, features))[:10]
    np.testing.assert_allclose(found.numpy(), truth, rtol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_rational_recalls_the_ten_best_after_multiplying_out(seed: int) -> None:
    _, y, V = positive_task(seed)
    varying = V[V.std(dim=1) > 1e-9]
    t, Q = torch.from_numpy(y), orthonormal(torch.ones(1, 25, dtype=torch.float64))
    found = best_pairs(varying, t, Q, varying * t, width=10).residual
    F = varying.numpy()
    truth = sorted(relative((f, y * h), [np.ones(25)], y) for f in F for h in F)[:10]
    np.testing.assert_allclose(found.numpy(), truth, rtol=1e-6, atol=1e-9)
