"""Bounds hold: for random laws and random boxes, every value and slope at points of a box lies between them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from symenum.bench.problems.random_laws import DEVELOPMENT, ONE_VARIABLE
from symenum.expressions import evaluate, parse, variables
from symenum.sanity.intervals import Boxes, bounds_of_nodes, tight_bounds

LAWS = [*DEVELOPMENT.names()[:60], *ONE_VARIABLE.names()[:20]]


def boxes_and_points(low: np.ndarray, high: np.ndarray, names: tuple[str, ...]) -> tuple[Boxes, dict[str, np.ndarray]]:
    """Twenty random boxes, and 200 points of each (boxes, points), by name."""
    rng = np.random.default_rng(5)
    ends = np.sort(rng.uniform(low, high, (2, 20, len(names))), axis=0)
    points = ends[0][:, None] + rng.uniform(size=(20, 200, len(names))) * (ends[1] - ends[0])[:, None]
    boxes = Boxes(
        {name: ends[0][:, i].copy() for i, name in enumerate(names)},
        {name: ends[1][:, i].copy() for i, name in enumerate(names)},
    )
    return boxes, {name: np.ascontiguousarray(points[:, :, i]) for i, name in enumerate(names)}


@pytest.mark.parametrize("name", LAWS)
def test_bounds_hold_at_all_points_of_a_box(name: str) -> None:
    law = (ONE_VARIABLE if name.startswith("Random-S") else DEVELOPMENT).law(name)
    boxes, points = boxes_and_points(*law.bounds, law.variables)
    values = evaluate(law.expression, points)
    whole = bounds_of_nodes(law.expression, boxes, ())[law.expression]
    low, high, _ = tight_bounds(law.expression, boxes)
    for bound_low, bound_high in ((whole.low, whole.high), (low, high)):
        assert (values >= bound_low[:, None]).all()
        assert (values <= bound_high[:, None]).all()


@pytest.mark.parametrize(
    "text", ["x*y - y/x", "sin(x*y) + cos(x)", "exp(x)*log(y)", "x**2.5/sqrt(y)", "x**y", "abs(x - y)*tanh(x)", "x*x/y"]
)
def test_slopes_hold_at_all_points_of_a_box(text: str) -> None:
    law = parse(text)
    names = variables(law)
    boxes, points = boxes_and_points(np.array([0.5, 0.5]), np.array([3.0, 3.0]), names)
    bounds = bounds_of_nodes(law, boxes, names)[law]
    tensors = {name: torch.tensor(column, requires_grad=True) for name, column in points.items()}
    evaluate(law, tensors).sum().backward()
    for i, name in enumerate(names):
        slope = tensors[name].grad.numpy()
        assert (slope >= bounds.slope_low[i][:, None]).all()
        assert (slope <= bounds.slope_high[i][:, None]).all()


def test_a_slope_of_one_sign_makes_bounds_exact() -> None:
    boxes = Boxes({"x": np.array([1.0])}, {"x": np.array([3.0])})
    law = parse("x - 2/x + x*x")  # rises everywhere, but each term has bounds of its own
    low, high, _ = tight_bounds(law, boxes)
    assert (low[0], high[0]) == (pytest.approx(0.0, abs=1e-12), pytest.approx(34 / 3))
