"""Screening: the rows that are drawn, and what is found on them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from symenum import PSRN
from symenum.enumeration.screening import SCREEN_FROM, select_rows
from symenum.enumeration.target import Target
from symenum.expressions import evaluate


def target_of(y, weight=None):
    y = torch.as_tensor(y, dtype=torch.float64)
    weight = torch.ones(len(y), dtype=torch.float64) if weight is None else torch.as_tensor(weight)
    return Target(y, weight / weight.sum())


def test_the_mean_of_the_selection_estimates_the_mean_of_all_rows():
    generator = torch.Generator().manual_seed(3)
    y = torch.randn(20_000, generator=generator, dtype=torch.float64).exp() ** 2  # heavy-tailed
    target = target_of(y)
    rows, few = select_rows(target, 512)
    assert len(rows) <= 512
    assert few.mean_square == pytest.approx(target.mean_square, rel=0.15)
    assert float((few.weight * few.y).sum()) == pytest.approx(float((target.weight * y).sum()), rel=0.15)


def test_rows_of_great_weight_are_drawn_and_their_weights_sum_to_one():
    weight = np.ones(5_000)
    weight[17] = 1e5
    rows, few = select_rows(target_of(np.arange(5_000.0), weight), 256)
    assert 17 in rows.tolist()
    assert float(few.weight.sum()) == pytest.approx(1.0)


def test_few_rows_are_all_taken():
    rows, few = select_rows(target_of([1.0, 2.0, 3.0]), 256)
    assert rows.tolist() == [0, 1, 2]
    assert few.y.tolist() == [1.0, 2.0, 3.0]


def planted(net, generator, rows):
    """A random candidate of the net that is finite on random data, with 5% noise, and its loss."""
    while True:
        x = 4 * torch.rand(rows, net.inputs, generator=generator, dtype=torch.float64) - 1
        law = net.expression(int(torch.randint(net.sizes[-1], (1,), generator=generator)))
        clean = evaluate(law, {f"x{i + 1}": column for i, column in enumerate(x.T)})
        if float(clean.abs().max()) < 1e100 and float(clean.std()) > 1e-9 * float(clean.abs().max()):
            y = clean + 0.05 * clean.std() * torch.randn(rows, generator=generator, dtype=torch.float64)
            return x, y, float((clean - y).square().mean())


@pytest.mark.parametrize("problems", [3, pytest.param(100, marks=pytest.mark.slow)])
def test_screening_finds_the_best_candidate_of_planted_laws(problems):
    net = PSRN(2, "koza", 3)
    generator = torch.Generator().manual_seed(problems)
    found = []
    while len(found) < problems:
        x, y, loss = planted(net, generator, 2_500)
        exact = net.search(x, y, k=1, mode="exact")
        if exact[0].loss < loss * (1 - 1e-9):
            continue  # a law with poles, whose noise hides it: something else is the best by chance
        screened = net.search(x, y, k=5, mode="screen")
        found.append(bool(screened) and screened[0].loss <= exact[0].loss * (1 + 1e-9))
    assert sum(found) >= 0.99 * problems


def test_many_rows_are_screened_unless_the_caller_says_otherwise(monkeypatch):
    from symenum.enumeration.one_pass import Pass

    used = []
    monkeypatch.setattr(Pass, "screen", lambda self, k: used.append("screen"))
    monkeypatch.setattr(Pass, "exact", lambda self, k: used.append("exact"))
    net = PSRN(1, "arithmetic", 1)
    for rows, mode in ((SCREEN_FROM, "auto"), (SCREEN_FROM - 1, "auto"), (SCREEN_FROM, "exact"), (300, "screen")):
        net.search(np.linspace(1, 2, rows), np.ones(rows), mode=mode)
    net.search(np.linspace(1, 2, 20), np.ones(20), mode="screen")  # nothing to save on so few
    assert used == ["screen", "exact", "exact", "screen", "exact"]


def test_the_order_of_the_rows_does_not_matter_to_a_sharp_law():
    generator = torch.Generator().manual_seed(1)
    x = 1 + torch.rand(4_000, 2, generator=generator, dtype=torch.float64)
    y = x[:, 0] * torch.sin(x[:, 1])
    order = torch.argsort(y)
    net = PSRN(2, "koza", 2)
    assert str(net.search(x, y, k=1)[0].expression) == str(net.search(x[order], y[order], k=1)[0].expression)
