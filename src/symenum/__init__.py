"""symenum: symbolic regression by enumeration.

Every expression that a set of operators can build on a few inputs is scored, and the exact best ones are kept. What
users need stands here, flat; importing it touches neither a GPU nor the disk beyond the modules themselves.
"""

from symenum.enumeration import PSRN, Candidate, Shortlist
from symenum.estimator import PSERegressor
from symenum.heads import first_pass
from symenum.operators import OPERATOR_SETS, OPERATORS, Operator, make_operator

__version__ = "0.1.0"

__all__ = [
    "OPERATORS",
    "OPERATOR_SETS",
    "PSERegressor",
    "PSRN",
    "Candidate",
    "Operator",
    "Shortlist",
    "__version__",
    "first_pass",
    "make_operator",
]
