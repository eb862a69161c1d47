"""Reading text: the grammar, and errors that say where and what."""

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from symenum.expressions import (
    Apply,
    Constant,
    Variable,
    apply,
    parse,
    to_text,
)
from symenum.expressions.parse import MAX_LENGTH, MAX_NESTING, safe_names
from symenum.operators import OPERATORS, make_operator

X = Variable("x")


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("a + b + c", "(a + b) + c"),
        ("a - b - c", "(a - b) - c"),
        ("a/b*c", "(a/b)*c"),
        ("a**b**c", "a**(b**c)"),
        ("a + b*c**d", "a + (b*(c**d))"),
        ("-a**b", "-(a**b)"),
        ("-a*b", "(-a)*b"),
        ("a**-b**c", "a**(-(b**c))"),
        ("a*-b", "a*(-b)"),
        ("--a", "-(-a)"),
        ("  a\t+\nb ", "a+b"),
        ("ln(x)", "log(x)"),
        ("Abs(x)", "abs(x)"),
        ("inv(x)*square(y)", "1/x*y**2"),
    ],
)
def test_precedences_are_those_of_python(text, same):
    assert parse(text) == parse(same)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2", 2),
        ("2.0", 2.0),
        ("2.", 2.0),
        (".5", 0.5),
        ("1e-300", 1e-300),
        ("1E+2", 100.0),
        ("-2", -2),
        ("(-0.5)", -0.5),
    ],
)
def test_numbers_keep_their_kind(text, value):
    assert parse(text) == Constant(value)


def test_a_minus_belongs_to_a_bare_number_only():
    negated = Apply(OPERATORS["neg"], (Constant(2),))
    assert parse("-(2)") == negated
    assert parse("-2**x") == apply("neg", apply("pow", Constant(2), X))
    assert parse("x**-2") == apply("pow", X, Constant(-2))
    assert parse("x - 2") == apply("sub", X, Constant(2))
    assert parse("x - -2") == apply("sub", X, Constant(-2))
    assert parse("-pi") == apply("neg", parse("pi"))


def test_own_operators_are_read_when_given():
    softplus = make_operator("softplus", torch.nn.functional.softplus)
    tree = parse("softplus(x) + 1", [softplus])
    assert tree == apply("add", Apply(softplus, (X,)), Constant(1))
    with pytest.raises(ValueError, match="unknown function 'softplus'"):
        parse("softplus(x)")
    with pytest.raises(ValueError, match="did you mean 'softplus'"):
        parse("softpls(x)", [softplus])


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("", 1, "found the end"),
        ("   ", 1, "found the end"),
        ("x +", 4, "found the end"),
        ("x + * y", 5, r"found '\*'"),
        ("(x", 3, r"'\)' of the '\(' in column 1"),
        ("x)", 2, r"found '\)'"),
        ("2x", 2, "expected an operator"),
        ("x y", 3, "expected an operator"),
        ("x^2", 2, r"powers are written \*\*"),
        ("y = 2*x", 3, "only what stands to the right of it is the formula"),
        ("+x", 1, r"sign \+"),
        ("x = 3", 3, "unexpected character '='"),
        ("sinn(x)", 1, "did you mean 'sin'"),
        ("1 + qqq(x)", 5, "unknown function 'qqq'; known: .*tanh"),
        ("add(x, y)", 1, r"sign \+"),
        ("sin(x, y)", 1, "expected 1 argument of sin, found 2"),
        ("sin()", 5, "expected a number"),
        ("x + lambda", 5, "cannot name a variable"),
        ("1e999", 1, "too large"),
        ("9" * 400, 1, "too large"),
        ("9" * 5000, 1, "too large"),
        ("x.real", 2, "unexpected character '.'"),
        ("x[0]", 2, "unexpected character"),
        ("pi(x)", 1, "unknown function 'pi'"),
    ],
)
def test_an_error_says_where_and_what(text, column, message):
    with pytest.raises(ValueError, match=message) as error:
        parse(text)
    head, _, caret = str(error.value).split("\n")
    assert f"at column {column}:" in head
    assert caret.index("^") == 4 + column - 1


def test_the_caret_points_into_the_part_that_is_shown_of_a_long_text():
    with pytest.raises(ValueError, match="expected an operator") as error:
        parse("x + " * 100 + "x ? y".replace("?", "y") + " + x" * 100)
    _, line, caret = str(error.value).split("\n")
    assert line[caret.index("^")] == "y"
    assert len(line) < 120


@pytest.mark.parametrize("text", [None, 3, b"x", X])
def test_only_text_is_read(text):
    with pytest.raises(TypeError, match="string"):
        parse(text)


@pytest.mark.parametrize(
    "unit", [("(", "x", ")"), ("sin(", "x", ")"), ("-", "x", ""), ("x**", "x", ""), ("x-(", "x", ")")]
)
def test_nesting_up_to_the_limit_is_read_and_beyond_it_refused(unit):
    opening, core, closing = unit
    assert to_text(parse(opening * MAX_NESTING + core + closing * MAX_NESTING))
    for levels in (MAX_NESTING + 1, 10_000):
        with pytest.raises(ValueError, match="levels of nesting"):
            parse(opening * levels + core + closing * levels)


def test_long_sums_are_no_nesting_but_length_is_limited():
    assert parse("+".join(["x"] * 3_000)).depth == 2_999
    with pytest.raises(ValueError, match="characters"):
        parse("x" * (MAX_LENGTH + 1))


@given(st.text(alphabet="xy12.e+-*/() ,sinE^_é²", max_size=30))
@example("²")
@example("x²")
def test_any_text_is_read_or_refused_with_a_value_error(text):
    try:
        tree = parse(text)
    except ValueError:
        with pytest.raises(ValueError, match="cannot read the expression"):
            parse(text)
    else:
        assert parse(to_text(tree)) == tree


@given(st.lists(st.text(max_size=8), unique=True, max_size=6), st.booleans())
# Letters to a regular expression, but not allowed in an identifier: a Bengali numerator, a Tamil ten, a Plane-1 number.
@example(["\u09f4", "a\u0bf0", "\U00010107b"], False)
@example(["\u09f4", "a\u0bf0", "\U00010107b"], True)
def test_safe_names_are_distinct_identifiers_that_are_not_reserved(names, ascii_only):
    reserved = {"sin", "lambda", "x_"}
    safe = safe_names(names, reserved, ascii_only=ascii_only)
    assert list(safe) == names
    assert len(set(safe.values())) == len(names)
    for name in safe.values():
        assert name.isidentifier()
        assert name not in reserved
        assert name.isascii() or not ascii_only


def test_marks_that_belong_to_letters_stay_in_a_safe_name():
    assert safe_names(["हिन्दी (km)"], ()) == {"हिन्दी (km)": "हिन्दी_km"}


def test_a_name_that_is_free_is_kept_and_others_avoid_it():
    assert safe_names(["sin", "sin_"], {"sin"}) == {"sin": "sin__", "sin_": "sin_"}
