"""Fitting: least squares in double precision, and constants written as the numbers that people write.

- The one nonlinear solver is `levenberg_marquardt`; what it solves: expressions (`refine`, by way of `program` and
  `machine`), a user's form (`form`), models of the heads (`many_starts`), other losses (`losses`, `fit_under_loss`).
- `linear`: least squares on a few columns, and the sum that the coefficients write.
- `constants`: which constants of an expression are free, and where one more could stand.
- `recognise` decides which number is nice; `snap` fixes constants at nice numbers, `limits` at infinity, and
  `uncertainty` says how well the data determine them.

Nothing here chooses which expressions are fitted: that is the work of the heads and the search.
"""

from symenum.fitting.free_constants import (
    free_constants,
    with_coefficients,
    with_constants,
    with_one_less,
    with_one_more,
)
from symenum.fitting.limits_of_laws import limit_of_law, limit_of_tiny_arguments
from symenum.fitting.linear import Fit, least_squares, linear_combination, scaled
from symenum.fitting.recognise import Number, nice_number, plain_number, recognise
from symenum.fitting.refine import Refined, refine
from symenum.fitting.snap import Snapped, snap, tidy
from symenum.fitting.uncertainty import standard_errors

__all__ = [
    "Fit",
    "Number",
    "Refined",
    "Snapped",
    "limit_of_law",
    "limit_of_tiny_arguments",
    "free_constants",
    "least_squares",
    "linear_combination",
    "nice_number",
    "plain_number",
    "recognise",
    "refine",
    "scaled",
    "snap",
    "standard_errors",
    "tidy",
    "with_coefficients",
    "with_constants",
    "with_one_less",
    "with_one_more",
]
