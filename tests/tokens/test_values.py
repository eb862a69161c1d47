"""Values of many trees are those of one at a time, and only what differs is picked."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokens.contexts import make_context

from symenum.expressions import evaluate, parse
from symenum.tokens.trees import Evaluator, composite_parts, pick_distinct

TEXTS = ["x1", "2", "x1*x2", "log(x1 - 5)", "exp(exp(exp(x1*x2)))", "sin(x1)/x2 + 1", "x1 - x1", "1/exp(1/(x1 - x1))"]


@settings(max_examples=20)
@given(st.lists(st.sampled_from(TEXTS), min_size=1))
def test_values_equal_those_of_evaluate_and_nothing_stands_for_not_finite(texts: list[str]) -> None:
    data = make_context()
    evaluator = Evaluator(data)
    for text in texts:
        value = evaluator.values(parse(text))
        plain = evaluate(parse(text), data.columns)
        if text in ("log(x1 - 5)", "exp(exp(exp(x1*x2)))", "1/exp(1/(x1 - x1))"):
            assert value is None  # the last is 0, but a part of it is not finite
        else:
            assert torch.equal(value, plain)  # type: ignore[arg-type]


def test_only_composite_varying_finite_expressions_are_usable() -> None:
    evaluator = Evaluator(make_context())
    usable = [text for text in TEXTS if evaluator.usable(parse(text))]
    assert usable == ["x1*x2", "sin(x1)/x2 + 1"]


def test_a_row_of_nan_stands_for_no_values() -> None:
    rows = Evaluator(make_context()).matrix([parse("x1"), parse("log(x1 - 5)")])
    assert torch.isfinite(rows[0]).all()
    assert torch.isnan(rows[1]).all()
    assert Evaluator(make_context()).matrix([]).shape == (0, 40)


def test_equal_functions_and_negatives_are_picked_once_and_multiples_stay() -> None:
    data = make_context()
    texts = ["x1 + x2 - x2", "x1*x2", "x2*x1", "-(x1*x2)", "2*x1*x2", "log(exp(x2))", "sin(x1)", "cos(x1)"]
    picked = pick_distinct(Evaluator(data), data, map(parse, texts), 3)
    assert [*map(str, picked)] == ["x1*x2", "2*x1*x2", "sin(x1)"]
    again = pick_distinct(Evaluator(data), data, map(parse, texts), 2, [parse("x2*x1")])
    assert [*map(str, again)] == ["x2*x1", "2*x1*x2"]


def test_parts_are_composite_and_small_ones_come_first() -> None:
    parts = [str(part) for part in composite_parts(parse("sin(x1*x2) + x1*x2"))]
    assert parts == ["x1*x2", "sin(x1*x2)", "sin(x1*x2) + x1*x2"]
