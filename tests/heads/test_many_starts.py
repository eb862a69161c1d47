"""Nonlinear fits from many starts: every start ends at the law, memory is bounded, and time is kept."""

from __future__ import annotations

import pytest
import torch

from symenum.core.budget import Budget
from symenum.fitting.many_starts import Starts, race, solve


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
