"""The constants of a given form are found by their names, with the slopes and errors that calculus gives."""

from __future__ import annotations

import math

import pytest
import torch

from symenum.expressions import Constant, evaluate, parse, substitute
from symenum.fitting.form_fit import derivatives, fit_form, linear_in

pytestmark = pytest.mark.usefixtures("one_thread")

X = torch.linspace(0.2, 3.0, 50, dtype=torch.float64)
WEIGHT = torch.full((50,), 1 / 50, dtype=torch.float64)

FORMS = [
    ("a*x**2 + b", {"a": 2.5, "b": -1.0}),
    ("a*exp(-b*x) + c", {"a": 2.0, "b": 0.7, "c": 0.3}),
    ("a*x**b", {"a": 2.2, "b": 1.4}),
    ("a*x/(x + b)", {"a": 3.0, "b": 0.8}),
    ("a*sin(w*x)", {"a": 1.5, "w": 4.0}),
    ("a*x + a*a*sqrt(x)", {"a": 1.7}),
]


def values_of(text: str, constants: dict[str, float]) -> torch.Tensor:
    return evaluate(substitute(parse(text), {name: Constant(c) for name, c in constants.items()}), {"x": X})


@pytest.mark.parametrize(("text", "constants"), FORMS)
def test_constants_are_found_from_anywhere(text: str, constants: dict[str, float]) -> None:
    y = values_of(text, constants)
    found = fit_form(parse(text), dict.fromkeys(constants), {"x": X}, y, WEIGHT)
    assert found.loss < 1e-20
    changed = values_of(text, dict(found.constants))  # another sign of a and w may be the same function
    torch.testing.assert_close(changed, y, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(("text", "constants"), FORMS)
def test_derivatives_are_those_of_differences(text: str, constants: dict[str, float]) -> None:
    columns = {"x": X, **{name: torch.full_like(X, value) for name, value in constants.items()}}
    _, slopes = derivatives(parse(text), list(constants), columns)
    for slope, name in zip(slopes, constants, strict=True):
        up, down = (values_of(text, {**constants, name: constants[name] + step}) for step in (1e-6, -1e-6))
        torch.testing.assert_close(slope, (up - down) / 2e-6, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("text", "constants"), FORMS)
def test_a_form_is_fitted_to_averages_of_its_values(text: str, constants: dict[str, float]) -> None:
    def average(values):  # of five points each
        return values.reshape(10, 5, -1).mean(axis=1)

    y = torch.from_numpy(average(values_of(text, constants).numpy()[:, None])[:, 0])
    weight = torch.full((10,), 0.1, dtype=torch.float64)
    starts = {name: value * 1.05 for name, value in constants.items()}
    found = fit_form(parse(text), starts, {"x": X}, y, weight, average=average)
    assert dict(found.constants) == pytest.approx(constants, rel=1e-6)


def test_an_average_of_single_points_changes_nothing() -> None:
    y = values_of("a*exp(-b*x) + c", FORMS[1][1]) + 0.01 * torch.sin(40 * X)
    starts = {"a": 1.0, "b": 1.0, "c": 0.0}
    plain, averaged = (
        fit_form(parse("a*exp(-b*x) + c"), starts, {"x": X}, y, WEIGHT, average=average)
        for average in (None, lambda values: values)
    )
    assert dict(averaged.constants) == pytest.approx(dict(plain.constants))
    assert dict(averaged.errors) == pytest.approx(dict(plain.errors))


def test_a_start_decides_between_minima() -> None:
    y = values_of("sin(w*x)", {"w": 4.0})
    form = parse("sin(w*x)")
    assert fit_form(form, {"w": 3.8}, {"x": X}, y, WEIGHT).constants["w"] == pytest.approx(4.0)
    assert fit_form(form, {"w": 12.0}, {"x": X}, y, WEIGHT).constants["w"] != pytest.approx(4.0)


def test_standard_errors_cover_the_truth_as_often_as_they_should() -> None:
    truth = {"a": 2.0, "b": 0.7}
    y = values_of("a*exp(-b*x)", truth)
    generator = torch.Generator().manual_seed(0)
    inside = 0
    for _ in range(60):
        noisy = y + 0.05 * torch.randn(50, generator=generator, dtype=torch.float64)
        found = fit_form(parse("a*exp(-b*x)"), truth, {"x": X}, noisy, WEIGHT)
        inside += abs(found.constants["b"] - 0.7) <= found.errors["b"]
    assert 30 <= inside <= 52  # 68% of 60 are 41; four standard deviations to either side are 26 and 55


def test_a_constant_that_does_nothing_has_no_error_bar() -> None:
    found = fit_form(parse("a*x + 0*b"), {"a": None, "b": None}, {"x": X}, 2 * X, WEIGHT)
    assert found.constants["a"] == pytest.approx(2.0)
    assert math.isinf(found.errors["b"])


def test_a_form_without_finite_values_has_an_infinite_loss() -> None:
    assert fit_form(parse("log(-x) + a"), {"a": None}, {"x": X}, X, WEIGHT).loss == math.inf


@pytest.mark.parametrize(
    ("text", "linear"),
    [("a*x + b", "ab"), ("a*b*x", "a"), ("a*sin(a*x)", ""), ("a*x + sin(a)", ""), ("a/b + c", "ac"), ("-a*x - a", "a")],
)
def test_linear_constants_are_seen(text: str, linear: str) -> None:
    assert linear_in(parse(text), "abc") == set(linear)
