"""A constant that no row determines gives way to the limit of the law; one that rows determine stays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from symenum.expressions import evaluate, parse, same_function
from symenum.fitting import Refined, limit_of_law, limit_of_tiny_arguments, refine
from symenum.fitting.limits_of_laws import limit_of_step
from symenum.operators import make_operator
from symenum.operators.traits import Interval, Traits

ROWS = 400


def fitted(law: str, start: str, noise: float) -> tuple[Refined, dict[str, torch.Tensor], torch.Tensor, torch.Tensor]:
    """The fit of `start` to noisy values of `law`."""
    rng = np.random.default_rng(0)
    columns = {name: torch.tensor(rng.uniform(-2, 2, ROWS)) for name in ("x", "z")}
    y = evaluate(parse(law), columns) + noise * torch.tensor(rng.normal(size=ROWS))
    weight = torch.full((ROWS,), 1 / ROWS, dtype=torch.float64)
    return refine([parse(start)], columns, y, weight, starts=0)[0], columns, y, weight


@pytest.mark.parametrize(
    ("start", "step"),
    [
        ("0.5*tanh(900.5*x) + 1.5*z", "0.5*sign(x) + 1.5*z"),
        ("1.5*z - 0.5*tanh(-900.5*x)", "1.5*z + 0.5*sign(x)"),
        ("0.5*tanh(x*900.5) + 1.5*z", "0.5*sign(x) + 1.5*z"),
    ],
)
def test_steepness_that_no_row_determines_becomes_infinite(start: str, step: str) -> None:
    law, columns, y, weight = fitted("0.5*sign(x) + 1.5*z", start, noise=0.1)
    found = limit_of_law(law, columns, y, weight)
    assert found is not None
    assert len(found.constants) == 2
    best = refine([parse(step)], columns, y, weight, integers=False)[0]
    assert found.loss == pytest.approx(best.loss, rel=1e-9)
    assert same_function(found.expression, best.expression)


@pytest.mark.parametrize(
    ("law", "start"),
    [
        ("0.5*tanh(2.5*x) + 1.5*z", "0.4*tanh(2.0*x) + 1.2*z"),  # a slope as any other
        ("0.5*tanh(80.5*x) + 1.5*z", "0.4*tanh(70.5*x) + 1.2*z"),  # steep, and a few rows show it
    ],
)
def test_steepness_that_rows_determine_stays(law: str, start: str) -> None:
    assert limit_of_law(*fitted(law, start, noise=0.001)) is None


def test_without_noise_any_steepness_is_determined() -> None:
    law = "0.5*tanh(300.5*x) + 1.5*z"
    assert limit_of_law(*fitted(law, law, noise=0.0)) is None


@pytest.mark.parametrize("traits", [Traits(monotone=1, parity=-1, range=Interval(-1, 1)), Traits()])
def test_traits_and_not_a_name_say_what_a_smooth_step_is(traits: Traits) -> None:
    erf = make_operator("erf", torch.erf, traits=traits)
    start = parse("0.5*erf(900.5*x) + 1.5*z", operators=[erf])
    _, columns, y, weight = fitted("0.5*sign(x) + 1.5*z", "0.5*sign(x) + 1.5*z", noise=0.1)
    found = limit_of_law(refine([start], columns, y, weight, starts=0)[0], columns, y, weight)
    if not traits.monotone:
        assert found is None
    else:
        assert found is not None
        assert "sign(x)" in str(found.expression)


def test_a_law_without_a_smooth_step_or_without_a_constant_in_it_stays() -> None:
    for text in ("0.5*sign(x) + 1.5*z", "tanh(x*x*x*x) + 1.5*z"):
        assert limit_of_law(*fitted("0.5*sign(x) + 1.5*z", text, noise=0.1)) is None


@pytest.mark.parametrize(
    ("function", "monotone", "low", "high"),
    [
        (torch.tanh, 1, -1.0, 1.0),
        (torch.sigmoid, 1, 0.0, 1.0),
        (lambda a: 5 - 3 * torch.sigmoid(a), -1, 2.0, 5.0),
    ],
)
def test_the_limit_of_any_step_follows_from_its_range(
    function: Callable[[torch.Tensor], torch.Tensor], monotone: int, low: float, high: float
) -> None:
    step = make_operator("step", function, traits=Traits(monotone=monotone, range=Interval(low, high)))
    columns = {"x": torch.tensor([-2.0, -0.5, 0.5, 3.0], dtype=torch.float64)}
    steep = evaluate(parse("step(900*(x - 1))", operators=[step]), columns)
    torch.testing.assert_close(evaluate(limit_of_step(step, parse("900*(x - 1)")), columns), steep)
    torch.testing.assert_close(evaluate(limit_of_step(step, parse("-900*(x - 1)")), columns), low + high - steep)


@pytest.mark.parametrize("start", ["z*(1.0 - 5.02e-08*x)**56731431", "z*(5.02e-08*x + 1.00000001)**(-56731431.5)"])
def test_a_giant_power_is_an_exponential(start: str) -> None:
    law, columns, y, weight = fitted("z*exp(-2.85*x)", start, noise=0.1)
    found = limit_of_tiny_arguments(law, columns, y, weight)
    assert found is not None
    best = refine([parse("z*exp(-2.8*x)")], columns, y, weight)[0]
    assert found.loss < 1.0001 * best.loss
    assert "exp" in str(found.expression)
    assert limit_of_tiny_arguments(law, columns, y, weight, exponentials=False) is None


@pytest.mark.parametrize(
    ("start", "exponential"),
    [
        ("z - 5.6e-07*cosh(0.98*x + 15.1)", "z - 1.002*exp(0.98*x)"),
        ("z + 3.4e-06*sinh(14.2 - 1.3*x)", "z + 2.5*exp(-1.3*x)"),
        ("z + 3.4e-06*sinh(1.3*x - 14.2)", "z - 2.5*exp(-1.3*x)"),
    ],
)
def test_a_function_far_from_zero_is_an_exponential(start: str, exponential: str) -> None:
    law, columns, y, weight = fitted(exponential, start, noise=0.01)
    found = limit_of_tiny_arguments(law, columns, y, weight)
    assert found is not None
    assert len(found.constants) < len(law.constants)
    best = refine([parse(exponential)], columns, y, weight, integers=False)[0]
    assert found.loss == pytest.approx(best.loss, rel=1e-9)
    assert found.constants == pytest.approx(best.constants, rel=1e-6)
    assert limit_of_tiny_arguments(law, columns, y, weight, exponentials=False) is None


def test_a_function_that_any_row_tells_from_an_exponential_stays() -> None:
    for law in ("z + 0.02*cosh(2.5*x + 6.5)", "z + 1e-3*sinh(3.3*x)", "z + tanh(x + 9.5)"):
        assert limit_of_tiny_arguments(*fitted(law, law, noise=1e-6)) is None, law


@pytest.mark.parametrize("law", ["z*(x + 3)**2.5", "(x + 4.5)**0.5 + z", "(3*z + 10)**(-3)"])
def test_powers_that_people_write_stay(law: str) -> None:
    assert limit_of_tiny_arguments(*fitted(law, law, noise=0.01)) is None
