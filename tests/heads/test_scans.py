"""The scans of the heads find what numpy.linalg.lstsq on every candidate finds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from heads.least_squares_brute_force import assert_top_recalled, banks, residual
from hypothesis import given, settings

from symenum.core.budget import Budget
from symenum.expressions import Variable
from symenum.heads.affine import best_affine
from symenum.heads.one_feature import FAMILIES, scan_families
from symenum.operators import get_operator, get_operators
from symenum.scans.best_pairs import bounded_slices
from symenum.scans.pairs import best_pairs, best_single
from symenum.scans.products import Products, build_factors
from symenum.scans.projection import orthonormal

few = settings(max_examples=40)

Drawn = tuple[np.ndarray, np.ndarray, np.ndarray]


def tensors(V: np.ndarray, t: np.ndarray, weight: np.ndarray) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return torch.from_numpy(V), torch.from_numpy(t), torch.from_numpy(np.sqrt(weight))


@pytest.mark.parametrize(("count", "rows"), [(0, 5), (3, 5), (100_001, 20), (5, 10**7), (4, 0)])
def test_pieces_cover_every_pair_once(count: int, rows: int) -> None:
    numbers = [number for piece in bounded_slices(count, rows) for number in range(count)[piece]]
    assert numbers == list(range(count))
    assert all(len(range(count)[piece]) * rows <= max(rows, 1 << 20) for piece in bounded_slices(count, rows))


@given(banks())
@few
def test_two_terms_recalls_the_best_pairs(drawn: Drawn) -> None:
    V, t, weight = drawn
    values, target, root = tensors(*drawn)
    found = best_pairs(values * root, target * root, orthonormal(root[None]), width=16)
    pairs = list(zip(found.i.tolist(), found.j.tolist(), strict=True))
    assert all(i < j for i, j in pairs)
    assert len(set(pairs)) == len(pairs)
    truth = {(i, j): residual([V[i], V[j]], t, weight) for i, j in itertools.combinations(range(len(V)), 2)}
    assert_top_recalled(truth, dict(zip(pairs, found.residual.tolist(), strict=True)))


@given(banks())
@few
def test_two_terms_of_different_banks_recalls_the_best_pairs(drawn: Drawn) -> None:
    V, t, weight = drawn
    values, target, root = tensors(*drawn)
    W = values[: len(V) // 2 + 1] * (target - target.mean())
    found = best_pairs(values * root, target * root, orthonormal(root[None]), W * root, width=16)
    pairs = dict(zip(zip(found.i.tolist(), found.j.tolist(), strict=True), found.residual.tolist(), strict=True))
    truth = {
        (i, j): residual([V[i], W[j].numpy()], t, weight) for i, j in itertools.product(range(len(V)), range(len(W)))
    }
    assert_top_recalled(truth, pairs)


@given(banks())
@few
def test_one_term_recalls_the_best_rows(drawn: Drawn) -> None:
    V, t, weight = drawn
    values, target, root = tensors(*drawn)
    which, left = best_single(values * root, target * root, orthonormal(root[None]), 10)
    truth = {(i, i): residual([V[i]], t, weight) for i in range(len(V))}
    assert_top_recalled(truth, {(i, i): r for i, r in zip(which.tolist(), left.tolist(), strict=True)})


@pytest.mark.parametrize("name", ["mul", "div", "add", "sub", "pow"])
@given(drawn=banks(positive=True))
@settings(max_examples=25)
def test_affine_recalls_the_best_pairs(name: str, drawn: Drawn) -> None:
    V, t, weight = drawn
    if name == "pow":
        V = V / np.abs(V).max(axis=1, keepdims=True)
    values, target, root = tensors(V, t, weight)
    functions = {"mul": np.multiply, "div": np.divide, "add": np.add, "sub": np.subtract, "pow": np.power}
    found = best_affine(values, target, root, get_operator(name), width=16)
    pairs = dict(zip(zip(found.i.tolist(), found.j.tolist(), strict=True), found.residual.tolist(), strict=True))
    half = name in ("mul", "add", "sub")
    truth = {}
    for i, j in itertools.product(range(len(V)), repeat=2):
        f = functions[name](V[i], V[j])
        spread = np.ptp(f) / np.abs(f).max() if np.abs(f).max() > 0 else 0.0
        if (i <= j or not half) and spread > 1e-9:  # v/v is constant, and so is v - v
            truth[i, j] = residual([f], t, weight)
    assert_top_recalled(truth, pairs)


@given(banks(positive=True))
@settings(max_examples=25)
def test_one_feature_recalls_the_best_of_every_family(drawn: Drawn) -> None:
    V, t, weight = drawn
    values, target, root = tensors(*drawn)
    (hits,) = scan_families(values, root, target[None], 16, Budget())
    found = {
        (f, i): r for f, i, r in zip(hits.family.tolist(), hits.feature.tolist(), hits.residual.tolist(), strict=True)
    }
    companions = [None, np.reciprocal, np.square, lambda v: np.log(np.abs(v))]
    assert len(companions) == len(FAMILIES)
    truth = {
        (f, i): residual([v] if companion is None else [v, companion(v)], t, weight)
        for f, companion in enumerate(companions)
        for i, v in enumerate(V)
    }
    assert_top_recalled(truth, found)


@pytest.mark.parametrize("tier", [1, 2, 3, 4])
def test_products_are_all_scanned_and_each_once(tier: int) -> None:
    generator = torch.Generator().manual_seed(tier)
    X = 1 + torch.rand(3, 25, generator=generator, dtype=torch.float64)
    y = torch.randn(25, generator=generator, dtype=torch.float64)
    factors = build_factors([Variable(f"x{i}") for i in range(3)], X, get_operators("arithmetic"))
    products = Products(factors, torch.full((25,), 0.2, dtype=torch.float64))
    found = products.screen(y, tier, 10_000)
    expected = {
        ids
        for ids in itertools.combinations_with_replacement(range(len(factors.expressions)), tier)
        if not factors.cancels(ids)
    }
    assert len(found) == len(set(found))
    assert set(found) == expected
    values = factors.products(found)
    score = (values @ y).square() / values.square().sum(dim=1)
    assert torch.equal(torch.argsort(score, descending=True)[:10], torch.arange(10)[: len(score)])
