"""Fitting: least squares in double precision, and constants written as the numbers that people write."""

from symenum.fitting.coefficients import with_coefficients, with_one_more
from symenum.fitting.combination import linear_combination, scaled
from symenum.fitting.least_squares import Fit, least_squares
from symenum.fitting.parameters import free_constants, with_constants
from symenum.fitting.pruning import with_one_less
from symenum.fitting.recognise import Number, nice_number, plain_number, recognise
from symenum.fitting.refine import Refined, refine
from symenum.fitting.snap import Snapped, snap
from symenum.fitting.steps import as_step
from symenum.fitting.tidy import tidy
from symenum.fitting.uncertainty import standard_errors

__all__ = [
    "Fit",
    "Number",
    "Refined",
    "Snapped",
    "as_step",
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
