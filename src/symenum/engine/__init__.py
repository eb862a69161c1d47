"""The engine: every expression that a few symbol layers build on a few slots, scored on data; the best k come back.

The door is `PSRN`; its `search` returns a `Shortlist` of `Candidate`s (expression, loss):

    from symenum.engine import PSRN, Candidate, Shortlist

Inside, `architecture` counts and numbers what can be built, `distinct` finds duplicates, `bank` has the values of all
sub-expressions, `cpu` and `cuda` scan the last layer, `screening` does it on a part of the rows, `shortlist` keeps the
best, and `network` joins them. The engine fits no constants: that is done by `fitting`.
"""

from symenum.engine.network import PSRN
from symenum.engine.shortlist import Shortlist
from symenum.expressions.candidate import Candidate

__all__ = ["PSRN", "Candidate", "Shortlist"]
