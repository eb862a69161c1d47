"""The estimator: scikit-learn's interface to the search, and to formulas that the user has."""

from symenum.estimator.given import FittedForm, fit_constants
from symenum.estimator.regressor import PSERegressor

__all__ = ["FittedForm", "PSERegressor", "fit_constants"]
