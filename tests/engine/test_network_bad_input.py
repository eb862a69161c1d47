"""What cannot be searched is refused with an error that names the argument; what is only unusual works."""

from __future__ import annotations

import math
import threading

import numpy as np
import pandas as pd
import pytest
import torch

from symenum import PSRN, make_operator
from symenum.expressions import Variable, parse

pytestmark = pytest.mark.usefixtures("one_thread")

ROWS = 6
VALUES = np.array([[1.0, 2.0], [2.0, 5.0], [3.0, 1.0], [4.0, 4.0], [0.5, 2.5], [1.5, 0.5]])
Y = VALUES[:, 0] * VALUES[:, 1]


@pytest.fixture(scope="module")
def net():
    return PSRN(2, "arithmetic", 2)


def with_entry(array, index, value):
    out = np.array(array, dtype=float)
    out[index] = value
    return out


# --- the data ---

BAD_DATA = {
    "values of one axis": ({"values": Y}, ValueError, r"^values must have shape \(rows, 2\).*\(6,\)"),
    "values of three axes": ({"values": VALUES[None]}, ValueError, r"^values must have shape .*\(1, 6, 2\)"),
    "values of no axis": ({"values": 3.0}, ValueError, r"^values must have shape"),
    "too many columns": ({"values": np.ones((6, 3))}, ValueError, r"^values must have shape \(rows, 2\).*\(6, 3\)"),
    "too few columns": ({"values": np.ones((6, 1))}, ValueError, r"^values must have shape \(rows, 2\).*\(6, 1\)"),
    "values transposed": ({"values": VALUES.T}, ValueError, r"^values must have shape \(rows, 2\)"),
    "no rows": ({"values": np.empty((0, 2)), "y": []}, ValueError, r"^values is empty"),
    "nothing at all": ({"values": [], "y": []}, ValueError, r"^values"),
    "no values": ({"values": None}, TypeError, r"^values must hold real numbers"),
    "rows of different length": ({"values": [[1, 2], [3]]}, ValueError, r"^values must be an array"),
    "NaN in a slot": ({"values": with_entry(VALUES, (2, 1), math.nan)}, ValueError, r"^values has NaN.*column 1"),
    "inf in a slot": ({"values": with_entry(VALUES, (2, 0), math.inf)}, ValueError, r"^values has NaN.*column 0"),
    "text in values": ({"values": [["a", "b"]] * 6}, TypeError, r"^values must hold real numbers"),
    "objects in values": ({"values": np.array([[None, 1]] * 6)}, TypeError, r"^values must hold real numbers.*object"),
    "complex values": ({"values": VALUES + 1j}, TypeError, r"^values must hold real numbers.*complex"),
    "complex tensor": ({"values": torch.ones(6, 2) * 1j}, TypeError, r"^values must be real"),
    "dates": ({"values": np.full((6, 2), "2024-01-01", dtype="M8[D]")}, ValueError, r"^values has dates: give numbers"),
    "table with text": (
        {"values": pd.DataFrame({"a": [1.0] * 6, "b": ["x"] * 6})}, TypeError, r"^values must hold real numbers",
    ),
    "y too short": ({"y": Y[:-1]}, ValueError, r"^y must have shape \(6,\).*\(5,\)"),
    "y too long": ({"y": np.ones(7)}, ValueError, r"^y must have shape \(6,\).*\(7,\)"),
    "y of two columns": ({"y": VALUES}, ValueError, r"^y must have shape \(6,\).*\(6, 2\)"),
    "y lying down": ({"y": Y[None]}, ValueError, r"^y must have shape \(6,\).*\(1, 6\)"),
    "y a number": ({"y": 1.0}, ValueError, r"^y must have shape \(6,\)"),
    "no y": ({"y": None}, TypeError, r"^y must hold real numbers"),
    "y empty": ({"y": []}, ValueError, r"^y must have shape \(6,\).*\(0,\)"),
    "NaN in y": ({"y": with_entry(Y, 3, math.nan)}, ValueError, r"^y has NaN"),
    "inf in y": ({"y": with_entry(Y, 3, -math.inf)}, ValueError, r"^y has NaN or infinite"),
    "text in y": ({"y": list("abcdef")}, TypeError, r"^y must hold real numbers"),
    "None in y": ({"y": [1, 2, 3, 4, 5, None]}, TypeError, r"^y must hold real numbers.*object"),
    "complex y": ({"y": Y + 1j}, TypeError, r"^y must hold real numbers.*complex"),
    "weights too short": ({"sample_weight": np.ones(5)}, ValueError, r"^sample_weight must have shape \(6,\).*\(5,\)"),
    "weights of two axes": ({"sample_weight": VALUES}, ValueError, r"^sample_weight must have shape \(6,\)"),
    "one weight": ({"sample_weight": 1.0}, ValueError, r"^sample_weight must have shape \(6,\)"),
    "negative weight": ({"sample_weight": [1, 1, 1, 1, 1, -1]}, ValueError, r"^sample_weight must be .*not negative"),
    "weights all zero": ({"sample_weight": np.zeros(6)}, ValueError, r"^sample_weight must have .*above zero"),
    "NaN weight": ({"sample_weight": with_entry(np.ones(6), 0, math.nan)}, ValueError, r"^sample_weight must be"),
    "inf weight": ({"sample_weight": with_entry(np.ones(6), 0, math.inf)}, ValueError, r"^sample_weight must be"),
    "weights beyond the range": ({"sample_weight": np.full(6, 1e308)}, ValueError, r"^sample_weight must .*finite sum"),
    "text as weights": ({"sample_weight": list("abcdef")}, TypeError, r"^sample_weight must hold real numbers"),
    "complex weights": ({"sample_weight": np.ones(6) * 1j}, TypeError, r"^sample_weight must hold real numbers"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data_are_refused(net, case):
    changes, error, message = BAD_DATA[case]
    with pytest.raises(error, match=message):
        net.search(**{"values": VALUES, "y": Y, **changes})


# --- the options of a search ---

BAD_OPTIONS = {
    "k zero": ({"k": 0}, ValueError, r"^k must be at least 1, not 0"),
    "k negative": ({"k": -3}, ValueError, r"^k must be at least 1, not -3"),
    "k a fraction": ({"k": 2.5}, TypeError, r"^k must be a whole number, not float"),
    "k a float": ({"k": 2.0}, TypeError, r"^k must be a whole number, not float"),
    "k a truth value": ({"k": True}, TypeError, r"^k must be a whole number, not bool"),
    "k text": ({"k": "3"}, TypeError, r"^k must be a whole number, not str"),
    "k nothing": ({"k": None}, TypeError, r"^k must be a whole number, not NoneType"),
    "mode unknown": ({"mode": "fast"}, ValueError, r"^mode must be one of 'auto', 'exact', 'screen', not 'fast'"),
    "mode nothing": ({"mode": None}, ValueError, r"^mode must be one of"),
    "time limit zero": ({"time_limit": 0}, ValueError, r"^time_limit must be .*above zero, not 0"),
    "time limit negative": ({"time_limit": -1.0}, ValueError, r"^time_limit must be"),
    "time limit NaN": ({"time_limit": math.nan}, ValueError, r"^time_limit must be"),
    "time limit text": ({"time_limit": "5"}, (TypeError, ValueError), r"^time_limit must be"),
    "stop a flag": ({"stop": True}, TypeError, r"^stop must be a callable.*bool"),
    "threads zero": ({"threads": 0}, ValueError, r"^threads must be at least 1, not 0"),
    "threads negative": ({"threads": -1}, ValueError, r"^threads must be at least 1"),
    "threads a fraction": ({"threads": 1.5}, TypeError, r"^threads must be a whole number"),
    "threads text": ({"threads": "all"}, TypeError, r"^threads must be a whole number"),
    "too few slots": ({"slots": ["a"]}, ValueError, r"^slots must be a sequence of 2 names"),
    "too many slots": ({"slots": ["a", "b", "c"]}, ValueError, r"^slots must be a sequence of 2 names"),
    "slots as one text": ({"slots": "ab"}, ValueError, r"^slots must be a sequence of 2 names"),
    "slots a number": ({"slots": 5}, (TypeError, ValueError), r"^slots must"),
    "slots of numbers": ({"slots": [1, 2]}, (TypeError, ValueError), r"^slots must"),
    "slots of nothing": ({"slots": [None, "b"]}, (TypeError, ValueError), r"^slots must"),
    "slots of one name": ({"slots": ["a", "a"]}, ValueError, r"^slots"),
    "slot of a bad name": ({"slots": ["a", "2b"]}, ValueError, r"2b"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_OPTIONS)
def test_bad_options_are_refused(net, case):
    changes, error, message = BAD_OPTIONS[case]
    with pytest.raises(error, match=message):
        net.search(VALUES, Y, **changes)


def test_threading_event_as_stop_is_refused_with_the_way_out(net):
    with pytest.raises(TypeError, match=r"^stop must be a callable.*event\.is_set.*Event"):
        net.search(VALUES, Y, stop=threading.Event())


# --- the architecture ---

BAD_NETS = {
    "no inputs": ({"inputs": 0}, ValueError, r"^inputs must be at least 1, not 0"),
    "negative inputs": ({"inputs": -2}, ValueError, r"^inputs must be at least 1, not -2"),
    "inputs a float": ({"inputs": 2.0}, TypeError, r"^inputs must be a whole number, not float"),
    "inputs a truth value": ({"inputs": True}, TypeError, r"^inputs must be a whole number, not bool"),
    "inputs text": ({"inputs": "2"}, TypeError, r"^inputs must be a whole number, not str"),
    "inputs names": ({"inputs": ["a", "b"]}, TypeError, r"^inputs must be a whole number, not list"),
    "no layers": ({"layers": 0}, ValueError, r"^layers must be at least 1, not 0"),
    "negative layers": ({"layers": -1}, ValueError, r"^layers must be at least 1, not -1"),
    "layers a float": ({"layers": 3.0}, TypeError, r"^layers must be a whole number, not float"),
    "layers a truth value": ({"layers": False}, TypeError, r"^layers must be a whole number, not bool"),
    "layers nothing": ({"layers": None}, TypeError, r"^layers must be a whole number, not NoneType"),
    "memory zero": ({"max_memory": 0}, ValueError, r"^max_memory must be at least 1"),
    "memory a float": ({"max_memory": 4e9}, TypeError, r"^max_memory must be a whole number"),
    "memory text": ({"max_memory": "4GB"}, TypeError, r"^max_memory must be a whole number"),
    "unknown operator": ({"operators": ["+", "sine"]}, ValueError, r"unknown operator 'sine' \(did you mean 'sin'\?\)"),
    "operator misspelt": ({"operators": ["coshh"]}, ValueError, r"unknown operator 'coshh' \(did you mean 'cosh'\?\)"),
    "unknown set": ({"operators": "kozza"}, ValueError, r"unknown operator set 'kozza' \(did you mean 'koza'\?\)"),
    "operator as a set": ({"operators": "sin"}, ValueError, r"unknown operator set 'sin'.*pass a list"),
    "no operators": ({"operators": []}, ValueError, r"^operators is empty"),
    "operator twice": ({"operators": ["+", "add"]}, ValueError, r"^operators names add more than once"),
    "operators a number": ({"operators": 3}, TypeError, r"^operators must be"),
    "operator a function": ({"operators": [torch.sin]}, TypeError, r"an operator is a name, a sign or an Operator"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_NETS)
def test_bad_architectures_are_refused(case):
    changes, error, message = BAD_NETS[case]
    with pytest.raises(error, match=message):
        PSRN(**{"inputs": 2, "operators": "arithmetic", "layers": 2, **changes})


BAD_FUNCTIONS = {
    "sum of all": (lambda a: a.sum(), ValueError, r"operator 'own' returned shape \(\) for input of shape \(3, 4\)"),
    "sum of rows": (lambda a: a.sum(dim=0), ValueError, r"operator 'own' returned shape \(4,\)"),
    "transposed": (lambda a: a.T, ValueError, r"operator 'own' returned shape \(4, 3\)"),
    "one axis more": (lambda a: a[None], ValueError, r"operator 'own' returned shape \(1, 3, 4\)"),
    "an array": (lambda a: a.numpy(), TypeError, r"operator 'own' must return a torch tensor, not ndarray"),
    "nothing": (lambda a: None, TypeError, r"operator 'own' must return a torch tensor, not NoneType"),
    "single precision": (lambda a: a.float(), TypeError, r"operator 'own' returned torch.float32"),
    "in place": (lambda a: a.mul_(2), ValueError, r"operator 'own' changed its input in place"),
    "failing": (lambda a: a @ a, ValueError, r"operator 'own' failed on tensors of shape \(3, 4\)"),
    "of two operands": (lambda a, b: a + b, ValueError, r"operator 'own' failed on tensors"),
    "not by element": (lambda a: a - a.mean(), ValueError, r"operator 'own' does not work element by element"),
    "never finite": (lambda a: a / 0.0, ValueError, r"operator 'own' gave no finite value"),
    "random": (lambda a: a + 0 * torch.rand_like(a).round_() + torch.rand_like(a), ValueError, r"operator 'own'"),
    "not callable": ("sin", TypeError, r"operator 'own' must be callable, not str"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_FUNCTIONS)
def test_operator_that_is_none_is_refused(case):
    function, error, message = BAD_FUNCTIONS[case]
    with pytest.raises(error, match=message):
        make_operator("own", function)


def test_forty_layers_are_refused_before_anything_is_computed():
    with pytest.raises(ValueError, match=r"^layer 3 of 40 would have .* sub-expressions and need .* GB.*fewer layers"):
        PSRN(5, "koza", 40)


def test_many_layers_of_one_unary_operator_are_few_candidates():
    assert PSRN(2, ["sin"], 40).raw_sizes == (2,) * 40


def test_sub_expressions_that_do_not_fit_are_refused_with_the_size_and_the_way_out():
    message = (
        r"layer 2 of 3 would have 33,705 sub-expressions and need \S+ GB, more than max_memory = 0\.2 GB: .*raise max"
    )
    with pytest.raises(ValueError, match=message):
        PSRN(5, "koza", 3, max_memory=200_000_000)


def test_bank_that_does_not_fit_is_refused_with_the_size_and_the_way_out():
    net = PSRN(2, "koza", 3, max_memory=180_000_000)
    values = np.random.default_rng(0).uniform(1, 2, (50_000, 2))
    message = (
        r"the bank of 902 sub-expressions on 50,000 rows would need \S+ GB, more than max_memory = 0\.18 GB: .*screen"
    )
    with pytest.raises(ValueError, match=message):
        net.search(values, values[:, 0], mode="exact")
    assert net.search(values[:500], values[:500, 0], k=1)[0].loss == 0


def test_refusal_happens_before_the_work_and_leaves_the_net_usable(net):
    with pytest.raises(ValueError, match="k must be"):
        net.search(VALUES, Y, k=0)
    assert net.search(VALUES, Y, k=1)[0].expression == parse("x1*x2")


# --- unusual, and fine ---


def test_more_than_all_candidates_gives_all_that_are_finite_and_distinct():
    # Of x, x + x, 1/x on data with a zero: x*x is no candidate, and 1/x fails.
    found = PSRN(1, ["identity", "+", "inv"], 1).search([[1.0], [0.0], [2.0]], [1.0, 0.0, 2.0], k=1_000)
    assert [str(candidate.expression) for candidate in found] == ["x1", "x1 + x1"]
    assert found.complete
    found = PSRN(2, ["+", "-"], 1).search(VALUES, Y, k=10**9)
    assert len(found) == 3 + 3  # a + a, a + b, b + b, a - a (the same as b - b), a - b, b - a


def reads(data, kind):
    """The same numbers in another container."""
    return {
        "list": lambda a: np.asarray(a).tolist(),
        "tuple": lambda a: tuple(map(tuple, a)) if np.ndim(a) == 2 else tuple(a),
        "frame": lambda a: pd.DataFrame(a, columns=["u", "v"]) if np.ndim(a) == 2 else pd.Series(a, name="w"),
        "frame with an index": lambda a: (
            pd.DataFrame(a, index=range(10, 16)) if np.ndim(a) == 2 else pd.Series(a, index=list("fedcba"))
        ),
        "tensor": lambda a: torch.tensor(np.asarray(a)),
        "tensor with gradient": lambda a: torch.tensor(np.asarray(a), requires_grad=True),
        "Fortran order": np.asfortranarray,
        "backwards twice": lambda a: np.ascontiguousarray(np.asarray(a)[::-1])[::-1],
        "every second": lambda a: np.repeat(a, 2, axis=0)[::2],
        "big endian": lambda a: np.asarray(a, dtype=">f8"),
        "single precision": lambda a: np.asarray(a, dtype=np.float32),
        "half precision": lambda a: np.asarray(a, dtype=np.float16),
        "long": lambda a: np.asarray(a, dtype=np.longdouble),
    }[kind](data)


KINDS = [
    "list", "tuple", "frame", "frame with an index", "tensor", "tensor with gradient", "Fortran order",
    "backwards twice", "every second", "big endian", "single precision", "half precision", "long",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_container_does_not_matter(net, kind):
    # All numbers are exact in half precision.
    expected = net.search(VALUES, Y, k=5, sample_weight=VALUES[:, 0])
    assert net.search(reads(VALUES, kind), reads(Y, kind), k=5, sample_weight=reads(VALUES[:, 0], kind)) == expected


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint16"])
def test_whole_numbers_are_numbers(net, dtype):
    values = np.array([[1, 2], [2, 5], [3, 1], [4, 4]])
    y = values[:, 0] - values[:, 1]
    expected = net.search(values.astype(float), y.astype(float), k=3)
    found = net.search(values.astype(dtype), y.astype("int8"), k=3, sample_weight=np.ones(4, dtype=dtype))
    assert found == expected
    assert found[0].loss == 0


def test_truth_values_are_zero_and_one(net):
    values = np.array([[True, True], [True, False], [False, True], [False, False]])
    found = net.search(values, values[:, 0] & values[:, 1], k=1)
    assert str(found[0].expression) == "x1*x2"
    assert found[0].loss == 0


def test_read_only_arrays_are_read(net):
    values, y, weight = VALUES.copy(), Y.copy(), np.ones(ROWS)
    for array in (values, y, weight):
        array.flags.writeable = False
    assert net.search(values, y, k=1, sample_weight=weight)[0].loss == 0


def test_target_may_be_a_column(net):
    assert net.search(VALUES, Y[:, None], k=3) == net.search(VALUES, Y, k=3)


def test_one_row_is_enough(net):
    found = net.search([[2.0, 3.0]], [6.0], k=3)
    assert found[0].loss == 0
    assert len(found) == 3


def test_one_input_may_come_without_a_column_axis():
    one = PSRN(1, "koza", 2)
    x = np.linspace(0.5, 2, 9)
    assert one.search(x, np.sin(x) * x, k=3) == one.search(x[:, None], np.sin(x) * x, k=3)


def test_numpy_whole_numbers_are_whole_numbers():
    small = PSRN(np.int64(2), "arithmetic", np.int32(1))
    assert len(small.search(VALUES, Y, k=np.int8(2), threads=np.int64(1))) == 2


def test_rows_of_weight_zero_may_not_poison():
    values = [[1.0], [0.0], [2.0]]
    found = PSRN(1, ["inv"], 1).search(values, [1.0, 7.0, 0.5], k=1, sample_weight=[1.0, 0.0, 2.0])
    assert str(found[0].expression) == "1/x1"
    assert found[0].loss == 0


def test_scale_of_the_weights_does_not_matter(net):
    weight = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    y = Y + np.sin(np.arange(ROWS))
    plain = net.search(VALUES, y, k=5, sample_weight=weight)
    for factor in (2.0**-1000, 2.0**1000):
        assert net.search(VALUES, y, k=5, sample_weight=weight * factor) == plain


@pytest.mark.parametrize("kind", ["array", "tensor"])
def test_data_of_the_caller_stay_unchanged(kind):
    generator = np.random.default_rng(0)
    values, y, weight = generator.uniform(-2, 2, (300, 2)), generator.normal(size=300), generator.random(300)
    weight[:5] = 0
    for inputs, mode in ((1, "exact"), (2, "exact"), (2, "screen")):
        given = [values[:, :inputs].copy(), y.copy(), weight.copy()]
        if kind == "tensor":
            given = [torch.from_numpy(array) for array in given]
        PSRN(inputs, "arithmetic", 1).search(given[0], given[1], k=2, sample_weight=given[2], mode=mode)
        for after, before in zip(given, (values[:, :inputs], y, weight), strict=True):
            np.testing.assert_array_equal(np.asarray(after), before)


def test_slots_may_be_names_or_expressions(net):
    found = net.search(VALUES, Y, k=1, slots=["mass", parse("sin(t)")])
    assert str(found[0].expression) == "mass*sin(t)"
    found = net.search(VALUES, Y, k=1, slots=(Variable("a"), "b"))
    assert str(found[0].expression) == "a*b"


def test_equal_columns_and_constant_columns_are_fine(net):
    values = np.column_stack([VALUES[:, 0], VALUES[:, 0]])
    assert net.search(values, 2 * VALUES[:, 0], k=1)[0].loss == 0
    values = np.column_stack([VALUES[:, 0], np.ones(ROWS)])
    assert net.search(values, VALUES[:, 0] + 1, k=1)[0].loss == 0


def test_target_of_zeros_is_met(net):
    found = net.search(VALUES, np.zeros(ROWS), k=3)
    assert found[0].loss == 0
    assert [candidate.loss for candidate in found] == sorted(candidate.loss for candidate in found)


@pytest.mark.parametrize(
    "exponent",
    [
        -150,
        150,
        -200,
        200,
    ],
)
def test_numbers_whose_squares_leave_the_range_are_searched_or_refused(net, exponent):
    values = VALUES * 10.0**exponent
    try:
        found = net.search(values, values[:, 0] + values[:, 1], k=1)
    except ValueError as error:
        assert "y" in str(error).split()  # noqa: PT017
    else:
        assert str(found[0].expression) == "x1 + x2"


def test_thread_that_cannot_be_started_is_the_error_that_is_raised(net, monkeypatch):
    start = threading.Thread.start

    def refuse(thread):
        if thread.name.startswith("symenum") and thread.name != "symenum-0":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        net.search(VALUES, Y, threads=3)
