"""The cheap judgement agrees with least squares; scouting finds what is one operator away and remembers the best."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tokens.contexts import make_context

from symenum.expressions import Expression, apply, parse, same_function
from symenum.tokens.explain import MIN_UNEXPLAINED, Explainer, Scouted, scout, simple_partners
from symenum.tokens.generator import TokenContext
from symenum.tokens.pool import MAX_COMPLEXITY
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
            if form is not token:  # outer functions are tried around the token itself only
                continue
            outer = [apply(name, join) for join in joins for name in ("sin", "cos", "exp", "log")]
            best = min([best, *(left_by_least_squares(data, [join]) for join in outer)])
    return max(best, MIN_UNEXPLAINED)


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
    assert explainer.unexplained(evaluator.matrix(tokens)).tolist() == [MIN_UNEXPLAINED, 1.0]
    assert explainer.unexplained(evaluator.matrix([])).tolist() == []


def test_a_set_is_at_least_as_good_as_its_best_token_and_joins_its_tokens() -> None:
    data = make_context("(x1 - x2)*sin(x1*x2)")
    evaluator = Evaluator(data)
    explainer = Explainer(data, evaluator, ())
    values = evaluator.matrix([parse("x1 - x2"), parse("x1*x2")])
    assert float(explainer.unexplained(values).amin()) > 1e-3
    assert explainer.unexplained_by_set(values) == MIN_UNEXPLAINED


def test_partners_are_variables_first_and_never_too_many() -> None:
    data = make_context()
    partners = simple_partners(data)
    assert partners[:2] == data.variables
    assert len(partners) == len(set(partners)) <= 96
    assert parse("x1*x2") in partners
    many = make_context("x3*x50", inputs=60)
    assert len(simple_partners(many, 50)) <= 50


SEEDS = tuple(map(parse, ("x1*x2", "sin(x1)", "log(x1 + x2)")))


def scouted(law: str, count: int, passes: int = 0, before: tuple[Scouted, ...] = ()) -> tuple[Scouted, ...]:
    data = make_context(law)
    evaluator = Evaluator(data)
    explainer = Explainer(data, evaluator, data.variables)
    return scout(data, evaluator, explainer, SEEDS, before, count, passes, np.random.default_rng(0))


def test_the_token_that_leaves_nothing_is_found_and_comes_first() -> None:
    found = scouted("sin(x1 + x2/log(x1 + x2))", 200)
    assert same_function(found[0].token, parse("x2/log(x1 + x2)"))
    assert found[0].fitness < np.log10(MIN_UNEXPLAINED) + 1


def test_every_join_of_a_seed_with_a_variable_has_its_turn() -> None:
    seen = set()
    for passes in range(6):
        seen |= {one.token for one in scouted("x1*x2 + 1", 20, passes)}
    for text in ("x1*x2 + x1", "x1*x2 - x2", "exp(sin(x1))", "log(x1 + x2)/x2"):
        assert any(same_function(token, parse(text)) for token in seen), text


def test_the_best_are_kept_in_order_and_are_modest() -> None:
    first = scouted("cos(x1*x2 + x1)", 60)
    second = scouted("cos(x1*x2 + x1)", 60, 1, first)
    assert second[0].fitness <= first[0].fitness
    assert [one.fitness for one in second] == sorted(one.fitness for one in second)
    assert len(second) <= 60
    assert all(one.token.complexity <= MAX_COMPLEXITY for one in second)


def test_without_seeds_or_operators_nothing_new_is_found() -> None:
    data = make_context(operators=("identity",))
    evaluator = Evaluator(data)
    explainer = Explainer(data, evaluator, data.variables)
    old = (Scouted(parse("x1*x2"), -1.0),)
    assert scout(data, evaluator, explainer, SEEDS, old, 10, 0, np.random.default_rng(0)) == old
