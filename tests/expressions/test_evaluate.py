"""Values on columns: kinds, shapes, precision, and nothing protected."""

import warnings

import numpy as np
import pytest
import torch

from symenum.expressions import Variable, apply, evaluate, parse
from symenum.operators import make_operator

COLUMN = np.array([[1.0, -2.0, 0.0], [0.5, 3.0, 4.0]])


def test_values_agree_with_numpy():
    x, y = COLUMN, COLUMN[::-1].copy()
    with np.errstate(all="ignore"):
        expected = 2 * np.sin(x) - y**2 / 3 + np.log(y) * np.e
        np.testing.assert_allclose(evaluate(parse("2*sin(x) - y**2/3 + log(y)*E"), {"x": x, "y": y}), expected)


def test_what_is_not_finite_stays_as_it_is():
    values = evaluate(parse("1/x + 0*log(x)"), {"x": np.array([0.0, -1.0, 1.0])})
    assert np.isnan(values[:2]).all()
    assert evaluate(parse("1/x"), {"x": np.array([0.0, -0.0])}).tolist() == [np.inf, -np.inf]
    assert evaluate(parse("x/(-0.0) + x/0.0"), {"x": np.array([1.0])})[0] != 0


@pytest.mark.parametrize("text", ["x", "2", "x + 2", "sin(x)", "1 + 2"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3)])
def test_result_is_like_the_columns(text, dtype, shape):
    column = torch.ones(shape, dtype=dtype)
    result = evaluate(parse(text), {"x": column})
    assert isinstance(result, torch.Tensor)
    assert (result.shape, result.dtype) == (column.shape, dtype)
    array = evaluate(parse(text), {"x": column.numpy()})
    assert isinstance(array, np.ndarray)
    assert (array.shape, array.dtype) == (shape, column.numpy().dtype)
    assert array.flags.writeable
    np.testing.assert_array_equal(array, result.numpy())


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool", "float16", ">f8", "<i2"])
def test_other_numbers_are_promoted_to_double_precision(dtype):
    values = evaluate(parse("x/2"), {"x": np.array([0, 1], dtype=dtype)})
    assert values.dtype == np.float64
    assert values.tolist() == [0.0, 0.5]


def test_mixed_precision_is_double():
    assert (
        evaluate(parse("x + y"), {"x": torch.ones(2), "y": torch.ones(2, dtype=torch.float64)}).dtype == torch.float64
    )


@pytest.mark.parametrize(
    "view",
    [COLUMN[::-1], COLUMN[:, ::-1], COLUMN.T, COLUMN[:, 1:2], COLUMN[:1, :1][::-1], np.broadcast_to(COLUMN[0], (4, 3)),
     np.zeros(3, dtype=[("a", "i1"), ("b", "f8")])["b"]],
)  # fmt: skip
def test_any_layout_of_memory_works_without_warnings(view):
    frozen = view.copy()
    frozen.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for column in (view, frozen):
            np.testing.assert_array_equal(evaluate(parse("x + 1"), {"x": column}), view + 1)


@pytest.mark.parametrize("text", ["x", "mine(x)"])
def test_the_result_never_shares_memory_with_a_column(text):
    mine = make_operator("mine", lambda a: a)
    column = np.ones(3)
    evaluate(parse(text, [mine]), {"x": column})[:] = 7
    assert column.tolist() == [1, 1, 1]


def test_equal_sub_trees_are_evaluated_once():
    calls = []
    mine = make_operator("mine", lambda a: calls.append(1) or a + 1)
    calls.clear()
    evaluate(parse("mine(x)*mine(x) + sin(mine(x))", [mine]), {"x": np.ones(2)})
    assert len(calls) == 1


def test_own_operators_see_operands_of_one_shape():
    def same_shapes(a, b):
        assert a.shape == b.shape
        return a * b

    mine = make_operator("mine", same_shapes, arity=2)
    assert evaluate(parse("mine(2, x)", [mine]), {"x": np.ones(3)}).tolist() == [2, 2, 2]


def test_without_columns_a_constant_expression_is_a_single_number():
    value = evaluate(parse("1 + 2*pi"), {})
    assert (value.shape, value.dtype, float(value)) == ((), np.float64, 1 + 2 * np.pi)


def test_gradients_flow():
    x = torch.tensor([2.0], dtype=torch.float64, requires_grad=True)
    evaluate(parse("x**2 + 3"), {"x": x}).sum().backward()
    assert x.grad.item() == 4


def test_long_sums_are_evaluated():
    assert evaluate(parse("+".join(["x"] * 3_000)), {"x": np.ones(1)}).item() == 3_000


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ({"x": np.ones(2)}, ValueError, "no column for y; columns has x"),
        ({}, ValueError, "columns has nothing"),
        ({"x": np.ones(2), "y": np.ones(3)}, ValueError, "one shape"),
        ({"x": np.ones(2), "y": np.ones((2, 1))}, ValueError, "one shape"),
        ({"x": np.ones(2), "y": torch.ones(2)}, TypeError, "one kind"),
        ({"x": np.ones(2), "y": [1, 2]}, TypeError, "column 'y' must be a NumPy array"),
        ({"x": np.ones(2), "y": np.array(["a", "b"])}, TypeError, "real numbers"),
        ({"x": np.ones(2), "y": np.ones(2) * 1j}, TypeError, "real numbers"),
        ({"x": torch.ones(2), "y": torch.ones(2) * 1j}, TypeError, "real numbers"),
    ],
)
def test_unfit_columns_are_refused(columns, error, message):
    with pytest.raises(error, match=message):
        evaluate(apply("add", Variable("x"), Variable("y")), columns)
