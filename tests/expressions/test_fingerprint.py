"""Whether two trees are one function."""

import itertools

import pytest
import torch
from expressions.strategies import any_tree, tame_tree
from hypothesis import given

from symenum.expressions import canonical, fingerprint, parse, same_function, sample_points

EQUAL = [
    ("log(exp(x))", "x"),
    ("sin(x)**2 + cos(x)**2", "1"),
    ("sin(x)**2 + cos(x)**2 - 1", "0"),
    ("(x + y)*(x - y)", "x*x - y*y"),
    ("x + y - x", "y"),
    ("x + 1000000 - 1000000", "x"),
    ("exp(x)*exp(y)", "exp(x + y)"),
    ("x - (-y)", "x + y"),
    ("x/y/z", "x/(y*z)"),
    ("sqrt(x*x)", "abs(x)"),
    ("tanh(x)", "(exp(x) - exp(-x))/(exp(x) + exp(-x))"),
    ("x/x", "1"),
    ("1 + 2", "3"),
    ("0.5*x", "x/2"),
    ("log(-exp(x)) + y", "y + log(-exp(x))"),  # finite nowhere
]
DIFFERENT = [
    ("x", "y"),
    ("x1", "x2"),
    ("x", "abs(x)"),
    ("exp(log(x))", "x"),
    ("sqrt(x)**2", "x"),
    ("x", "1.00000001*x"),
    ("1e-12*x", "2e-12*x"),
    ("1e-30*x", "0"),
    ("x + 1e-6", "x"),
    ("1e30*x + 1e22", "1e30*x"),
    ("x - y", "y - x"),
    ("1", "2"),
    ("sign(x)", "x/abs(x) + 1e-7"),
    ("log(-exp(x))", "log(-exp(y))"),
]


@pytest.mark.parametrize(("a", "b"), EQUAL)
def test_equal_functions_are_the_same_and_share_a_fingerprint(a, b):
    assert same_function(parse(a), parse(b))
    assert same_function(parse(b), parse(a))
    assert fingerprint(parse(a)) == fingerprint(parse(b))
    assert fingerprint(parse(a), ["x", "y", "z"]) == fingerprint(parse(b), ["x", "y", "z"])


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_different_functions_are_told_apart(a, b):
    assert not same_function(parse(a), parse(b))
    assert not same_function(parse(b), parse(a))


def test_fingerprints_of_different_simple_functions_differ():
    texts = [
        "x",
        "y",
        "x1",
        "x2",
        "abs(x)",
        "x*x",
        "x + y",
        "x - y",
        "y - x",
        "1",
        "2",
        "0",
        "1e-12*x",
        "2e-12*x",
        "sqrt(x)",
    ]
    for a, b in itertools.combinations(texts, 2):
        assert fingerprint(parse(a)) != fingerprint(parse(b))


@given(any_tree)
def test_a_tree_is_the_same_function_as_itself(tree):
    assert same_function(tree, tree)
    assert fingerprint(tree) == fingerprint(tree)


@given(tame_tree)
def test_order_of_operands_does_not_change_the_function(tree):
    assert same_function(tree, canonical(tree))


def test_variables_of_a_fingerprint_must_be_complete():
    with pytest.raises(ValueError, match="y missing"):
        fingerprint(parse("x + y"), ["x"])


def test_points_are_fixed_and_leave_global_state_alone():
    torch.manual_seed(1)
    state = torch.get_rng_state()
    points = sample_points(5)
    assert torch.equal(state, torch.get_rng_state())
    torch.manual_seed(2)
    assert torch.equal(points, sample_points(5))
    assert torch.equal(points[:, :2], sample_points(2))


def test_points_lie_in_the_three_domains():
    points = sample_points(50)
    assert (points.shape, points.dtype) == ((144, 50), torch.float64)
    for rows, low, high in ((points[:96], -3, 3), (points[96:120], 0.2, 1), (points[120:], 1, 4)):
        assert low < rows.min() < low + 0.1 * (high - low)
        assert high - 0.1 * (high - low) < rows.max() < high
    assert points.unique().numel() == points.numel()
    assert sample_points(0).shape == (144, 0)


@pytest.mark.parametrize("inputs", [-1, 2.0, True])
def test_inputs_must_be_a_whole_number(inputs):
    with pytest.raises(ValueError, match="whole number"):
        sample_points(inputs)
