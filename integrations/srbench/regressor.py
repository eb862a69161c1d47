"""symenum for SRBench: `est`, `model(est, X)` and `eval_kwargs`, as its experiments import them.

Copy this folder to `algorithms/symenum` of a checkout of https://github.com/cavalab/srbench.
"""

from __future__ import annotations

import sympy

from symenum import PSERegressor

__all__ = ["est", "eval_kwargs", "model"]

est = PSERegressor(max_time=3600, random_state=0)
"""The estimator; SRBench sets `random_state` and, by `eval_kwargs`, changes nothing else."""


def model(est, X=None):  # type: ignore[no-untyped-def]  # SRBench's own signature
    """The chosen law as text that SymPy reads, with the names of X's columns (x1, x2, … without a DataFrame)."""
    expression = est.sympy()
    if X is None or not hasattr(X, "columns"):
        return str(expression)
    names = dict(zip(est.variable_names_, map(str, X.columns), strict=True))
    return str(expression.subs({sympy.Symbol(old): sympy.Symbol(new) for old, new in names.items()}, simultaneous=True))


eval_kwargs = {"scale_x": False, "scale_y": False}
"""Laws are searched on the data as they are: scaled, their constants would mean nothing."""
