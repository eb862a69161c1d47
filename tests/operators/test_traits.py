"""Roles and traits: those of the table hold everywhere, and a user's are believed only where the function agrees."""

import math
import pickle

import mpmath
import numpy
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from symenum.expressions import Constant, Variable, apply, parse
from symenum.fitting.free_constants import with_coefficients
from symenum.heads.factor_families import companion_factors
from symenum.operators import OPERATORS, Abilities, Operator, get_operator, get_operators, make_operator
from symenum.operators.probing import probe_inverse, probe_traits
from symenum.operators.traits import REALS, Interval, Role, Traits

ALL = list(OPERATORS.values())
UNARY = [operator for operator in ALL if operator.arity == 1]
numbers = st.floats(-30, 30, allow_subnormal=False)
scales = st.floats(0.1, 10)


def by_name(operators):
    return st.sampled_from(list(operators))


def value(operator, *operands):
    return float(operator.function(*(torch.tensor([operand], dtype=torch.float64) for operand in operands))[0])


def near(one, other):
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)


@pytest.mark.parametrize("operator", ALL, ids=lambda operator: operator.name)
def test_the_probe_of_a_users_traits_accepts_the_whole_table(operator):
    probe_traits(operator.name, operator.function, operator.arity, operator.traits)
    if operator.inverse is not None:
        probe_inverse(operator.name, operator.function, get_operator(operator.inverse).function)


@given(by_name(o for o in UNARY if o.periodic), numbers, st.integers(-3, 3))
def test_a_periodic_operator_repeats(operator, x, turns):
    assert near(value(operator, x), value(operator, x + turns * operator.traits.period))


@given(by_name(o for o in UNARY if o.traits.monotone), numbers, numbers)
def test_a_monotone_operator_never_turns(operator, x, y):
    low, high = sorted((x, y))
    assume(low in operator.traits.domain)
    assert operator.traits.monotone * (value(operator, high) - value(operator, low)) >= 0


@given(by_name(o for o in ALL if o.traits.parity), numbers, numbers)
def test_parity_is_the_sign_that_negated_operands_give(operator, x, y):
    operands = (x, y)[: operator.arity]
    plain, mirrored = value(operator, *operands), value(operator, *(-operand for operand in operands))
    assume(math.isfinite(plain))
    assert near(mirrored, operator.traits.parity * plain)


@given(by_name(o for o in ALL if o.traits.degree is not None), numbers, numbers, scales)
def test_degree_is_the_power_of_a_common_factor(operator, x, y, c):
    operands = (x, y)[: operator.arity]
    assume(all(abs(operand) > 1e-6 for operand in operands))
    plain = value(operator, *operands)
    assume(math.isfinite(plain))
    assert near(value(operator, *(c * operand for operand in operands)), c**operator.traits.degree * plain)


@given(by_name(UNARY), numbers)
def test_an_operator_is_finite_in_its_domain_and_nowhere_else(operator, x):
    traits = operator.traits
    assert math.isfinite(value(operator, x)) == (x in traits.domain and x not in traits.poles)


@given(by_name(UNARY), numbers)
def test_values_lie_in_the_range(operator, x):
    found = value(operator, x)
    assume(math.isfinite(found))
    # Rounding reaches an open end: tanh(20) is 1.
    assert operator.traits.range.low <= found <= operator.traits.range.high


@given(by_name(o for o in UNARY if o.inverse), numbers)
def test_an_inverse_solves_for_every_value(operator, x):
    y = value(operator, x)
    assume(math.isfinite(y) and (y == 0 or 1e-6 < abs(y) < 1e6))
    assert near(value(operator, value(get_operator(operator.inverse), y)), y)


@given(by_name(o for o in ALL if o.traits.strict), numbers, st.booleans())
def test_a_strict_operator_hands_not_a_number_on(operator, x, left):
    operands = ((math.nan, x) if left else (x, math.nan)) if operator.arity == 2 else (math.nan,)
    assert math.isnan(value(operator, *operands))


@given(by_name(o for o in ALL if o.form is None), st.floats(0.1, 3), st.floats(0.1, 3))
def test_numpy_and_mpmath_compute_the_same_as_torch(operator, x, y):
    operands = (x, y)[: operator.arity]
    expected = value(operator, *operands)
    assert math.isclose(float(operator.numpy(*map(numpy.float64, operands))), expected, rel_tol=1e-12, abs_tol=1e-15)
    exact = getattr(mpmath, operator.mpmath)(*map(mpmath.mpf, operands))
    assert math.isclose(float(exact), expected, rel_tol=1e-12, abs_tol=1e-12)


def test_operators_share_a_kernel_only_where_they_compute_the_same():
    coded = [operator for operator in ALL if operator.kernel is not None]
    assert len({operator.kernel for operator in coded}) == len({operator.role for operator in coded})
    for one in coded:
        for other in coded:
            assert (one.kernel == other.kernel) == (one.role is other.role)


def test_two_ways_to_enumerate_one_thing_have_one_role():
    assert OPERATORS["sub"].role is OPERATORS["semisub"].role is Role.DIFFERENCE
    assert OPERATORS["div"].role is OPERATORS["semidiv"].role is Role.QUOTIENT
    roles = [o.role for o in ALL if o.form is None and o.role is not Role.FUNCTION]
    assert len(roles) == len(set(roles)), "two operators that laws hold share a role"


def test_derived_traits_of_the_table():
    assert {o.name for o in ALL if o.periodic} == {"sin", "cos"}
    assert {o.name for o in ALL if o.smooth_step} == {"tanh"}
    assert {o.name for o in UNARY if not o.entire} == {"log", "sqrt", "inv"}
    assert {o.name: o.exponent for o in ALL if o.exponent is not None} == {
        "identity": 1, "neg": 1, "inv": -1, "sqrt": 0.5, "pow2": 2, "pow3": 3,
    }  # fmt: skip
    assert all(operator.built_in for operator in ALL)


@pytest.mark.parametrize(
    ("operators", "able"),
    [
        ("koza", "sums differences products quotients quotients_both_ways powers whole_powers"),
        ("semikoza", "sums differences products quotients powers whole_powers"),
        ("basic_koza", "sums products quotients powers whole_powers"),
        (["+"], "sums"),
        (["semisub"], "sums differences"),
        (["inv"], "quotients"),
        (["sqrt"], "powers whole_powers"),
        (["pow2"], "whole_powers"),
        (["exp"], ""),
        (["exp", "log"], "powers whole_powers"),
    ],
)
def test_what_a_set_can_write(operators, able):
    found = Abilities(get_operators(operators))
    questions = ["sums", "differences", "products", "quotients", "quotients_both_ways", "powers", "whole_powers"]
    assert [question for question in questions if getattr(found, question)] == able.split()


ACCEPTED = [
    ("tan", torch.tan, Traits(period=math.pi, parity=-1)),
    ("erf", torch.erf, Traits(monotone=1, parity=-1, domain=REALS, range=Interval(-1, 1), strict=True)),
    ("relu", torch.relu, Traits(monotone=1, degree=1, domain=REALS, range=Interval.closed(0, math.inf))),
    ("atanh", torch.atanh, Traits(monotone=1, parity=-1, domain=Interval(-1, 1), range=REALS)),
    ("asin", torch.asin, Traits(monotone=1, domain=Interval.closed(-1, 1))),
    ("root5", lambda a: (5 - a).sqrt(), Traits(monotone=-1, domain=Interval(high=5, high_closed=True))),
    ("bump", lambda a: torch.exp(-a * a), Traits(parity=1, range=Interval(0, 1, high_closed=True))),
    ("inverse_square", lambda a: 1 / a**2, Traits(parity=1, degree=-2, domain=REALS, poles=(0.0,))),
    ("softsign", lambda a: a / (1 + a.abs()), Traits(monotone=1, parity=-1, range=Interval(-1, 1))),
]


@pytest.mark.parametrize(("name", "function", "traits"), ACCEPTED, ids=[row[0] for row in ACCEPTED])
def test_true_traits_of_a_users_operator_are_accepted(name, function, traits):
    operator = make_operator(name, function, traits=traits)
    assert operator.traits == traits
    assert (operator.role, operator.built_in, operator.kernel) == (Role.FUNCTION, False, None)


def test_traits_of_two_operands():
    hypot = make_operator(
        "hypot", torch.hypot, arity=2, commutative=True, traits=Traits(parity=1, degree=1, strict=True)
    )
    assert hypot.traits.degree == 1
    with pytest.raises(ValueError, match="degree 2"):
        make_operator("hypot", torch.hypot, arity=2, traits=Traits(degree=2))
    with pytest.raises(ValueError, match="state period and monotone, which only an operator with one operand"):
        make_operator("hypot", torch.hypot, arity=2, traits=Traits(period=1, monotone=1))


@pytest.mark.parametrize(
    ("function", "traits", "message"),
    [
        (torch.tan, Traits(period=3.0), "period 3, but at"),
        (torch.tan, Traits(period=2 * math.pi), "repeats after 3.14159"),
        (torch.atan, Traits(period=math.pi), "period"),
        (torch.tan, Traits(monotone=1), r"monotone \+1, but from"),
        (torch.atan, Traits(monotone=-1), "monotone -1, but from"),
        (torch.atan, Traits(parity=1), r"parity \+1, but at"),
        (torch.nn.functional.softplus, Traits(parity=-1), "parity -1, but at"),
        (torch.relu, Traits(degree=2), "degree 2, but at"),
        (torch.nn.functional.softplus, Traits(degree=1), "degree 1, but at"),
        (torch.sqrt, Traits(domain=REALS), "has no value"),
        (torch.sqrt, Traits(domain=Interval(0, math.inf)), "at its end 0 the function has a value"),
        (torch.log, Traits(domain=Interval.closed(0, math.inf)), "at its end 0 the function has no value"),
        (torch.sqrt, Traits(domain=Interval.closed(1, math.inf)), "has a value too"),
        (torch.atan, Traits(domain=REALS, poles=(1.0,)), "pole at 1"),
        (torch.atan, Traits(range=Interval(-1, 1)), "has the value -1.5708"),
        (torch.atan, Traits(range=Interval(-2, 2)), "nearest value to -2"),
        (torch.nan_to_num, Traits(strict=True), "strict"),
    ],
)  # fmt: skip
def test_traits_that_contradict_the_function_are_refused(function, traits, message):
    with pytest.raises(ValueError, match=f"traits of operator 'mine'.*{message}"):
        make_operator("mine", function, traits=traits)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Traits(period=-1), ValueError, "period must be a positive number"),
        (lambda: Traits(period=math.inf), ValueError, "period must be a positive number"),
        (lambda: Traits(monotone=2), ValueError, "monotone must be 1, -1 or 0"),
        (lambda: Traits(parity="even"), ValueError, "parity must be 1, -1 or 0"),
        (lambda: Traits(degree=math.nan), ValueError, "degree must be a finite number"),
        (lambda: Traits(domain=(0, 1)), TypeError, "domain must be an Interval"),
        (lambda: Traits(poles=(0.0,)), ValueError, "state the domain too"),
        (lambda: Traits(domain=Interval(0, 1), poles=(2.0,)), ValueError, "poles must lie in the domain"),
        (lambda: Interval(1, 1), ValueError, "low < high"),
        (lambda: Interval(low_closed=True), ValueError, "cannot be closed"),
        (lambda: make_operator("mine", torch.tan, traits={"period": 1}), TypeError, "must be a Traits"),
    ],
)  # fmt: skip
def test_traits_that_mean_nothing_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_an_inverse_may_be_stated_by_name_or_record():
    atanh = make_operator("atanh", torch.atanh, inverse="tanh")
    assert atanh.inverse == "tanh"
    expm1 = make_operator("expm1", torch.expm1)
    assert make_operator("log1p", torch.log1p, inverse=expm1).inverse is expm1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"function": torch.expm1, "inverse": "log"}, "does not undo|has no value"),
        ({"function": torch.atan, "inverse": "sin"}, "does not undo it"),
        ({"function": torch.atan, "inverse": "arctangent"}, "unknown operator"),
        ({"function": torch.atan, "inverse": "pow"}, "only an operator with one operand"),
        ({"function": torch.hypot, "arity": 2, "inverse": "sqrt"}, "only an operator with one operand"),
    ],
)  # fmt: skip
def test_an_inverse_that_does_not_undo_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_operator("mine", **arguments)


@pytest.mark.parametrize("name", ["x1", "x2", "x10", "x0"])
def test_a_name_that_a_column_of_an_array_has_is_refused(name):
    with pytest.raises(ValueError, match="column of a plain array"):
        make_operator(name, torch.atan)
    assert make_operator(f"{name}_", torch.atan).name == f"{name}_"


def test_a_users_operator_keeps_its_traits_in_a_pickle():
    erf = make_operator("erf", torch.erf, traits=ACCEPTED[1][2], inverse=make_operator("erfinv", torch.erfinv))
    again = pickle.loads(pickle.dumps(erf))
    assert (again, again.traits, again.inverse, again.smooth_step) == (erf, erf.traits, erf.inverse, True)


def test_an_operator_that_bears_a_built_in_name_has_not_its_role():
    stranger = Operator("exp", 1, torch.sin, OPERATORS["exp"].kind, 3)
    assert (stranger.role, stranger.kernel, stranger.built_in) == (Role.FUNCTION, None, False)


def test_a_stated_period_brings_squares_of_a_users_operator():
    tan = make_operator("tan", torch.tan, traits=Traits(period=math.pi))
    a, product = Variable("a"), get_operator("mul")
    whole = apply(tan, a)
    assert companion_factors([a], [product, tan]) == [a, whole, apply("pow", whole, Constant(2))]
    untold = make_operator("tan", torch.tan)
    assert companion_factors([a], [product, untold]) == [a, apply(untold, a)]


def test_a_stated_degree_takes_the_factor_out_of_a_users_operator():
    relu = make_operator("relu", torch.relu, traits=Traits(degree=1))
    family = with_coefficients(apply(relu, apply("mul", Constant(2), Variable("x"))))
    assert family == parse("2.0*relu(x + 0.0) + 0.0", operators=[relu])
