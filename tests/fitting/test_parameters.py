"""Which constants are free, and other values in their places."""

from __future__ import annotations

import pytest

from symenum.expressions import parse
from symenum.fitting import free_constants, with_constants


@pytest.mark.parametrize(
    ("text", "free", "held_integers"),
    [
        ("2*x + 0.5", (2.0, 0.5), (0.5,)),
        ("x**2 + x**1.5", (1.5,), (1.5,)),
        ("2**x", (2.0,), ()),
        ("x**(2*0.5)", (2.0, 0.5), (0.5,)),
        ("pi*x + E", (), ()),
        ("2.5*x + sin(2.5)", (2.5, 2.5), (2.5, 2.5)),
        ("x", (), ()),
    ],
)
def test_numbers_without_names_are_free_but_not_whole_exponents(text, free, held_integers) -> None:
    assert free_constants(parse(text)) == free
    assert free_constants(parse(text), integers=False) == held_integers


def test_values_go_in_from_left_to_right_and_equal_ones_keep_their_leaf() -> None:
    assert str(with_constants(parse("2*x**2 + sin(3*x)"), [2.0, -1.5])) == "2*x**2 + sin(-1.5*x)"


@pytest.mark.parametrize("values", [[1.0], [1.0, 2.0, 3.0]])
def test_a_wrong_number_of_values_is_an_error(values) -> None:
    with pytest.raises(ValueError, match="values are too"):
        with_constants(parse("2*x + 3"), values)
