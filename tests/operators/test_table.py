"""The table of operators, its named sets, and operators of the user's own."""

import pickle

import numpy
import pytest
import sympy
import torch

from symenum.bench.problems.experiments import CHAOTIC_OPERATORS
from symenum.expressions import Variable, apply, evaluate
from symenum.operators import OPERATOR_SETS, OPERATORS, Kind, Operator, get_operator, get_operators, make_operator

ALL = list(OPERATORS.values())


def layer_size(operators, width):
    kinds = [operator.kind for operator in operators]
    triangle = width * (width + 1) // 2
    return (
        kinds.count(Kind.UNARY) * width + kinds.count(Kind.SQUARED) * width**2 + kinds.count(Kind.TRIANGLED) * triangle
    )


def points(operator, seed=0, low=-3.0, high=3.0):
    generator = torch.Generator().manual_seed(seed)
    uniform = torch.rand(operator.arity, 50, generator=generator, dtype=torch.float64)
    return list(low + (high - low) * uniform)


@pytest.mark.parametrize(
    ("name", "inputs", "size"),
    [("koza", 5, 105), (CHAOTIC_OPERATORS, 5, 115), ("semikoza", 6, 126), ("arithmetic", 5, 85)],
)
def test_layer_of_a_named_set_has_the_size_of_the_formula(name, inputs, size):
    assert layer_size(get_operators(name), inputs) == size


def test_second_layer_of_koza_has_the_size_in_the_paper():
    assert layer_size(get_operators("koza"), 105) == 33_705


@pytest.mark.parametrize("name", OPERATOR_SETS)
def test_every_named_set_can_be_made(name):
    operators = get_operators(name)
    assert len(operators) == len(OPERATOR_SETS[name])
    assert OPERATORS["identity"] in operators


@pytest.mark.parametrize("operator", ALL, ids=lambda operator: operator.name)
def test_torch_function_agrees_with_sympy_function(operator):
    arguments = points(operator)
    values = operator.function(*arguments)
    symbols = sympy.symbols("a b")[: operator.arity]
    formula = operator.sympy(*symbols)
    for i, value in enumerate(values.tolist()):
        exact = sympy.N(
            formula.subs({s: sympy.Float(a[i].item(), 30) for s, a in zip(symbols, arguments, strict=True)}), 20
        )
        if exact.is_real:
            assert value == pytest.approx(float(exact), rel=1e-12)
        else:
            assert value != value  # no real value: NaN


@pytest.mark.parametrize("operator", [o for o in ALL if o.form], ids=lambda operator: operator.name)
def test_form_agrees_with_function(operator):
    arguments = points(operator, seed=1)
    written = apply(operator, *(Variable(name) for name in "ab"[: operator.arity]))
    columns = dict(zip("ab", arguments, strict=False))
    torch.testing.assert_close(evaluate(written, columns), operator.function(*arguments), rtol=1e-13, atol=0)


@pytest.mark.parametrize("operator", [o for o in ALL if o.arity == 2], ids=lambda operator: operator.name)
def test_commutative_is_said_of_the_commutative_ones_only(operator):
    a, b = points(operator, low=0.5)
    assert operator.commutative == torch.equal(operator.function(a, b), operator.function(b, a))


@pytest.mark.parametrize("operator", [o for o in ALL if o.inverse], ids=lambda operator: operator.name)
def test_inverse_undoes_its_operator_on_positive_numbers(operator):
    (a,) = points(operator, low=0.1)
    back = OPERATORS[operator.inverse].function(operator.function(a))
    torch.testing.assert_close(back, a, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("operator", ALL, ids=lambda operator: operator.name)
def test_not_a_number_is_handed_on(operator):
    nan = torch.full((3,), torch.nan, dtype=torch.float64)
    assert operator.function(*[nan] * operator.arity).isnan().all()


@pytest.mark.parametrize(
    ("alias", "name"),
    [("+", "add"), ("-", "sub"), ("×", "mul"), ("÷", "div"), ("^", "pow"), ("**", "pow"), ("ln", "log"),
     ("square", "pow2"), ("cube", "pow3"), ("id", "identity"), (" Sin ", "sin")],
)  # fmt: skip
def test_aliases(alias, name):
    assert get_operator(alias) is OPERATORS[name]


def test_unknown_operator_names_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'tanh'"):
        get_operator("tahn")
    with pytest.raises(ValueError, match="did you mean 'koza'"):
        get_operators("kozza")
    with pytest.raises(ValueError, match="pass a list"):
        get_operators("sin")


@pytest.mark.parametrize("wrong", [3, None, OPERATORS["sin"]])
def test_operators_must_be_a_name_or_a_sequence(wrong):
    with pytest.raises(TypeError):
        get_operators(wrong)
    with pytest.raises(TypeError):
        get_operator(3)


def test_empty_and_repeated_operators_are_refused():
    with pytest.raises(ValueError, match="empty"):
        get_operators([])
    with pytest.raises(ValueError, match="add more than once"):
        get_operators(["+", "add"])


@pytest.mark.parametrize("operator", ALL, ids=lambda operator: operator.name)
def test_a_built_in_operator_survives_pickling(operator):
    assert pickle.loads(pickle.dumps(operator)) is operator


def test_own_operators_of_both_arities_are_accepted():
    softplus = make_operator("softplus", torch.nn.functional.softplus)
    assert (softplus.arity, softplus.kind, softplus.sympy(sympy.Symbol("x")).func.__name__) == (
        1,
        Kind.UNARY,
        "softplus",
    )
    largest = make_operator("largest", torch.maximum, arity=2, commutative=True, sympy_function=sympy.Max)
    assert largest.kind is Kind.TRIANGLED
    assert make_operator("arctan2", torch.atan2, arity=2).kind is Kind.SQUARED
    assert make_operator("root", torch.sqrt).complexity == 3  # NaN on part of the probe is fine
    assert pickle.loads(pickle.dumps(softplus)) == softplus


def test_operators_of_one_name_are_equal_only_if_they_compute_the_same_way():
    assert make_operator("f", torch.sin) == make_operator("f", torch.sin)
    assert make_operator("f", torch.sin) != make_operator("f", torch.cos)
    assert isinstance(make_operator("f", torch.sin), Operator)


def in_place(a):
    return a.mul_(2)


def unequal_each_time(a):
    return a + torch.rand(a.shape, dtype=a.dtype) * 0 + next(COUNTER)


COUNTER = iter(range(1000))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"function": lambda a: a[:1]}, ValueError, "keep the shape"),
        ({"function": lambda a: a.sum()}, ValueError, "keep the shape"),
        ({"function": lambda a: a.float()}, TypeError, "keep the type"),
        ({"function": lambda a: a > 0}, TypeError, "keep the type"),
        ({"function": lambda a: a.tolist()}, TypeError, "torch tensor"),
        ({"function": in_place}, ValueError, "in place"),
        ({"function": lambda a: a - a.mean()}, ValueError, "element by element"),
        ({"function": lambda a: a.cumsum(0)}, ValueError, "element by element"),
        ({"function": unequal_each_time}, ValueError, "element by element|different results"),
        ({"function": lambda a: a / 0}, ValueError, "no finite value"),
        ({"function": torch.atan2}, ValueError, "failed"),
        ({"function": torch.sin, "arity": 2}, ValueError, "failed"),
        ({"function": torch.sin, "arity": 3}, ValueError, "must be 1 or 2"),
        ({"function": lambda a: 1 // 0}, ValueError, "ZeroDivisionError"),
        ({"function": 3}, TypeError, "callable"),
        ({"function": torch.sin, "complexity": -1}, ValueError, "complexity"),
        ({"function": torch.sin, "name": "a b"}, ValueError, "identifier"),
        ({"function": torch.sin, "name": "lambda"}, ValueError, "identifier"),
        ({"function": torch.sin, "name": "pi"}, ValueError, "identifier"),
        ({"function": torch.sin, "name": 3}, ValueError, "identifier"),
        ({"function": torch.sin, "name": "sin"}, ValueError, "built-in"),
        ({"function": torch.sin, "name": "Ln"}, ValueError, "built-in"),
        ({"function": torch.sub, "arity": 2, "commutative": True}, ValueError, "declared commutative"),
    ],
)  # fmt: skip
def test_unfit_own_operators_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        make_operator(**{"name": "mine", **arguments})


@pytest.mark.parametrize("operator", ALL, ids=lambda operator: operator.name)
def test_partials_agree_with_finite_differences(operator):
    arguments = points(operator, seed=3, low=0.2)
    value = operator.function(*arguments)
    for i in range(operator.arity):
        h = 1e-6
        up, down = (operator.function(*arguments[:i], arguments[i] + d, *arguments[i + 1 :]) for d in (h, -h))
        slope = torch.as_tensor(operator.partial(i, value, *arguments), dtype=torch.float64).expand_as(value)
        torch.testing.assert_close(slope, (up - down) / (2 * h), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("operator", [o for o in ALL if o.arity == 1], ids=lambda operator: operator.name)
def test_partials_agree_with_autograd_on_both_signs(operator):
    (a,) = points(operator, seed=4)
    a = a[torch.isfinite(operator.function(a))].requires_grad_(True)
    value = operator.function(a)
    (expected,) = torch.autograd.grad(value.sum(), a)
    slope = torch.as_tensor(operator.partial(0, value.detach(), a.detach()), dtype=torch.float64).expand_as(a)
    torch.testing.assert_close(slope, expected, rtol=1e-12, atol=1e-14)


def test_the_partials_of_a_power_hold_at_zero_and_below():
    a = torch.tensor([0.0, -2.0], dtype=torch.float64)
    b = torch.tensor([2.0, 3.0], dtype=torch.float64)
    power = OPERATORS["pow"]
    assert power.partial(0, a**b, a, b).tolist() == [0.0, 12.0]
    assert power.partial(1, a**b, a, b).tolist()[0] == 0.0


def test_an_operator_of_ones_own_is_differentiated_by_torch():
    softplus = make_operator("softplus", torch.nn.functional.softplus)
    a = torch.linspace(-2, 2, 5, dtype=torch.float64)
    torch.testing.assert_close(softplus.partial(0, softplus.function(a), a), torch.sigmoid(a))
    steps = make_operator("steps", lambda a: (a > 0).to(a.dtype))
    assert steps.partial(0, steps.function(a), a) == 0.0


def test_an_operator_that_torch_cannot_differentiate_has_slopes_all_the_same() -> None:
    sine = make_operator("numpy_sine", lambda a: torch.from_numpy(numpy.sin(a.numpy())))
    a = torch.linspace(-2, 2, 9, dtype=torch.float64)
    torch.testing.assert_close(sine.partial(0, sine.function(a), a), a.cos(), rtol=1e-8, atol=1e-9)
