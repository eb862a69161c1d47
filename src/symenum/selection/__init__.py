"""How a law is chosen from a front, and how sure that choice is: the one home of these decisions.

`rules`: what a rule of `model_selection` picks. `evidence`: the default rule, which weighs the fit of a law against the
price of its structure; `growing_noise`: the same where the noise grows with the values; `influence`: the
same without rows that decide a law's constants alone. `held_out`: rules that look at rows that the laws were not fitted
on. `alternatives`: the laws that the data cannot tell from the chosen one; `same_law`: which of them count as one;
`band`: how far the chosen one may be from the truth; `verdict`: how sure the choice is.
"""

from symenum.selection.alternatives import Alternative, alternatives_by_noise, find_alternatives, most_probable
from symenum.selection.band import Band, make_band
from symenum.selection.evidence import evidence, law_price
from symenum.selection.growing_noise import noise_around, noise_may_grow
from symenum.selection.held_out import HELD_OUT, HeldOut, on_folds, on_rows
from symenum.selection.rules import (
    DEFAULT_RULE,
    DISCOUNT,
    MODEL_SELECTIONS,
    choose_law,
    description_length,
    description_lengths,
    reward,
    rule_while_searching,
    scores,
    select,
)
from symenum.selection.verdict import Verdict, make_verdict

__all__ = [
    "DEFAULT_RULE",
    "DISCOUNT",
    "HELD_OUT",
    "MODEL_SELECTIONS",
    "Alternative",
    "Band",
    "HeldOut",
    "Verdict",
    "alternatives_by_noise",
    "choose_law",
    "description_length",
    "description_lengths",
    "evidence",
    "find_alternatives",
    "law_price",
    "make_band",
    "make_verdict",
    "most_probable",
    "noise_around",
    "noise_may_grow",
    "on_folds",
    "on_rows",
    "reward",
    "rule_while_searching",
    "scores",
    "select",
]
