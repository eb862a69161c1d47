"""The kernels of the heads that judge pairs, without a GPU: through Triton's interpreter, against the CPU's scans."""

from __future__ import annotations

import pytest
import torch
from engine.cuda.interpreted import CPU

from symenum.core.budget import Budget
from symenum.heads.affine import best_affine, rescore_affine
from symenum.operators import get_operator
from symenum.scans import cuda_pairs
from symenum.scans.cuda_pairs import AffineProducts, AffineSums, PairScan, Strip, TwoTermPairs
from symenum.scans.pair_tests import AffineSumTest
from symenum.scans.pairs import rescore_pairs, scan_pairs
from symenum.scans.projection import orthonormal, unit_orthogonal_part

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the interpreter's own divisions by zero


@pytest.fixture(autouse=True)
def _few_programs(monkeypatch):
    monkeypatch.setattr(cuda_pairs, "_PROGRAMS", 2)  # one after another in the interpreter


def unit_rows(count, samples, seed, spread=1.0):
    """Centred unit rows; with a small spread all of them are nearly parallel."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(1, samples, generator=generator, dtype=torch.float64)
    rows = rows + spread * torch.randn(count, samples, generator=generator, dtype=torch.float64)
    return unit_orthogonal_part(rows, orthonormal(torch.ones(1, samples, dtype=torch.float64)))[0]


def bounds_of(test):
    rows, columns = test.shape
    strip = Strip(0, rows, columns // test.block)
    units = torch.full((rows, strip.blocks), float("inf"))
    test.bounds(strip, units)
    return units


@pytest.mark.parametrize("spread", [1.0, 1e-2, 1e-4])
@pytest.mark.parametrize(("samples", "same"), [(9, True), (20, False), (40, False), (70, False)])
def test_no_pair_of_terms_has_less_loss_than_its_unit(samples, same, spread):
    C = unit_rows(70, samples, 1, spread)
    D = C if same else unit_rows(150, samples, 2, spread)
    target = unit_rows(1, samples, 3)[0]
    units = bounds_of(TwoTermPairs(C, D, target, same))
    i, j = torch.cartesian_prod(torch.arange(len(C)), torch.arange(len(D))).T
    if same:
        i, j = torch.triu_indices(len(C), len(C), 1)
    loss = rescore_pairs(C, D, target, i, j).square()
    assert bool((units[i, j // 128] <= loss * (1 + 1e-6)).all())
    if spread == 1.0:  # where rows are not parallel, the bounds say something
        lowest = torch.full(units.shape, float("inf"), dtype=torch.float64)
        lowest.view(-1).scatter_reduce_(0, units.shape[1] * i + j // 128, loss, reduce="amin")
        assert float((lowest - units)[torch.isfinite(lowest)].max()) < 1e-2


@pytest.mark.parametrize("same", [True, False])
def test_the_best_pairs_of_terms_are_the_cpus(same):
    samples, width = 8, 40
    C = unit_rows(60, samples, 4)
    D = C if same else unit_rows(50, samples, 5)
    target = unit_rows(1, samples, 6)[0]

    def exact(i, j):
        return rescore_pairs(C, D, target, i, j).square()

    found = PairScan(TwoTermPairs(C, D, target, same)).best(exact, width, diagonal=not same, budget=Budget())
    truth = scan_pairs(C, D, target, same=same, width=width, budget=Budget())
    ours, theirs = (exact(*pairs).sort().values for pairs in (found, truth))
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=0)
    assert not same or bool((found[0] < found[1]).all())


@pytest.mark.parametrize("name", ["mul", "div"])
def test_the_best_products_are_the_cpus(monkeypatch, name):
    monkeypatch.setattr(cuda_pairs, "_MULTIPLE", 64)
    generator = torch.Generator().manual_seed(7)
    V = torch.randn(30, 6, generator=generator, dtype=torch.float64, device=CPU) + 0.5
    t = torch.randn(6, generator=generator, dtype=torch.float64)
    root = torch.full((6,), 6**-0.5, dtype=torch.float64)
    target = unit_orthogonal_part((t * root)[None], orthonormal(root[None]))[0][0]
    operator = get_operator(name)
    W = V if name == "mul" else V.reciprocal()

    def exact(i, j):
        return rescore_affine(V, target, root, operator, i, j).square()

    scan = PairScan(AffineProducts(V, W, target, root, same=name == "mul"))
    i, j = scan.best(exact, 30, diagonal=name == "mul", budget=Budget())
    truth = best_affine(V, t, root, operator, width=30)
    torch.testing.assert_close(exact(i, j).sqrt().sort().values, truth.residual, rtol=1e-9, atol=0)


@pytest.mark.parametrize(
    ("name", "scale", "samples"),
    [("add", 1.0, 7), ("sub", 1.0, 7), ("sub", 1e-9, 7), ("add", 1.0, 30), ("sub", 1.0, 30), ("sub", 1e-9, 70)],
)
def test_the_best_sums_are_the_cpus(name, scale, samples):
    generator = torch.Generator().manual_seed(8)
    V = torch.randn(40, samples, generator=generator, dtype=torch.float64)
    V[20:] *= scale  # beside large rows
    V[1] = V[0] + 1e-7 * V[1]  # a difference that nearly cancels
    t = torch.randn(samples, generator=generator, dtype=torch.float64)
    root = torch.full((samples,), samples**-0.5, dtype=torch.float64)
    target = unit_orthogonal_part((t * root)[None], orthonormal(root[None]))[0][0]
    sign = 1 if name == "add" else -1
    test = AffineSums(AffineSumTest(V, target, root, sign))

    def exact(i, j):
        return rescore_affine(V, target, root, get_operator(name), i, j).square()

    i, j = torch.triu_indices(len(V), len(V), 0 if name == "add" else 1)
    assert bool((bounds_of(test)[i, j // 128] <= exact(i, j) * (1 + 1e-6)).all())
    i, j = PairScan(test).best(exact, 30, diagonal=name == "add", budget=Budget())
    truth = best_affine(V, t, root, get_operator(name), width=30)
    torch.testing.assert_close(exact(i, j).sqrt().sort().values, truth.residual, rtol=1e-9, atol=0)


@pytest.mark.parametrize(
    ("size", "around"),
    [*((10.0**-k, 0.0) for k in (0, 6, 10, 11, 12, 13, 15, 30, 100)), *((10.0**-k, 1.0) for k in (6, 10, 11, 12, 13))],
)
def test_small_sums_beside_large_rows_are_not_excluded(size, around):
    """Two rows that are the law, alone in their units; 1: nearly constant ones, that have few digits left."""
    generator = torch.Generator().manual_seed(9)
    V = torch.randn(130, 9, generator=generator, dtype=torch.float64)
    V[128:] = V[128:] * size + around
    root = torch.full((9,), 1 / 3, dtype=torch.float64)
    centred = V[128:] - V[128:].mean(dim=1, keepdim=True)
    target = unit_orthogonal_part((centred.sum(dim=0) * root)[None], orthonormal(root[None]))[0][0]
    units = bounds_of(AffineSums(AffineSumTest(V, target, root, 1)))
    assert float(units[128:130, 1].max()) < 1e-6
    assert size < 1 or float(units[:128, 0].min()) > 1e-3  # and others are


@pytest.mark.parametrize("error", [0.3, 0.9, 2.0])
def test_bounds_hold_where_an_inner_product_has_few_digits(monkeypatch, error):
    monkeypatch.setattr(cuda_pairs, "_SPLIT_ERROR", error)  # as that of millions of samples
    V = unit_rows(40, 9, 10)
    target = unit_rows(1, 9, 11)[0]
    root = torch.full((9,), 1 / 3, dtype=torch.float64)
    units = bounds_of(AffineSums(AffineSumTest(V, target, root, 1)))
    i, j = torch.triu_indices(40, 40)
    exact = rescore_affine(V, target, root, get_operator("add"), i, j).square()
    assert bool((units[i, j // 128] <= exact * (1 + 1e-6)).all())
