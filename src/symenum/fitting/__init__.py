"""Fitting: least squares in double precision, and constants written as the numbers that people write."""

from symenum.fitting.constants import free_constants, with_coefficients, with_constants, with_one_less, with_one_more
from symenum.fitting.limits import as_step
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
