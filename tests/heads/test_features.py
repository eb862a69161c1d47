"""Features are finite, distinct, what their expressions say, and cut by complexity."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from heads.tasks import features_of, make_response
from hypothesis import given
from hypothesis import strategies as st

from symenum.core.budget import NO_LIMIT, Budget, CutShortError
from symenum.engine.layer import SymbolLayer
from symenum.expressions import Constant, Variable
from symenum.expressions.degree import degree_in
from symenum.heads import Features, build_features
from symenum.heads import features as features_module
from symenum.operators import get_operators


def distances(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")


@pytest.fixture(scope="module")
def data() -> np.ndarray:
    return np.random.default_rng(0).uniform(-2, 3, (15, 2))


@pytest.fixture(scope="module")
def features(data: np.ndarray) -> Features:
    return features_of(make_response(data, data[:, 0]), 2, extend_unary=True)


def test_values_are_those_of_the_expressions(features: Features, data: np.ndarray) -> None:
    response = make_response(data, data[:, 0])
    for index in range(0, len(features), max(1, len(features) // 200)):
        expression = features.expression(index)
        assert torch.allclose(response.data.evaluate(expression), features.values[index], rtol=1e-12, atol=0)
        assert expression.complexity <= int(features.complexity[index])  # 1 + 1 is written 2


def test_values_are_finite_and_distinct(features: Features) -> None:
    assert bool(torch.isfinite(features.values).all())
    scaled = features.values / features.values.norm(dim=1, keepdim=True)
    near = distances(scaled[:1500], scaled[:1500]) < 1e-13
    norm = features.values[:1500].norm(dim=1)
    same = near & ((norm[:, None] / norm[None] - 1).abs() < 1e-13)
    assert int(same.sum()) == 1500


def test_known_functions_are_there(features: Features, data: np.ndarray) -> None:
    a, b = data.T
    for wanted in (a * a + b, np.sin(a * a), a / b, np.exp(a) * b, np.cos((a + 1) * (b + 1)), 2 * a, a - 1):
        distance = (features.values - torch.from_numpy(wanted)).norm(dim=1)
        assert float(distance.min()) < 1e-12 * np.linalg.norm(wanted)


def test_slots_come_first_and_one_is_among_them(features: Features) -> None:
    assert [features.expression(i) for i in range(3)] == [Variable("x1"), Variable("x2"), Constant(1)]
    assert features.slots == 3


@pytest.mark.parametrize("affine", [True, False])
def test_up_to_affine_and_scale_keep_one_of_each_class_the_simplest(features: Features, affine: bool) -> None:
    kept = features.up_to_affine() if affine else features.up_to_scale()
    assert len(kept) < len(features)
    assert torch.equal(kept.complexity, kept.complexity.sort().values)
    V = kept.values[:1000] - kept.values[:1000].mean(dim=1, keepdim=True) if affine else kept.values[:1000]
    V = V / V.norm(dim=1, keepdim=True)
    closest = distances(V, V).fill_diagonal_(1).minimum(distances(V, -V).fill_diagonal_(1))
    assert float(closest.min()) > 1e-13


def test_columns_are_cut_by_complexity(data: np.ndarray) -> None:
    slots, values = [Variable("x1"), Variable("x2")], torch.from_numpy(data.T.copy())
    everything = build_features(slots, values, get_operators("koza"), 2)
    few = build_features(slots, values, get_operators("koza"), 2, max_columns=300)
    assert len(few) == 300
    assert int(few.complexity.max()) <= int(everything.complexity.sort().values[400])


def test_constant_equal_and_zero_slots_do_no_harm() -> None:
    x = torch.linspace(1, 2, 9, dtype=torch.float64)
    values = torch.stack([x, x, torch.zeros(9, dtype=torch.float64), torch.full((9,), 5.0, dtype=torch.float64)])
    features = build_features(
        [Variable(f"x{i}") for i in range(4)], values, get_operators("koza"), 2, extend_unary=True
    )
    assert bool(torch.isfinite(features.values).all())
    assert bool(torch.isfinite(features.up_to_affine().values).all())


def test_values_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        build_features([Variable("x")], torch.tensor([[1.0, float("nan")]]), get_operators("koza"), 1)


def test_parts_of_the_features_are_all_of_them_in_their_order() -> None:
    features = features_of(make_response(np.random.default_rng(0).uniform(1, 2, (20, 2)), np.arange(20.0)))
    parts = [features.part(number, 3) for number in range(3)]
    assert torch.equal(torch.cat([part.values for part in parts]), features.values)
    assert [str(parts[1].expression(0))] == [str(features.expression(len(parts[0])))]


@given(st.integers(1, 12), st.integers(1, 400), st.integers(0, 100))
def test_the_simplest_outputs_are_those_of_a_stable_sort(width: int, limit: int, seed: int) -> None:
    layer = SymbolLayer(get_operators("koza"), width)
    below = torch.from_numpy(np.random.default_rng(seed).integers(0, 6, width))
    expected = torch.argsort(layer.complexity(below), stable=True)[:limit] if layer.size > limit else None
    found = features_module._simplest_outputs(layer, below, limit, NO_LIMIT)
    assert found.tolist() == (list(range(layer.size)) if expected is None else expected.tolist())


def test_a_layer_of_many_outputs_ends_with_its_budget() -> None:
    ended = Budget()
    ended.end()
    layer = SymbolLayer(get_operators("koza"), 100)
    with pytest.raises(CutShortError):
        features_module._simplest_outputs(layer, torch.zeros(100, dtype=torch.int64), 10, ended)


def test_features_that_are_straight_in_a_variable_are_those_of_degree_one() -> None:
    slots = [Variable("x"), Variable("y")]
    values = torch.tensor(np.random.default_rng(0).uniform(0.5, 2, (2, 12)))
    features = build_features(slots, values, get_operators(["+", "-", "*", "/", "sin", "neg"]), 2, extend_unary=True)
    straight = features.straight_in(["x"])
    kept = {str(straight.expression(i)) for i in range(len(straight))}
    wanted = {str(one) for i in range(len(features)) if degree_in(one := features.expression(i), "x") <= 1}
    assert kept == wanted
    assert "x" in kept
    assert 0 < len(straight) < len(features)
    assert len(features.straight_in([])) == len(features)
