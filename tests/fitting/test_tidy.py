"""Fitted constants become nice numbers where the data say so, inner ones too."""

from __future__ import annotations

import pytest
import torch

from symenum.expressions import evaluate, parse, same_function
from symenum.fitting import refine, tidy, with_coefficients

pytestmark = pytest.mark.usefixtures("one_thread")

generator = torch.Generator().manual_seed(0)
COLUMNS = {
    "x": 4 * torch.rand(60, generator=generator, dtype=torch.float64) - 2,
    "z": 3 * torch.rand(60, generator=generator, dtype=torch.float64) + 0.5,
}
NOISE = torch.randn(60, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize(
    ("law", "candidate"),
    [
        ("2.5*exp(-x*x/3)", "exp(x*x)"),
        ("3.39*z**1.5 - 2", "z**1.2"),
        ("pi*x + z/3", "x + z"),
        ("(x + 2.1)**2*z", "(x + 1)**2*z"),
        ("log(z + 1/3)", "log(z)"),
        ("x/(z + 2)", "x/(z + 1)"),
    ],
)
def test_an_exact_law_comes_out_as_it_is_written(law: str, candidate: str) -> None:
    y = evaluate(parse(law), COLUMNS)
    (fitted,) = refine([with_coefficients(parse(candidate))], COLUMNS, y)
    found = tidy(fitted.expression, COLUMNS, y)
    assert same_function(found.expression, parse(law))
    assert found.expression.complexity <= parse(law).complexity
    assert found.loss <= 1e-26


def test_under_noise_only_what_is_within_one_error_moves() -> None:
    truth = parse("1.2345*sin(2*x) + 0.777")
    y = evaluate(truth, COLUMNS) + 0.05 * NOISE
    (fitted,) = refine([truth], COLUMNS, y)
    found = tidy(fitted.expression, COLUMNS, y)
    assert found.loss <= fitted.loss * (1 + 3 / 57) * (1 + 1e-9)
    assert found.loss == pytest.approx(float((evaluate(found.expression, COLUMNS) - y).square().mean()), rel=1e-9)


def test_a_term_that_is_not_needed_leaves() -> None:
    y = evaluate(parse("3*sin(2*x)"), COLUMNS)
    found = tidy(parse("2.9999999999999996*sin(2.0000000000000004*x + 1e-17) + 1e-16"), COLUMNS, y)
    assert str(found.expression) == "3*sin(2*x)"


def test_what_has_no_constants_stays() -> None:
    found = tidy(parse("x*z"), COLUMNS, COLUMNS["x"])
    assert str(found.expression) == "x*z"


def test_a_short_decimal_is_one_number_with_an_error_and_a_third_stays_a_third() -> None:
    y = evaluate(parse("2.5*x + z/3"), COLUMNS)
    found = tidy(parse("2.4999999999999996*x + 0.33333333333333337*z"), COLUMNS, y)
    assert str(found.expression) == "2.5*x + z/3"
    decimal = tidy(parse("2.4999999999999996*x"), COLUMNS, 2.5 * COLUMNS["x"])
    assert str(decimal.expression) == "2.5*x"
    assert decimal.constants == (2.5,)
