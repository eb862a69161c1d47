"""The operators: one frozen record each with its traits, the paper's sets by name, and `make_operator` for your own.

`table` holds the records, `traits` the words for what an operator states of itself, `probing` the trial of both.
"""

from symenum.operators.table import (
    OPERATOR_SETS,
    OPERATORS,
    Abilities,
    Kind,
    Operator,
    Source,
    get_operator,
    get_operators,
    make_operator,
)
from symenum.operators.traits import ADDITIVE, ARITHMETIC, MULTIPLICATIVE, REALS, Interval, Role, Traits

__all__ = [
    "ADDITIVE",
    "ARITHMETIC",
    "MULTIPLICATIVE",
    "OPERATORS",
    "OPERATOR_SETS",
    "REALS",
    "Abilities",
    "Interval",
    "Kind",
    "Operator",
    "Role",
    "Source",
    "Traits",
    "get_operator",
    "get_operators",
    "make_operator",
]
