"""One variable left: the family comes out with its constants, and nothing where it does not apply."""

from __future__ import annotations

import numpy as np
import pytest
from heads.tasks import features_of, make_response

from symenum.core.budget import Budget
from symenum.expressions import parse, same_function
from symenum.heads.one_variable import OneVariable
from symenum.operators import get_operators

Z = np.random.default_rng(0).uniform(0.1, 8, 200)
HEAD = OneVariable(get_operators("koza"))


@pytest.mark.parametrize(
    ("law", "y"),
    [
        ("1/(exp(x1/5) - 1)", 1 / np.expm1(Z / 5)),
        ("(exp(2/x1) - 1)/(exp(2/x1) + 1)", np.tanh(1 / Z)),
        ("3/(1 + 2*exp(-1.3*x1))", 3 / (1 + 2 * np.exp(-1.3 * Z))),
        ("1/2 - cos(3.4*x1)/2", np.sin(1.7 * Z) ** 2),
    ],
)
def test_laws_of_the_family_are_found(law: str, y: np.ndarray) -> None:
    response = make_response(Z[:, None], y)
    found = HEAD.scan(features_of(response, 0), response, 5, Budget())
    best = min(found, key=lambda candidate: candidate.loss)
    assert response.data.is_law(best), str(best)
    assert same_function(best.expression, parse(law)), str(best)


def test_noise_leaves_the_constant_near() -> None:
    clean = 1 / np.expm1(Z / 2)
    response = make_response(Z[:, None], clean + 0.01 * np.random.default_rng(1).normal(size=len(Z)))
    found = HEAD.scan(features_of(response, 0), response, 5, Budget())
    assert min(candidate.loss for candidate in found) < 1.1e-4


@pytest.mark.parametrize(
    "X", [Z[:, None] - 1, np.column_stack([Z, Z**2 + 1]), Z[:5, None]], ids=["negative", "two slots", "few rows"]
)
def test_nothing_where_it_does_not_apply(X: np.ndarray) -> None:
    response = make_response(X, np.exp(X[:, 0]))
    assert HEAD.scan(features_of(response, 0), response, 5, Budget()) == []


def test_operators_that_are_not_permitted_are_not_used() -> None:
    response = make_response(Z[:, None], np.exp(-Z))
    assert OneVariable(get_operators(["+", "*", "/"])).scan(features_of(response, 0), response, 5, Budget()) == []


@pytest.mark.parametrize("size", [1e-320, 1e-170, 1e170])
def test_powers_that_are_all_zero_or_infinite_are_left_out(size: float) -> None:
    z = size * np.linspace(1, 2, 40)
    response = make_response(z[:, None], np.linspace(1, 2, 40) ** 2)
    assert all(
        np.isfinite(candidate.loss) for candidate in HEAD.scan(features_of(response, 0), response, 5, Budget(0.5))
    )


def test_functions_are_taken_by_their_traits() -> None:
    """tanh in the sum of a ratio; abs and sign are homogeneous, so that c would be a plain factor."""
    response = make_response(Z[:, None], Z * (1 + 2 * np.tanh(0.7 * Z)))
    head = OneVariable(get_operators(["+", "*", "tanh", "abs", "sign"]))
    found = head.scan(features_of(response, 0), response, 5, Budget())
    assert response.data.is_law(min(found, key=lambda candidate: candidate.loss))
    idle = OneVariable(get_operators(["+", "*", "abs", "sign", "log"]))
    assert idle.scan(features_of(response, 0), response, 5, Budget()) == []
