"""Small tasks for tests of the heads: slots x1, x2, … with columns, a target, and the response on it."""

from __future__ import annotations

import numpy as np
import torch

from symenum.core.budget import Budget
from symenum.core.target import check_target
from symenum.expressions import Expression, Variable, evaluate, parse
from symenum.heads import Features, Head, Response, build_features, make_data
from symenum.operators import get_operators


def make_response(
    X: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None = None, scan_rows: int = 1024
) -> Response:
    """X (rows, slots)."""
    slots: list[Expression] = [Variable(f"x{i + 1}") for i in range(X.shape[1])]
    target, rows = check_target(y, sample_weight, len(X))
    return Response.of(make_data(slots, torch.from_numpy(X[rows.numpy()].T.copy()), target, scan_rows))


def features_of(
    response: Response, layers: int = 1, *, extend_unary: bool = False, operators: str = "koza"
) -> Features:
    slots = torch.stack([response.data.evaluate(slot)[response.data.scan_rows] for slot in response.data.stand_ins])
    return build_features(response.data.stand_ins, slots, get_operators(operators), layers, extend_unary=extend_unary)


def loss_of(expression: Expression, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None) -> float:
    """The weighted mean square error, anew."""
    columns = {f"x{i + 1}": np.ascontiguousarray(X[:, i]) for i in range(X.shape[1])}
    return float(np.average((evaluate(expression, columns) - y) ** 2, weights=weight))


def law_response(law: str, slots: int, *, low: float = 1.0, high: float = 4.0, noise: float = 0.0) -> Response:
    """300 rows of a law in x1, x2, …, uniform between `low` and `high`; `noise` in units of the spread of y."""
    random = np.random.default_rng(7)
    X = random.uniform(low, high, (300, slots))
    columns = {f"x{i + 1}": np.ascontiguousarray(X[:, i]) for i in range(slots)}
    y = np.asarray(evaluate(parse(law), columns))
    return make_response(X, y + noise * y.std() * random.normal(size=len(y)))


def relative_losses(head: Head, response: Response, budget: Budget | None = None) -> list[float]:
    """The losses of what the head finds on the slots, relative to the variance of y, ascending."""
    found = head.scan(features_of(response, 0), response, 5, budget or Budget())
    return sorted(candidate.loss / float(response.data.target.y.var()) for candidate in found)
