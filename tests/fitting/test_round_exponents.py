"""Round exponents: near ones are rounded, others stay, and a changed product has a factor of its own."""

from __future__ import annotations

import pytest

from symenum.expressions import parse
from symenum.fitting import round_exponents
from symenum.fitting.round_exponents import with_round_exponents


@pytest.mark.parametrize(
    ("text", "rounded"),
    [
        ("0.9*d**2.03*p**0.477/r**0.532", "0.9*d**2*sqrt(p/r)"),
        ("sqrt(p)*d**2/r**0.5158", "1.0*d**2*sqrt(p/r)"),
        ("x**0.34*y", "1.0*x**(1/3)*y"),
        ("3*x**1.96 + 2.1*y**0.51", "3.0*x**2 + 2.1*sqrt(y)"),
        ("x**0.05*y", "1.0*y"),
        ("x**y*z**1.98", "1.0*x**y*z**2"),
        ("(x**1.98)**y", "(1.0*x**2)**y"),
    ],
)
def test_fitted_exponents_become_those_that_people_write(text: str, rounded: str) -> None:
    assert rounded in [str(law) for law in with_round_exponents(parse(text))]


@pytest.mark.parametrize("text", ["x*y", "x**2/y", "sin(0.3*x)", "sqrt(x)", "x**0.25*y", "x**y", "(x + 1)**(y**z)"])
def test_nothing_to_round(text: str) -> None:
    assert with_round_exponents(parse(text)) == []


def test_long_laws_take_no_longer_than_their_length(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    plain = round_exponents._powers
    monkeypatch.setattr(round_exponents, "_powers", lambda node: (asked.append(node), plain(node))[1])
    deep = "x**0.3"
    for _ in range(12):  # products within products: each level used to be gone through twice
        deep = f"z*sin(y*({deep}))"
    with_round_exponents(parse(deep))
    assert 0 < len(asked) < 200
