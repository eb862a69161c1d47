"""Chi-square, and constants fitted where inputs have errors too."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from symenum.expressions import parse
from symenum.fitting.effective_variance import MeasurementErrors, chi_square, fit_effective_variance
from symenum.fitting.free_constants import free_constants

ROWS = 400


def noisy_growth(x_noise: float, seed: int = 0) -> tuple[dict[str, torch.Tensor], torch.Tensor, MeasurementErrors]:
    """y = exp(0.4 x + 1) with errors of 1% in y and of `x_noise` in x."""
    random = np.random.default_rng(seed)
    x = random.uniform(1, 6, ROWS)
    y = np.exp(0.4 * x + 1)
    error = 0.01 * y
    measured = torch.tensor(x + x_noise * random.standard_normal(ROWS))
    errors = MeasurementErrors(torch.tensor(error), {"x": torch.full((ROWS,), x_noise, dtype=torch.float64)})
    return {"x": measured}, torch.tensor(y + error * random.standard_normal(ROWS)), errors


def weights(errors: MeasurementErrors) -> torch.Tensor:
    weight = errors.y.square().reciprocal()
    return weight / weight.sum()


def test_effective_errors_are_those_of_y_and_of_the_inputs_along_the_slope() -> None:
    x = torch.tensor([1.0, 2.0], dtype=torch.float64)
    errors = MeasurementErrors(torch.tensor([3.0, 3.0], dtype=torch.float64), {"x": torch.tensor([2.0, 1.0]).double()})
    effective = errors.effective(parse("x**2 + z"), {"x": x, "z": x})
    assert effective.tolist() == pytest.approx([5.0, 5.0])  # √(9 + (2·1·2)²) and √(9 + (2·2·1)²)
    assert MeasurementErrors(errors.y).effective(parse("x"), {"x": x}).tolist() == [3.0, 3.0]


def test_chi_square_of_the_true_law_is_about_the_number_of_rows() -> None:
    columns, y, errors = noisy_growth(0.2)
    law = parse("exp(0.4*x + 1)")
    assert chi_square(law, columns, y, errors) == pytest.approx(ROWS, rel=0.25)
    assert chi_square(law, columns, y, MeasurementErrors(errors.y)) > 5 * ROWS
    assert chi_square(parse("log(-x)"), columns, y, errors) == float("inf")


def test_the_fit_is_not_too_flat_where_inputs_have_errors() -> None:
    """Weighted least squares is: by 1/(1 + 0.3²/1.44²), that is at a slope of 0.383."""
    slopes = []
    for seed in range(5):
        columns, y, errors = noisy_growth(0.3, seed)
        start = parse("exp(0.38*x + 1.1)")
        (law,) = fit_effective_variance([start], columns, y, weights(errors), errors)
        assert chi_square(law, columns, y, errors) < chi_square(start, columns, y, errors)
        slopes.append(free_constants(law, integers=False)[0])
    assert np.mean(slopes) == pytest.approx(0.4, abs=0.006)


def test_for_a_straight_line_it_is_demings_regression() -> None:
    random = np.random.default_rng(1)
    x = random.normal(0, 2, ROWS)
    measured = torch.tensor(x + 0.5 * random.standard_normal(ROWS))
    y = torch.tensor(3 * x + 1 + 1.0 * random.standard_normal(ROWS))
    errors = MeasurementErrors(torch.ones(ROWS).double(), {"x": torch.full((ROWS,), 0.5).double()})
    (law,) = fit_effective_variance([parse("2.5*x + 0.5")], {"x": measured}, y, weights(errors), errors)
    (sxx, sxy), (_, syy) = np.cov(measured.numpy(), y.numpy())
    ratio = (1.0 / 0.5) ** 2
    deming = (syy - ratio * sxx + np.sqrt((syy - ratio * sxx) ** 2 + 4 * ratio * sxy**2)) / (2 * sxy)
    slope, offset = free_constants(law, integers=False)
    assert slope == pytest.approx(deming, rel=1e-5)
    assert offset == pytest.approx(float(y.mean() - deming * measured.mean()), abs=1e-4)


def test_laws_without_constants_or_values_stay_as_they_are() -> None:
    columns, y, errors = noisy_growth(0.2)
    laws = [parse("x**2"), parse("log(0.5 - x)")]
    assert fit_effective_variance(laws, columns, y, weights(errors), errors) == laws


def test_without_errors_of_inputs_nothing_moves() -> None:
    columns, y, errors = noisy_growth(0.2)
    law = parse("exp(0.38*x + 1.1)")
    assert fit_effective_variance([law], columns, y, weights(errors), MeasurementErrors(errors.y)) == [law]
