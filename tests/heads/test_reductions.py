"""Reductions: true ones are found, with noise too; false ones are not claimed; what cannot be judged is left alone."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
import torch
from heads.reduced_problems import PLANTED, Planted, data_of

from symenum.core.budget import Budget, CutShortError
from symenum.expressions import evaluate, parse, same_function
from symenum.expressions.algebra import multiplied_powers, power_product, powers_of
from symenum.expressions.candidate import Candidate
from symenum.heads.operator_grammar import Prior
from symenum.heads.reductions import (
    MIN_ROWS,
    Reduced,
    Symmetry,
    best_surface,
    furthest_reductions,
    reduce_by,
    reductions,
    symmetries,
)
from symenum.heads.stages import AllHeads
from symenum.operators import get_operators


def furthest(planted: Planted, noise: float = 0.0) -> Reduced | None:
    found = list(reductions(planted.data(noise=noise), Budget()))
    return found[-1] if found else None


def determined(reduced: Reduced) -> bool:
    """Whether rows that are near in the slots are near in y': the smooth part is all there is."""
    surface = best_surface(reduced.values, reduced.y, reduced.weight)
    assert surface is not None
    return surface.loss < 1e-3 * float((reduced.y.square() * reduced.weight).sum())


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.text)
def test_reductions_leave_the_slots_that_a_law_needs(planted: Planted) -> None:
    reduced = furthest(planted)
    assert reduced is not None
    assert len(reduced.slots) <= planted.slots, [str(slot) for slot in reduced.slots]
    assert determined(reduced)


# The reduced surface is always of the largest degree that the rows allow, which follows noise in log|y| near small y.
OVERFITTED = pytest.mark.xfail(reason="the degree of a surface is not chosen by what it predicts", strict=True)


@pytest.mark.parametrize(
    "planted",
    [*PLANTED[:3], pytest.param(PLANTED[3], marks=OVERFITTED), PLANTED[4]],
    ids=lambda planted: planted.text,
)
def test_a_hundredth_of_noise_does_not_hide_them(planted: Planted) -> None:
    reduced = furthest(planted, noise=0.01)
    assert reduced is not None
    assert len(reduced.slots) < planted.variables
    assert determined(reduced)


def test_an_independent_law_is_not_reduced() -> None:
    law = Planted("sin(a)*b + exp(a - b/3)/(a + 1)", 2, 2)
    assert furthest(law) is None


def test_noise_alone_is_not_reduced() -> None:
    rng = np.random.default_rng(0)
    data = data_of(["a", "b"], rng.uniform(1, 2, (300, 2)), rng.normal(size=300))
    assert list(reductions(data, Budget())) == []


def test_few_rows_are_left_alone() -> None:
    data = Planted("a*b", 2, 1).data(rows=MIN_ROWS - 1)
    assert list(reductions(data, Budget())) == []


def test_y_with_zeros_and_negative_slots() -> None:
    rng = np.random.default_rng(1)
    X = rng.uniform(-2, 2, (500, 3))
    y = X[:, 0] * np.cos(X[:, 1] - X[:, 2])
    X[0, 1:], y[0] = np.pi / 4, X[0, 0]
    X[1, 1], X[1, 2], y[1] = 2.0, 2.0 - np.pi / 2, 0.0  # a zero of y
    found = list(reductions(data_of(["a", "b", "c"], X, y), Budget()))
    assert found
    assert len(found[-1].slots) == 1
    assert str(found[-1].slots[0]) in ("b - c", "c - b")


def test_a_column_with_a_zero_is_no_factor() -> None:
    data = Planted("a*b", 2, 1, 0.0, 1.0).data()
    X = torch.stack([data.columns["a"], data.columns["b"]]).T.numpy().copy()
    X[0] = 0.0
    for reduced in reductions(data_of(["a", "b"], X, X[:, 0] * X[:, 1] + X[:, 1] ** 2), Budget()):
        assert bool(torch.isfinite(reduced.y).all())


def test_slopes_show_a_power_factor_and_a_difference() -> None:
    data = Planted("a**2*exp(b - c)", 3, 1).data()
    problem = Reduced.of(data)
    surface = best_surface(problem.values, problem.y, problem.weight)
    assert surface is not None
    single = symmetries(surface, problem.values, problem.weight, 1)[0]
    assert (single.scaling, single.members, single.degree) == (True, (0,), 2)
    pairs = symmetries(surface, problem.values, problem.weight, 2)
    assert any((p.scaling, p.members, p.direction) == (False, (1, 2), (1, 1)) and p.misfit < 1e-3 for p in pairs)


@pytest.mark.parametrize(
    ("symmetry", "inner", "law"),
    [
        (Symmetry(True, (0,), (1,), Fraction(2)), "x2 + x3", "x1**2*(x2 + x3)"),
        (Symmetry(True, (0, 1), (1, -1), Fraction(0)), "2*(x1*x2) - x3", "2*x1*x2 - x3"),
        (Symmetry(True, (0, 2), (1, 1), Fraction(1)), "exp(x3/x1)*x2", "x1*exp(x3/x1)*x2"),
        (Symmetry(False, (1, 2), (1, 1), Fraction(0)), "x1*(x3 - x2)", "x1*(x3 - x2)"),
        (Symmetry(False, (1,), (1,), Fraction(-2)), "x1*x3", "x1*x3 - 2*x2"),
    ],
    ids=str,
)
def test_the_way_back_gives_the_law(symmetry: Symmetry, inner: str, law: str) -> None:
    rng = np.random.default_rng(2)
    X = rng.uniform(1, 2, (60, 3))
    names = ["x1", "x2", "x3"]
    columns = dict(zip(names, X.T.copy(), strict=True))
    data = data_of(names, X, np.asarray(evaluate(parse(law), columns)))
    reduced = reduce_by(Reduced.of(data), symmetry)
    assert reduced is not None
    assert len(reduced.slots) == 2
    assert np.allclose(reduced.y.numpy(), evaluate(parse(inner), columns))
    whole = reduced.candidate(Candidate(parse(inner), 0.0))
    assert whole is not None
    assert whole.loss < 1e-25
    assert same_function(whole.expression, parse(law))


def test_weights_make_a_reduced_loss_one_of_y() -> None:
    data = Planted("a**2*b", 2, 1).data()
    reduced = reduce_by(Reduced.of(data), Symmetry(True, (0,), (1,), Fraction(2)))
    assert reduced is not None
    off = reduced.y * 1.01
    inside = float(((off - reduced.y).square() * reduced.weight).sum())
    outside = float(data.target.loss((off * reduced.scale)[None]))
    assert inside * float((data.target.weight * reduced.scale.square()).sum()) == pytest.approx(outside, rel=1e-12)


def test_products_of_powers_are_flat() -> None:
    a_over_b = powers_of(parse("a/b"))
    assert (
        str(power_product(multiplied_powers((a_over_b, Fraction(2)), (powers_of(parse("b**3")), Fraction(1)))))
        == "a**2*b"
    )
    assert str(power_product({})) == "1"


def test_what_is_found_on_a_reduced_problem_is_a_law_of_y() -> None:
    data = Planted("a*b**2*log(1 + c)", 3, 1).data()
    furthest = furthest_reductions(data, Budget())[0]
    whole = furthest.candidate(Candidate(parse("log(1 + c)"), 0.0))
    assert whole is not None
    assert data.is_law(whole)


def test_the_problem_with_the_fewest_slots_is_the_first() -> None:
    found = furthest_reductions(Planted("a*b**2*log(1 + c)", 3, 1).data(), Budget())
    assert len(found) == 2
    assert len(found[0].slots) < len(found[1].slots)


def test_nothing_is_done_when_the_time_is_over() -> None:
    budget = Budget()
    budget.end()
    assert list(reductions(PLANTED[0].data(), budget)) == []
    with pytest.raises(CutShortError):
        furthest_reductions(PLANTED[0].data(), budget)


def test_a_required_variable_may_be_the_factor_that_a_reduction_takes_out() -> None:
    data = Planted("a*sin(b - c)", 3, 1).data(rows=200)
    heads = AllHeads(data, get_operators("koza"), 5, prior=Prior(required=("a",)))
    (stage,) = [stage for stage in heads.on_target() if stage.name == "reductions"]
    numbers = itertools.takewhile(lambda number: stage.scan(number) is not None, itertools.count())
    assert any(data.is_law(candidate) for number in numbers for candidate in stage.run(number, Budget()))


def test_looking_for_symmetries_of_many_slots_ends_with_the_time() -> None:
    X = torch.from_numpy(np.random.default_rng(0).uniform(1, 2, (12, 500)))
    weight = torch.full((500,), 1 / 500, dtype=torch.float64)
    surface = best_surface(X, X.prod(dim=0), weight)
    assert surface is not None
    over = Budget()
    over.end()
    with pytest.raises(CutShortError):
        symmetries(surface, X, weight, 3, over)


def test_weights_of_a_reduced_problem_do_not_vanish_in_small_units() -> None:
    random = np.random.default_rng(0)
    x = random.uniform(1, 2, (60, 2)) * np.array([1e-90, 1.0])
    data = data_of(["a", "b"], x, (x[:, 0] / 1e-90) ** 2 * np.sin(x[:, 1]))
    reduced = reduce_by(Reduced.of(data), Symmetry(True, (0,), (1,), Fraction(2)))
    assert reduced is not None
    assert float(reduced.weight.sum()) == pytest.approx(1)
