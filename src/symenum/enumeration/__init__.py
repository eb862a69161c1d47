"""Enumeration: every expression that a few layers of operators build on a few slots, scored on data, the best kept."""

from symenum.enumeration.network import PSRN
from symenum.enumeration.shortlist import Candidate, Shortlist

__all__ = ["PSRN", "Candidate", "Shortlist"]
