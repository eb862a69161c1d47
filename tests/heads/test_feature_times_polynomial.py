"""P(x) + f(x)·Q(x): the best feature of all is found, its residual is that of least squares, and f is written once."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from heads.tasks import features_of, make_response

from symenum.core.budget import NO_LIMIT
from symenum.heads.feature_times_polynomial import FeatureTimesPolynomial, _lost_by_all, _residual
from symenum.heads.one_feature import OneFeature
from symenum.heads.polynomial import monomials


def sample(law, variables: int = 3, rows: int = 60):
    X = np.random.default_rng(0).uniform(0.5, 3, (rows, variables))
    return make_response(X, law(*X.T))


@pytest.mark.parametrize(
    ("outer", "law", "text"),
    [
        (0, lambda a, b, c: a / np.exp(c) * (2 * a + b - 3), "(2*x1 + x2 - 3)*x1/exp(x3)"),
        (0, lambda a, b, c: 4 + np.sin(a * b) * (c - 2), None),
        (1, lambda a, b, c: 2 * a - c + np.log(a + b) * (b + c), None),
    ],
)
def test_the_law_is_found(outer: int, law, text: str | None) -> None:
    response = sample(law)
    found = FeatureTimesPolynomial(outer).scan(features_of(response, 2), response, 5, NO_LIMIT)
    laws = [candidate for candidate in found if response.data.is_law(candidate)]
    assert laws
    assert min(candidate.complexity for candidate in laws) <= 12
    if text is not None:
        assert text in [str(candidate.expression) for candidate in laws]


def test_what_is_left_by_all_features_is_that_of_least_squares() -> None:
    response = sample(lambda a, b, c: a * b + np.sin(c) / a)
    features = features_of(response, 1)
    data = response.data
    t, root = response.scanned()
    P, Q = (torch.stack([data.evaluate(m)[data.scan_rows] for m in monomials(data.stand_ins, d)]) for d in (0, 1))
    lost = _lost_by_all(features.values, P, Q, t, root, NO_LIMIT)
    for i in range(0, len(features), 7):
        A = np.concatenate([P.numpy(), (features.values[i] * Q).numpy()]).T * root.numpy()[:, None]
        y = (t * root).numpy()
        rest = y - A @ np.linalg.lstsq(A, y, rcond=None)[0]
        assert float(lost[i]) == pytest.approx(float(rest @ rest / (y @ y)), rel=1e-5, abs=1e-9)
        spread = np.linalg.norm(y - root.numpy() * (y @ root.numpy()))
        assert _residual(features.values[i], P, Q, t, root) == pytest.approx(np.linalg.norm(rest) / spread, rel=1e-5)


def test_too_few_rows_and_features_that_are_not_finite_give_nothing() -> None:
    few = sample(lambda a, b, c: a * b, rows=10)
    assert FeatureTimesPolynomial(1).scan(features_of(few, 1), few, 5, NO_LIMIT) == []
    response = sample(lambda a, b, c: a * b + c)
    t, root = response.scanned()
    F = torch.full((2, len(t)), float("nan"), dtype=torch.float64)
    F[1] = 0.0
    one = torch.ones(1, len(t), dtype=torch.float64)
    assert not bool(torch.isfinite(_lost_by_all(F, one, one, t, root, NO_LIMIT)).any())


def test_one_feature_beside_a_polynomial_is_found_with_all_coefficients() -> None:
    response = sample(lambda a, b, c: 2 * a - 3 * b + 0.5 + 1.5 * np.cos(b / c))
    terms = tuple(monomials(response.data.stand_ins, 1))
    found = OneFeature(background=terms).scan(features_of(response, 2), response, 5, NO_LIMIT)
    laws = [candidate for candidate in found if response.data.is_law(candidate)]
    assert any("cos(x2/x3)" in str(candidate.expression) for candidate in laws)
    alone = OneFeature().scan(features_of(response, 2), response, 5, NO_LIMIT)
    assert not any(response.data.is_law(candidate) for candidate in alone)
