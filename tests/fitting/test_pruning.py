"""Laws with a part taken out."""

from __future__ import annotations

import pytest

from symenum.expressions import parse, variables
from symenum.fitting import with_one_less


@pytest.mark.parametrize(
    ("text", "shorter"),
    [
        ("x + y", ["x", "y"]),
        ("x - y", ["x", "-y"]),
        ("x/y", ["x", "1/y"]),
        ("sin(x*y) + 3", ["sin(x) + 3", "sin(y) + 3", "sin(x*y)"]),
        ("sin(x)", []),
        ("x", []),
    ],
)
def test_each_part_is_left_out_once(text: str, shorter: list[str]) -> None:
    expected = {parse(each) for each in shorter if parse(each).complexity < parse(text).complexity}
    assert set(with_one_less(parse(text))) == expected


def test_what_is_left_is_simpler_and_no_mere_number() -> None:
    law = parse("2.5*x1*exp(x2/3 - x1) - x2/(x1 + 1.5) + tanh(x1 + 0.1)")
    found = with_one_less(law)
    assert found
    assert all(variables(each) and each.complexity < law.complexity for each in found)
