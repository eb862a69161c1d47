"""Places, slopes and promises of parts that come into a law."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from symenum.core.target import Target
from symenum.expressions import Apply, Variable, evaluate, parse, walk
from symenum.fitting import refine
from symenum.operators import get_operators
from symenum.search.insertion import best_insertions, common_factors, places_of, replaced, swaps

KOZA = get_operators("koza")


def data(law, rows: int = 60, noise: float = 0.0, seed: int = 0):
    rng = np.random.default_rng(seed)
    columns = {name: torch.tensor(rng.uniform(0.5, 2.5, rows)) for name in ("a", "b", "c")}
    y = evaluate(parse(law), columns) + noise * torch.tensor(rng.normal(size=rows))
    return columns, Target(y, torch.full((rows,), 1 / rows, dtype=torch.float64))


def test_slopes_are_the_derivatives_of_the_law_by_its_nodes() -> None:
    columns, _ = data("a")
    law = parse("2.5*sin(a*b + 1.5)/c + exp(0.3*a)")
    for place in places_of(law, columns):
        moved = evaluate(place.node, columns).requires_grad_(True)
        stand_in = {**columns, "s": moved}
        (slope,) = torch.autograd.grad(evaluate(replaced(law, place.path, Variable("s")), stand_in).sum(), moved)
        torch.testing.assert_close(place.slope, slope, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(place.value, evaluate(place.node, columns))


def test_a_new_term_promises_what_least_squares_with_all_coefficients_brings() -> None:
    columns, target = data("a*b + c", noise=0.5)
    A = torch.stack([torch.ones_like(target.y), columns["a"], columns["b"]], dim=1)

    def left(matrix: torch.Tensor) -> float:
        return float((target.y - matrix @ torch.linalg.lstsq(matrix, target.y[:, None]).solution[:, 0]).square().sum())

    first, second, third = torch.linalg.lstsq(A, target.y[:, None]).solution[:, 0].tolist()
    law = parse(f"{first!r} + {second!r}*a + {third!r}*b")
    material = [Variable(name) for name in columns]
    found = best_insertions(law, columns, target, material, [], get_operators("arithmetic"), 400)
    terms = [one for one in found if one.law.operands[0] == law]
    assert len(terms) >= 5
    for one in terms:
        part = evaluate(one.law.operands[1].operands[1], columns)
        assert one.promise == pytest.approx(1 - left(torch.cat([A, part[:, None]], dim=1)) / left(A), rel=1e-8)


@pytest.mark.parametrize(
    ("law", "base", "wanted"),
    [
        ("(a + 0.8)*b", "1.4*a*b + 0.2", "a + "),  # a factor lacks a shift
        ("sin(a + 0.6*b)", "1.1*sin(1.2*a) + 0.1", "b"),  # an argument lacks a summand
        ("a*exp(0.7*b)", "2.4*a + 0.3", "exp("),  # a term lacks a factor
        ("c + sin(3*a)", "1.02*c + 0.01", "sin("),  # a sum lacks a term with an inner constant
    ],
)
def test_what_a_law_lacks_is_among_the_first(law: str, base: str, wanted: str) -> None:
    columns, target = data(law)
    material = [Variable(name) for name in columns]
    found = best_insertions(parse(base), columns, target, material, [], KOZA, 12)
    assert any(wanted in str(one.law) for one in found)
    assert all(0 < one.promise <= 1 for one in found)
    assert [one.promise for one in found] == sorted((one.promise for one in found), reverse=True)


def test_variables_that_are_no_material_become_terms_as_they_are() -> None:
    columns, target = data("a + 2*c")
    found = best_insertions(parse("1.1*a + 0.5"), columns, target, [Variable("a")], [Variable("c")], KOZA, 60)
    assert any("c" in str(one.law) for one in found)
    assert not any("b" in str(one.law) for one in found)
    assert not any(f"({name}*c" in str(one.law) or f"c*{name}" in str(one.law) for one in found for name in "abc")


def test_what_is_not_allowed_makes_room_for_what_is() -> None:
    columns, target = data("a*b + sin(3*c)", noise=0.3)
    material = [Variable(name) for name in columns]

    def without_waves(law) -> bool:
        return "sin" not in str(law) and "cos" not in str(law)

    law = parse("1.1*a + 0.5")
    free = best_insertions(law, columns, target, material, [], KOZA, 12)
    found = best_insertions(law, columns, target, material, [], KOZA, 12, without_waves)
    assert not all(without_waves(one.law) for one in free)
    assert len(found) == 12
    assert all(without_waves(one.law) for one in found)


def test_a_swap_follows_the_data_and_not_the_function_that_it_replaces() -> None:
    columns, target = data("exp(-0.7*a)")
    base = parse("2.1/(a + 1.3) - 0.4")
    found = swaps(base, columns, target, KOZA)
    assert any("exp(" in str(law) for law in found)
    refined = refine(found, columns, target.y, target.weight, starts=0, integers=False)
    assert min(one.loss for one in refined) < 1e-20


@pytest.mark.parametrize(
    ("law", "base"),
    [
        ("c**2/(1.9 - sin(b)) + a", "0.8*c**2*(0.2*sin(b) + 0.5) + a"),
        ("a*exp(-0.6*b*c) + 0.3*c", "a*(1.1 - 0.2*(b*c)) + 0.3*c"),
        ("b*cos(1.3*(a/c))", "b*(0.3*(a/c) + 0.4)"),
    ],
)
def test_what_stands_in_a_law_may_become_the_argument_of_a_function(law: str, base: str) -> None:
    columns, target = data(law)
    found = swaps(parse(base), columns, target, KOZA)
    refined = refine(found, columns, target.y, target.weight, starts=0, steps=100, near=True)
    assert min(one.loss for one in refined) < 1e-20


def test_a_variable_may_give_way_to_a_function_of_it() -> None:
    columns, target = data("b*(1.4 - 0.9*exp(-0.8*a))")
    found = swaps(parse("b*(0.3*a + 0.6)"), columns, target, KOZA)
    refined = refine(found, columns, target.y, target.weight, starts=0, integers=False)
    assert min(one.loss for one in refined) < 1e-20


@pytest.mark.parametrize(
    ("law", "base"),
    [
        ("b*(1.2 - exp(-0.31*a**1.4))", "b*(1.2 - 1.1*exp(-0.4*a))"),
        ("1.3*a**2.2/(a**2.2 + 1.7) + 0.2*b", "1.5*a/(a + 1.2) + 0.2*b"),
        ("(a*b + 0.4)**0.7 - c", "0.8*(a*b + 0.4) - c"),
    ],
)
def test_exponents_come_in_where_a_part_is_positive(law: str, base: str) -> None:
    columns, target = data(law)
    material = [Variable(name) for name in columns]
    found = [one.law for one in best_insertions(parse(base), columns, target, material, [], KOZA, 40)]
    assert any(isinstance(node, Apply) and node.operator.name == "pow" for one in found for node in walk(one))


def test_a_factor_common_to_several_terms_is_seen() -> None:
    columns, target = data("a + (b - a)*exp(-0.9*c)")
    terms = (parse("1"), *(Variable(name) for name in columns))
    found = common_factors(terms, columns, target, [Variable(name) for name in columns], KOZA, 3)
    assert any(str(one).startswith("exp(") and "c" in str(one) for one in found)
