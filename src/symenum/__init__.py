"""symenum: symbolic regression by enumeration.

Every expression that a set of operators can build on a few inputs is scored, and the exact best ones are kept. All
public names are here, in one flat list. Importing the package touches neither a GPU nor any file but its modules.

A name is imported when it is first used: torch takes seconds, and `symenum --help` need not wait for it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from symenum.version import __version__

if TYPE_CHECKING:
    from symenum.bench.problems import register_set
    from symenum.bench.systems import register_system
    from symenum.display.plots import plot_fit, plot_front, plot_residuals
    from symenum.dynamics import ODERegressor, PDERegressor
    from symenum.dynamics.display import plot_trajectories
    from symenum.engine import PSRN, Candidate, Shortlist
    from symenum.estimator import FittedForm, PSERegressor, SymbolicClassifier, SymbolicTransformer, fit_constants
    from symenum.estimator.units import dimensionless_groups
    from symenum.heads import first_pass
    from symenum.operators import OPERATOR_SETS, OPERATORS, Operator, make_operator
    from symenum.operators.traits import Interval, Traits
    from symenum.plugins import register_generator, register_head, register_loss

__all__ = [
    "OPERATORS",
    "OPERATOR_SETS",
    "ODERegressor",
    "PDERegressor",
    "PSERegressor",
    "PSRN",
    "Candidate",
    "FittedForm",
    "Interval",
    "Operator",
    "Shortlist",
    "SymbolicClassifier",
    "SymbolicTransformer",
    "Traits",
    "__version__",
    "dimensionless_groups",
    "first_pass",
    "fit_constants",
    "make_operator",
    "plot_fit",
    "plot_front",
    "plot_residuals",
    "plot_trajectories",
    "register_generator",
    "register_head",
    "register_loss",
    "register_set",
    "register_system",
]

_PARTS = {
    "symenum.bench.problems": ("register_set",),
    "symenum.bench.systems": ("register_system",),
    "symenum.display.plots": ("plot_fit", "plot_front", "plot_residuals"),
    "symenum.dynamics": ("ODERegressor", "PDERegressor"),
    "symenum.dynamics.display": ("plot_trajectories",),
    "symenum.engine": ("PSRN", "Candidate", "Shortlist"),
    "symenum.estimator": ("FittedForm", "PSERegressor", "SymbolicClassifier", "SymbolicTransformer", "fit_constants"),
    "symenum.estimator.units": ("dimensionless_groups",),
    "symenum.heads": ("first_pass",),
    "symenum.operators.table": ("OPERATORS", "OPERATOR_SETS", "Interval", "Operator", "Traits", "make_operator"),
    "symenum.plugins": ("register_generator", "register_head", "register_loss"),
}
_HOME = {name: part for part, names in _PARTS.items() for name in names}


if not TYPE_CHECKING:  # with `__getattr__` a type checker would accept every misspelt name

    def __getattr__(name):
        if name not in _HOME:
            raise AttributeError(f"module 'symenum' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_HOME[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
