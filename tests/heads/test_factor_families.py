"""The table of factor families: what its rows offer follows from the traits of the operators, and each has a reason."""

from __future__ import annotations

import math

import torch

from symenum.expressions import Variable, variables
from symenum.heads.factor_families import FACTOR_FAMILIES, companion_factors
from symenum.operators import OPERATORS, get_operators, make_operator
from symenum.operators.traits import Traits

KOZA = get_operators("koza")
SLOTS = [Variable("a"), Variable("b"), Variable("c")]


def texts(expressions):
    return {str(expression) for expression in expressions}


def test_every_row_has_a_reason():
    assert all(row.reason for row in FACTOR_FAMILIES)


def test_no_factor_comes_twice_and_each_holds_one_or_two_slots():
    found = companion_factors(SLOTS, KOZA)
    assert len(set(found)) == len(found)
    assert {len(variables(factor)) for factor in found} == {1, 2}


def test_companions_are_squares_decays_and_functions_of_differences_and_products():
    expected = {"a", "sin(a)", "log(c)", "exp(-b)", "cos(b)**2", "sin(a - c)", "cos(a*b)"}
    assert expected <= texts(companion_factors(SLOTS, KOZA))


def test_powers_and_operators_with_a_form_are_no_functions():
    everything = companion_factors(SLOTS, [*OPERATORS.values()])
    assert not {"sqrt(a)", "a**2", "1/a", "-a"} & texts(everything)


def test_without_differences_and_products_only_slots_are_arguments():
    assert texts(companion_factors(SLOTS, get_operators(["sin"]))) == {*"abc", "sin(a)", "sin(b)", "sin(c)"}


def test_a_stated_period_brings_differences_as_arguments():
    minus = get_operators(["-"])
    periodic = make_operator("tan", torch.tan, traits=Traits(period=math.pi))
    assert texts(companion_factors(SLOTS[:2], [*minus, periodic])) == {*"ab", "tan(a)", "tan(b)", "tan(a - b)"}
    untold = make_operator("tan", torch.tan)
    assert texts(companion_factors(SLOTS[:2], [*minus, untold])) == {*"ab", "tan(a)", "tan(b)"}
