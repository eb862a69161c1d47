"""The kernel of bounds for many targets, without a GPU: through Triton's interpreter, against the CPU's best R²."""

from __future__ import annotations

import pytest
import torch
from engine.cuda.interpreted import CPU

from symenum.core.budget import NO_LIMIT, Budget
from symenum.scans import cuda_many_targets, many_targets
from symenum.scans.many_targets import Group, PairBank, UnitTargets

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the interpreter's own divisions by zero


@pytest.fixture(autouse=True)
def _small_tiles(monkeypatch):
    for module in (many_targets, cuda_many_targets):
        monkeypatch.setattr(module, "BLOCK", 32)
    monkeypatch.setattr(cuda_many_targets, "_TARGETS", 16)
    monkeypatch.setattr(cuda_many_targets, "_ROWS", 16)


def random(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64, device=CPU)


@pytest.mark.parametrize("terms", [False, True])
@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("samples", [9, 20])
def test_no_pair_exceeds_the_bound_of_its_unit_and_bounds_are_tight(terms, same, samples):
    V = random(14, samples, seed=1)
    bank = PairBank(V, V if same else random(40, samples, seed=2), terms, same)
    side = UnitTargets.of(Group(random(21, samples, seed=3), random(samples, seed=4).abs()))
    (best,) = many_targets._bounds(bank, [side], NO_LIMIT)
    (bounds,) = cuda_many_targets.bounds(bank, [side], NO_LIMIT)
    assert bool((bounds >= best - 1e-9).all())
    assert bool((bounds <= best + 1e-4).all())
    assert bool(((bounds > 0) == (best > 0)).all())


def test_units_that_were_not_scanned_have_no_bound():
    budget = Budget()
    budget.end()
    V = random(14, 9, seed=5)
    side = UnitTargets.of(Group(V[:3], V[0].abs()))
    (bounds,) = cuda_many_targets.bounds(PairBank(V, V, False, True), [side], budget)
    assert not bool(bounds.any())
