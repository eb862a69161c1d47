"""What is said to be exhausted is: no expression of the space fits better, by brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from symenum.core.target import Target, Training
from symenum.expressions import Expression, Variable, apply, evaluate
from symenum.operators import get_operators
from symenum.search.exhausted import exhaust

RNG = np.random.default_rng(0)


def training_of(X: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None) -> Training:
    weight = np.ones(len(y)) if weight is None else weight
    target = Target(torch.tensor(y), torch.tensor(weight / weight.sum()))
    return Training.of(torch.tensor(X), [f"x{i + 1}" for i in range(X.shape[1])], target)


def every_expression(names: list[str], operators: tuple[str, ...], count: int) -> list[Expression]:
    """All expressions of exactly so many operators on these variables."""
    if count == 0:
        return [Variable(name) for name in names]
    found = []
    for name in operators:
        (operator,) = get_operators([name])
        if operator.arity == 1:
            found += [apply(operator, one) for one in every_expression(names, operators, count - 1)]
            continue
        for left in range(count):
            sides = (every_expression(names, operators, part) for part in (left, count - 1 - left))
            found += [apply(operator, a, b) for a, b in itertools.product(*sides)]
    return found


def affine_loss(law: Expression, training: Training) -> float:
    values = evaluate(law, training.columns).expand(training.target.rows).numpy()
    if not np.isfinite(values).all():
        return np.inf
    root = training.target.weight.sqrt().numpy()
    A = np.stack([values, np.ones_like(values)], axis=1) * root[:, None]
    y = training.target.y.numpy() * root
    return float(((A @ np.linalg.lstsq(A, y, rcond=None)[0] - y) ** 2).sum())


@pytest.mark.parametrize("weighted", [False, True])
def test_nothing_in_the_space_fits_better(weighted: bool) -> None:
    operators = ("+", "-", "*", "/", "sin")
    X = RNG.uniform(0.5, 3, (25, 2))
    y = np.exp(X[:, 0]) / X[:, 1] + 0.1 * RNG.standard_normal(25)
    training = training_of(X, y, RNG.uniform(0.1, 1, 25) if weighted else None)
    found = exhaust(training, get_operators(operators))
    assert found is not None
    assert found.operators == 3
    best = min(
        affine_loss(law, training) for count in range(4) for law in every_expression(["x1", "x2"], operators, count)
    )
    assert found.loss <= best * (1 + 1e-9)
    assert affine_loss(found.law, training) == pytest.approx(found.loss, rel=1e-6)  # it is one of them


def test_operators_without_a_matrix_product_are_tried_too() -> None:
    X = RNG.uniform(1, 2, (20, 2))
    found = exhaust(training_of(X, X[:, 0] ** X[:, 1]), get_operators(["+", "**"]))
    assert found is not None
    assert found.loss < 1e-20


def test_what_is_too_large_is_not_promised() -> None:
    X = RNG.uniform(1, 2, (50, 40))
    wide = exhaust(training_of(X, X[:, 0]), get_operators("koza"))
    narrow = exhaust(training_of(X[:, :1], X[:, 0] ** 2), get_operators("koza"))
    assert narrow is not None
    assert wide is None or wide.operators < narrow.operators
    assert exhaust(training_of(X[:, :1], np.ones(50)), get_operators("koza")) is None
    assert exhaust(training_of(X[:1, :1], np.ones(1)), get_operators("koza")) is None
