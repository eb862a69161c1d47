"""Heads: ways to turn features into candidates, every one judged with its best coefficients, in closed form."""

from symenum.heads.affine import Affine
from symenum.heads.combine import Combine
from symenum.heads.features import Features, build_features
from symenum.heads.head import Head
from symenum.heads.inner_constants import InnerConstants
from symenum.heads.one_feature import OneFeature
from symenum.heads.polynomial import Polynomial
from symenum.heads.powers_of_sums import PowersOfSums
from symenum.heads.product_of_powers import ProductOfPowers
from symenum.heads.rational import Rational, RatioOfPolynomials
from symenum.heads.response import Data, Response, make_data
from symenum.heads.stages import first_pass
from symenum.heads.sum_of_powers import SumOfPowers
from symenum.heads.sum_of_terms import SumOfTerms
from symenum.heads.transforms import responses_of
from symenum.heads.two_terms import TwoTerms

__all__ = [
    "Affine",
    "Combine",
    "Data",
    "Features",
    "Response",
    "Head",
    "InnerConstants",
    "OneFeature",
    "Polynomial",
    "PowersOfSums",
    "ProductOfPowers",
    "Rational",
    "RatioOfPolynomials",
    "SumOfPowers",
    "SumOfTerms",
    "TwoTerms",
    "build_features",
    "first_pass",
    "responses_of",
    "make_data",
]
