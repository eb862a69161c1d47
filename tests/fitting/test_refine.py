"""Constants are found again, nothing gets worse, and what is said of a result is true of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.optimize
import torch
from expressions.strategies import tame_tree
from hypothesis import given, settings
from hypothesis import strategies as st

from symenum.core.budget import Budget
from symenum.expressions import evaluate, parse
from symenum.fitting import free_constants, refine, standard_errors, with_constants

pytestmark = pytest.mark.usefixtures("one_thread")


def data(rows: int = 60, seed: int = 0) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {
        name: low + 3 * torch.rand(rows, generator=generator, dtype=torch.float64)
        for name, low in (("x1", -1.5), ("x2", 0.5), ("x10", -1.5))
    }


LAWS = [
    "2.5*x1 - 1.3",
    "3.1*sin(1.7*x1 + 0.4) + 0.2",
    "0.7*exp(-0.9*x1)*x2",
    "x2/(x2 + 1.8) - 0.3*x10",
    "2.2*x2**1.4",
    "log(x2 + 0.6)*1.9 + 0.1*x1",
    "1.3*tanh(2.1*x1) - 0.6*cos(1.1*x10)",
]


def test_steps_go_on_while_the_loss_falls_fast() -> None:
    generator = torch.Generator().manual_seed(0)
    columns = {name: 6 * torch.rand(300, generator=generator, dtype=torch.float64) - 3 for name in ("x1", "x2")}
    y = evaluate(parse("exp(2.4*exp(x2)*sin(x1))"), columns)  # spans 40 powers of ten: twenty steps are not enough
    (found,) = refine([parse("exp(4.4*exp(x2)*sin(x1))")], columns, y, starts=0)
    assert found.loss < 1e-20 * float(y.var())
    assert found.constants == pytest.approx((2.4,), rel=1e-12)


def test_exact_laws_of_different_structure_are_found_together() -> None:
    columns = data()
    y = torch.stack([evaluate(parse(law), columns) for law in LAWS])
    starts = [with_constants(parse(law), [c * 1.8 for c in free_constants(parse(law))]) for law in LAWS]
    for found, target in zip(refine(starts, columns, y), y, strict=True):
        assert found.loss < 1e-24 * float(target.var())
        assert found.converged


@pytest.mark.parametrize("law", LAWS)
def test_under_noise_the_minimum_and_the_errors_are_those_of_scipy(law: str) -> None:
    columns = data()
    truth = parse(law)
    y = evaluate(truth, columns)
    y = y + 0.05 * y.std() * torch.randn(60, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    weight = torch.rand(60, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    weight /= weight.sum()
    (found,) = refine([truth], columns, y, weight)

    def residual(c: np.ndarray) -> np.ndarray:
        values = evaluate(with_constants(truth, c.tolist()), columns)
        return ((values - y) * weight.sqrt()).numpy()

    best = scipy.optimize.least_squares(residual, free_constants(truth), xtol=1e-14, ftol=1e-14, gtol=1e-14)
    assert found.loss == pytest.approx(2 * best.cost, rel=1e-8)
    assert found.constants == pytest.approx(best.x.tolist(), rel=1e-3)
    covariance = np.linalg.inv(best.jac.T @ best.jac) * 2 * best.cost / (60 - len(best.x))
    assert standard_errors(found.expression, columns, y, weight) == pytest.approx(
        np.sqrt(np.diag(covariance)).tolist(), rel=1e-2
    )
    assert found.converged


@settings(max_examples=40)
@given(st.lists(tame_tree, min_size=1, max_size=4), st.integers(0, 10))
def test_nothing_gets_worse_and_the_loss_is_that_of_the_expression(trees, seed) -> None:
    columns = data(25)
    y = torch.randn(25, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    for tree, found in zip(trees, refine(trees, columns, y, starts=2, steps=8), strict=True):
        before = float((evaluate(tree, columns) - y).square().mean())
        after = float((evaluate(found.expression, columns) - y).square().mean())
        if math.isfinite(after):
            assert found.loss == pytest.approx(after, rel=1e-6)
        else:
            assert found.loss == math.inf
        if math.isfinite(before):
            assert found.loss <= before * (1 + 1e-9)
        assert found.constants == free_constants(found.expression)


def test_same_seed_same_result() -> None:
    columns = data()
    y = evaluate(parse("sin(5.3*x1)*exp(0.4*x2)"), columns)
    starts = [parse("1.0*sin(1.1*x1)*exp(1.0*x2)"), parse("x1 + 0.3")]
    assert refine(starts, columns, y, seed=3) == refine(starts, columns, y, seed=3)


def test_further_starts_find_what_the_first_does_not() -> None:
    columns = data()
    y = evaluate(parse("sin(9.3*x1)"), columns)
    start = parse("sin(3.0*x1)")
    (alone,), (several,) = refine([start], columns, y, starts=0), refine([start], columns, y, starts=16)
    assert alone.loss > 0.01
    assert several.loss < 1e-20


def test_a_start_without_values_is_left_for_others() -> None:
    columns = data()
    y = evaluate(parse("log(x1 + 1.9)"), columns)
    (found,) = refine([parse("log(x1 + 0.9)")], columns, y)
    assert found.loss < 1e-20


def test_an_expression_without_values_anywhere_comes_back_as_it_is() -> None:
    columns = data()
    hopeless = parse("sin(0.5) + log(-exp(x1))")
    (found,) = refine([hopeless], columns, columns["x1"])
    assert found.expression == hopeless
    assert found.loss == math.inf


def test_whole_numbers_can_be_held() -> None:
    columns = data()
    y = 2.5 * columns["x1"] + 0.7
    (held,) = refine([parse("2*x1 + 0.1")], columns, y, integers=False)
    (free,) = refine([parse("2*x1 + 0.1")], columns, y)
    assert str(held.expression).startswith("2*x1")
    assert free.loss < 1e-20 < held.loss


def test_a_constant_that_the_data_do_not_determine_has_no_finite_error() -> None:
    columns = data()
    (found,) = refine([parse("1.5*(2.5*x1)")], columns, 3 * columns["x1"])
    assert found.loss < 1e-20
    assert standard_errors(found.expression, columns, 3 * columns["x1"]) == (math.inf, math.inf)


def test_a_budget_that_is_over_gives_back_what_came() -> None:
    columns = data()
    y = evaluate(parse("sin(5.3*x1)"), columns)
    budget = Budget()
    budget.end()
    (found,) = refine([parse("sin(2.0*x1)")], columns, y, budget=budget)
    assert math.isfinite(found.loss)
    assert not found.converged


def test_many_rows_end_on_all_rows() -> None:
    columns = data(5000)
    y = evaluate(parse("3.1*sin(1.7*x1 + 0.4)"), columns)
    y = y + 0.1 * torch.randn(5000, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    (found,) = refine([parse("1.0*sin(1.0*x1 + 0.1)")], columns, y)
    (again,) = refine([found.expression], columns, y)
    assert again.loss == pytest.approx(found.loss, rel=1e-9)
    assert found.loss == pytest.approx(0.01, rel=0.1)
    assert found.constants[1] == pytest.approx(1.7, abs=0.02)


def test_an_expression_without_constants_is_judged_only() -> None:
    columns = data()
    (found,) = refine([parse("x1*x2")], columns, columns["x1"])
    assert found.constants == ()
    assert found.loss == pytest.approx(float((columns["x1"] * columns["x2"] - columns["x1"]).square().mean()))
    assert refine([], columns, columns["x1"]) == []
