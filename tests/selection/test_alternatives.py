"""What the data cannot tell from the chosen law, how sure that makes the choice, and the band around it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from symenum.core.target import Target, Training
from symenum.expressions import evaluate, parse
from symenum.expressions.candidate import Candidate
from symenum.fitting.losses import Squared
from symenum.selection import Alternative, find_alternatives, make_band, make_verdict, most_probable
from symenum.selection.verdict import is_line


def training_of(X: np.ndarray, y: np.ndarray) -> Training:
    target = Target(torch.tensor(y), torch.full((len(y),), 1 / len(y), dtype=torch.float64))
    return Training.of(torch.tensor(X), [f"x{i + 1}" for i in range(X.shape[1])], target)


def laws_of(training: Training, *texts: str) -> list[Candidate]:
    target = training.target
    values = [evaluate(parse(text), training.columns).expand(target.rows) for text in texts]
    return [Candidate(parse(text), float(target.loss(v[None]))) for text, v in zip(texts, values, strict=True)]


@pytest.fixture
def near_zero() -> Training:
    """On these rows sin(x) is x, up to a hundredth of the noise."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-0.1, 0.1, (60, 1))
    return training_of(X, X[:, 0] + 0.01 * rng.standard_normal(60))


def test_laws_with_the_same_values_on_the_rows_are_alternatives(near_zero: Training) -> None:
    laws = laws_of(near_zero, "x1", "sin(x1)", "0.03", "x1*(1 + 0.5)")
    found = find_alternatives(laws[0].expression, laws, near_zero, 0.0, Squared())
    assert [str(one.law.expression) for one in found] == ["x1", "sin(x1)"]
    assert sum(one.weight for one in found) == pytest.approx(1)
    assert found[0].weight > found[1].weight > 0.05


def test_a_form_or_a_function_is_named_once(near_zero: Training) -> None:
    laws = laws_of(near_zero, "x1", "1.001*x1", "0.999*x1", "x1 + x1 - x1")
    for chosen in ("x1", "1.001*x1"):  # the chosen law stands for those that are the same, and has their weight
        (only,) = find_alternatives(parse(chosen), laws, near_zero, 0.0, Squared())
        assert only.law.expression == parse(chosen)
        assert only.weight == 1


def test_digits_of_a_constant_are_no_other_law(near_zero: Training) -> None:
    laws = laws_of(near_zero, "1.01*x1", "1.0123456789*x1", "x1*1.02", "sqrt(1.03*x1**2)*sign(x1)", "sin(x1)")
    found = find_alternatives(laws[0].expression, laws, near_zero, 0.0, Squared())
    assert [str(one.law.expression) for one in found] == ["sin(x1)", "1.01*x1"]


def test_what_is_not_allowed_is_not_named(near_zero: Training) -> None:
    laws = laws_of(near_zero, "x1", "sin(x1)")
    (only,) = find_alternatives(
        parse("x1"), laws, near_zero, 0.0, Squared(), lambda law: "sin" not in str(law.expression)
    )
    assert only.law.expression == parse("x1")


def test_the_most_probable_law_is_sought_beside_the_front_too() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 3, (80, 1))
    training = training_of(x, x[:, 0] ** 2 + 0.1 * rng.standard_normal(80))
    front = laws_of(training, "3.01*x1 - 1.5", "x1**2 + 0.01*x1 - 0.01")
    others = laws_of(training, "x1**2", "x1**2*1.0", "x1*x1")

    def found(front: list[Candidate], allowed: Callable[[Candidate], bool]) -> str:
        return str(most_probable(front, others, training, 0.0, Squared(), allowed).expression)

    assert found(front, lambda law: True) == "x1**2"
    assert found(front, lambda law: False) == "x1**2 + 0.01*x1 - 0.01"


def test_the_front_has_the_most_probable_law_in_fewer_digits() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 3, (80, 1))
    training = training_of(x, 1.3 * x[:, 0] ** 2 + 0.1 * rng.standard_normal(80))
    factor = float((x[:, 0] ** 2 @ training.target.y.numpy()) / (x[:, 0] ** 4).sum())
    front = laws_of(training, f"{factor:.4g}*x1**2", "3.5*x1 - 1")
    others = laws_of(training, f"{factor!r}*x1**2", f"x1**2*{factor!r}")
    assert most_probable(front, others, training, 0.0, Squared(), lambda law: True) == front[0]


def test_a_better_law_that_a_rule_passed_over_is_named() -> None:
    x = np.linspace(0, 3, 80)[:, None]
    training = training_of(x, x[:, 0] ** 2 + 0.01 * np.random.default_rng(0).standard_normal(80))
    laws = laws_of(training, "x1**2", "3*x1 - 1.5")
    found = find_alternatives(laws[1].expression, laws, training, 0.0, Squared())
    assert str(found[0].law.expression) == "x1**2"
    assert found[0].weight > 0.99


def test_a_law_that_is_clearly_better_stands_alone() -> None:
    x = np.linspace(0, 3, 80)[:, None]
    training = training_of(x, x[:, 0] ** 2 + 0.01 * np.random.default_rng(0).standard_normal(80))
    laws = laws_of(training, "x1**2", "3*x1 - 1.5", "4.5")
    alternatives = find_alternatives(laws[0].expression, laws, training, 0.0, Squared())
    verdict = make_verdict(laws[0].expression, alternatives, training, 0.0, Squared())
    assert not verdict.others
    assert verdict.beats_mean
    assert verdict.beats_line
    assert not verdict.exact


def test_noise_has_no_law() -> None:
    rng = np.random.default_rng(2)
    training = training_of(rng.uniform(0, 1, (60, 2)), rng.standard_normal(60))
    (law,) = laws_of(training, "0.1*x1")
    verdict = make_verdict(law.expression, [Alternative(law, 1.0)], training, 0.0, Squared())
    assert not verdict.beats_mean


def test_a_line_does_not_beat_a_line() -> None:
    rng = np.random.default_rng(2)
    X = rng.uniform(0, 1, (60, 2))
    training = training_of(X, 3 * X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(60))
    (law,) = laws_of(training, "3*x1 - x2")
    verdict = make_verdict(law.expression, [Alternative(law, 1.0)], training, 0.0, Squared())
    assert verdict.beats_mean
    assert not verdict.beats_line


def test_a_line_through_all_rows_is_no_rival() -> None:
    rng = np.random.default_rng(2)
    X = rng.uniform(1, 2, (30, 29))
    training = training_of(X, X[:, 0] * X[:, 1] ** 3 + 0.01 * rng.standard_normal(30))
    (law,) = laws_of(training, "x1*x2**3")
    assert make_verdict(law.expression, [Alternative(law, 1.0)], training, 0.0, Squared()).beats_line


@pytest.mark.parametrize(("text", "line"), [("2*x1 - x2 + 3", True), ("4.5", True), ("x1*x2", False), ("x1/x2", False)])
def test_what_is_a_line(text: str, line: bool) -> None:
    assert is_line(parse(text)) is line


def test_the_band_of_a_line_is_that_of_the_textbook() -> None:
    rng = np.random.default_rng(3)
    X = rng.uniform(0, 1, (200, 1))
    y = 2.2222 * X[:, 0] + 1.1111 + 0.1 * rng.standard_normal(200)
    slope, offset = np.polyfit(X[:, 0], y, 1)
    training = training_of(X, y)
    (law,) = laws_of(training, f"{float(slope)!r}*x1 + {float(offset)!r}")
    band = replace(make_band(law.expression, [Alternative(law, 1.0)], training), missed=None)
    points = np.linspace(0, 1, 5)
    variance = ((slope * X[:, 0] + offset - y) ** 2).sum() / 198
    spread = ((X[:, 0] - X.mean()) ** 2).sum()
    expected = np.sqrt(variance * (1 / 200 + (points - X.mean()) ** 2 / spread))
    assert band.std({"x1": torch.tensor(points)}) == pytest.approx(expected, rel=1e-6)


def test_alternatives_widen_the_band_where_they_differ(near_zero: Training) -> None:
    laws = laws_of(near_zero, "x1", "sin(x1)")
    alternatives = find_alternatives(laws[0].expression, laws, near_zero, 0.0, Squared())
    band = replace(make_band(laws[0].expression, alternatives, near_zero), missed=None)
    inside, far = band.std({"x1": torch.tensor([0.05, 3.0], dtype=torch.float64)})
    assert inside < 1e-4
    assert far == pytest.approx(np.sqrt(alternatives[1].weight) * (3 - np.sin(3)))


def test_what_a_law_has_missed_is_in_the_band() -> None:
    rng = np.random.default_rng(4)
    X = rng.uniform(0, 6, (150, 1))
    noise = 0.05 * rng.standard_normal(150)
    points = np.linspace(0.2, 5.8, 200)
    for true, inside in ((2 * points, 0.9), (2 * points + np.sin(2 * points), 0.85)):
        y = np.interp(X[:, 0], points, true) + noise
        training = training_of(X, y)
        (law,) = laws_of(training, "2*x1")
        std = make_band(law.expression, [Alternative(law, 1.0)], training).std({"x1": torch.tensor(points)})
        assert np.mean(np.abs(2 * points - true) <= 1.96 * std) >= inside
        assert std.max() < 2


def test_where_a_law_is_not_defined_there_is_no_band(near_zero: Training) -> None:
    (law,) = laws_of(near_zero, "x1")
    odd = Alternative(Candidate(parse("x1 + 0*log(x1)"), law.loss), 1.0)
    band = make_band(odd.law.expression, [odd], near_zero)
    assert np.isnan(band.std({"x1": torch.tensor([-1.0], dtype=torch.float64)})).all()
