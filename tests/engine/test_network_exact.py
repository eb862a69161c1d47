"""The shortlist is the true best k: compared with a brute force that shares no code with the engine."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from engine.brute_force import BINARY, UNARY, best_distinct, enumerate_all
from hypothesis import given, settings
from hypothesis import strategies as st

from symenum import PSRN, make_operator
from symenum.bench.problems.experiments import CHAOTIC_OPERATORS, EMPS_OPERATORS, TURBULENCE_OPERATORS
from symenum.expressions import evaluate
from symenum.operators import OPERATOR_SETS, get_operators

HYPOT = make_operator("hypot", torch.hypot, arity=2, commutative=True)


def assert_brute_force(operators, data, y, layers, k=10, weight=None, **options):
    """The engine's shortlist equals the brute force's, and every loss is that of the expression next to it."""
    records = [HYPOT if operator == "hypot" else operator for operator in operators]
    net = PSRN(data.shape[1], records, layers)
    hits = net.search(data, y, k=k, sample_weight=weight, **options)
    names = [operator.name for operator in get_operators(records)]
    share = np.full(len(y), 1 / len(y)) if weight is None else weight / weight.sum()
    used = share > 0
    data, y, share = data[used], y[used], share[used]
    truth = best_distinct(enumerate_all(names, data, layers), y, share, k)
    floor = 1e-22 * float(share @ y**2) + 1e-300
    assert hits.complete
    assert len(hits) == len(truth)
    np.testing.assert_allclose([hit.loss for hit in hits], [best.loss for best in truth], rtol=1e-9, atol=floor)
    columns = {f"x{i + 1}": np.ascontiguousarray(column) for i, column in enumerate(data.T)}
    for hit in hits:
        with np.errstate(all="ignore"):
            values = np.broadcast_to(evaluate(hit.expression, columns), y.shape)
        np.testing.assert_allclose(share @ (values - y) ** 2, hit.loss, rtol=1e-9, atol=floor)
    return hits, truth


def sample(seed, rows, inputs, low=-3.0, high=3.0):
    random = np.random.default_rng(seed)
    return random.uniform(low, high, (rows, inputs)), random.normal(size=rows)


@pytest.mark.parametrize(
    ("operators", "inputs", "layers"),
    [
        (OPERATOR_SETS["koza"], 3, 1),
        (OPERATOR_SETS["koza"], 2, 2),
        (OPERATOR_SETS["koza"], 1, 3),
        (OPERATOR_SETS["semikoza"], 3, 2),
        (OPERATOR_SETS["basic_koza"], 3, 2),
        (OPERATOR_SETS["arithmetic"], 2, 3),
        (CHAOTIC_OPERATORS, 2, 2),
        (EMPS_OPERATORS, 2, 2),
        (TURBULENCE_OPERATORS, 2, 2),
        (("+", "**", "neg", "sqrt"), 2, 2),
        (("hypot", "-", "semidiv", "sigmoid", "sinh"), 2, 2),
        (("semisub", "semidiv", "inv"), 3, 2),
        (("identity",), 2, 3),
        (("/",), 3, 2),
    ],
    ids=lambda value: "_".join(value)[:30] if isinstance(value, tuple) else str(value),
)
def test_the_shortlist_is_the_brute_forces(operators, inputs, layers):
    data, y = sample(inputs + 7 * layers, 9, inputs)
    assert_brute_force(operators, data, y, layers)


@pytest.mark.parametrize("scale", [1e-8, 1e-3, 1e3, 1e8])
def test_scales_of_the_target_and_the_inputs_do_not_matter(scale):
    data, y = sample(3, 10, 2)
    assert_brute_force(OPERATOR_SETS["koza"], data, y * scale, 2)
    assert_brute_force(OPERATOR_SETS["arithmetic"], data * scale, y, 2)


def test_huge_and_tiny_columns_do_not_hide_the_best():
    data, _ = sample(5, 12, 2, 3.0, 30.0)  # exp(x·x) reaches 1e300, exp(-…) underflows
    y = np.exp(data[:, 0]) * data[:, 1]
    hits, _ = assert_brute_force(("+", "*", "-", "/", "identity", "exp"), data, y, 2)
    assert hits[0].loss < 1e-20 * np.mean(y**2)


def test_columns_that_nearly_cancel_are_judged_in_double_precision():
    random = np.random.default_rng(11)
    small = random.normal(size=15)
    big = random.uniform(1e5, 2e5, 15)
    data = np.stack([big, big + small], axis=1)
    hits, _ = assert_brute_force(OPERATOR_SETS["arithmetic"], data, small, 2)
    assert str(hits[0].expression) == "x2 - x1"


def test_weights_count_and_rows_of_weight_zero_do_not():
    data, y = sample(9, 12, 2, 0.5, 3.0)
    weight = np.random.default_rng(1).uniform(0.0, 2.0, 12)
    weight[3] = 0.0
    data[3] = -1.0  # log fails here, but nobody asked
    assert_brute_force(OPERATOR_SETS["koza"], data, y, 2, weight=weight)


def test_a_whole_number_weight_is_a_repeated_row():
    data, y = sample(10, 8, 2)
    weight = np.array([1, 2, 1, 3, 1, 1, 2, 1])
    weighted, _ = assert_brute_force(OPERATOR_SETS["koza"], data, y, 2, weight=weight.astype(float))
    repeated, _ = assert_brute_force(OPERATOR_SETS["koza"], np.repeat(data, weight, axis=0), np.repeat(y, weight), 2)
    assert [str(hit.expression) for hit in weighted] == [str(hit.expression) for hit in repeated]


def test_sub_expressions_that_are_not_finite_poison_only_their_users():
    data, y = sample(12, 10, 2)
    data[0] = 0.0  # 1/x and log(x) fail on one row, sin(x) does not
    assert_brute_force(OPERATOR_SETS["koza"], data, y, 2)


def test_ties_are_all_there_and_the_simplest_stands_for_equals():
    data = np.array([[1.0, 1.0], [2.0, 4.0], [3.0, 9.0]])  # x2 is x1·x1
    y = np.array([2.0, 6.0, 12.0])
    hits, truth = assert_brute_force(OPERATOR_SETS["arithmetic"], data, y, 2, k=40)
    assert hits[0].complexity == truth[0].complexity == 1
    assert str(hits[0].expression) == "x1 + x2"


def test_a_target_of_zeros_has_an_answer():
    data, _ = sample(13, 6, 2)
    hits, _ = assert_brute_force(OPERATOR_SETS["koza"], data, np.zeros(6), 2)
    assert hits[0].loss == 0.0


def test_one_row_is_enough():
    data, y = sample(14, 1, 2)
    assert_brute_force(OPERATOR_SETS["arithmetic"], data, y, 2)


def test_more_candidates_than_there_are_gives_all_that_differ():
    data, y = sample(15, 6, 2)
    hits, truth = assert_brute_force(("+", "-", "sin"), data, y, 2, k=100_000)
    assert len(hits) == len(truth) > 50


def test_the_exact_mode_is_exact_over_several_row_parts():
    data, y = sample(16, 700, 2, 0.2, 3.0)
    y = np.sort(np.sin(data[:, 0]) * data[:, 1]) + 0.1 * y  # sorted, so that the first rows are special
    assert_brute_force(OPERATOR_SETS["koza"], data, y, 2, mode="exact")


def test_the_last_layer_may_have_fewer_operators():
    rng = np.random.default_rng(0)
    values = rng.uniform(0.5, 2, (20, 2))
    net = PSRN(2, ["+", "*", "**"], 2, last_operators=["+", "*"])
    whole = PSRN(2, ["+", "*", "**"], 2)
    assert net.sizes[:-1] == whole.sizes[:-1]
    assert net.sizes[-1] < whole.sizes[-1]
    inside = values[:, 0] ** values[:, 1] * (values[:, 0] + values[:, 1])
    assert net.search(values, inside, k=1)[0].loss < 1e-25
    outside = (values[:, 0] + values[:, 1]) ** (values[:, 0] * values[:, 1])
    assert whole.search(values, outside, k=1)[0].loss < 1e-20
    assert net.search(values, outside, k=1)[0].loss > 1e-3


def test_an_exact_hit_comes_first():
    data, _ = sample(17, 20, 3)
    y = (data[:, 0] + data[:, 1]) * np.sin(data[:, 2])
    hits, _ = assert_brute_force(OPERATOR_SETS["koza"], data, y, 2)
    assert str(hits[0].expression) == "sin(x3)*(x1 + x2)"
    assert hits[0].loss < 1e-28


@settings(max_examples=60)
@given(
    operators=st.lists(st.sampled_from([*UNARY, *BINARY]), min_size=1, max_size=6, unique=True),
    inputs=st.integers(1, 3),
    layers=st.integers(1, 2),
    rows=st.integers(1, 12),
    k=st.integers(1, 15),
    whole=st.booleans(),
    weighted=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_random_small_architectures_and_data(operators, inputs, layers, rows, k, whole, weighted, seed):
    # Which half of semisub and semidiv there is depends on the numbers of equal outputs: on whole numbers, where
    # unequal ones coincide by chance, that is not part of the contract.
    whole = whole and not {"semisub", "semidiv"} & set(operators)
    random = np.random.default_rng(seed)
    data = random.integers(-3, 4, (rows, inputs)).astype(float) if whole else random.normal(size=(rows, inputs))
    y = random.integers(-3, 4, rows).astype(float) if whole else random.normal(size=rows)
    weight = random.uniform(0.1, 2.0, rows) if weighted else None
    assert_brute_force(operators, data, y, layers, k=k, weight=weight)
