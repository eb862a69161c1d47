"""Unknown functions inside a known form: their curves equal them, up to what no data can tell."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from symenum.estimator.template_text import read_template
from symenum.expressions.template import Template
from symenum.fitting.smooth_functions import SmoothFit, fit_smooth, make_bases, needed_values

ROWS = 120
RNG = np.random.default_rng(0)
COLUMNS = {name: torch.from_numpy(RNG.uniform(0.5, 2.5, ROWS)) for name in ("x1", "x2", "x3")}
X1, X2, X3 = (COLUMNS[name].numpy() for name in COLUMNS)
WEIGHT = torch.full((ROWS,), 1 / ROWS, dtype=torch.float64)


def fitted(text: str, y: np.ndarray) -> tuple[Template, SmoothFit]:
    template = read_template(text, list(COLUMNS), {})
    assert template is not None
    bases = make_bases(template.calls, COLUMNS, ROWS)
    starts = dict.fromkeys(template.constants)
    found = fit_smooth(template.skeleton, template.calls, starts, COLUMNS, torch.from_numpy(y), WEIGHT, bases)
    assert found is not None
    return template, found


@pytest.mark.parametrize(
    ("text", "y"),
    [
        ("f(x1) + g(x2, x3)", np.sin(2 * X1) + X2 * np.exp(-X3)),
        ("a*f(x1)*g(x2) + h(x3)", np.sin(2 * X1) * np.log(X2 + 1) + X3**2),
        ("exp(f(x1) + g(x2))", np.exp(np.sin(2 * X1) - 1 / X2)),
        ("f(x1)/(1 + g(x2))", np.cosh(X1) / (1 + X2**2)),
        ("f(x1) - f(x2)", np.sin(2 * X1) - np.sin(2 * X2)),
    ],
)
def test_curves_explain_y_to_four_digits(text: str, y: np.ndarray) -> None:
    _, found = fitted(text, y)
    assert found.loss**0.5 < 1e-3 * y.std()
    assert found.numbers < ROWS / 2


def test_a_factor_is_found_up_to_its_scale_and_a_term_up_to_its_offset() -> None:
    template, found = fitted("f(x1)*g(x2) + h(x3)", np.sin(2 * X1) * np.log(X2 + 1) + X3**2)
    f, _, h = (found.values[call.place] for call in template.calls)
    scale = float(f @ np.sin(2 * X1) / (f @ f))
    assert scale * f == pytest.approx(np.sin(2 * X1), abs=0.02)
    assert h - h.mean() == pytest.approx(X3**2 - (X3**2).mean(), abs=0.02)


def test_noise_is_not_followed() -> None:
    noise = 0.1 * RNG.normal(size=ROWS)
    _, found = fitted("f(x1) + g(x2)", np.sin(2 * X1) + X2**2 + noise)
    clean = (np.sin(2 * X1) + X2**2) - (torch.zeros(ROWS).numpy() + found.residual * 0)
    fit = np.sin(2 * X1) + X2**2 + noise - found.residual
    assert np.std(fit - clean) < 0.06


def test_needed_values_make_y_exact_in_each_row_inside_a_known_function() -> None:
    y = np.exp(np.sin(2 * X1) - 1 / X2) + 0.05 * RNG.normal(size=ROWS).clip(-1, 1)
    y = np.maximum(y, 0.1)
    template, found = fitted("exp(f(x1) + g(x2))", y)
    first, second = template.calls
    values, _ = needed_values(found, template.skeleton, first.place, COLUMNS, torch.from_numpy(y))
    assert np.exp(values + found.values[second.place]) == pytest.approx(y, rel=1e-6)


def test_a_fit_that_begins_at_another_keeps_its_signs_and_scales() -> None:
    y = np.sin(2 * X1) * (1 + X2**2)
    template, found = fitted("f(x1)*g(x2)", y)
    bases = make_bases(template.calls, COLUMNS, ROWS)
    again = fit_smooth(template.skeleton, template.calls, {}, COLUMNS, torch.from_numpy(y), WEIGHT, bases, begin=found)
    assert again is not None
    for place, values in found.values.items():
        assert again.values[place] == pytest.approx(values, rel=0.05, abs=0.02)


def test_few_rows_get_few_functions() -> None:
    template = read_template("f(x1) + g(x2, x3)", list(COLUMNS), {})
    assert template is not None
    bases = make_bases(template.calls, COLUMNS, 30)
    assert sum(len(basis.degrees) for basis in bases.values()) <= 15


def test_a_wide_positive_argument_is_taken_by_its_logarithm() -> None:
    wide = {"x1": torch.logspace(-3, 3, ROWS, dtype=torch.float64)}
    template = read_template("f(x1)", ["x1"], {})
    assert template is not None
    bases = make_bases(template.calls, wide, ROWS)
    assert bases["f"].logarithmic == (True,)
    y = 1 / (1 + wide["x1"])
    found = fit_smooth(template.skeleton, template.calls, {}, wide, y, WEIGHT, bases)
    assert found is not None
    assert found.loss**0.5 < 0.01 * float(y.std())
