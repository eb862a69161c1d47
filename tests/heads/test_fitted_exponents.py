"""Heads with fitted exponents: sums of powers and powers of sums, with and without a function of the slots.

The laws here are none of the benchmark's.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from heads.tasks import features_of, make_response
from hypothesis import given, settings
from hypothesis import strategies as st

from symenum.core.budget import Budget
from symenum.expressions import Constant, Variable, evaluate, parse
from symenum.fitting.many_starts import Solved, Starts, race, solve
from symenum.heads import Head, PowersOfSums, Response, SumOfPowers
from symenum.heads.exponents import make_bases, make_companions, monomial, snapped_exponent
from symenum.heads.head import LAST_FITS
from symenum.heads.product_of_factors import ProductOfFactors
from symenum.heads.transforms import power_responses
from symenum.operators import get_operators

KOZA = get_operators("koza")


def goal_of(law: str, slots: int, *, low: float = 1.0, high: float = 4.0, noise: float = 0.0) -> Response:
    random = np.random.default_rng(7)
    X = random.uniform(low, high, (300, slots))
    columns = {f"x{i + 1}": np.ascontiguousarray(X[:, i]) for i in range(slots)}
    y = np.asarray(evaluate(parse(law), columns))
    return make_response(X, y + noise * y.std() * random.normal(size=len(y)))


def scan(head: Head, response: Response, budget: Budget | None = None) -> list[float]:
    """The losses of what comes back, relative to the variance of y, ascending."""
    found = head.scan(features_of(response, 0), response, 5, budget or Budget())
    return sorted(candidate.loss / float(response.data.target.y.var()) for candidate in found)


@pytest.mark.parametrize(
    ("law", "slots", "terms"),
    [
        ("3*x1*x4**3/x2 - 2*sqrt(x3)/x1**2", 4, 2),
        ("x1*x2*x3/(x4*x5*x6) + 0.7*x6**2*x7*x8/x1", 8, 2),
        ("x1**2/x2 - 4*x2*x3**1.5 + x4/(x1*x3)", 4, 3),
    ],
)
def test_a_sum_of_powers_is_found_whatever_its_exponents(law: str, slots: int, terms: int) -> None:
    assert scan(SumOfPowers(KOZA, terms), goal_of(law, slots))[0] < 1e-26


@pytest.mark.parametrize(
    ("law", "slots", "sums"),
    [
        ("5*x1/(x2**2 + 3*x1*x3)**1.5", 3, 1),
        ("(x1*x4 + 2*x2)/sqrt(x3**2 + x4**2)", 4, 2),
    ],
)
def test_powers_of_sums_are_found(law: str, slots: int, sums: int) -> None:
    assert scan(PowersOfSums(KOZA, sums), goal_of(law, slots))[0] < 1e-26


def test_one_term_may_have_a_function_of_slots() -> None:
    assert scan(SumOfPowers(KOZA, 2, functions=True), goal_of("x1*x2 - 3*x3**2*cos(x4)/x1", 4))[0] < 1e-26
    assert scan(SumOfPowers(KOZA, 2, functions=True), goal_of("x1**2 + x2*x1*sin(x3 - x4)", 4))[0] < 1e-26
    assert scan(PowersOfSums(KOZA, 1, functions=True), goal_of("x2/(x1 + x3*exp(-x2))", 3))[0] < 1e-26


@pytest.mark.parametrize(
    ("law", "slots"),
    [("x3*sin(x1/2)**2/x2", 3), ("x2**2*cos(x1 - x3)/sin(x2*x1/2)**2", 3), ("sin(x1)*sin(x2*x3)**2/cos(x3/2)", 3)],
)
def test_products_of_powers_of_sines_are_found(law: str, slots: int) -> None:
    assert scan(ProductOfFactors(KOZA), goal_of(law, slots, low=0.2, high=1.4))[0] < 1e-26


def test_a_slot_that_changes_sign_is_a_factor_of_its_own() -> None:
    random = np.random.default_rng(3)
    X = np.column_stack([random.uniform(1, 3, (200, 2)), random.uniform(-2, 2, 200)])
    response = make_response(X, X[:, 0] ** 2 + 3 * X[:, 1] * X[:, 2])
    assert scan(SumOfPowers(KOZA, 2, functions=True), response)[0] < 1e-26


def test_roots_and_denominators_are_goals_of_sums_of_powers() -> None:
    response = goal_of("1/sqrt(x1**2 + 3*x2/x3)", 3)
    responses = {other.name: other for other in power_responses(response.data, KOZA)}
    assert set(responses) == {"y**2", "1/y", "1/y**2"}
    assert scan(SumOfPowers(KOZA, 2), responses["1/y**2"])[0] < 1e-26


def test_noise_leaves_the_exponents_of_the_law() -> None:
    law = "2*x1**2*x2/x3 + x4"
    response, exact = goal_of(law, 4, noise=0.05), goal_of(law, 4)
    found = SumOfPowers(KOZA, 2).scan(features_of(response, 0), response, 5, Budget())
    best = min(found, key=lambda candidate: candidate.loss)
    assert best.loss <= 1.01 * float((response.t - exact.t).square().mean())
    assert best.complexity <= parse("2.01*x1**2*x2/x3 + 1.01*x4").complexity


def test_data_that_allow_nothing_give_nothing() -> None:
    few = make_response(np.random.default_rng(0).uniform(1, 2, (12, 4)), np.arange(12.0) + 1)
    assert scan(SumOfPowers(KOZA, 3), few) == []
    assert scan(PowersOfSums(KOZA, 2), few) == []
    zero = make_response(np.random.default_rng(0).uniform(1, 2, (90, 2)), np.arange(90.0))
    assert scan(PowersOfSums(KOZA, 1), zero) == []  # no logarithm of 0


def test_a_budget_that_is_over_ends_the_steps() -> None:
    over = Budget(stop=lambda: True)
    assert len(scan(SumOfPowers(KOZA, 3), goal_of("x1*x2 + x3 + x4", 4), over)) <= 1


@pytest.mark.parametrize("head", [SumOfPowers(KOZA, 2), PowersOfSums(KOZA, 1)], ids=lambda head: head.name)
def test_the_same_data_give_the_same_candidates(head: Head) -> None:
    response = goal_of("x1*log(x2) + x3", 3)
    found = [head.scan(features_of(response, 0), response, 5, Budget()) for _ in range(3)]
    seen = {tuple((str(candidate.expression), candidate.loss.hex()) for candidate in one) for one in found}
    assert len(seen) == 1


def test_starts_do_not_depend_on_what_was_in_memory_before() -> None:
    response = goal_of("x1*log(x2) + x3 + x4*x5", 5)
    bases, head = make_bases(response, KOZA, functions=False), SumOfPowers(KOZA, 2)
    seen = set()
    for dirt in range(60):
        # Zeros and other numbers, freed at once: what follows gets memory with these in it.
        for size in range(1, 40):
            (torch.arange(size) >> (dirt % 6)).to(torch.int32)
        seen.add(head._starts(response, bases).theta.numpy().tobytes())
    assert len(seen) == 1


def test_the_terms_of_a_sum_come_in_one_order() -> None:
    response = goal_of("2*x1*x2 + 3*x3", 3)
    bases = make_bases(response, KOZA, functions=False)
    one, other = [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]
    theta = torch.tensor([one + other, other + one], dtype=torch.float64)
    nothing = torch.zeros(2, dtype=torch.float64)
    solved = Solved(Starts(theta, torch.zeros(2, dtype=torch.int64)), nothing, theta)
    head = SumOfPowers(KOZA, 2)
    assert head._terms(bases, solved, 0) == head._terms(bases, solved, 1)


def test_companions_are_defined_on_every_row_and_use_permitted_operators() -> None:
    slots = [Variable("x1"), Variable("x2")]
    values = ([0.5, 1.0, 2.0, 3.0], [-1.0, 0.0, 1.0, 2.0])
    columns = {slot.name: torch.tensor(row, dtype=torch.float64) for slot, row in zip(slots, values, strict=True)}
    names = {str(e) for e in make_companions(slots, columns, KOZA).expressions}
    assert {"1", "x2", "cos(x1)", "sin(x1 - x2)"} <= names
    assert not names & {"log(x2)", "x1"}
    arithmetic = make_companions(slots, columns, get_operators("arithmetic"))
    assert {str(e) for e in arithmetic.expressions} == {"1", "x2"}


@given(st.fractions(-8, 8, max_denominator=6), st.floats(-1e-8, 1e-8))
def test_an_exponent_of_an_exact_fit_is_its_fraction(exponent: float, off: float) -> None:
    assert snapped_exponent(float(exponent) + off, exact=True) == pytest.approx(float(exponent), abs=1e-15)


def test_other_exponents_are_halves_and_large_ones_none() -> None:
    assert snapped_exponent(1.4, exact=False) == 1.5
    assert snapped_exponent(1.4142135, exact=True) is None
    assert snapped_exponent(20.0, exact=False) is None


@settings(max_examples=30)
@given(st.lists(st.sampled_from([-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0]), min_size=3, max_size=3))
def test_a_monomial_has_the_value_of_its_powers(exponents: list[float]) -> None:
    slots = [Variable(name) for name in "abc"]
    columns = {name: torch.tensor([0.5, 1.7, 3.0], dtype=torch.float64) + i for i, name in enumerate("abc")}
    expected = torch.stack([columns[name] ** exponent for name, exponent in zip("abc", exponents, strict=True)])
    value = torch.as_tensor(evaluate(monomial(slots, exponents, Constant(1)), columns))
    torch.testing.assert_close(value.expand(3).double(), expected.prod(dim=0))


class _Exponential:
    """c·exp(θ·x): one column, one inner parameter."""

    def __init__(self, x: torch.Tensor) -> None:
        self.x = x

    def columns(self, theta: torch.Tensor, members: torch.Tensor):  # type: ignore[no-untyped-def]
        F = torch.exp(theta * self.x)[:, None]
        return F, lambda c: F * c[..., None] * self.x


def test_a_projected_fit_finds_rate_and_coefficient_from_every_start() -> None:
    x = torch.linspace(0, 2, 40, dtype=torch.float64)
    y = 3 * torch.exp(-0.7 * x)
    starts = Starts(torch.tensor([[-2.0], [0.0], [1.0]], dtype=torch.float64), torch.zeros(3, dtype=torch.int64))
    solved = solve(_Exponential(x), starts, y / y.norm(), steps=40, budget=Budget())
    best = solved.best(1).theta
    assert float(best[0, 0]) == pytest.approx(-0.7, abs=1e-10)
    assert float(race(_Exponential(x), starts, y / y.norm(), 1, Budget()).loss.min()) < 1e-20


def test_units_far_from_one_make_no_constants_beyond_the_doubles() -> None:
    random = np.random.default_rng(0)
    x = random.uniform(1, 3, (60, 5))
    y = np.sin(x[:, 0] * x[:, 1]) * x[:, 2] + np.sqrt(x[:, 3] * x[:, 4] + 3) + 0.1 * random.normal(size=60) + 5
    response = make_response(x * np.array([1e-34, 1e-27, 1e8, 1e-19, 1e-30]), y)
    assert all(np.isfinite(loss) for loss in scan(PowersOfSums(KOZA, 1), response))


def test_values_most_of_which_are_zero_have_starts_that_are_numbers() -> None:
    random = np.random.default_rng(0)
    X = random.uniform(1, 3, (120, 2))
    response = make_response(X, np.where(X[:, 0] > 2.4, X[:, 1], 0.0))
    head = SumOfPowers(KOZA, 2)
    assert bool(torch.isfinite(head._starts(response, make_bases(response, KOZA, functions=False)).theta).all())


class _Counting:
    """One exponent on one column; notes how many starts are asked for at once."""

    def __init__(self, rows: int) -> None:
        self.rows, self.most = rows, 0

    def columns(self, theta: torch.Tensor, members: torch.Tensor):
        self.most = max(self.most, len(theta))
        x = torch.linspace(1, 2, self.rows, dtype=torch.float64)
        F = (theta * x.log()).exp()[:, None]
        return F, lambda coefficients: F * coefficients[..., None] * x.log()


def test_many_starts_go_in_parts_that_bound_memory_and_end_in_time() -> None:
    rows, count = 2000, 3000
    target = torch.linspace(1, 2, rows, dtype=torch.float64).sin()
    starts = Starts(torch.linspace(-1, 1, count, dtype=torch.float64)[:, None], torch.zeros(count).long())
    model, over = _Counting(rows), Budget()
    over.end()
    ended = race(model, starts, target / target.norm(), 10, over)
    assert model.most * rows <= 1 << 20
    assert 0 < len(ended.loss) < count


@pytest.mark.parametrize("sums", [1, 2])
def test_when_the_time_is_over_only_a_few_are_fitted(sums: int) -> None:
    response = goal_of("x1*sqrt(1 + x2) + sin(x3)", 3, noise=0.1)
    over = Budget()
    over.end()
    found = PowersOfSums(KOZA, sums).scan(features_of(response, 0), response, 50, over)
    assert len(found) <= 3 * LAST_FITS  # each with its constant fitted, recognised, or as a root
