"""Regressors of scikit-learn that people use where they need no law: a straight line, a forest, boosted trees.

All have their defaults. The line is a law and is judged as one; the trees give predictions only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from symenum.bench.problems.problem import Array
from symenum.bench.systems.base import Found, Predictor, as_laws, variable_names
from symenum.expressions import parse

__all__ = ["Linear", "Trees", "boosting", "forest"]


class Linear:
    """Ordinary least squares on all columns."""

    def fit(self, X: Array, y: Array, *, operators: Sequence[str], seed: int, max_time: float, cores: int) -> Found:
        from sklearn.linear_model import LinearRegression

        model = LinearRegression().fit(X, y)
        parts = [
            f"({float(slope)!r})*{name}" for slope, name in zip(model.coef_, variable_names(X.shape[1]), strict=True)
        ]
        text = " + ".join([*parts, f"({float(model.intercept_)!r})"])
        return Found(as_laws([parse(text)], X, y), 0, "fitted")


@dataclass(frozen=True)
class Trees:
    """Many trees: `make` makes the model from a seed and the number of cores."""

    make: Callable[[int, int], Any]

    def fit(self, X: Array, y: Array, *, operators: Sequence[str], seed: int, max_time: float, cores: int) -> Found:
        model = self.make(seed, cores).fit(X, y)
        trees = [tree for row in model.estimators_ for tree in ([row] if hasattr(row, "tree_") else row)]
        nodes = sum(int(tree.tree_.node_count) for tree in trees)
        return Found((), 0, "fitted", predictor=Predictor(model.predict, nodes))


def forest() -> Trees:
    """A random forest of 100 trees."""

    def make(seed: int, cores: int) -> Any:
        from sklearn.ensemble import RandomForestRegressor

        return RandomForestRegressor(random_state=seed, n_jobs=cores)

    return Trees(make)


def boosting() -> Trees:
    """100 boosted trees of depth 3."""

    def make(seed: int, cores: int) -> Any:
        from sklearn.ensemble import GradientBoostingRegressor

        return GradientBoostingRegressor(random_state=seed)

    return Trees(make)
