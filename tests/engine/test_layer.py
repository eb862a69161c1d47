"""One symbol layer: its size, its numbering, its values, its poison and its complexities."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from symenum.engine.layer import SymbolLayer, layer_sizes
from symenum.expressions import Variable, apply
from symenum.operators import OPERATOR_SETS, OPERATORS, Kind, get_operator, get_operators

pytestmark = pytest.mark.usefixtures("one_thread")

NAN = math.nan
EVERYTHING = tuple(OPERATORS.values())

# How many operators of each kind the paper's sets have: unary, squared, triangled.
KINDS = {
    "koza": (5, 2, 2),
    "semikoza": (7, 0, 4),
    "basic_koza": (7, 0, 2),
    "arithmetic": (1, 2, 2),
}

# The operators once more, in plain Python: whatever raises has no value.
PLAIN = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "sub": lambda a, b: a - b,
    "div": lambda a, b: a / b,
    "pow": lambda a, b: math.pow(a, b),
    "semisub": lambda a, b: a - b,
    "semidiv": lambda a, b: a / b,
    "identity": lambda a: a,
    "neg": lambda a: -a,
    "inv": lambda a: 1 / a,
    "sin": math.sin,
    "cos": math.cos,
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "tanh": math.tanh,
    "cosh": math.cosh,
    "sinh": math.sinh,
    "abs": abs,
    "sign": lambda a: (a > 0) - (a < 0),
    "pow2": lambda a: a * a,
    "pow3": lambda a: a * a * a,
    "sigmoid": lambda a: 1 / (1 + math.exp(-a)) if a > -700 else math.exp(a),
}

in_each_set = pytest.mark.parametrize("name", OPERATOR_SETS)


def plain_value(name, *operands):
    """The operator's value by the rule of the house: NaN if an operand or the result is not finite."""
    if not all(map(math.isfinite, operands)):
        return NAN
    try:
        value = float(PLAIN[name](*operands))
    except (ValueError, ZeroDivisionError, OverflowError):
        return NAN
    return value if math.isfinite(value) else NAN


def outputs_in_order(operators, width):
    """(operator, children) of all outputs, by the plainest loops."""
    for kind in (Kind.UNARY, Kind.SQUARED, Kind.TRIANGLED):
        for operator in operators:
            if operator.kind is not kind:
                continue
            for i in range(width):
                if kind is Kind.UNARY:
                    yield operator, (i,)
                    continue
                for j in range(i if kind is Kind.TRIANGLED else 0, width):
                    yield operator, (i, j)


def layer_of(*names, width):
    return SymbolLayer(tuple(get_operator(name) for name in names), width)


def decoded(layer, numbers):
    """(operator, children) of the outputs `numbers`, in their order."""
    out = [None] * len(numbers)
    for block, where, left, right in layer.decode(numbers):
        for place, position in enumerate(where.tolist()):
            pair = (int(left[place]),) if right is None else (int(left[place]), int(right[place]))
            out[position] = block.operator, pair
    return out


def test_table_of_kinds_knows_every_named_set():
    assert KINDS.keys() == OPERATOR_SETS.keys()


@in_each_set
@pytest.mark.parametrize("width", [1, 2, 3, 5, 105, 20_930, 10**9])
def test_size_is_that_of_the_paper(name, width):
    unary, squared, triangled = KINDS[name]
    layer = SymbolLayer(get_operators(name), width)
    assert layer.size == unary * width + squared * width**2 + triangled * width * (width + 1) // 2


@in_each_set
@given(inputs=st.integers(1, 30), layers=st.integers(1, 6))
def test_sizes_of_many_layers_follow_the_formula_one_after_another(name, inputs, layers):
    unary, squared, triangled = KINDS[name]
    expected = []
    width = inputs
    for _ in range(layers):
        width = unary * width + squared * width**2 + triangled * width * (width + 1) // 2
        expected.append(width)
    assert layer_sizes(get_operators(name), inputs, layers) == tuple(expected)


def test_sizes_of_koza_on_five_inputs_are_those_that_the_paper_prints():
    assert layer_sizes(get_operators("koza"), 5, 2) == (105, 33_705)


@in_each_set
def test_blocks_follow_each_other_without_gaps(name):
    blocks = SymbolLayer(get_operators(name), 7).blocks
    assert [block.start for block in blocks] == [sum(b.size for b in blocks[:i]) for i in range(len(blocks))]
    assert sorted(block.operator.name for block in blocks) == sorted(o.name for o in get_operators(name))


@in_each_set
@pytest.mark.parametrize("width", [1, 2, 3, 8, 13])
def test_decode_numbers_the_outputs_as_the_paper_does(name, width):
    layer = SymbolLayer(get_operators(name), width)
    assert decoded(layer, torch.arange(layer.size)) == list(outputs_in_order(layer.operators, width))


@in_each_set
@pytest.mark.parametrize("width", [1, 2, 7, 64])
def test_encode_undoes_decode_for_every_number_of_a_small_layer(name, width):
    layer = SymbolLayer(get_operators(name), width)
    numbers = torch.arange(layer.size)
    back = torch.full_like(numbers, -1)
    for block, where, left, right in layer.decode(numbers):
        back[where] = layer.encode(block, left, right)
    assert torch.equal(back, numbers)


@in_each_set
@given(data=st.data(), width=st.integers(1, 10**6))
def test_encode_undoes_decode_for_random_numbers_of_a_large_layer(name, data, width):
    layer = SymbolLayer(get_operators(name), width)
    numbers = torch.tensor(data.draw(st.lists(st.integers(0, layer.size - 1), min_size=1, max_size=20)))
    back = torch.full_like(numbers, -1)
    for block, where, left, right in layer.decode(numbers):
        assert int(left.min()) >= 0
        assert int(left.max()) < width
        if right is not None:
            lowest = left if block.operator.kind is Kind.TRIANGLED else torch.zeros_like(left)
            assert bool(((right >= lowest) & (right < width)).all())
        back[where] = layer.encode(block, left, right)
    assert torch.equal(back, numbers)


@given(data=st.data(), width=st.integers(1, 10**6))
def test_rows_of_the_triangle_begin_and_end_where_they_should(data, width):
    layer = layer_of("add", width=width)
    rows = data.draw(st.lists(st.integers(0, width - 1), min_size=1, max_size=20))
    start = [i * width - i * (i - 1) // 2 for i in rows]
    end = [s + width - 1 - i for s, i in zip(start, rows, strict=True)]
    assert decoded(layer, torch.tensor(start)) == [(OPERATORS["add"], (i, i)) for i in rows]
    assert decoded(layer, torch.tensor(end)) == [(OPERATORS["add"], (i, width - 1)) for i in rows]


@pytest.mark.parametrize("width", [999_983, 10**6, 20_963, 4096])
def test_every_row_end_of_a_wide_triangle_is_right(width):
    layer = layer_of("mul", width=width)
    rows = torch.arange(width)
    start = rows * width - rows * (rows - 1) // 2
    for offsets, column in ((start, rows), (start + width - 1 - rows, torch.full_like(rows, width - 1))):
        ((_, _, left, right),) = layer.decode(offsets)
        assert torch.equal(left, rows)
        assert torch.equal(right, column)


def test_decode_keeps_the_order_and_the_repetitions_of_its_numbers():
    layer = layer_of("sin", "-", "+", width=3)
    numbers = torch.tensor([17, 0, 5, 5, 2, 12])
    everything = list(outputs_in_order(layer.operators, 3))
    assert decoded(layer, numbers) == [everything[number] for number in numbers.tolist()]


values_of_both_signs = st.one_of(
    st.floats(-5, 5), st.sampled_from([0.0, -0.0, 1.0, -1.0, 800.0, -800.0, 1e200, -1e-200, NAN, math.inf, -math.inf])
)


@given(rows=st.lists(st.tuples(*[values_of_both_signs] * 3), min_size=1, max_size=4))
@example(rows=[(0.0, -1.0, 2.0), (NAN, 1.0, math.inf), (-800.0, 800.0, 0.5)])
@settings(max_examples=50)
def test_forward_is_a_plain_loop(rows):
    below = torch.tensor(rows, dtype=torch.float64).T.contiguous()
    layer = SymbolLayer(EVERYTHING, 3)
    expected = [
        [plain_value(operator.name, *(row[child] for child in children)) for row in rows]
        for operator, children in outputs_in_order(EVERYTHING, 3)
    ]
    torch.testing.assert_close(
        layer.forward(below), torch.tensor(expected, dtype=torch.float64), rtol=1e-12, atol=1e-300, equal_nan=True
    )


@given(data=st.data())
def test_forward_of_some_outputs_is_a_part_of_forward_of_all(data):
    layer = SymbolLayer(EVERYTHING, 4)
    below = torch.linspace(-2, 3, 20, dtype=torch.float64).reshape(4, 5)
    numbers = torch.tensor(data.draw(st.lists(st.integers(0, layer.size - 1), max_size=30)), dtype=torch.int64)
    torch.testing.assert_close(
        layer.forward(below, numbers), layer.forward(below)[numbers], rtol=1e-14, atol=0, equal_nan=True
    )


def test_forward_of_many_rows_is_that_of_each_row():
    # So many rows that the work is cut into several chunks.
    below = torch.rand(3, 300_000, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) * 4 - 2
    layer = layer_of("+", "/", "log", width=3)
    whole = layer.forward(below)
    some = torch.arange(0, 300_000, 9_973)
    torch.testing.assert_close(whole[:, some], layer.forward(below[:, some]), rtol=1e-14, atol=0, equal_nan=True)


def test_forward_leaves_the_values_below_unchanged():
    below = torch.tensor([[0.0, -1.0, NAN], [2.0, 1.0, math.inf]], dtype=torch.float64)
    before = below.clone()
    SymbolLayer(EVERYTHING, 2).forward(below)
    torch.testing.assert_close(below, before, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize(
    ("inner", "outer", "x"),
    [
        ("log", "sign", -1.0),
        ("inv", "tanh", 0.0),
        ("log", "exp", 0.0),
        ("inv", "inv", 0.0),
        ("log", "sigmoid", 0.0),
        ("log", "abs", -2.0),
        ("exp", "tanh", 1000.0),
        ("exp", "inv", 1000.0),
        ("sqrt", "pow2", -1.0),
        ("sinh", "sign", -1000.0),
        ("log", "identity", -1.0),
    ],
)
def test_unary_operator_does_not_heal_what_failed_below(inner, outer, x):
    slots = torch.tensor([[x, 1.5]], dtype=torch.float64)
    middle = layer_of(inner, width=1).forward(slots)
    value = layer_of(outer, width=1).forward(middle)[0]
    assert math.isnan(value[0])
    assert math.isfinite(value[1])


@pytest.mark.parametrize("bad", [NAN, math.inf, -math.inf])
@pytest.mark.parametrize("name", [operator.name for operator in EVERYTHING if operator.arity == 2])
@pytest.mark.parametrize("other", [0.0, 1.0, -1.0])
def test_binary_operator_does_not_heal_either_operand(bad, name, other):
    # NaN**0 and 1**NaN are 1 in IEEE arithmetic, 1/inf is 0.
    below = torch.tensor([[bad, other], [other, bad]], dtype=torch.float64)
    layer = layer_of(name, width=2)
    for (_, children), values in zip(outputs_in_order(layer.operators, 2), layer.forward(below), strict=True):
        for row in (0, 1):
            if any(not math.isfinite(below[child, row]) for child in children):
                assert math.isnan(values[row])


def test_poison_reaches_exactly_what_uses_it_on_exactly_its_rows():
    operators = get_operators(["+", "*", "-", "identity", "sin", "tanh"])  # these never fail by themselves
    below = torch.tensor([[1.0, NAN, 1.0], [2.0, 2.0, 2.0], [0.5, 0.5, math.inf]], dtype=torch.float64)
    values = SymbolLayer(operators, 3).forward(below)
    for (_, children), row in zip(outputs_in_order(operators, 3), values, strict=True):
        assert row.isnan().tolist() == [False, 0 in children, 2 in children]


@in_each_set
def test_complexity_is_that_of_the_rebuilt_expression(name):
    operators = get_operators(name)
    check_complexities(operators, [Variable("x"), apply("sin", Variable("y"))])


def test_complexity_of_every_operator_is_that_of_the_rebuilt_expression():
    below = [Variable("x"), apply("exp", Variable("y")), apply("div", Variable("x"), Variable("y"))]
    check_complexities(EVERYTHING, below)


def check_complexities(operators, below):
    layer = SymbolLayer(tuple(operators), len(below))
    found = layer.complexity(torch.tensor([expression.complexity for expression in below]))
    expected = [
        apply(operator, *(below[child] for child in children)).complexity
        for operator, children in outputs_in_order(operators, len(below))
    ]
    assert found.tolist() == expected


def test_complexity_of_some_outputs_is_a_part_of_that_of_all():
    layer = SymbolLayer(EVERYTHING, 3)
    below = torch.tensor([0, 3, 7])
    numbers = torch.tensor([layer.size - 1, 0, 40, 40])
    assert torch.equal(layer.complexity(below, numbers), layer.complexity(below)[numbers])


@pytest.mark.parametrize("width", [1, 2, 7, 1000])
def test_structure_of_one_output_is_what_decode_says(width):
    layer = SymbolLayer(get_operators("semikoza"), width)
    numbers = torch.unique(torch.randint(layer.size, (500,), generator=torch.Generator().manual_seed(width)))
    for block, where, left, right in layer.decode(numbers):
        for at, i, j in zip(where.tolist(), left.tolist(), (left if right is None else right).tolist(), strict=True):
            expected = (i,) if right is None else (i, j)
            assert layer.structure(int(numbers[at])) == (block.operator, expected)
