"""Fitting: least squares in double precision, and constants written as the numbers that people write."""

from symenum.fitting.combination import linear_combination, scaled
from symenum.fitting.least_squares import Fit, least_squares
from symenum.fitting.numbers import Number, nice_number, plain_number
from symenum.fitting.snap import Snapped, snap

__all__ = [
    "Fit",
    "Number",
    "Snapped",
    "least_squares",
    "linear_combination",
    "nice_number",
    "plain_number",
    "scaled",
    "snap",
]
