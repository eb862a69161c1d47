"""Sums of powers: laws on no benchmark list are found with their exponents, the same ones for the same data."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from heads.tasks import features_of, law_response, make_response, relative_losses

from symenum.core.budget import Budget
from symenum.expressions import parse
from symenum.fitting.many_starts import EndPointsWithErrors, Starts
from symenum.heads import Head, PowersOfSums, SumOfPowers
from symenum.heads.exponents import make_bases
from symenum.heads.transforms import power_responses
from symenum.operators import get_operators

KOZA = get_operators("koza")


@pytest.mark.parametrize(
    ("law", "slots", "terms"),
    [
        ("3*x1*x4**3/x2 - 2*sqrt(x3)/x1**2", 4, 2),
        ("x1*x2*x3/(x4*x5*x6) + 0.7*x6**2*x7*x8/x1", 8, 2),
        ("x1**2/x2 - 4*x2*x3**1.5 + x4/(x1*x3)", 4, 3),
    ],
)
def test_a_sum_of_powers_is_found_whatever_its_exponents(law: str, slots: int, terms: int) -> None:
    assert relative_losses(SumOfPowers(KOZA, terms), law_response(law, slots))[0] < 1e-26


def test_one_term_may_have_a_function_of_slots() -> None:
    assert (
        relative_losses(SumOfPowers(KOZA, 2, functions=True), law_response("x1*x2 - 3*x3**2*cos(x4)/x1", 4))[0] < 1e-26
    )
    assert (
        relative_losses(SumOfPowers(KOZA, 2, functions=True), law_response("x1**2 + x2*x1*sin(x3 - x4)", 4))[0] < 1e-26
    )
    assert relative_losses(PowersOfSums(KOZA, 1, functions=True), law_response("x2/(x1 + x3*exp(-x2))", 3))[0] < 1e-26


def test_a_slot_that_changes_sign_is_a_factor_of_its_own() -> None:
    random = np.random.default_rng(3)
    X = np.column_stack([random.uniform(1, 3, (200, 2)), random.uniform(-2, 2, 200)])
    response = make_response(X, X[:, 0] ** 2 + 3 * X[:, 1] * X[:, 2])
    assert relative_losses(SumOfPowers(KOZA, 2, functions=True), response)[0] < 1e-26


def test_roots_and_denominators_are_responses_of_sums_of_powers() -> None:
    response = law_response("1/sqrt(x1**2 + 3*x2/x3)", 3)
    responses = {other.name: other for other in power_responses(response.data, KOZA)}
    assert set(responses) == {"y**2", "1/y", "1/y**2"}
    assert relative_losses(SumOfPowers(KOZA, 2), responses["1/y**2"])[0] < 1e-26


def test_noise_leaves_the_exponents_of_the_law() -> None:
    law = "2*x1**2*x2/x3 + x4"
    response, exact = law_response(law, 4, noise=0.05), law_response(law, 4)
    found = SumOfPowers(KOZA, 2).scan(features_of(response, 0), response, 5, Budget())
    best = min(found, key=lambda candidate: candidate.loss)
    assert best.loss <= 1.01 * float((response.t - exact.t).square().mean())
    assert best.complexity <= parse("2.01*x1**2*x2/x3 + 1.01*x4").complexity


def test_data_that_allow_nothing_give_nothing() -> None:
    few = make_response(np.random.default_rng(0).uniform(1, 2, (12, 4)), np.arange(12.0) + 1)
    assert relative_losses(SumOfPowers(KOZA, 3), few) == []
    assert relative_losses(PowersOfSums(KOZA, 2), few) == []
    zero = make_response(np.random.default_rng(0).uniform(1, 2, (90, 2)), np.arange(90.0))
    assert relative_losses(PowersOfSums(KOZA, 1), zero) == []  # no logarithm of 0


def test_a_budget_that_is_over_ends_the_steps() -> None:
    over = Budget(stop=lambda: True)
    assert len(relative_losses(SumOfPowers(KOZA, 3), law_response("x1*x2 + x3 + x4", 4), over)) <= 1


@pytest.mark.parametrize("head", [SumOfPowers(KOZA, 2), PowersOfSums(KOZA, 1)], ids=lambda head: head.name)
def test_the_same_data_give_the_same_candidates(head: Head) -> None:
    response = law_response("x1*log(x2) + x3", 3)
    found = [head.scan(features_of(response, 0), response, 5, Budget()) for _ in range(3)]
    seen = {tuple((str(candidate.expression), candidate.loss.hex()) for candidate in one) for one in found}
    assert len(seen) == 1


def test_starts_do_not_depend_on_what_was_in_memory_before() -> None:
    response = law_response("x1*log(x2) + x3 + x4*x5", 5)
    bases, head = make_bases(response, KOZA, functions=False), SumOfPowers(KOZA, 2)
    seen = set()
    for dirt in range(60):
        # Zeros and other numbers, freed at once: what follows gets memory with these in it.
        for size in range(1, 40):
            (torch.arange(size) >> (dirt % 6)).to(torch.int32)
        seen.add(head._starts(response, bases).theta.numpy().tobytes())
    assert len(seen) == 1


def test_the_terms_of_a_sum_come_in_one_order() -> None:
    response = law_response("2*x1*x2 + 3*x3", 3)
    bases = make_bases(response, KOZA, functions=False)
    one, other = [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]
    theta = torch.tensor([one + other, other + one], dtype=torch.float64)
    nothing = torch.zeros(2, dtype=torch.float64)
    solved = EndPointsWithErrors(Starts(theta, torch.zeros(2, dtype=torch.int64)), nothing, theta)
    head = SumOfPowers(KOZA, 2)
    assert head._terms(bases, solved, 0) == head._terms(bases, solved, 1)


def test_values_most_of_which_are_zero_have_starts_that_are_numbers() -> None:
    random = np.random.default_rng(0)
    X = random.uniform(1, 3, (120, 2))
    response = make_response(X, np.where(X[:, 0] > 2.4, X[:, 1], 0.0))
    head = SumOfPowers(KOZA, 2)
    assert bool(torch.isfinite(head._starts(response, make_bases(response, KOZA, functions=False)).theta).all())
