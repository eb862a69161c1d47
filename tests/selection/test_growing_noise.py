"""Noise that grows with the values is seen, and laws are compared with the constants that suit it."""

from __future__ import annotations

import math

import numpy as np
import pandas
import pytest
import torch
from scipy.stats import t as student

from symenum import PSERegressor
from symenum.core.target import Target, Training
from symenum.expressions import Expression, evaluate, parse
from symenum.expressions.candidate import Candidate
from symenum.fitting.free_constants import form_of, free_constants
from symenum.fitting.losses import Relative, Squared
from symenum.front import Front
from symenum.selection import choose_law
from symenum.selection.evidence import evidence, law_price
from symenum.selection.growing_noise import (
    best_with_growing_noise,
    fitted_to_growing_noise,
    judged_if_noise_grows,
    noise_around,
    noise_may_grow,
)

STEEP = "exp(14.5 - 5500/x)"
TEMPERATURE = np.linspace(280, 400, 40)  # over which it grows by a factor of 300


def training_of(x: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None) -> Training:
    weight = np.ones(len(y)) if weight is None else weight
    return Training({"x": torch.tensor(x)}, Target(torch.tensor(y), torch.tensor(weight / weight.sum())))


def steep(seed: int, part: float = 0.05) -> Training:
    noise = np.random.default_rng(seed).standard_normal(len(TEMPERATURE))
    return training_of(TEMPERATURE, np.exp(14.5 - 5500 / TEMPERATURE) * (1 + part * noise))


def energy_of(law: Expression) -> float:
    """The 5500 of a law exp(14.5 - 5500/x)."""
    assert form_of(law) == form_of(parse("exp(0.5 - 0.5/x)")), law
    return abs(free_constants(law)[1])


@pytest.mark.parametrize("seed", range(10))
def test_noise_in_proportion_to_the_values_is_seen(seed: int) -> None:
    assert judged_if_noise_grows([parse(STEEP)], steep(seed), 0.0) is not None


def test_noise_of_one_size_is_not_taken_for_growing() -> None:
    """Of 100 draws hardly one: growing noise must be 20 times as probable, with one more number to tell."""
    law, clean = parse("2*x + 1"), 2 * np.linspace(0.1, 3, 60) + 1
    rng = np.random.default_rng(0)
    draws = [training_of(np.linspace(0.1, 3, 60), clean + 0.2 * rng.standard_normal(60)) for _ in range(100)]
    assert sum(judged_if_noise_grows([law], draw, 0.0) is not None for draw in draws) <= 1


def test_the_evidence_is_the_density_of_the_rows() -> None:
    """For one base and scale it is what SciPy says; the best scale is at least as good, and not by much."""
    rows = steep(0)
    law = parse(STEEP)
    (found,) = fitted_to_growing_noise([law], rows, 0.0)
    values = evaluate(found.law, rows.columns).numpy()
    sizes = np.sqrt(found.noise.base**2 * np.mean(values**2) + values**2)
    residuals = values - rows.target.y.numpy()
    densities = [student.logpdf(residuals, 8, scale=scale * sizes).sum() for scale in np.linspace(0.02, 0.1, 801)]
    assert found.nats == pytest.approx(max(densities) - law_price(law, 40) - 0.5 * math.log(40), abs=1e-3)


@pytest.mark.parametrize("seed", range(5))
def test_constants_that_suit_the_noise_are_nearer_to_the_truth(seed: int) -> None:
    """At 5% of noise 40 rows tell the energy of 5500 to about 0.5%."""
    rows = steep(seed)
    start = parse("exp(14.1 - 5350.5/x)")
    (found,) = fitted_to_growing_noise([start], rows, 0.0)
    assert energy_of(found.law) == pytest.approx(5500, rel=0.015)


def test_a_power_that_misses_small_values_gives_way_to_the_law() -> None:
    """By least squares the power is more probable; by the noise that the rows show it is not."""
    rows = steep(0)
    power, law = parse("2.489e-20*2.489e-20*x**15.2"), parse("exp(15.1 - 5732.5/x)")
    best = best_with_growing_noise([power, law], rows, 0.0)
    assert best is not None
    assert "exp" in str(best.law)
    front = Front(
        tuple(
            Candidate(one, float((evaluate(one, rows.columns) - rows.target.y).square().mean()))
            for one in (best.law, power)
        ),
        rows=40,
    )
    assert choose_law(front, "evidence", None, rows, Squared()) == 0


def test_rows_are_weighed_by_the_values_of_the_law() -> None:
    rows, law = steep(1), parse(STEEP)
    noise = noise_around(law, [law], rows, 0.0)
    assert noise is not None
    values = evaluate(law, rows.columns)
    weight = noise.weigh(rows).target.weight
    assert float(weight.sum()) == pytest.approx(1.0)
    assert float(weight[0] / weight[-1]) == pytest.approx(float((values[-1] / values[0]) ** 2), rel=0.5)
    flat = training_of(TEMPERATURE, 2 * TEMPERATURE + np.random.default_rng(0).standard_normal(40))
    assert noise_around(parse("2*x"), [parse("2*x")], flat, 0.0) is None


def test_who_says_what_the_noise_is_is_not_asked() -> None:
    rows = steep(0)
    assert noise_may_grow(rows, Squared())
    assert not noise_may_grow(rows, Relative())
    weighted = training_of(TEMPERATURE, rows.target.y.numpy(), np.linspace(1, 2, 40))
    assert not noise_may_grow(weighted, Squared())


def test_a_few_rows_are_not_asked() -> None:
    rows = steep(0)
    assert not noise_may_grow(rows.at(torch.arange(10)), Squared())


def test_a_law_without_a_value_is_never_the_best() -> None:
    rows = steep(0)
    laws = [parse("log(x - 300)"), parse(STEEP)]
    best = best_with_growing_noise(laws, rows, 0.0)
    assert best is not None
    assert "exp" in str(best.law)
    assert [one.nats for one in fitted_to_growing_noise(laws[:1], rows, 0.0)] == [-math.inf]


def test_a_law_that_is_zero_somewhere_has_noise_there_too() -> None:
    x = np.linspace(-1, 1, 80)
    y = x * (1 + 0.05 * np.random.default_rng(3).standard_normal(80)) + 0.001 * np.random.default_rng(
        4
    ).standard_normal(80)
    (found,) = fitted_to_growing_noise([parse("1.05*x")], training_of(x, y), 0.0)
    assert found.nats > evidence([parse("1.0*x")], training_of(x, y), 0.0)[0]
    assert found.noise.base < 0.1


def test_a_search_marks_the_law_of_steep_values() -> None:
    """Arrhenius' law with 5% of noise: by least squares a power of x is more probable."""
    y = steep(0).target.y.numpy()
    table = pandas.DataFrame(TEMPERATURE, columns=["x"])
    left_out = dict.fromkeys(["network", "near meetings", "exact meetings", "growth of simple laws"], 0.0)  # not needed
    model = PSERegressor(max_time=None, max_iterations=60, random_state=0, shares=left_out).fit(table, y)
    assert energy_of(model.best_expression_) == pytest.approx(5500, rel=0.02), model
    assert any("errors grow" in line for line in model.confidence())
    assert model.alternatives_["weight"].iloc[0] > 0.5
    _, std = model.predict(table, return_std=True)
    assert std[0] < 0.1 * std[-1]  # the band is narrow where the values are small


def test_errors_that_the_user_has_given_are_not_questioned() -> None:
    rows = steep(0)
    x, y = TEMPERATURE[:, None], rows.target.y.numpy()
    model = PSERegressor(max_time=None, max_iterations=5, random_state=0).fit(x, y, y_error=0.02)
    assert not any("errors grow" in line for line in model.confidence())
