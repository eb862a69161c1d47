"""The cheap pass agrees with least squares done one by one."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tokens.contexts import make_context

from symenum.expressions import Expression, apply, parse
from symenum.tokens.explain import UNEXPLAINED, Explainer, simple_partners
from symenum.tokens.generator import TokenContext
from symenum.tokens.trees import Evaluator


def left_by_least_squares(data: TokenContext, terms: list[Expression]) -> float:
    columns = [np.asarray(Evaluator(data).matrix([term])[0]) for term in terms]
    if not all(np.isfinite(column).all() for column in columns):
        return 1.0
    root = data.weight.sqrt().numpy()
    A = np.stack([*columns, np.ones(data.rows)], axis=1) * root[:, None]
    y = data.y.numpy()
    residual = y * root - A @ np.linalg.lstsq(A, y * root, rcond=None)[0]
    mean = (y * root**2).sum()
    return float((residual**2).sum() / ((y - mean) ** 2 * root**2).sum())


def brute_force(data: TokenContext, token: Expression, partners: list[Expression]) -> float:
    forms = [token, *(apply(name, token) for name in ("sin", "cos", "exp", "log"))]
    best = min(left_by_least_squares(data, [form]) for form in forms)
    for form in forms:
        for partner in partners:
            joins = [apply("mul", form, partner), apply("div", form, partner), apply("div", partner, form)]
            best = min([best, left_by_least_squares(data, [form, partner])])
            best = min([best, *(left_by_least_squares(data, [join]) for join in joins)])
            joins += [apply("add", form, partner), apply("sub", form, partner)]
            outer = [apply(name, join) for join in joins for name in ("sin", "cos", "exp", "log")]
            best = min([best, *(left_by_least_squares(data, [join]) for join in outer)])
    return max(best, UNEXPLAINED)


@pytest.mark.parametrize("law", ["x1*sin(x2) + 1", "exp(x1)/x2 - x1*x2", "log(x1 + x2) + x2"])
def test_what_is_left_is_what_least_squares_leaves(law: str) -> None:
    data = make_context(law, rows=20)
    weight = torch.rand(20, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    data = TokenContext(data.operators, data.columns, data.y, weight / weight.sum(), None)
    partners = [parse("x1"), parse("x2"), parse("sin(x2)"), parse("x1*x2")]
    tokens = [parse(text) for text in ("x1*x2", "x1 - x2", "x1/x2", "cos(x1)", "x1 + x2")]
    evaluator = Evaluator(data)
    found = Explainer(data, evaluator, partners).unexplained(evaluator.matrix(tokens))
    for token, left in zip(tokens, found.tolist(), strict=True):
        assert left == pytest.approx(brute_force(data, token, partners), rel=1e-5, abs=1e-8)


def test_tokens_beyond_one_batch_are_judged_like_the_first() -> None:
    data = make_context("x1*sin(x2) + 1", rows=20)
    evaluator = Evaluator(data)
    explainer = Explainer(data, evaluator, data.variables)
    few = evaluator.matrix([parse("x1*x2"), parse("x1 - x2"), parse("cos(x1)")])
    torch.testing.assert_close(explainer.unexplained(few.repeat(200, 1)), explainer.unexplained(few).repeat(200))


def test_the_right_token_leaves_nothing_and_a_bad_one_everything() -> None:
    data = make_context("x1*sin(x1*x2) + 3")
    evaluator = Evaluator(data)
    explainer = Explainer(data, evaluator, data.variables)
    tokens = [parse("x1*x2"), parse("log(x1 - 5)")]
    assert explainer.unexplained(evaluator.matrix(tokens)).tolist() == [UNEXPLAINED, 1.0]
    assert explainer.unexplained(evaluator.matrix([])).tolist() == []


def test_a_set_is_at_least_as_good_as_its_best_token_and_joins_its_tokens() -> None:
    data = make_context("(x1 - x2)*sin(x1*x2)")
    evaluator = Evaluator(data)
    explainer = Explainer(data, evaluator, ())
    values = evaluator.matrix([parse("x1 - x2"), parse("x1*x2")])
    assert float(explainer.unexplained(values).amin()) > 1e-3
    assert explainer.unexplained_by_set(values) == UNEXPLAINED


def test_partners_are_variables_first_and_never_too_many() -> None:
    data = make_context()
    partners = simple_partners(data)
    assert partners[:2] == data.variables
    assert len(partners) == len(set(partners)) <= 96
    assert parse("x1*x2") in partners
    many = make_context("x3*x50", inputs=60)
    assert len(simple_partners(many, 50)) <= 50
