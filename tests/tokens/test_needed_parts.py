"""Growth finds what a part of a law should be, with fitted constants, and proposes what belongs together."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tokens.contexts import make_context

from symenum.expressions import Expression, evaluate, parse
from symenum.tokens import ScoredExpression
from symenum.tokens.generator import TokenContext
from symenum.tokens.needed_parts import Grown, grow, grown_laws, growth_tokens, in_turns, needed, ranked_groups
from symenum.tokens.pool import Memory, front_parts
from symenum.tokens.trees import Evaluator, replaced


def places_of(law: str, context: TokenContext) -> list[tuple[Expression, torch.Tensor]]:
    rows = torch.arange(context.rows)
    found = needed(parse(law), context.y, rows, Evaluator(context))
    return [(replaced(place.law, place.position, parse("part")), place.wanted) for place in found]


@pytest.mark.parametrize(
    "law",
    [
        "x1 + sinh(x2)",
        "x1*x2 - 3",
        "(x1 + 2)/x2",
        "exp(x1)*x2",
        "log(x1 + x2)",
        "-x1",
        "2.5*x1**3 - x2",
        "tanh(x1/4 + 1)*9",
    ],
)
def test_a_part_with_the_values_that_it_needs_makes_the_law_equal_y(law: str) -> None:
    context = make_context("0.7*x1*x2 + 0.5")
    places = places_of(law, context)
    assert len(places) > 1
    for with_part, wanted in places:
        assert torch.allclose(evaluate(with_part, {**context.columns, "part": wanted}), context.y, rtol=1e-6)


def test_a_wrong_part_is_replaced_by_the_right_one_with_its_constants() -> None:
    context = make_context("x1*exp(0.5*sin(x2) + 1.25) - x2", constant_range=(-3.0, 3.0))
    evaluator = Evaluator(context)
    laws = [parse("x1*exp(0.5*x2) - x2")]
    grown = grow(context, evaluator, laws, [], [parse("sin(x2)")], (), np.random.default_rng(0))
    values = evaluate(grown[0].law, context.columns)
    assert torch.allclose(values, context.y, rtol=1e-5), grown[0].law
    assert any(token == grown[0].part for token in next(growth_tokens(grown)))


def test_two_missing_terms_are_found_together() -> None:
    context = make_context("x1*(2*sin(x2) - 0.5*x1*x2 + 1)", constant_range=(-3.0, 3.0))
    given = [parse(text) for text in ("sin(x2)", "x1*x2", "cos(x1)", "exp(x2)")]
    grown = grow(context, Evaluator(context), [parse("x1*(x2 + 1)")], [], given, (), np.random.default_rng(0))
    assert grown[0].fitness < -5, [str(one.law) for one in grown[:3]]


def test_grown_laws_stay_few_and_differ_in_form() -> None:
    context = make_context("x1*sin(x2) + x1/x2", constant_range=(-3.0, 3.0))
    front = [ScoredExpression(parse("1.2*x1*x2 - 0.4"), 0.5), ScoredExpression(parse("x1 + 0.2*sin(x1)"), 0.4)]
    memory = Memory().after_pass(0.5, front)
    grown: tuple[Grown, ...] = ()
    rng = np.random.default_rng(0)
    best = []
    for _ in range(3):
        grown = grown_laws(context, Evaluator(context), memory, front_parts(front), [], grown, rng)
        best.append(grown[0].fitness)
    assert best == sorted(best, reverse=True)
    assert best[0] < 0
    assert len(grown) <= 30
    assert len({one.law for one in grown}) == len(grown)


def test_nothing_grows_without_constants_sums_or_laws() -> None:
    front = [ScoredExpression(parse("1.2*x1*x2 - 0.4"), 0.5)]
    memory = Memory().after_pass(0.5, front)
    rng = np.random.default_rng(0)
    for context, known in (
        (make_context(constant_range=None), memory),
        (make_context(constant_range=(-3.0, 3.0), operators=("sin", "mul")), memory),
        (make_context(constant_range=(-3.0, 3.0)), Memory()),
    ):
        assert grown_laws(context, Evaluator(context), known, {}, [], (), rng) == ()


def test_groups_and_other_tokens_take_turns() -> None:
    a, b, c, d = (parse(text) for text in ("x1*x2", "x1 + x2", "x1/x2", "x1 - x2"))
    others = [parse(f"{i}.5*x1") for i in range(5)]
    assert [*in_turns([(a, b), (c, d)], others, 9)] == [a, b, *others[:2], c, d, *others[2:]]
    assert [*in_turns([(a, b), (c, d)], others, 2)][:3] == [a, *others[:2]]


def test_a_grown_law_that_was_tried_in_vain_comes_later() -> None:
    first, second = (
        Grown(parse(text), parse("x1*x2"), fitness) for text, fitness in (("sin(x1*x2)", -2.0), ("cos(x1*x2)", -1.9))
    )
    memory = Memory()
    assert ranked_groups([first, second], memory)[0][0] == first.law
    memory = memory.after_pass(0.5, []).with_proposal((first.law,)).after_pass(0.0, [])
    assert ranked_groups([first, second], memory)[0][0] == second.law
