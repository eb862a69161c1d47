"""Rows that decide a law's constants alone do not decide which law is chosen."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from symenum.core.target import Target, Training
from symenum.expressions import Expression, evaluate, parse
from symenum.expressions.candidate import Candidate
from symenum.fitting import refine
from symenum.fitting.losses import Squared
from symenum.front import Front
from symenum.selection.evidence import evidence
from symenum.selection.growing_noise import fitted_to_growing_noise, judged_if_noise_grows
from symenum.selection.influence import leverage, settled_evidence
from symenum.selection.rules import choose_law


def training_of(x: np.ndarray, y: np.ndarray) -> Training:
    return Training({"x": torch.tensor(x)}, Target(torch.tensor(y), torch.full((len(y),), 1 / len(y)).double()))


def fitted(text: str, training: Training) -> Expression:
    target = training.target
    return refine([parse(text)], training.columns, target.y, target.weight, seed=0)[0].expression


def line_with_a_far_row() -> tuple[Training, list[Expression]]:
    """A noisy line, whose last row lies far out in x and off the line; the line, and it with a term for that row."""
    rng = np.random.default_rng(3)
    x = np.append(np.linspace(0, 4, 40), 9.0)
    y = 2.1 * x + 0.3 + 0.2 * rng.standard_normal(41)
    y[-1] += 8.0
    training = training_of(x, y)
    return training, [fitted("2.1*x + 0.3", training), fitted("2.1*x + 0.3 + 1e-3*exp(1.01*x)", training)]


def test_the_leverage_of_a_line_is_that_of_its_hat_matrix() -> None:
    x = np.array([0.0, 1.0, 2.0, 10.0])
    A = np.stack([np.ones(4), x], axis=1)
    hat = np.diag(A @ np.linalg.inv(A.T @ A) @ A.T)
    np.testing.assert_allclose(leverage(parse("1.5*x + 0.5"), training_of(x, x)), hat, rtol=1e-12)


@given(seed=st.integers(0, 1000), weights=st.lists(st.floats(0.01, 10), min_size=12, max_size=12))
def test_leverages_sum_up_to_the_number_of_constants(seed: int, weights: list[float]) -> None:
    x = np.random.default_rng(seed).uniform(0.5, 3, 12)
    weight = torch.tensor(weights, dtype=torch.float64)
    training = Training({"x": torch.tensor(x)}, Target(torch.tensor(x), weight / weight.sum()))
    found = leverage(parse("1.5*exp(0.7*x) + 0.5"), training)
    np.testing.assert_allclose(found.sum(), 3, rtol=1e-6)
    assert (found >= 0).all()
    assert (found <= 1 + 1e-12).all()


def test_a_law_without_fitted_constants_follows_no_row() -> None:
    x = np.linspace(1, 2, 5)
    assert not leverage(parse("x*x"), training_of(x, x)).any()


def test_a_term_for_one_far_row_does_not_win() -> None:
    training, (line, with_spike) = line_with_a_far_row()
    plain = evidence([line, with_spike], training, 0.0)
    assert plain[1] > plain[0]
    settled = settled_evidence([line, with_spike], training, 0.0, Squared())
    assert settled[0] > settled[1]


def test_the_rule_of_a_front_chooses_so() -> None:
    training, laws = line_with_a_far_row()
    losses = [float(training.target.loss(evaluate(law, training.columns)[None])) for law in laws]
    front = Front(tuple(Candidate(law, loss) for law, loss in zip(laws, losses, strict=True)), 0.0, 41)
    assert choose_law(front, "evidence", None, training, Squared()) == 0


def test_a_law_that_the_other_rows_support_wins_in_spite_of_its_far_row() -> None:
    """A fourth power over two decades: one row has nearly all of the leverage, and the law is right."""
    rng = np.random.default_rng(4)
    x = np.geomspace(0.1, 10, 40)
    training = training_of(x, 3 * x**4 + rng.standard_normal(40) * 2)
    law, other = fitted("3.1*x**4", training), fitted("900.5*x - 600.5", training)
    assert leverage(law, training).max() > 0.5
    weighed = settled_evidence([other, law], training, 0.0, Squared())
    assert weighed[1] > weighed[0]


def test_with_growing_noise_a_term_for_one_far_row_does_not_win_either() -> None:
    rng = np.random.default_rng(6)
    x = np.append(np.geomspace(0.5, 20, 60), 40.0)
    y = 3 * x**1.5 * (1 + 0.03 * rng.standard_normal(61))
    y[-1] *= 2
    training = training_of(x, y)
    laws = [parse("3.1*x**1.5"), fitted("3.1*x**1.5 + 1e-6*exp(0.51*x)", training)]
    for found in (judged_if_noise_grows(laws, training, 0.0), fitted_to_growing_noise(laws, training, 0.0)):
        assert found is not None
        assert found[0].nats > found[1].nats


def test_no_laws_are_no_fault() -> None:
    assert fitted_to_growing_noise([], training_of(np.linspace(1, 2, 20), np.linspace(1, 2, 20)), 0.0) == []
