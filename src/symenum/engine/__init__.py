"""Enumeration: every expression that a few layers of operators build on a few slots, scored on data, the best kept."""

from symenum.engine.network import PSRN
from symenum.engine.shortlist import Shortlist
from symenum.expressions.candidate import Candidate

__all__ = ["PSRN", "Candidate", "Shortlist"]
