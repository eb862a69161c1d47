"""The evidence weighs the fit of a law against its symbols, and a few outliers do not decide."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.stats import t as student

from symenum.core.target import Target, Training
from symenum.expressions import evaluate, parse
from symenum.expressions.candidate import Candidate
from symenum.fitting.losses import Custom, Huber, Relative, Squared
from symenum.front import Front
from symenum.selection.evidence import evidence, law_price, noise_surprise
from symenum.selection.rules import choose_law, select

RNG = np.random.default_rng(0)


def training_of(x: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None) -> Training:
    weight = np.ones(len(y)) if weight is None else weight
    return Training({"x": torch.tensor(x)}, Target(torch.tensor(y), torch.tensor(weight / weight.sum())))


def test_the_surprise_is_that_of_students_t_at_its_likeliest_scale() -> None:
    residual = RNG.standard_normal(200)
    best = min(-student.logpdf(residual, 8, scale=scale).sum() for scale in np.linspace(0.7, 1.2, 2001))
    assert noise_surprise(residual**2, 0.0) == pytest.approx(best, rel=1e-6)


def test_the_surprise_follows_the_units() -> None:
    squares = RNG.standard_normal(50) ** 2
    assert noise_surprise(1e12 * squares, 0.0) == pytest.approx(noise_surprise(squares, 0.0) + 50 * math.log(1e6))


def test_laws_that_are_exact_differ_by_their_price_only() -> None:
    x = np.linspace(1, 2, 30)
    laws = [parse("2*x"), parse("x + x + 1e-17")]
    found = evidence(laws, training_of(x, 2 * x), floor=1e-24)
    assert found[0] - found[1] == pytest.approx(law_price(laws[1], 30) - law_price(laws[0], 30))


def test_every_symbol_has_a_price_that_grows_with_the_rows() -> None:
    assert law_price(parse("sin(x) + 1"), 100) == pytest.approx(4 / 3 * math.log(100))
    assert law_price(parse("x"), 1000) > law_price(parse("x"), 10)


def test_a_term_must_be_worth_its_symbols() -> None:
    x = np.linspace(0, 3, 100)
    y = x**2 + 0.1 * RNG.standard_normal(100)
    law, with_spare, too_simple = parse("x**2"), parse("x**2 + 0.001*sin(x)"), parse("2.9*x - 1.4")
    weighed = evidence([law, with_spare, too_simple], training_of(x, y), 0.0)
    assert weighed[0] > weighed[1]
    assert weighed[0] > weighed[2]


def test_outliers_do_not_decide() -> None:
    """Four rows of 100 are far off; a law that bends towards them has the smaller loss, and is not the law."""
    x = np.linspace(0, 3, 100)
    y = 2 * x + 0.05 * RNG.standard_normal(100)
    y[[10, 40, 60, 90]] += [3, 4, 3, 4]
    line, bent = parse("2*x"), parse("2*x + 0.14")
    losses = [float(((2 * x + offset - y) ** 2).mean()) for offset in (0, 0.14)]
    assert losses[1] < losses[0]
    for loss in (Squared(), Huber(0.1)):
        straight, shifted = evidence([line, bent], training_of(x, y), 0.0, loss)
        assert straight > shifted + 30


def test_a_law_that_has_no_value_on_a_row_has_no_evidence() -> None:
    x = np.linspace(-1, 1, 20)
    assert evidence([parse("log(x)")], training_of(x, x), 0.0) == (-math.inf,)


def test_losses_of_other_kinds_have_evidence_too() -> None:
    x = np.linspace(1, 3, 60)
    y = 2 * x * (1 + 0.01 * RNG.standard_normal(60))
    laws = [parse("2*x"), parse("x + 1")]
    for loss in (Relative(), Huber(0.1), Custom(lambda y, p: float(((y - p) ** 2).mean()), None)):
        good, bad = evidence(laws, training_of(x, y), 1e-20, loss)
        assert good > bad


def test_weights_count_as_rows() -> None:
    x = np.linspace(0, 1, 40)
    y = np.where(x < 0.5, x, 5 - x)
    half = np.where(x < 0.5, 1.0, 1e-6)
    first, second = evidence([parse("x"), parse("5 - x")], training_of(x, y, half), 1e-20)
    assert first > second


def test_many_rows_are_weighed_by_a_part_of_them() -> None:
    x = RNG.uniform(0, 1, 60_000)
    y = x + 0.1 * RNG.standard_normal(60_000)
    found = evidence([parse("x"), parse("x + 0.001*x*x")], training_of(x, y), 0.0)
    # 20,000 rows stand for all: their sum of logarithms is uncertain by about 100, which counts three times.
    assert found[0] == pytest.approx(-noise_surprise((x - y) ** 2, 0.0) - law_price(parse("x"), 60_000), rel=0.02)


def test_the_rule_of_a_front_agrees_where_the_noise_is_normal() -> None:
    x = np.linspace(0, 3, 200)
    training = training_of(x, 1.5 * x**2 + 0.1 * RNG.standard_normal(200))
    texts = ("4.5", "4.4*x - 2.2", "1.5*x**2", "1.5*x**2 + 0.01*sin(9.1*x)")
    laws = [
        Candidate(law, float(training.target.loss(evaluate(law, training.columns).expand(200)[None])))
        for law in map(parse, texts)
    ]
    assert select(laws, "evidence", floor=0.0, rows=200) == 2
    assert choose_law(Front(tuple(laws), 0.0, 200), "evidence", None, training, Squared()) == 2
