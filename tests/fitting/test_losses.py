"""Losses are what they say, and their weights lead least squares to their minimum."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from symenum.core.budget import Budget
from symenum.core.target import Target
from symenum.expressions import evaluate, parse
from symenum.fitting.fit_under_loss import fit_form_under, refit, with_loss
from symenum.fitting.losses import LOSSES, Absolute, Custom, Huber, LogCosh, Squared, make_loss

pytestmark = pytest.mark.usefixtures("one_thread")

X = torch.linspace(0.5, 3.0, 60, dtype=torch.float64)
WEIGHT = torch.full((60,), 1 / 60, dtype=torch.float64)
NOISE = 0.05 * torch.randn(60, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
Y = 2 * X**2 + 1 + NOISE


def with_outliers() -> torch.Tensor:
    y = Y.clone()
    y[::6] += 30.0
    return y


@pytest.mark.parametrize("name", LOSSES)
def test_weights_are_the_slope_over_the_residual(name: str) -> None:
    loss = make_loss(name, Target(Y, WEIGHT))
    prediction = Y + torch.linspace(-3, 3, 60, dtype=torch.float64)
    up, down = (loss.rows(Y, prediction + step) for step in (1e-6, -1e-6))
    expected = (up - down) / 2e-6 / (prediction - Y)
    ratio = loss.weights(Y, prediction) / expected
    torch.testing.assert_close(ratio, ratio[:1].expand(60), rtol=1e-4, atol=0.0)  # all weights times one number


def test_huber_and_log_cosh_lie_between_square_and_straight_line() -> None:
    zero, small, large = torch.zeros(1), torch.tensor([1e-3]), torch.tensor([1e3])
    for loss in (Huber(1.0), LogCosh(1.0)):
        assert loss.rows(zero.double(), small.double()).item() == pytest.approx(0.5e-6, rel=1e-4)
        slope = loss.rows(zero.double(), large.double() + 1) - loss.rows(zero.double(), large.double())
        assert slope.item() == pytest.approx(1.0)


@pytest.mark.parametrize("scale", [1e-120, 1.0, 1e120])
def test_units_of_y_do_not_matter(scale: float) -> None:
    for name in ("huber", "log_cosh", "mae"):
        loss = make_loss(name, Target(Y * scale, WEIGHT))
        plain = make_loss(name, Target(Y, WEIGHT))
        prediction = Y + 1.0
        torch.testing.assert_close(loss.weights(Y * scale, prediction * scale), plain.weights(Y, prediction))


@pytest.mark.parametrize("name", ["mae", "huber", "log_cosh"])
def test_refitted_constants_forget_the_outliers(name: str) -> None:
    y = with_outliers()
    loss = make_loss(name, Target(y, WEIGHT))
    start = parse("2.9*x**2 + 3.3")
    (found,) = refit([start], {"x": X}, y, WEIGHT, loss)
    assert found.loss < with_loss(start, {"x": X}, y, WEIGHT, loss).loss
    rest = (evaluate(found.expression, {"x": X}) - (2 * X**2 + 1)).abs().max()
    assert rest < 0.3


def test_none_becomes_worse_and_whole_numbers_stay() -> None:
    y = with_outliers()
    laws = [parse(text) for text in ("x**2", "2*x", "sin(x)", "1.5*exp(0.3*x) - 2.5", "log(x - 9.5)")]
    for loss in (Absolute(), Huber(0.3), Custom(lambda y, p: float(np.abs(y - p).mean()))):
        for law, found in zip(laws, refit(laws, {"x": X}, y, WEIGHT, loss), strict=True):
            assert found.loss <= with_loss(law, {"x": X}, y, WEIGHT, loss).loss
            assert found.loss == with_loss(found.expression, {"x": X}, y, WEIGHT, loss).loss
        assert [str(one.expression) for one in refit(laws[:3], {"x": X}, y, WEIGHT, loss)] == ["x**2", "2*x", "sin(x)"]


def test_a_callable_is_given_weights_where_it_takes_them() -> None:
    seen = []

    def total(y: np.ndarray, prediction: np.ndarray, weights: np.ndarray) -> float:
        seen.append(weights.sum())
        y[:] = 0.0  # what it does to its arguments is its own affair
        return float((weights * (prediction - y) ** 2).sum())

    loss = make_loss(total, Target(Y, WEIGHT), weighted=True)
    before = Y.clone()
    loss.total(Y, Y + 1, WEIGHT)
    assert seen[-1] == pytest.approx(1.0)
    assert torch.equal(Y, before)


def test_a_callable_that_is_not_finite_for_a_law_makes_it_infinite() -> None:
    loss = Custom(lambda y, p: float("nan"))
    assert loss.total(Y, Y, WEIGHT) == math.inf


@pytest.mark.parametrize("bend", [0, -1.0, math.nan, math.inf, "wide", True])
def test_a_loss_bends_somewhere(bend: object) -> None:
    for make in (Huber, LogCosh):
        with pytest.raises(ValueError, match="must be a number above 0"):
            make(bend)


@pytest.mark.parametrize("name", ["huber", "log_cosh"])
def test_errors_under_a_robust_loss_are_those_of_repeated_fits(name: str) -> None:
    generator = torch.Generator().manual_seed(1)
    slopes, errors = [], []
    for _ in range(40):
        y = 2 * X**2 + 1 + 0.05 * torch.randn(60, generator=generator, dtype=torch.float64)
        y[torch.randperm(60, generator=generator)[:6]] += 30.0
        loss = make_loss(name, Target(y, WEIGHT))
        found = fit_form_under(parse("a*x**2 + b"), {"a": 2.0, "b": 1.0}, {"x": X}, y, WEIGHT, loss)
        slopes.append(found.constants["a"])
        errors.append(found.errors["a"])
    assert 0.6 < np.mean(errors) / np.std(slopes) < 1.6
    assert np.std(slopes) < 0.02


WORST = Custom(lambda y, f: float(np.abs(y - f).max()))


@pytest.mark.parametrize("loss", [Squared(), Absolute(), WORST], ids=lambda loss: loss.name)
def test_a_form_whose_time_is_over_has_the_constants_of_its_start(loss) -> None:
    over = Budget()
    over.end()
    starts = {"a": 2.0, "b": 1.0}
    found = fit_form_under(parse("a*x**2 + b"), starts, {"x": X}, 3 * X.square(), WEIGHT, loss, budget=over)
    assert found.constants == starts
    assert np.isfinite(found.loss)
