"""Products of factors: laws with one to three factors of the table, of any function that is no power."""

from __future__ import annotations

import pytest
from heads.tasks import law_response, relative_losses

from symenum.heads.product_of_factors import ProductOfFactors
from symenum.operators import get_operators

KOZA = get_operators("koza")


@pytest.mark.parametrize(
    ("law", "slots"),
    [("x3*sin(x1/2)**2/x2", 3), ("x2**2*cos(x1 - x3)/sin(x2*x1/2)**2", 3), ("sin(x1)*sin(x2*x3)**2/cos(x3/2)", 3)],
)
def test_products_of_powers_of_sines_are_found(law: str, slots: int) -> None:
    assert relative_losses(ProductOfFactors(KOZA), law_response(law, slots, low=0.2, high=1.4))[0] < 1e-26


@pytest.mark.parametrize(
    "law",
    [
        "3*x1*exp(-2*x2)*log(x3)",
        "x1**2*log(x2/x3)*sin(x1)",
        "exp(x1*x2)*cos(x3)/x2",
        "x3*exp(-x1/x2)*sin(x2*x3)**2*log(x1)",
    ],
)
def test_other_functions_stand_beside_angles(law: str) -> None:
    assert relative_losses(ProductOfFactors(KOZA), law_response(law, 3, low=0.2, high=0.9))[0] < 1e-26


def test_operators_with_other_names_are_factors_by_their_traits() -> None:
    operators = get_operators([*"+-*/", "tanh"])
    assert relative_losses(ProductOfFactors(operators), law_response("x1*tanh(x2)**2/x3", 3))[0] < 1e-26


def test_a_zero_of_y_or_too_few_rows_give_nothing() -> None:
    assert relative_losses(ProductOfFactors(KOZA), law_response("x1 - x1", 2)) == []
