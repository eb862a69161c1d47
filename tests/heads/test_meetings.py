"""Meeting in the middle: targets, small features, and laws that are found where both meet."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from symenum.core.budget import NO_LIMIT, Budget, CutShortError
from symenum.core.target import check_target
from symenum.engine.distinct import representatives, signature
from symenum.expressions import Apply, Variable, evaluate, parse, same_function, walk
from symenum.heads import meetings
from symenum.heads.meetings import Meetings, Sides, joins_of
from symenum.heads.response import make_data
from symenum.heads.small_features import build_small_features
from symenum.heads.targets import build_targets, inverse_steps
from symenum.operators import get_operators

OPERATORS = get_operators(["+", "-", "*", "/", "exp", "log", "sin", "cos", "tanh"])
NAMES = ("x1", "x2", "x3")
SLOTS = [Variable(name) for name in NAMES]


def table(rows=60, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).uniform(0.5, 2.0, (len(NAMES), rows)))


def data_of(law, rows=60, noise=0.0):
    X = table(rows)
    y = evaluate(parse(law), dict(zip(NAMES, X, strict=True)))
    y = y + noise * torch.from_numpy(np.random.default_rng(1).standard_normal(rows)) * y.std()
    target, _ = check_target(y.numpy(), None, rows)
    return make_data(SLOTS, X, target, 400)


def operators_in(law):
    return sum(isinstance(node, Apply) for node in walk(law))


# Small features


def test_small_features_are_distinct_have_the_values_of_their_expressions_and_count_their_operators():
    X = table(12)
    features = build_small_features(SLOTS, X, OPERATORS, 3000, 3, NO_LIMIT)
    columns = dict(zip(NAMES, X, strict=True))
    for i in range(0, len(features), 97):
        law = features.expression(i)
        torch.testing.assert_close(evaluate(law, columns), features.values[i])
        assert operators_in(law) == int(features.sizes[i])
    leader = representatives(signature(features.values), torch.arange(len(features)))
    assert torch.equal(leader, torch.arange(len(features)))


def test_all_functions_of_one_operator_are_small_features():
    X = table(12)
    features = build_small_features(SLOTS, X, OPERATORS, 10_000, 1, NO_LIMIT)
    values = {tuple(row) for row in np.round(features.values.numpy(), 9).tolist()}
    columns = dict(zip(NAMES, X, strict=True))
    for text in ("x1 + x2", "x2 - x1", "x3*x3", "x1/x3", "exp(x2)", "tanh(x1)"):
        assert tuple(np.round(evaluate(parse(text), columns).numpy(), 9).tolist()) in values


def test_there_are_no_more_small_features_than_asked_for():
    assert len(build_small_features(SLOTS, table(12), OPERATORS, 100, 3, NO_LIMIT)) == 100


# Targets


def targets_of(y, X, limit=2000):
    parts = build_small_features(SLOTS, X, OPERATORS, 1000, 1, NO_LIMIT)
    return build_targets(y, inverse_steps(OPERATORS, parts), limit, NO_LIMIT)


def test_a_target_in_the_law_around_it_is_y():
    X, y = table(16), table(16, seed=3)[0]
    targets = targets_of(y, X)
    columns = dict(zip(NAMES, X, strict=True))
    for number in range(0, len(targets), 53):
        law = targets.back(number, Variable("t"))
        values = evaluate(law, {**columns, "t": targets.values[number]})
        torch.testing.assert_close(values, y, rtol=1e-8, atol=1e-8)
        assert operators_in(law) == int(targets.size[number])


def test_targets_have_their_slopes():
    X, y = table(16), table(16, seed=3)[0]
    targets = targets_of(y, X)
    columns = dict(zip(NAMES, X, strict=True))
    for number in range(1, len(targets), 53):
        t, h = targets.values[number], 1e-7
        law = targets.back(number, Variable("t"))
        above, below = (evaluate(law, {**columns, "t": t + side * h}) for side in (1, -1))
        slope = ((above - below) / (2 * h)).abs()
        torch.testing.assert_close(targets.slope[number], slope, rtol=1e-3, atol=1e-4)


def test_a_target_is_the_same_on_other_rows():
    X, y = table(16), table(16, seed=3)[0]
    targets = targets_of(y, X)
    columns = dict(zip(NAMES, X, strict=True))
    for number in range(0, len(targets), 101):
        t, slope = targets.on(number, y, lambda part: evaluate(part, columns))
        torch.testing.assert_close(t, targets.values[number])
        torch.testing.assert_close(slope, targets.slope[number])


def test_no_two_targets_are_multiples_of_each_other_up_to_an_offset():
    X, y = table(16), table(16, seed=3)[0]
    values = targets_of(y, X, 300).values
    rows = values - values.mean(dim=1, keepdim=True)
    rows = rows / rows.norm(dim=1, keepdim=True)
    assert float((rows @ rows.T).abs().fill_diagonal_(0).max()) < 1 - 1e-13


def test_without_time_there_are_no_targets():
    budget = Budget()
    budget.end()
    with pytest.raises(CutShortError):
        build_targets(
            table(16)[0],
            inverse_steps(OPERATORS, build_small_features(SLOTS, table(16), OPERATORS, 50, 1, NO_LIMIT)),
            100,
            budget,
        )


# Meetings


def first_law(slices, data, most=40):
    for number, scan in enumerate(slices):
        for candidate in scan(NO_LIMIT):
            if data.is_law(candidate):
                return candidate.expression
        if number == most:
            break
    return None


@pytest.mark.parametrize(
    "law",
    [
        "exp(x1*sin(x2 + x3) - x2)/x3 + x1",
        "x3*(x1 + 1/(x2*(x1 + x2*x3)))",
        "tanh(x1/x2 + cos(x3*x3*x1))*x2",
        "x2 - cos(x1*x3/(x2 + x3))",
    ],
)
def test_laws_that_are_deep_from_both_sides_are_met_exactly(law):
    data = data_of(law)
    found = first_law(Meetings(data, OPERATORS, "cpu").exact(), data)
    assert found is not None
    assert same_function(found, parse(law))


def test_a_law_with_scale_and_offset_inside_a_function_is_met_exactly():
    data = data_of("tanh(1.7*x1*sin(x2*x3) - 0.4) + x3")
    found = first_law(Meetings(data, OPERATORS, "cpu").exact(), data)
    assert found is not None


def test_noise_has_no_exact_meeting(monkeypatch):
    monkeypatch.setattr(meetings, "_EXACT", (Sides(2000, 500, 2, 1),))
    data = data_of("exp(x1*sin(x2 + x3) - x2)/x3 + x1", noise=0.02)
    assert not [candidate for scan in Meetings(data, OPERATORS, "cpu").exact() for candidate in scan(NO_LIMIT)]


def test_near_meetings_bear_noise(monkeypatch):
    monkeypatch.setattr(meetings, "_NEAR", Sides(200, 100, parts=60))
    data = data_of("x1*exp(x2)/x3 + 2*sin(x2)", rows=200, noise=0.02)
    clean = data_of("x1*exp(x2)/x3 + 2*sin(x2)", rows=200).target.y
    losses = []
    for number, scan in enumerate(Meetings(data, OPERATORS, "cpu").near()):
        for candidate in scan(NO_LIMIT):
            missed = data.evaluate(candidate.expression) - clean
            losses.append(float(missed.square().mean() / clean.var()))
        if number == 12:
            break
    assert min(losses) < 0.02**2


def test_a_slice_finds_the_same_whatever_ran_before_it(monkeypatch):
    monkeypatch.setattr(meetings, "_EXACT", (Sides(2000, 500, 2, 1), Sides(4000, 1000, 2, 1)))
    data = data_of("exp(x1*sin(x2 + x3) - x2)/x3 + x1")
    every = list(Meetings(data, OPERATORS, "cpu").exact())
    in_order = [[str(one.expression) for one in scan(NO_LIMIT)] for scan in every]
    again = list(Meetings(data, OPERATORS, "cpu").exact())
    backwards = [[str(one.expression) for one in scan(NO_LIMIT)] for scan in reversed(again)]
    assert in_order == backwards[::-1]


def test_pairs_are_joined_by_every_operator_and_inside_functions_that_no_step_undoes():
    plain = {join.binary.name for join in joins_of(OPERATORS, inside=False)}
    outer = {join.outer.name for join in joins_of(OPERATORS, inside=True)}
    assert plain == {"add", "sub", "mul", "div"}
    assert outer == {"sin", "cos"}


def test_few_rows_and_many_slots_do_not_meet():
    assert not Meetings(data_of("x1*x2", rows=8), OPERATORS, "cpu").possible
    X = table(60)
    target, _ = check_target(X[0].numpy(), None, 60)
    names = [Variable(f"z{i}") for i in range(12)]
    wide = make_data(names, torch.from_numpy(np.random.default_rng(2).uniform(size=(12, 60))), target, 400)
    assert not Meetings(wide, OPERATORS, "cpu").possible


@pytest.mark.parametrize("y", ["sign(x1 - x2)", "x1*0 + 3", "x1 - x1", "x1/x2"])
def test_ties_signs_zeros_and_constants_of_y_are_borne(monkeypatch, y):
    monkeypatch.setattr(meetings, "_EXACT", (Sides(1000, 300, 1, 0),))
    monkeypatch.setattr(meetings, "_NEAR", Sides(50, 30, parts=5))
    data = data_of(y)
    both = Meetings(data, OPERATORS, "cpu")
    for scan in (*both.exact(), *both.near()):
        for candidate in scan(NO_LIMIT):
            assert np.isfinite(candidate.loss)
