"""Every refusal of data names the argument that it is about."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
import scipy.sparse

from symenum import PSERegressor

X = np.random.default_rng(0).uniform(1, 3, (20, 2))
Y = X[:, 0] * X[:, 1]


@pytest.mark.parametrize(
    ("data", "target", "message"),
    [
        (X, ["a"] * 20, r"^y: could not convert"),
        (X, np.array([*Y[:-1], None], dtype=object), r"^y has NaN"),
        (X, np.where(np.arange(20) == 3, np.nan, Y), r"y contains NaN"),
        (np.where(np.arange(40).reshape(20, 2) == 3, np.inf, X), Y, r"X contains infinity"),
        (X[:1], Y[:1], r"^X: Found array with 1 sample"),
        (X, Y * 1e200, r"^y has a largest absolute value"),
        (X.astype(complex), Y, r"^X: Complex data"),
        (scipy.sparse.csr_matrix(X), Y, r"for X"),
        (pandas.DataFrame(X, columns=["a", "a"]), Y, r"^X has more than one column of the name 'a': rename them"),
        (X, Y[:-1], r"X|y"),
    ],
    ids=["text", "None", "NaN in y", "inf in X", "one row", "large", "complex", "sparse", "twins", "lengths"],
)
def test_the_argument_is_named(data: object, target: object, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        PSERegressor(max_iterations=1).fit(data, target)
