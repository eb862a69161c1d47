"""The estimator: scikit-learn's interface to the search, and to formulas of the user's own.

A name is imported when it is first used: the command line reads the table of parameters without waiting for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from symenum.estimator.classifier import SymbolicClassifier
    from symenum.estimator.formulas import FittedForm, fit_constants
    from symenum.estimator.regressor import PSERegressor
    from symenum.estimator.transformer import SymbolicTransformer

__all__ = ["FittedForm", "PSERegressor", "SymbolicClassifier", "SymbolicTransformer", "fit_constants"]

_HOME = {
    "FittedForm": "formulas",
    "PSERegressor": "regressor",
    "SymbolicClassifier": "classifier",
    "SymbolicTransformer": "transformer",
    "fit_constants": "formulas",
}


if not TYPE_CHECKING:  # with `__getattr__` a type checker would accept every misspelt name

    def __getattr__(name):
        if name not in _HOME:
            raise AttributeError(f"module 'symenum.estimator' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"symenum.estimator.{_HOME[name]}"), name)
        return value
