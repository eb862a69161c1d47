"""The estimator: scikit-learn's interface to the search, and to formulas that the user has.

A name is imported when it is first used: the command line needs the table of parameters without waiting for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from symenum.estimator.formulas import FittedForm, fit_constants
    from symenum.estimator.regressor import PSERegressor

__all__ = ["FittedForm", "PSERegressor", "fit_constants"]

_HOME = {"FittedForm": "formulas", "PSERegressor": "regressor", "fit_constants": "formulas"}


if not TYPE_CHECKING:  # a checker would take every misspelt name for one that is found here

    def __getattr__(name):
        if name not in _HOME:
            raise AttributeError(f"module 'symenum.estimator' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"symenum.estimator.{_HOME[name]}"), name)
        return value
