"""The estimator: scikit-learn's interface to the search."""

from symenum.estimator.regressor import PSERegressor

__all__ = ["PSERegressor"]
