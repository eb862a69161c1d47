"""The tests by matrix products let every pair of the true best pass: against numpy.linalg.lstsq for each pair.

Small banks would be judged exactly at once; here the tiles are made so small that the products must do the work.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from symenum.core.budget import Budget
from symenum.heads.affine import best_affine, rescore_affine
from symenum.operators import get_operator
from symenum.scans import best_pairs as scan
from symenum.scans.best_pairs import BestPairs
from symenum.scans.pair_tests import AffineProductTest, AffineSumTest, TwoTermTest
from symenum.scans.pairs import best_pairs, rescore_pairs
from symenum.scans.projection import orthonormal

BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}


@pytest.fixture(autouse=True)
def _small_tiles(monkeypatch):
    monkeypatch.setattr(scan, "_MAX_UNTESTED", 0)
    monkeypatch.setattr(scan, "TILE", (16, 24))


def bank(kind, seed, columns=40, rows=12):
    random = np.random.default_rng(seed)
    V = random.normal(size=(columns, rows))
    if kind == "collinear":
        V[columns // 2 :] = V[: columns - columns // 2] * 2.5 + 1e-7 * random.normal(
            size=(columns - columns // 2, rows)
        )
    if kind == "offset":
        V += 1e6 * random.normal(size=(columns, 1))
    if kind == "scales":
        V *= 10.0 ** random.uniform(-8, 8, (columns, 1))
    if kind == "heavy":
        V = np.tan(1.5 * np.tanh(V))
    return V, random.normal(size=rows), random.uniform(0.2, 2.0, rows)


def residual(columns, y, weight):
    """The weighted residual norm of y on the columns and 1, relative to its spread."""
    root = np.sqrt(weight / weight.sum())
    A = np.column_stack([*(column / np.abs(column).max() for column in columns), np.ones(len(y))])
    A, b = A * root[:, None], y * root
    left = b - A @ np.linalg.lstsq(A, b, rcond=None)[0]
    return np.linalg.norm(left) / np.linalg.norm(b - root * (root @ b))


def tensors(V, y, weight):
    root = torch.from_numpy(np.sqrt(weight / weight.sum()))
    return torch.from_numpy(V), torch.from_numpy(y), root


kinds = pytest.mark.parametrize("kind", ["plain", "collinear", "offset", "scales", "heavy"])


@kinds
@pytest.mark.parametrize("seed", range(4))
def test_two_terms_find_the_ten_best_pairs_of_least_squares(kind, seed):
    V, y, weight = bank(kind, seed)
    values, t, root = tensors(V, y, weight)
    found = best_pairs(values * root, t * root, orthonormal(root[None]), width=10)
    truth = sorted(residual((V[i], V[j]), y, weight) for i in range(len(V)) for j in range(i))[:10]
    np.testing.assert_allclose(found.residual.numpy(), truth, rtol=1e-6, atol=1e-9)


@kinds
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("seed", range(2))
def test_affine_finds_the_ten_best_pairs_of_least_squares(kind, name, seed):
    V, y, weight = bank(kind, seed)
    values, t, root = tensors(V, y, weight)
    found = best_affine(values, t, root, get_operator(name), width=10)
    half = name in ("add", "mul", "sub")
    truth = sorted(
        residual((BINARY[name](V[i], V[j]),), y, weight)
        for i in range(len(V))
        for j in range(i if half else 0, len(V))
        if not (i == j and name in ("sub", "div"))  # constant
    )[:10]
    np.testing.assert_allclose(found.residual.numpy(), truth, rtol=1e-6, atol=1e-9)


def test_a_row_with_a_zero_is_divided_and_never_divides():
    V, y, weight = bank("plain", 5)
    V[[3, 17, 30], 4] = 0.0
    values, t, root = tensors(V, y, weight)
    found = best_affine(values, t, root, get_operator("div"), width=10)
    divisors = [j for j in range(len(V)) if V[j].all()]
    truth = sorted((residual((V[i] / V[j],), y, weight), i, j) for i in range(len(V)) for j in divisors if i != j)[:10]
    np.testing.assert_allclose(found.residual.numpy(), [entry[0] for entry in truth], rtol=1e-6, atol=1e-9)
    assert list(zip(found.i.tolist(), found.j.tolist(), strict=True)) == [entry[1:] for entry in truth]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(["plain", "collinear", "heavy"]),
    tau=st.floats(0.01, 1 - 1e-12),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    alone=st.booleans(),
)
def test_no_pair_that_explains_tau_is_ever_turned_down(seed, kind, tau, dtype, alone):
    V, y, weight = bank(kind, seed, columns=14)
    if alone:  # one column reaches τ without a partner
        y = V[3] + 0.1 * y
        tau = 1 - residual((V[3],), y, weight) ** 2
    values, t, root = tensors(V, y, weight)
    t = t * root
    t = t - root * (root @ t)
    t = t / t.norm()
    C = values * root
    C = C - (C @ root)[:, None] * root
    C = C / C.norm(dim=1, keepdim=True)
    whole = slice(0, len(V))
    cases = [
        (TwoTermTest(C, C, t), lambda i, j: (V[i], V[j])),
        (AffineProductTest(values, values, t, root), lambda i, j: (V[i] * V[j],)),
        (AffineSumTest(values, t, root, -1), lambda i, j: (V[i] - V[j],)),
    ]
    for test, columns in cases:
        passes = test.prepare(tau, dtype)
        if passes is None:
            continue
        scores, bound = passes(whole, whole)
        for i in range(len(V)):
            for j in range(i):
                if 1 - residual(columns(i, j), y, weight) ** 2 >= tau * (1 + 1e-12):
                    assert float(scores[i, j]) >= bound


@pytest.mark.parametrize("name", ["mul", "add"])
def test_the_first_limit_comes_from_different_pairs(name):
    """A pair that counted twice, as (i, j) and (j, i), would make the limit too low."""
    V, y, weight = bank("plain", 1)
    values, t, root = tensors(V, y, weight)
    t = (t - t.mean()) / t.norm()
    test = AffineProductTest(values, values, t, root) if name == "mul" else AffineSumTest(values, t, root, 1)
    pairs = scan._promising(test, 30, same=True)
    assert len(pairs) == len(torch.unique(pairs)) >= 30
    assert bool((pairs // len(V) <= pairs % len(V)).all())


def test_an_ended_budget_ends_the_scan_with_what_there_is():
    V, y, weight = bank("plain", 0)
    values, t, root = tensors(V, y, weight)
    budget = Budget(stop=lambda: True)
    found = best_pairs(values * root, t * root, orthonormal(root[None]), width=10, budget=budget)
    assert len(found.i) <= 10
    assert bool(torch.isfinite(found.residual).all())


def test_the_best_pairs_do_not_depend_on_the_order_in_which_they_come() -> None:
    generator = torch.Generator().manual_seed(0)
    loss = torch.randint(12, (4000,), generator=generator).double()  # many are equal
    i, j = torch.arange(4000) // 50, torch.arange(4000) % 50
    kept = set()
    for _ in range(5):
        best = BestPairs(100)
        for part in torch.randperm(4000, generator=generator).split(700):
            best.add(loss[part], i[part], j[part])
        kept.add(tuple(sorted(zip(best.i.tolist(), best.j.tolist(), strict=True))))
    assert len(kept) == 1


def test_the_residual_of_a_pair_does_not_depend_on_the_pairs_beside_it() -> None:
    generator = torch.Generator().manual_seed(0)
    V = torch.randn(40, 33, generator=generator, dtype=torch.float64)
    target = V[0] / V[0].norm()
    root = torch.full((33,), 33**-0.5, dtype=torch.float64)
    i, j = torch.triu_indices(40, 40)
    product = get_operator("mul")
    affine = rescore_affine(V, target, root, product, i, j)
    pairs = rescore_pairs(V, V, target, i, j)
    for some in (slice(5, 6), slice(17, 40), slice(300, 471)):
        assert torch.equal(rescore_affine(V, target, root, product, i[some], j[some]), affine[some])
        assert torch.equal(rescore_pairs(V, V, target, i[some], j[some]), pairs[some])


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (torch.cuda.OutOfMemoryError("no room"), "no memory left for the head 'sums'"),
        (
            RuntimeError("CUDA error: unspecified launch failure\nmore"),
            r"failed in the head 'sums' \(CUDA error: unspec",
        ),
    ],
    ids=["memory", "launch"],
)
def test_work_goes_on_on_the_cpu_where_a_gpu_fails(monkeypatch, error: RuntimeError, message: str) -> None:
    gpu = torch.device("cuda", 0)
    monkeypatch.setattr(scan, "choose_devices", lambda device, work: (gpu,))
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)

    def work(there: torch.device) -> str:
        if there == gpu:
            raise error
        return str(there)

    with pytest.warns(UserWarning, match=message):
        assert scan.run_on_best_device(work, work=1, device="auto", head="sums") == "cpu"


def test_an_error_that_is_no_fault_of_the_gpu_is_raised(monkeypatch) -> None:
    monkeypatch.setattr(scan, "choose_devices", lambda device, work: (torch.device("cuda", 0),))
    with pytest.raises(RuntimeError, match="shapes do not match"):
        scan.run_on_best_device(lambda there: _raise("shapes do not match"), work=1, device="auto", head="sums")


def _raise(message: str) -> None:
    raise RuntimeError(message)
