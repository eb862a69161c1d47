"""Errors are finite where, and only where, the data determine the constants (their size: see test_refine)."""

from __future__ import annotations

import math

import pytest
import torch

from symenum.expressions import parse
from symenum.fitting import standard_errors

X = {"x": torch.linspace(-1, 2, 40, dtype=torch.float64)}


def test_a_line_has_the_errors_of_linear_regression() -> None:
    noise = torch.randn(40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    design = torch.stack([X["x"], torch.ones(40, dtype=torch.float64)], dim=1)
    y = design @ torch.tensor([2.5, 0.5], dtype=torch.float64) + noise
    slope, offset = torch.linalg.lstsq(design, y).solution.tolist()
    variance = (y - slope * X["x"] - offset).square().sum() / 38
    wanted = (torch.linalg.inv(design.T @ design).diagonal() * variance).sqrt()
    assert standard_errors(parse(f"{slope!r}*x + {offset!r}"), X, y) == pytest.approx(wanted.tolist())


@pytest.mark.parametrize("text", ["1.5*(2.5*x)", "x + 0.0*sin(0.5*x)", "0.5*log(x)"])
def test_what_the_data_do_not_determine_has_no_finite_error(text: str) -> None:
    assert math.inf in standard_errors(parse(text), X, X["x"])


def test_without_constants_or_without_rows_to_spare_nothing_is_made_up() -> None:
    few = {"x": X["x"][:2]}
    assert standard_errors(parse("sin(x)"), X, X["x"]) == ()
    assert standard_errors(parse("2.5*x + 0.5"), few, few["x"]) == (math.inf, math.inf)
