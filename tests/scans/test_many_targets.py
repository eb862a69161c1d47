"""The best pairs of many targets, against least squares for every pair and every target."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from symenum.core.budget import NO_LIMIT, Budget
from symenum.scans import many_targets
from symenum.scans.many_targets import Group, PairBank, best_pairs_of_targets


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(many_targets, "BLOCK", 5)  # so that rows have several units


def random(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def r_squared(terms, t, root):
    """Of the least-squares fit of t by the terms (k, n) and 1, rows weighted by root²."""
    A = torch.cat([terms, torch.ones_like(t)[None]]).T * root[:, None]
    weight = root.square() / root.square().sum()
    centred = (t - (t * weight).sum()) * root
    solution = torch.linalg.lstsq(A, (t * root)[:, None]).solution
    left = t * root - (A @ solution)[:, 0]
    return 1 - float(left.square().sum() / centred.square().sum())


def brute_force(bank, groups, k):
    """R² of the k best pairs of each target, the best first."""
    out = []
    for group in groups:
        for t in group.values:
            found = []
            for i, j in itertools.product(range(len(bank.left)), range(len(bank.right))):
                if bank.same and j < i + bank.terms:
                    continue
                v, w = bank.left[i], bank.right[j]
                terms = torch.stack([v, w]) if bank.terms else (v * w)[None]
                found.append((r_squared(terms, t, group.root), i, j))
            out.append(sorted(found, reverse=True)[:k])
    return out


def as_lists(found, count):
    rows = list(zip(found.target.tolist(), found.r_squared.tolist(), found.i.tolist(), found.j.tolist(), strict=True))
    return [[row[1:] for row in rows if row[0] == target] for target in range(count)]


def check(bank, groups, k):
    found = as_lists(best_pairs_of_targets(bank, groups, k, NO_LIMIT), sum(len(group.values) for group in groups))
    for ours, theirs in zip(found, brute_force(bank, groups, k), strict=True):
        assert [row[1:] for row in ours] == [row[1:] for row in theirs]
        assert [row[0] for row in ours] == pytest.approx([row[0] for row in theirs], abs=1e-9)


@pytest.mark.parametrize("terms", [False, True])
@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize(("rows", "samples", "k"), [(7, 9, 1), (12, 20, 3)])
def test_the_best_pairs_are_those_of_a_brute_force(terms, same, rows, samples, k):
    V = random(rows, samples, seed=1)
    bank = PairBank(V, V if same else random(rows + 3, samples, seed=2), terms, same)
    weights = random(2, samples, seed=3).abs()  # two groups of targets, with weights of their own
    check(bank, [Group(random(4, samples, seed=4 + at), root) for at, root in enumerate(weights)], k)


def test_a_target_that_is_a_pair_is_explained_whole():
    V = random(20, 12, seed=5)
    root = random(12, seed=6).abs()
    targets = torch.stack([3 * V[4] * V[17] - 2, 0.5 - V[9] * V[9]])
    found = best_pairs_of_targets(PairBank(V, V, False, True), [Group(targets, root)], 1, NO_LIMIT)
    assert list(zip(found.i.tolist(), found.j.tolist(), strict=True)) == [(4, 17), (9, 9)]
    assert found.r_squared.tolist() == pytest.approx([1, 1], abs=1e-12)


@given(st.integers(0, 10_000))
def test_scale_and_offset_of_targets_and_rows_change_nothing(seed):
    V, t, root = random(6, 8, seed=seed), random(1, 8, seed=seed + 1), random(8, seed=seed + 2).abs() + 0.1
    scale = random(6, 1, seed=seed + 3)
    plain = best_pairs_of_targets(PairBank(V, V, False, True), [Group(t, root)], 2, NO_LIMIT)
    scaled = PairBank(V * scale, V * scale, False, True)
    other = best_pairs_of_targets(scaled, [Group(5 - 3 * t, root)], 2, NO_LIMIT)
    torch.testing.assert_close(plain.r_squared, other.r_squared, rtol=0, atol=1e-9)


def test_constant_rows_and_constant_targets_make_no_pair():
    V = torch.ones(3, 10, dtype=torch.float64)
    bank = PairBank(V, V, False, True)
    assert not len(best_pairs_of_targets(bank, [Group(random(2, 10, seed=7), V[0])], 1, NO_LIMIT).i)
    bank = PairBank(random(3, 10, seed=8), random(3, 10, seed=8), False, False)
    assert not len(best_pairs_of_targets(bank, [Group(V[:1] * 7, V[0])], 1, NO_LIMIT).i)


def test_a_scan_without_time_ends_with_what_it_has():
    budget = Budget()
    budget.end()
    V = random(30, 10, seed=9)
    assert not len(best_pairs_of_targets(PairBank(V, V, True, True), [Group(V[:3], V[0].abs())], 1, budget).i)


@pytest.mark.gpu
@pytest.mark.parametrize("terms", [False, True])
@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("samples", [9, 32, 64])
def test_a_gpu_finds_what_the_cpu_finds(monkeypatch, terms, same, samples):
    monkeypatch.setattr(many_targets, "BLOCK", 512)
    V = random(700, samples, seed=10)
    bank = PairBank(V, V if same else random(600, samples, seed=11), terms, same)
    weights = random(2, samples, seed=12).abs()
    groups = [Group(random(200, samples, seed=13 + at), root) for at, root in enumerate(weights)]
    ours = best_pairs_of_targets(bank, groups, 2, NO_LIMIT)
    device = torch.device("cuda")
    theirs = best_pairs_of_targets(bank.to(device), [group.to(device) for group in groups], 2, NO_LIMIT).cpu()
    torch.testing.assert_close(theirs.r_squared, ours.r_squared, rtol=0, atol=1e-9)
    assert torch.equal(theirs.target, ours.target)
