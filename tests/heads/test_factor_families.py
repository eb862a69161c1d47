"""The table of factor families: what its rows offer follows from the traits of the operators, and each has a reason."""

from __future__ import annotations

import math

import pytest
import torch

from symenum.expressions import Variable, parse, variables
from symenum.heads.factor_families import FACTOR_FAMILIES, companion_factors, product_factors
from symenum.operators import OPERATORS, get_operators, make_operator
from symenum.operators.traits import Traits

KOZA = get_operators("koza")
SLOTS = [Variable("a"), Variable("b"), Variable("c")]
BOTH = pytest.mark.parametrize("factors", [companion_factors, product_factors])


def texts(expressions):
    return {str(expression) for expression in expressions}


def test_every_row_has_a_reason_and_a_head_that_draws_on_it():
    assert all(row.reason and (row.companion or row.product) for row in FACTOR_FAMILIES)


@BOTH
def test_no_factor_comes_twice_and_each_holds_one_to_three_slots(factors):
    found = factors(SLOTS, KOZA)
    assert len(set(found)) == len(found)
    assert {len(variables(factor)) for factor in found} <= {1, 2, 3}


def test_companions_are_squares_decays_and_functions_of_differences_and_products():
    expected = {"a", "sin(a)", "log(c)", "exp(-b)", "cos(b)**2", "sin(a - c)", "cos(a*b)"}
    assert expected <= texts(companion_factors(SLOTS, KOZA))


def test_products_have_half_and_double_angles_of_every_argument():
    expected = {"a - b", "sin(a/2)", "cos(2*a)", "sin(b*c/2)", "cos(2*((a - b)*c))", "sin(c/a)"}
    assert {parse(text) for text in expected} <= set(product_factors(SLOTS, KOZA))


def test_products_have_every_function_of_slots_products_and_quotients():
    expected = {"exp(a)", "log(b/c)", "exp(a*c)"}
    assert {parse(text) for text in expected} <= set(product_factors(SLOTS, KOZA))


@BOTH
def test_powers_and_operators_with_a_form_are_no_functions(factors):
    everything = factors(SLOTS, [*OPERATORS.values()])
    assert not {"sqrt(a)", "a**2", "1/a", "-a"} & texts(everything)


def test_without_differences_products_and_quotients_only_slots_are_arguments():
    found = product_factors(SLOTS, get_operators(["sin"]))
    assert all(len(variables(factor)) == 1 for factor in found)
    assert "sin(a/2)" in texts(found)


def test_a_stated_period_brings_half_and_double_arguments():
    periodic = make_operator("tan", torch.tan, traits=Traits(period=math.pi))
    assert texts(product_factors(SLOTS[:1], [periodic])) == {"tan(a)", "tan(a/2)", "tan(2*a)"}
    assert texts(product_factors(SLOTS[:1], [make_operator("tan", torch.tan)])) == {"tan(a)"}
