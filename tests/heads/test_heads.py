"""Each head finds laws of its family, with the loss of what it prints, on y itself, with row weights, under noise."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
import torch
from heads.tasks import features_of, loss_of, make_response

from symenum.core.budget import Budget, CutShortError
from symenum.core.target import Target
from symenum.expressions import Variable, parse
from symenum.heads import (
    Affine,
    Combine,
    Head,
    InnerConstants,
    OneFeature,
    Polynomial,
    ProductOfPowers,
    Rational,
    RatioOfPolynomials,
    SumOfTerms,
    TwoTerms,
    responses_of,
)
from symenum.heads.response import best_first, make_data
from symenum.heads.sum_of_terms import SEARCHES, Beam, State, keep_best
from symenum.operators import get_operators

KOZA = get_operators("koza")
HEADS: dict[str, Head] = {
    "combine": Combine(KOZA, cap=200),
    "two terms": TwoTerms(),
    "affine": Affine(tuple(operator for operator in KOZA if operator.name != "identity"), cap=200),
    "one feature": OneFeature(),
    "polynomial": Polynomial(),
    "ratio": RatioOfPolynomials(),
    "rational": Rational(numerators=60, denominators=60),
    "rational, two features above": Rational(2, in_threes=20),
    "powers 0": ProductOfPowers(0),
    "powers 1": ProductOfPowers(1),
    "powers 2": ProductOfPowers(2),
    "sum": SumOfTerms(KOZA),
    "inner": InnerConstants(KOZA),
}
LAWS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "combine": lambda a, b: np.sin(a) * (a + b),
    "two terms": lambda a, b: 2 * np.sin(a) - 0.75 * a * b + 4,
    "affine": lambda a, b: 3 * np.sin(a) * np.exp(b) - 1,
    "one feature": lambda a, b: 2 * a * b + 3 / (a * b) - 1,
    "polynomial": lambda a, b: a**3 - 2 * a * b + b / 3,
    "ratio": lambda a, b: (a**2 + 1) / (2 + a * b),
    "rational": lambda a, b: (np.sin(a) + 2) / (1 + 0.5 * np.cos(b)),
    "rational, two features above": lambda a, b: (np.sin(a) + 3 * b + 2) / (1 + 0.5 * np.cos(b)),
    "powers 0": lambda a, b: 2.5 * np.sqrt(a) / b**3,
    "powers 1": lambda a, b: a**2 * np.sin(b) / 7,
    "powers 2": lambda a, b: a * (a + b) * np.log(b),
    "sum": lambda a, b: a * b - 2 * np.sin(a) / b + 3 * a * a + 1,
    "inner": lambda a, b: np.sin(1.7 * a) + 2 * np.exp(-0.4 * b),
}
each_head = pytest.mark.parametrize("name", HEADS)


def draw(name: str, rows: int = 40, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(seed).uniform(1.2, 2.9, (rows, 2))
    return X, LAWS[name](*X.T)


@each_head
def test_a_law_of_its_family_is_found(name: str) -> None:
    X, y = draw(name)
    response = make_response(X, y)
    found = best_first(HEADS[name].scan(features_of(response, 1), response, 10, Budget()), response.data.target)
    assert response.data.is_law(found[0]), f"best: {found[0]}"


@each_head
def test_losses_are_those_of_the_printed_expressions_with_weights_and_noise(name: str) -> None:
    X, y = draw(name)
    generator = np.random.default_rng(5)
    y = y + 0.05 * np.std(y) * generator.normal(size=len(y))
    weight = generator.uniform(0, 1, len(y))
    response = make_response(X, y, weight)
    for candidate in HEADS[name].scan(features_of(response, 1), response, 5, Budget()):
        assert np.isfinite(candidate.loss)
        assert candidate.loss == pytest.approx(loss_of(candidate.expression, X, y, weight), rel=1e-9)


@each_head
def test_a_row_of_tiny_weight_does_not_matter(name: str) -> None:
    """One row is wrong by far, and hardly counts: the law is found without it."""
    X, y = draw(name)
    y = y.copy()
    y[7] = y[7] * 1.5 + 1
    weight = np.ones(len(y))
    weight[7] = 1e-30
    response = make_response(X, y, weight)
    found = best_first(HEADS[name].scan(features_of(response, 1), response, 10, Budget()), response.data.target)
    assert response.data.is_law(found[0]), f"best: {found[0]}"


@each_head
def test_an_ended_budget_gives_back_at_once_what_there_is_or_gives_up(name: str) -> None:
    X, y = draw(name)
    response = make_response(X, y)
    budget = Budget()
    budget.end()
    found = []
    with suppress(CutShortError):
        found = HEADS[name].scan(features_of(response, 1), response, 3, budget)
    assert all(np.isfinite(candidate.loss) for candidate in found)


@pytest.mark.parametrize("name", ["two terms", "affine", "one feature", "rational", "sum", "powers 1"])
def test_many_rows_are_scanned_in_part_and_judged_on_all(name: str) -> None:
    X, y = draw(name, rows=500)
    response = make_response(X, y, scan_rows=60)
    found = best_first(HEADS[name].scan(features_of(response, 1), response, 10, Budget()), response.data.target)
    assert response.data.is_law(found[0])
    assert found[0].loss == pytest.approx(loss_of(found[0].expression, X, y), rel=1e-6, abs=1e-28)


def test_under_noise_the_best_fit_of_two_terms_is_that_of_least_squares() -> None:
    X, y = draw("two terms")
    y = y + 0.2 * np.random.default_rng(0).normal(size=len(y))
    response = make_response(X, y)
    features = features_of(response, 1)
    found = best_first(TwoTerms().scan(features, response, 10, Budget()), response.data.target)
    V = features.up_to_affine().values.numpy()
    losses = []
    for i in range(len(V)):
        for j in range(i):
            A = np.column_stack([np.ones(len(y)), V[i], V[j]])
            losses.append(np.mean((y - A @ np.linalg.lstsq(A, y, rcond=None)[0]) ** 2))
    # Snapping may cost one standard error for each of three constants.
    assert min(losses) <= found[0].loss * (1 + 1e-12)
    assert found[0].loss <= min(losses) * (1 + 3 / (len(y) - 3) + 1e-9)


def test_sum_of_terms_under_noise_keeps_the_simple_truth() -> None:
    """The second Lorenz equation: a beam ordered by fit alone loses it to fancier terms."""
    generator = np.random.default_rng(2)
    X = np.column_stack(
        [generator.uniform(-15, 15, 400), generator.uniform(-20, 20, 400), generator.uniform(5, 40, 400)]
    )
    clean = -X[:, 0] * X[:, 2] + 28 * X[:, 0] - X[:, 1]
    y = clean + 0.05 * np.std(clean) * generator.normal(size=400)
    response = make_response(X, y)
    found = SumOfTerms(KOZA, max_terms=4).scan(features_of(response, 0), response, 10, Budget(20))
    truth = float(np.mean((y - clean) ** 2))
    simple = [candidate for candidate in found if candidate.loss <= 1.05 * truth and candidate.complexity <= 6]
    texts = [str(candidate.expression) for candidate in simple]
    assert any("x1*x3" in text and "sin" not in text and "/" not in text for text in texts), texts


@pytest.mark.parametrize(("name", "low", "high"), [("tanh", -2.0, 2.0), ("sinh", -3.0, 3.0), ("sigmoid", -4.0, 4.0)])
def test_a_function_that_only_rises_is_inverted(name: str, low: float, high: float) -> None:
    inner = torch.linspace(low, high, 50, dtype=torch.float64)
    operator = get_operators([name])[0]
    y = operator.function(inner)
    target = Target(y, torch.full((50,), 1 / 50, dtype=torch.float64))
    data = make_data([Variable("x1")], inner[None], target, 50)
    (response,) = [one for one in responses_of(data, (operator,)) if one.name == f"inverse {name} of y"]
    assert torch.allclose(response.t, inner, rtol=0, atol=1e-9)
    candidate = response.candidate(Variable("x1"))
    assert candidate.loss < 1e-25
    beyond = replace(data, target=replace(target, y=y * 1e9))  # no value of tanh or sigmoid
    names = {one.name for one in responses_of(beyond, (operator,))}
    assert (f"inverse {name} of y" in names) == (name == "sinh")


def test_transforms_lead_back_to_y_and_are_left_out_where_they_fail() -> None:
    X, _ = draw("two terms")
    positive = make_response(X, X[:, 0] * X[:, 1])
    names = {response.name for response in responses_of(positive.data, KOZA)}
    assert {"log(y)", "exp(y)", "1/y", "y**2", "sqrt(y)", "y/x1", "x1/y", "y*x2", "y-x1"} <= names
    signed = X[:, 0] - 2
    signed[3] = 0.0
    names = {response.name for response in responses_of(make_response(X, signed).data, KOZA)}
    assert not names & {"log(y)", "log(-y)", "1/y", "x1/y", "sqrt(y)", "y**2"}
    assert "y/x1" in names
    for y in (X[:, 0], -X[:, 0], X[:, 0] / 4, signed):
        for response in responses_of(make_response(X, y).data, KOZA):
            assert float(response.weight.sum()) == pytest.approx(1)
            candidate = response.fit([parse("x1 + 1")])
            assert candidate is None or np.isfinite(candidate.loss)


@pytest.mark.parametrize(
    ("law", "transform"),
    [
        (lambda a, b: np.exp(2 * np.sin(a) - b), "log(y)"),
        (lambda a, b: np.log(np.sin(a) + 2 * b), "exp(y)"),
        (lambda a, b: 1 / (np.sin(a) + 2 * b), "1/y"),
        (lambda a, b: np.sqrt(np.sin(a) + 2 * b), "y**2"),
        (lambda a, b: (np.sin(a) + 2 * b) ** 2, "sqrt(y)"),
        (lambda a, b: a * (np.sin(b) + np.exp(a)), "y/x1"),
        (lambda a, b: a / (np.sin(b) + np.exp(a)), "x1/y"),
        (lambda a, b: (np.sin(b) + np.exp(a)) / b, "y*x2"),
    ],
)
def test_two_terms_through_a_transform(law: Callable[..., np.ndarray], transform: str) -> None:
    X, _ = draw("two terms")
    response = make_response(X, law(*X.T))
    through = next(g for g in responses_of(response.data, KOZA) if g.name == transform)
    found = best_first(TwoTerms().scan(features_of(response, 1), through, 10, Budget()), response.data.target)
    assert response.data.is_law(found[0]), f"best: {found[0]}"
    assert found[0].loss == pytest.approx(loss_of(found[0].expression, X, law(*X.T)), abs=1e-25)


def test_the_beam_keeps_the_best_set_of_every_complexity() -> None:
    left = torch.zeros(1, dtype=torch.float64)
    fancy = [State(((0, 1, 2, 3),), left[None], left, -10.0 - i, 0.1) for i in range(5)]
    simple = State(((0,),), left[None], left, 50.0, 0.4)
    worse = State(((1,),), left[None], left, 51.0, 0.5)
    assert keep_best([*fancy, worse, simple], Beam(2, False, False)) == [fancy[4], fancy[3]]
    kept = keep_best([*fancy, worse, simple], Beam(2, True, False))
    assert any(state is simple for state in kept)
    assert not any(state is worse for state in kept)


@pytest.mark.parametrize("seed", range(4))
def test_a_sum_of_terms_is_never_worse_than_the_best_two_or_three_terms_by_brute_force(seed: int) -> None:
    random = np.random.default_rng(seed)
    X = random.uniform(0.5, 2.0, (30, 2))
    y = random.normal(size=30)  # no law: the fit must come from the search
    response = make_response(X, y)
    arithmetic = get_operators("arithmetic")
    found = SumOfTerms(arithmetic).scan(features_of(response, operators="arithmetic"), response, 10, Budget())
    powers = [(a, b) for a in range(-4, 5) for b in range(-4, 5) if 0 < abs(a) + abs(b) <= 4]
    terms = np.stack([X[:, 0] ** float(a) * X[:, 1] ** float(b) for a, b in powers], axis=1)
    for size in (2, 3):
        best = min(
            np.mean((y - A @ np.linalg.lstsq(A, y, rcond=None)[0]) ** 2)
            for chosen in itertools.combinations(range(len(powers)), size)
            for A in [np.column_stack([np.ones(30), terms[:, chosen]])]
        )
        assert min(candidate.loss for candidate in found) <= best * (1 + 1e-9)


@pytest.mark.parametrize("head", [RatioOfPolynomials(), TwoTerms((parse("1"), parse("x1"), parse("x1**3")))])
def test_monomials_beyond_the_doubles_are_left_out(head) -> None:
    X = 1e110 * (1 + 1e-3 * np.arange(40)[:, None])
    response = make_response(X, np.sin(np.arange(40.0)))
    found = head.scan(features_of(response), response, 5, Budget())
    assert all(np.isfinite(candidate.loss) for candidate in found)


def test_single_features_and_pairs_may_be_scanned_one_without_the_other() -> None:
    X, y = draw("two terms")
    response = make_response(X, y + 0.05 * np.random.default_rng(0).normal(size=len(y)))
    features = features_of(response, 1)
    single, pairs, both = (
        [str(one.expression) for one in TwoTerms(counts=counts).scan(features, response, 5, Budget())]
        for counts in ((1,), (2,), (1, 2))
    )
    assert both == single + pairs
    assert single
    assert pairs


def test_each_search_of_sums_of_terms_finds_what_it_finds_among_the_others() -> None:
    X, y = draw("sum")
    response = make_response(X, y + 0.05 * np.random.default_rng(0).normal(size=len(y)))
    features = features_of(response, 0)
    alone = [
        str(one.expression)
        for search in SEARCHES
        for one in SumOfTerms(KOZA, searches=(search,)).scan(features, response, 5, Budget())
    ]
    assert alone == [str(one.expression) for one in SumOfTerms(KOZA).scan(features, response, 5, Budget())]
