"""Product of powers and rational, as they set up their regressions, against numpy.linalg.lstsq for each candidate."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from heads.tasks import features_of, make_response

from symenum.scans.pairs import best_pairs, best_single
from symenum.scans.projection import orthonormal


def task(seed):
    random = np.random.default_rng(seed)
    X = random.uniform(0.5, 2.0, (25, 2))
    y = np.exp(random.normal(size=25))  # no law: only the ranking is of interest
    response = make_response(X, y)
    V = features_of(response, 1).values
    return X, y, V[(V != 0).all(dim=1)]


def relative(columns, background, t):
    """The residual norm of t on background and columns, relative to that on the background alone."""

    def left(A):
        return np.linalg.norm(t - A @ np.linalg.lstsq(A, t, rcond=None)[0])

    return left(np.column_stack([*background, *columns])) / left(np.column_stack(background))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("features", [1, 2])
def test_powers_recall_the_ten_best_on_logarithms(seed, features):
    X, y, V = task(seed)
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
def test_rational_recalls_the_ten_best_after_multiplying_out(seed):
    _, y, V = task(seed)
    varying = V[V.std(dim=1) > 1e-9]
    t, Q = torch.from_numpy(y), orthonormal(torch.ones(1, 25, dtype=torch.float64))
    found = best_pairs(varying, t, Q, varying * t, width=10).residual
    F = varying.numpy()
    truth = sorted(relative((f, y * h), [np.ones(25)], y) for f in F for h in F)[:10]
    np.testing.assert_allclose(found.numpy(), truth, rtol=1e-6, atol=1e-9)
