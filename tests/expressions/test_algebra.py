"""One order of operands, folded constants, the form that people write, and equality of functions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from expressions.strategies import any_tree, tame_tree
from hypothesis import given
from hypothesis import strategies as st

from symenum.expressions import (
    Apply,
    canonical,
    evaluate,
    fingerprint,
    parse,
    same_function,
    sample_points,
    simplify,
    sort_key,
    to_text,
    variables,
    walk,
)
from symenum.expressions.algebra import plain_form, with_joined_powers, with_numbers_in_sums, with_one_scale
from symenum.operators import make_operator


@given(any_tree)
def test_canonical_is_idempotent(tree):
    once = canonical(tree)
    assert canonical(once) == once
    assert once.complexity == tree.complexity


@given(tame_tree)
def test_canonical_keeps_the_values(tree):
    columns = {
        name: torch.tensor([0.7, -1.3, 2.1], dtype=torch.float64).roll(i) for i, name in enumerate(["x1", "x2", "x10"])
    }
    parts = torch.stack([evaluate(node, columns) for node in walk(tree)])
    moderate = (parts.isfinite() & ((parts == 0) | ((parts.abs() > 1e-3) & (parts.abs() < 1e3)))).all(0)
    values = evaluate(canonical(tree), columns)
    torch.testing.assert_close(values[moderate], parts[-1][moderate], rtol=1e-6, atol=1e-6)


@given(any_tree, st.randoms(use_true_random=False))
def test_order_of_operands_does_not_matter(tree, random):
    def shuffle(node):
        if not isinstance(node, Apply):
            return node
        operands = [shuffle(operand) for operand in node.operands]
        if node.operator.commutative:
            random.shuffle(operands)
        return Apply(node.operator, tuple(operands))

    assert canonical(shuffle(tree)) == canonical(tree)


@pytest.mark.parametrize("sign", ["+", "*"])
def test_all_orders_and_associations_print_alike(sign):
    texts = set()
    for a, b, c in itertools.permutations(["x2", "sin(x)", "3"]):
        texts |= {to_text(canonical(parse(text.replace("o", sign)))) for text in (f"({a}o{b})o{c}", f"{a}o({b}o{c})")}
    assert texts == {{"+": "x2 + sin(x) + 3", "*": "3*x2*sin(x)"}[sign]}


@pytest.mark.parametrize("text", ["a - b", "b - a", "a/b", "b/a", "a**b", "b**a"])
def test_what_does_not_commute_keeps_its_order(text):
    assert to_text(canonical(parse(text))) == text


def test_names_are_in_natural_order():
    assert to_text(canonical(parse("x10 + x2 + x1 + a"))) == "a + x1 + x2 + x10"


def test_own_commutative_operators_are_ordered_but_not_regrouped():
    mine = make_operator("mine", torch.hypot, arity=2, commutative=True)
    assert to_text(canonical(parse("mine(mine(3, y), x)", [mine]))) == "mine(x, mine(y, 3))"


@given(any_tree, any_tree)
def test_sort_key_is_equal_for_equal_trees_only_and_always_comparable(a, b):
    assert (sort_key(a) == sort_key(b)) == (a == b)
    assert (sort_key(a) < sort_key(b)) + (sort_key(b) < sort_key(a)) == (a != b)


def test_canonical_orders_long_sums():
    names = [f"x{i}" for i in np.random.default_rng(0).permutation(2_000)]
    assert to_text(canonical(parse(" + ".join(names)))) == " + ".join(f"x{i}" for i in range(2_000))


@pytest.mark.parametrize(
    ("text", "simple"),
    [
        ("2*3.1*x", "6.2*x"),
        ("(x + 1) + 2", "x + 3"),
        ("(x + 1) + 2*3.5", "x + 8"),
        ("x - (-2)*3", "x + 6"),
        ("x + (-313.38)", "x - 313.38"),
        ("4*sin(x)/2", "2*sin(x)"),
        ("1*x", "x"),
        ("x + 0", "x"),
        ("0*x + y", "y"),
        ("-(-x)", "x"),
        ("x/2/y", "x/(2*y)"),
        ("2/3*x", "2*x/3"),
        ("-x + y", "y - x"),
        ("-x - y", "-x - y"),
        ("x - (-2)*y", "x + 2*y"),
        ("1.5/(2*x)", "0.75/x"),
        ("x + (-(2*pi))", "x - 2*pi"),
        ("x**1", "x"),
        ("x - 0.5 - (y - 3.5)", "x - y + 3"),
        ("sqrt(2)*x", "sqrt(2)*x"),
        ("1/3 + x", "1/3 + x"),
        ("exp(0.0)*x", "x"),
    ],
)
def test_simplify_writes_numbers_as_people_write_them(text: str, simple: str) -> None:
    assert str(simplify(parse(text))) == simple


@pytest.mark.parametrize(
    ("text", "simple"),
    [
        ("sign(5.98*x)", "sign(x)"),
        ("2*sign(-3*x*y)", "2*sign(-(x*y))"),
        ("sign(0.5*(x - 1))", "sign(x - 1)"),
        ("sign(x/4)", "sign(x)"),
        ("sign(0*x)", "sign(0)"),
    ],
)
def test_of_a_factor_inside_a_step_only_the_sign_counts(text: str, simple: str) -> None:
    assert str(simplify(parse(text))) == simple


@given(tame_tree)
def test_simplify_keeps_the_function_where_both_have_values(tree) -> None:
    simple = simplify(tree)
    names = variables(tree)
    columns = dict(zip(names, sample_points(len(names)).unbind(1), strict=True)) or {"x": torch.zeros(1).double()}
    before, after = evaluate(tree, columns), evaluate(simple, columns)
    both = torch.isfinite(before) & torch.isfinite(after)
    if not same_function(tree, simple):  # 0*f has values where f has none
        size = before[both].abs().clamp_min(1e-6)
        assert bool(((before - after)[both].abs() <= 1e-6 * size).all())


@given(any_tree)
def test_simplify_takes_any_number_and_is_idempotent(tree) -> None:
    simple = simplify(tree)
    assert parse(str(simple)) == simple or "sin" in variables(simple)
    assert simple.complexity <= tree.complexity + 1


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("0.012*(100*tanh(x) + 100)*y", "1.2*(tanh(x) + 1)*y"),
        ("0.5/(3.2*(0.3125 + 0.3125*4.26**x))", "0.5/(4.26**x + 1)"),
        ("2.5*(8*sin(x) + 4*(0.5*x - 3*y))", "20*(sin(x) + (x - 6*y)/4)"),
        ("(1 - 2*x)/3*y", "-2*(x - 0.5)*y/3"),
        ("exp(3*(2*x - 1))", "exp(6*(x - 0.5))"),
        ("2*x + 4", "2*x + 4"),
        ("(x + 1)/(y - x)", "(x + 1)/(y - x)"),
        ("1e200*(1e200*x + 1)", "1e200*(1e200*x + 1)"),
    ],
)
def test_a_product_has_one_number_for_those_of_its_sums(text: str, plain: str) -> None:
    assert str(with_one_scale(parse(text))) == str(parse(plain))


@given(tame_tree)
def test_one_scale_keeps_the_function_and_adds_no_number(tree) -> None:
    before = simplify(tree)
    after = with_one_scale(before)
    assert same_function(before, after)
    assert after.complexity <= before.complexity + 1  # the number in front of the product


@given(tame_tree)
def test_numbers_in_sums_keep_the_function(tree) -> None:
    before = simplify(tree)
    assert same_function(before, with_numbers_in_sums(before))


@pytest.mark.parametrize("text", ["1e200*(1e200*x + 1)", "1e-200*(x + 1e-200)*y", "(x + 1)/3"])
def test_a_number_that_cannot_be_folded_stays_before_its_sum(text: str) -> None:
    columns = {"x": np.array([0.5, 2.0]), "y": np.array([1.5, 3.0])}
    law = parse(text)
    assert np.allclose(evaluate(with_numbers_in_sums(law), columns), evaluate(law, columns), rtol=1e-12, atol=0)


def test_simplify_does_not_recurse_into_a_long_sum() -> None:
    total = parse("x")
    for i in range(3000):
        total = parse("a + b").__class__(parse("a + b").operator, (total, parse(f"x*{i}")))
    assert simplify(total) is not None


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x*(5*exp(1 - z)/(2*E) + exp(log(y/x**2)/2))", "5*x*exp(-z)/2 + sqrt(y)"),
        ("x*sqrt(4*y/x)/2", "sqrt(x)*sqrt(y)"),
        ("exp(2*log(x) - 1)*E", "x**2"),
        ("x**1.5/sqrt(x)", "x"),
        ("exp(0.3*x + 0.1)", "exp(0.3*x + 0.1)"),
        ("2.5*x*(y - 1)*(z + 1)", "2.5*x*(y - 1)*(z + 1)"),
        ("sqrt(x*x + y)/x", "sqrt(x*x + y)/x"),
        ("sqrt(-2*x)", "sqrt(-2*x)"),
    ],
)
def test_the_plain_form(text: str, wanted: str) -> None:
    assert str(plain_form(parse(text))) == wanted


@given(tame_tree)
def test_the_plain_form_is_the_same_function_where_all_is_positive(tree) -> None:
    columns = {name: np.linspace(1.1, 1.9, 7) + 0.01 * i for i, name in enumerate(variables(tree))}
    if not columns:
        return
    with np.errstate(all="ignore"):
        before, after = evaluate(tree, columns), evaluate(plain_form(tree), columns)
    both = np.isfinite(before) & np.isfinite(after)
    if not any(word in str(tree) for word in ("sqrt", "log", "**")):  # no base that could be negative
        assert np.allclose(before[both], after[both], rtol=1e-6, atol=1e-6 * np.abs(before[both]).max(initial=1.0))


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
def test_different_functions_are_not_the_same(a, b):
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


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("1.0004*x*x**0.4997", "1.0004*x**1.4997"),
        ("x**0.3*y*x**0.4", "x**0.7*y"),
        ("x*x/x**0.4", "x**1.6"),
        ("x**0.3/(x*y)", "x**(-0.7)/y"),
        ("sin(-x*sqrt(x)*x**0.25) + 1", "sin(-x**1.75) + 1"),
    ],
)
def test_powers_of_one_base_with_a_fitted_exponent_are_one_power(text, joined):
    assert str(with_joined_powers(parse(text))) == joined


@pytest.mark.parametrize(
    ("text", "power"),
    [
        ("exp(1.4997*log(x))", "x**1.4997"),
        ("exp(-0.75*log(x/y**2))", "(x/y**2)**(-0.75)"),
        ("2*exp(log(x)/4 - 1.5*log(y))", "2*x**0.25*y**(-1.5)"),
        ("x*exp(0.4997*log(x))", "x**1.4997"),
        ("exp(0.25*log(x) + b*y + 1)", "x**0.25*exp(b*y + 1)"),
        ("1 - sin(exp(-(0.25*log(x))))", "1 - sin(x**(-0.25))"),
    ],
)
def test_a_power_in_disguise_of_an_exponential_is_a_power(text, power):
    assert str(with_joined_powers(parse(text))) == power


def test_the_offset_in_an_exponential_becomes_the_factor_of_its_power():
    power = with_joined_powers(parse("exp(1.4997*log(x) + 0.0004)"))
    assert to_text(power, 5) == "1.0004*x**1.4997"
    x = torch.tensor([0.0, 0.5, 3.0], dtype=torch.float64)
    before = evaluate(parse("exp(1.4997*log(x) + 0.0004)"), {"x": x})
    torch.testing.assert_close(evaluate(power, {"x": x}), before, rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    "text",
    ["exp(2*log(x))", "exp(log(x))", "exp(log(x)*y)", "exp((y + 1)*log(x))", "exp(800 - 0.3*log(x))", "exp(x + 1)"],
)
def test_exponentials_that_are_no_fitted_power_stay(text):
    assert with_joined_powers(parse(text)) == parse(text)


@pytest.mark.parametrize("text", ["x**2/x", "x*sqrt(x)", "x*x", "x*x**pi", "x**y*x**0.3", "x**0.3/x**0.3", "x*y**0.3"])
def test_products_without_a_fitted_exponent_of_a_shared_base_stay(text):
    assert with_joined_powers(parse(text)) == parse(text)


@given(
    st.lists(st.tuples(st.sampled_from([1, 2, -1, 0.5, 0.25, -0.75, 1.3]), st.booleans()), min_size=1, max_size=4),
    st.sampled_from([0.0, 0.3, 1.0, 2.5, -1.5]),
)
def test_a_joined_power_has_the_values_that_the_product_has(powers, value):
    product = "1.5"
    for exponent, below in powers:
        product += f"{'/' if below else '*'}x**({exponent})"
    tree, x = parse(product), torch.tensor([value], dtype=torch.float64)
    before, after = (float(evaluate(one, {"x": x})) for one in (tree, with_joined_powers(tree)))
    if np.isfinite(before):
        assert after == pytest.approx(before, rel=1e-12)
    assert with_joined_powers(tree).complexity <= tree.complexity
