"""The backend of the GPU finds what the CPU's finds; run with -m gpu where there is a GPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from engine.test_network_exact import assert_brute_force, sample

from symenum import PSRN
from symenum.bench.problems.experiments import CHAOTIC_OPERATORS, EMPS_OPERATORS
from symenum.core import devices
from symenum.core.budget import Budget
from symenum.core.devices import DeviceLostError
from symenum.core.target import check_target
from symenum.engine.architecture import Architecture
from symenum.engine.cuda import passes as cuda
from symenum.engine.cuda import scan as device_scan
from symenum.expressions import Variable, evaluate, parse
from symenum.heads import affine
from symenum.heads.response import Response, make_data
from symenum.heads.sum_of_terms import SumOfTerms
from symenum.operators import OPERATOR_SETS, get_operator, get_operators
from symenum.scans import best_pairs as placement
from symenum.scans import pairs, products

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def new_buffers():
    """Buffers that were made under a test's constants are not kept for the next test."""
    yield
    cuda._shard.cache_clear()


@pytest.mark.parametrize("operators", [*OPERATOR_SETS.values(), CHAOTIC_OPERATORS, EMPS_OPERATORS])
@pytest.mark.parametrize("rows", [1, 9, 20, 32, 33, 70])
def test_the_shortlist_is_the_brute_forces(operators, rows):
    data, y = sample(rows, rows, 2)
    assert_brute_force(operators, data, y, 2, device="cuda")


def test_operators_that_are_no_products_are_scanned_too():
    data, y = sample(3, 9, 2)
    assert_brute_force(("+", "**", "neg", "sqrt"), data, y, 2, device="cuda")
    assert_brute_force(("hypot", "-", "semidiv", "sigmoid", "sinh"), data, y, 2, device="cuda")
    assert_brute_force(("identity", "sin"), data, y, 2, device="cuda")


@pytest.mark.parametrize("scale", [1e-8, 1e-3, 1e3, 1e8])
def test_scales_do_not_matter(scale):
    data, y = sample(3, 10, 2)
    assert_brute_force(OPERATOR_SETS["koza"], data, y * scale, 2, device="cuda")
    assert_brute_force(OPERATOR_SETS["arithmetic"], data * scale, y, 2, device="cuda")


def test_huge_and_tiny_columns_do_not_hide_the_best():
    data, _ = sample(5, 12, 2, 3.0, 30.0)
    y = np.exp(data[:, 0]) * data[:, 1]
    hits, _ = assert_brute_force(("+", "*", "-", "/", "identity", "exp"), data, y, 2, device="cuda")
    assert hits[0].loss < 1e-20 * np.mean(y**2)


def test_weights_and_rows_of_weight_zero():
    data, y = sample(9, 12, 2, 0.5, 3.0)
    weight = np.random.default_rng(1).uniform(0.0, 2.0, 12)
    weight[3] = 0.0
    data[3] = -1.0
    assert_brute_force(OPERATOR_SETS["koza"], data, y, 2, weight=weight, device="cuda")


def test_more_candidates_than_there_are_gives_all_that_differ():
    data, y = sample(15, 6, 2)
    hits, truth = assert_brute_force(("+", "-", "sin"), data, y, 2, k=100_000, device="cuda")
    assert len(hits) == len(truth) > 50


def texts(net, x, y, **options):
    return [str(hit) for hit in net.search(x, y, **options)]


def test_a_recorded_pass_gives_what_the_first_one_gave_and_follows_the_data():
    net = PSRN(3, "koza", 3)
    for seed in (1, 2, 1, 3):
        data, y = sample(seed, 20, 3, 0.2, 3.0)
        assert texts(net, data, y, device="cuda") == texts(net, data, y, device="cpu")


def slot_sets(count, rows, inputs):
    """Values (rows, inputs) of slot sets that differ in scale, sign and complexity, their slots, and the variables."""
    base, _ = sample(1, rows, inputs, 0.2, 2.0)
    values, slots = [], []
    for at in range(count):
        other = base[:, [(i + at) % inputs for i in range(inputs)]]
        values.append(np.where(np.arange(inputs) % 2, base * other, base / other if at % inputs else -base))
        slots.append([parse("*".join([f"x{i + 1}"] * (1 + (at * i) % 3))) for i in range(inputs)])
    return values, slots, base


@pytest.mark.parametrize(("operators", "layers", "rows", "k"), [("koza", 3, 20, 10), ("koza", 3, 32, 30),
                         ("semikoza", 2, 70, 200), (("+", "**", "sin"), 2, 12, 5)])  # fmt: skip
def test_many_sets_give_what_each_gives_alone_and_on_the_cpu(operators, layers, rows, k):
    net = PSRN(3, operators, layers)
    values, slots, base = slot_sets(6, rows, 3)
    y = np.sin(base[:, 0]) * base[:, 1] + 0.1 * base[:, 2]
    for _ in range(2):  # the second time all passes are recorded ones
        many = net.search_many(values, y, k, slots=slots, device="cuda")
        for found, x, names in zip(many, values, slots, strict=True):
            assert str(found) == str(net.search(x, y, k, slots=names, device="cuda"))
            assert str(found) == str(net.search(x, y, k, slots=names, device="cpu"))
            assert found.complete
            assert found.scored == net.sizes[-1]


def test_a_set_whose_first_transfer_is_not_enough_is_scanned_again(monkeypatch):
    monkeypatch.setattr(device_scan, "_MIN_RETURNED", 8)
    monkeypatch.setattr(device_scan, "_RETURNED_PER_K", 1)
    net = PSRN(3, "koza", 3)
    values, slots, base = slot_sets(4, 20, 3)
    y = base[:, 0] * base[:, 1]
    many = net.search_many(values, y, 10, slots=slots, device="cuda")
    assert [str(found) for found in many] == [
        str(net.search(x, y, 10, slots=names, device="cpu")) for x, names in zip(values, slots, strict=True)
    ]


def test_a_gpu_without_room_is_said_to_be_lost_and_serves_again_when_there_is_room():
    net = PSRN(5, "koza", 3)
    values, slots, base = slot_sets(2, 20, 5)
    net.search_many(values, base[:, 0], slots=slots, device="cuda")  # kernels are compiled
    cuda._free()
    room = torch.cuda.memory_reserved() + (20 << 20)  # bytes: less than the smallest strips need
    torch.cuda.set_per_process_memory_fraction(room / torch.cuda.get_device_properties(0).total_memory)
    try:
        with pytest.raises(DeviceLostError, match="device='cpu'"):
            net.search_many(values, base[:, 0], slots=slots, device="cuda")
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert all(found.complete for found in net.search_many(values, base[:, 0], slots=slots, device="cuda"))


def test_a_network_that_was_warmed_up_finds_the_same():
    net = PSRN(3, "koza", 3)
    net.warm_up(20, 10, device="cuda")
    values, slots, base = slot_sets(2, 20, 3)
    y = np.sin(base[:, 0]) * base[:, 1]
    for found, x, names in zip(net.search_many(values, y, 10, slots=slots, device="cuda"), values, slots, strict=True):
        assert str(found) == str(net.search(x, y, 10, slots=names, device="cpu"))


def test_many_sets_end_when_they_are_stopped():
    net = PSRN(3, "koza", 3)
    values, slots, base = slot_sets(8, 20, 3)
    calls = []
    many = net.search_many(
        values, base[:, 0], slots=slots, device="cuda", stop=lambda: bool(calls.append(1)) or len(calls) > 2
    )
    assert [found.complete for found in many] == [True] * 2 + [False] * 6
    assert all(not len(found) and not found.scored for found in many[2:])


def test_strips_shards_and_many_rows_change_nothing(monkeypatch):
    net = PSRN(3, "koza", 3)
    data, y = sample(4, 300, 3, 0.2, 3.0)
    truth = texts(net, data, y, device="cpu")
    assert texts(net, data, y, device="cuda") == truth
    assert texts(net, data, y, device=["cuda:0", "cuda:0"]) == truth
    monkeypatch.setattr(cuda, "UNITS", 1 << 16)
    monkeypatch.setattr(cuda, "_STRIP_SHARE", 0.0)
    assert texts(net, data, y, device="cuda") == truth
    monkeypatch.setattr(device_scan, "CAPACITY", 600)
    assert texts(net, data, y, k=200, device="cuda") == texts(net, data, y, k=200, device="cpu")


def test_out_of_memory_makes_the_strips_smaller(monkeypatch):
    net = PSRN(3, "koza", 3)
    data, y = sample(5, 20, 3, 0.2, 3.0)
    real = cuda._scan
    tried = []

    def scan(*arguments):
        tried.append(arguments[-1])
        if len(tried) == 1:
            raise torch.cuda.OutOfMemoryError
        return real(*arguments)

    monkeypatch.setattr(cuda, "_scan", scan)
    assert texts(net, data, y, device="cuda") == texts(net, data, y, device="cpu")
    assert tried[1] < tried[0]


@pytest.mark.parametrize("operators", ["koza", "semikoza"])
def test_screening_finds_the_law_and_the_losses_are_those_of_all_rows(operators):
    net = PSRN(3, operators, 3)
    data, _ = sample(6, 5000, 3, 0.2, 3.0)
    y = np.sin(data[:, 0]) * (data[:, 1] + data[:, 2])
    hits = net.search(data, y, device="cuda", mode="screen")
    truth = net.search(data, y, device="cuda", mode="exact")
    assert hits[0].loss < 1e-20
    assert str(hits[0]) == str(truth[0])
    assert len(hits) == len(truth)
    for hit in hits:
        columns = {f"x{i + 1}": torch.from_numpy(data[:, i].copy()) for i in range(3)}
        error = evaluate(hit.expression, columns) - torch.from_numpy(y)
        assert hit.loss == pytest.approx(float(error.square().mean()), rel=1e-9, abs=1e-25)


def test_screening_falls_back_to_all_rows_where_there_is_no_room(monkeypatch):
    net = PSRN(3, "koza", 3)
    data, y = sample(6, 600, 3, 0.2, 3.0)
    monkeypatch.setattr(device_scan, "CAPACITY", 600)  # of at least 1024 pairs that are near the best
    assert texts(net, data, y, device="cuda", mode="screen") == texts(net, data, y, device="cuda", mode="exact")
    power = PSRN(2, ("+", "**", "neg"), 2)  # a power has no kernel
    assert texts(power, data[:, :2], y, device="cuda", mode="screen") == texts(power, data[:, :2], y, device="cpu")


def test_out_of_memory_while_screening_is_no_error(monkeypatch):
    def none(*arguments):
        raise torch.cuda.OutOfMemoryError

    net = PSRN(3, "koza", 3)
    data, y = sample(6, 600, 3, 0.2, 3.0)
    truth = texts(net, data, y, device="cuda", mode="exact")
    monkeypatch.setattr(cuda, "judge_again", none)
    assert texts(net, data, y, device="cuda", mode="screen") == truth


def test_an_index_beyond_the_devices_is_refused():
    with pytest.raises(ValueError, match="there are"):
        PSRN(2, "koza", 2).search([[1.0, 2.0]], [1.0], device="cuda:99")


@pytest.mark.parametrize("name", ["mul", "div", "add", "sub"])
@pytest.mark.parametrize("rows", [20, 70])
def test_the_affine_heads_best_pairs_are_the_cpus(name, rows):
    V, y, root = affine_problem(1000, rows)
    truth = affine.best_affine(V, y, root, get_operator(name), width=100)
    found = affine.best_affine(V.cuda(), y.cuda(), root.cuda(), get_operator(name), width=100)
    torch.testing.assert_close(found.residual.cpu(), truth.residual, rtol=1e-10, atol=0)


def test_the_affine_head_goes_to_the_gpu_for_large_scans_and_finds_the_same(monkeypatch):
    asked = []
    monkeypatch.setattr(
        placement, "choose_devices", lambda device, work: asked.append(work) or (torch.device("cuda", 0),)
    )
    V, t, root = (part.cpu() for part in affine_problem(300, 20))
    ours, truth = (
        affine.Affine((), width=50, device=device)._best(V, t, root, get_operator("mul"), Budget())
        for device in ("auto", "cpu")
    )
    assert asked == [placement._STARTED * 300**2 * 20] * 2
    assert not ours.i.is_cuda
    torch.testing.assert_close(ours.residual, truth.residual, rtol=1e-10, atol=0)


def test_the_affine_head_falls_back_to_the_cpu_when_memory_is_short(monkeypatch):
    def none(*arguments, **options):
        raise torch.cuda.OutOfMemoryError

    monkeypatch.setattr(placement, "choose_devices", lambda device, work: (torch.device("cuda", 0),))
    monkeypatch.setattr(affine, "AffineProducts", none)
    V, t, root = (part.cpu() for part in affine_problem(100, 20))
    with pytest.warns(UserWarning, match="no memory"):
        found = affine.Affine((), width=50, device="auto")._best(V, t, root, get_operator("mul"), Budget())
    assert len(found.i) == 50


def affine_problem(columns, rows):
    generator = torch.Generator().manual_seed(rows)
    V = torch.randn(columns, rows, generator=generator, dtype=torch.float64) + 0.5
    y = torch.randn(rows, generator=generator, dtype=torch.float64)
    return V, y, torch.full((rows,), rows**-0.5, dtype=torch.float64)


@pytest.mark.parametrize(("operators", "inputs"), [("koza", 4), ("semikoza", 3), ("arithmetic", 4)])
def test_duplicates_found_on_the_gpu_are_the_cpus(operators, inputs):
    architecture = PSRN(inputs, operators, 3)._architecture
    ours, truth = (architecture._find_distinct(torch.device(name)) for name in ("cuda", "cpu"))
    assert (ours == truth).all()


def test_duplicates_are_found_on_the_cpu_where_the_gpu_has_no_room(monkeypatch, tmp_path):
    real = Architecture._find_distinct
    asked = []

    def find(self, device):
        asked.append(device.type)
        if device.type == "cuda":
            raise torch.cuda.OutOfMemoryError
        return real(self, device)

    monkeypatch.setattr(Architecture, "_find_distinct", find)
    monkeypatch.setenv("SYMENUM_CACHE", str(tmp_path))
    data, y = sample(5, 20, 2, 0.2, 3.0)
    net = PSRN(2, "koza", 3)
    assert texts(net, data, y, device="cuda")
    assert asked == ["cuda", "cpu"]


@pytest.mark.parametrize("rows", [12, 20, 33, 150])
@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("spread", [1.0, 1e-3])
def test_the_best_pairs_of_terms_are_the_cpus(rows, same, spread):
    generator = torch.Generator().manual_seed(rows)

    def draw(count):
        return torch.randn(count, rows, generator=generator, dtype=torch.float64)

    common, t, background = draw(1), draw(1)[0], torch.full((1, rows), rows**-0.5, dtype=torch.float64)
    V, W = common + spread * draw(700), None if same else common + spread * draw(300)
    truth = pairs.best_pairs(V, t, background, W, width=100)
    on_gpu = [None if part is None else part.cuda() for part in (V, t, background, W)]
    found = pairs._best_pairs(*on_gpu, width=100, budget=Budget())
    torch.testing.assert_close(found.residual.cpu(), truth.residual, rtol=1e-8, atol=1e-13)


def test_pairs_of_terms_go_to_the_gpu_and_come_back(monkeypatch):
    asked = []
    monkeypatch.setattr(
        placement, "choose_devices", lambda device, work: asked.append(work) or [torch.device("cuda", 0)]
    )
    V, t, _ = affine_problem(300, 20)
    background = torch.full((1, 20), 20**-0.5, dtype=torch.float64)

    ours = pairs.best_pairs(V, t, background, width=50, device="auto")
    truth = pairs.best_pairs(V, t, background, width=50)
    assert asked == [placement._STARTED * 300**2 * 20] * 2
    assert not ours.i.is_cuda
    torch.testing.assert_close(ours.residual, truth.residual, rtol=1e-10, atol=0)


def test_products_screened_on_the_gpu_are_the_cpus(monkeypatch):
    generator = torch.Generator().manual_seed(3)
    values = torch.randn(40, 30, generator=generator, dtype=torch.float64)
    names = [Variable(f"x{i + 1}") for i in range(len(values))]
    factors = products.build_factors(names, values, get_operators("arithmetic"))
    residual = values[3] * values[7] * values[20] * values[31] + 0.1 * values[5]
    root = torch.full((30,), 30**-0.5, dtype=torch.float64)
    monkeypatch.setattr(products, "_GPU_TILE", 512)  # several of them
    here, there = (products.Products(factors, root, device=torch.device(name)) for name in ("cpu", "cuda"))
    for tier in (1, 2, 3, 4):
        truth, found = (side.screen(residual * root, tier, 40) for side in (here, there))
        assert found[0] == truth[0]
        assert set(truth[:20]) <= set(found)


def test_sums_of_terms_are_found_on_the_gpu(monkeypatch):
    data, _ = sample(8, 60, 5, 0.5, 2.0)
    y = 3 * data[:, 0] * data[:, 1] * data[:, 2] / data[:, 3] - 2 * data[:, 4] ** 2 / data[:, 0]
    names, columns = [Variable(f"x{i + 1}") for i in range(5)], torch.from_numpy(data).T.contiguous()
    task = make_data(names, columns, check_target(y, None, 60)[0], 60)
    asked = []
    monkeypatch.setattr(devices, "_MIN_GPU_WORK", 0)
    screen = products.Products.screen
    monkeypatch.setattr(
        products.Products, "screen", lambda self, *rest: asked.append(self.device.type) or screen(self, *rest)
    )
    found = SumOfTerms(get_operators("arithmetic"), device="cuda").scan(None, Response.of(task), 3, Budget())
    assert set(asked) == {"cuda"}
    assert any(task.is_law(candidate) for candidate in found)
