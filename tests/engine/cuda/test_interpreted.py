"""The kernels' logic without a GPU: bank, bounds and the whole scan through Triton's interpreter."""

from __future__ import annotations

import pytest
import torch
from engine.cuda.interpreted import CPU

from symenum import PSRN
from symenum.core.target import Target
from symenum.engine.bank import NO_EXPRESSION, build_bank
from symenum.engine.cuda import scan as device_scan
from symenum.engine.cuda.bank import BankPlan
from symenum.engine.cuda.scan import DeviceScan, judge_again
from symenum.engine.layer import apply_poisoned
from symenum.engine.shortlist import Pool
from symenum.expressions import Variable, evaluate

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the interpreter's own divisions by zero


def problem(seed, rows, inputs, whole=False):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, inputs, generator=generator, dtype=torch.float64)
    x = (3 * x).round() if whole else x
    y = torch.randn(rows, generator=generator, dtype=torch.float64)
    return x, Target(y, torch.full((rows,), 1 / rows, dtype=torch.float64))


def device_bank(net, x, target):
    plan = BankPlan(net._architecture, target.rows, CPU)
    plan.use((0,) * net.inputs)
    scale2 = (target.weight * target.y.square()).sum(dim=0, keepdim=True)
    return plan, plan.build(x.T.contiguous(), scale2), scale2


@pytest.mark.parametrize(
    ("operators", "inputs", "layers", "rows", "whole"),
    [("koza", 2, 2, 9, False), ("koza", 2, 2, 40, True), ("semikoza", 2, 3, 7, True), ("arithmetic", 3, 1, 5, False)],
)
def test_the_bank_is_the_cpus(operators, inputs, layers, rows, whole):
    net = PSRN(inputs, operators, layers)
    x, target = problem(rows, rows, inputs, whole)
    ours = device_bank(net, x, target)[1].to_bank()
    truth = build_bank(net._architecture, x.T.contiguous(), torch.zeros(inputs, dtype=torch.int64))
    assert len(ours) == len(truth)
    assert ours.paired == truth.paired
    # A column and its negative are one: which of the two is stored is not part of the contract.
    keys = []
    for bank in (ours, truth):
        sign = torch.where((bank.minus != NO_EXPRESSION) & (bank.minus < bank.plus), -1.0, 1.0)
        low = torch.where(sign > 0, bank.plus, bank.minus)
        order = torch.argsort(low)
        keys.append((low[order], (bank.plus + bank.minus)[order], (bank.values * sign[:, None])[order]))
    assert torch.equal(keys[0][0], keys[1][0])
    assert torch.equal(keys[0][1], keys[1][1])
    torch.testing.assert_close(keys[0][2], keys[1][2], rtol=1e-14, atol=0)
    alive = torch.cat([ours.plus, ours.minus[ours.minus != NO_EXPRESSION]])
    assert torch.equal(ours.stand_in[alive], truth.stand_in[alive])


@pytest.mark.parametrize("rows", [9, 32, 70])  # of 32 rows the own terms are kept apart
def test_no_loss_is_below_the_bound_of_its_unit(rows):
    net = PSRN(2, "koza", 2)
    x, target = problem(3, rows, 2)
    x[:, 0] *= 1e3  # large columns, where rounding matters
    plan, bank, scale2 = device_bank(net, x, target)
    scan = DeviceScan(net._architecture.last_layer, plan.columns, rows, 10, CPU, plan.directions)
    scan.factors.make(bank.values, bank.counts, target.y, target.weight, scale2)
    bounds = scan.bounds(bank, 0).view(len(scan.families), -1, scan.strip_rows)[:, 0]
    count = int(bank.counts[0])
    v = bank.values[:count]
    operators = {operator.name: operator for operator in net.operators}
    for family, names in enumerate((("add", "sub"), ("mul",), ("div",))):
        losses = torch.stack(
            [target.loss(apply_poisoned(operators[name], v[:, None], v[None]).flatten(0, 1)) for name in names]
        )
        losses = losses.view(len(names), count, count).nan_to_num(nan=float("inf"))
        if family < 2:
            losses = losses.triu().where(torch.ones(count, count).triu() > 0, float("inf"))
        lowest = losses.amin(dim=(0, 2)) / scale2
        assert bool((bounds[family, :count] <= lowest).all())
        near = torch.isfinite(lowest) & (bounds[family, :count] > -1e30)
        assert bool(near.any())  # and the bounds say something


@pytest.mark.parametrize(("operators", "rows", "k"), [("arithmetic", 6, 3), ("semikoza", 6, 2)])
def test_the_scan_finds_the_cpus_best(monkeypatch, operators, rows, k):
    monkeypatch.setattr(device_scan, "PROGRAMS", 2)
    monkeypatch.setattr(device_scan, "_GROUPS", 96)
    net = PSRN(2, operators, 2)
    x, target = problem(7, rows, 2)
    truth = net.search(x, target.y, k=k, device="cpu")
    assert_scan_finds(net, x, target, k, truth)


def test_more_pairs_than_the_buffer_holds_are_found_in_pieces(monkeypatch):
    monkeypatch.setattr(device_scan, "PROGRAMS", 2)
    monkeypatch.setattr(device_scan, "_GROUPS", 1)
    monkeypatch.setattr(device_scan, "CAPACITY", 600)  # at least FAST, and one unit's pairs
    net = PSRN(2, ("+", "*", "sin"), 2)
    x, target = problem(8, 4, 2)
    assert_scan_finds(net, x, target, 12, net.search(x, target.y, k=12, device="cpu"))


def test_survivors_are_judged_on_all_rows(monkeypatch):
    monkeypatch.setattr(device_scan, "PROGRAMS", 2)
    monkeypatch.setattr(device_scan, "_GROUPS", 96)
    monkeypatch.setattr(device_scan, "_JUDGE_PROGRAMS", 3)
    net = PSRN(2, ("+", "/", "sin"), 2)
    x, target = problem(7, 12, 2)
    few = torch.arange(4)
    plan, bank, scale2 = device_bank(net, x[few], target.at(few))
    scan = DeviceScan(net._architecture.last_layer, plan.columns, len(few), 12, CPU, plan.directions)
    scan.limit.fill_(float("inf"))
    scan.launch(bank, target.y[few], target.at(few).weight, scale2, 0, unary=True)
    pool = Pool(5, target)
    assert judge_again(scan, bank, plan.outputs, x.T.contiguous(), target, pool)
    best = pool.best()
    assert best is not None
    assert len(best) == 5
    for number, loss in zip(best.number.tolist(), best.loss.tolist(), strict=True):
        law = net._architecture.reconstruct(number, [Variable("a"), Variable("b")], bank.stand_in)
        values = evaluate(law, {"a": x[:, 0], "b": x[:, 1]})
        assert loss == pytest.approx(float(target.loss(values[None])), rel=1e-12)


@pytest.mark.parametrize(("returned", "enough"), [(1024, True), (4, False)])
def test_a_whole_pass_brings_the_best_in_order_or_says_that_they_are_not_all(monkeypatch, returned, enough):
    monkeypatch.setattr(device_scan, "PROGRAMS", 2)
    monkeypatch.setattr(device_scan, "_GROUPS", 96)
    net = PSRN(2, "arithmetic", 2)
    x, target = problem(7, 6, 2)
    plan, bank, scale2 = device_bank(net, x, target)
    scan = DeviceScan(net._architecture.last_layer, plan.columns, target.rows, 5, CPU, plan.directions)
    scan.returned = returned
    packed = scan.launch_whole(bank, target.y, target.weight, scale2)
    count = min(returned, int(packed[0, 0]))
    assert bool((packed[1 : 1 + count, 0].diff() >= 0).all())
    pool = Pool(5, target)
    assert scan.take_whole(packed, pool) == enough
    if enough:
        expected = torch.tensor([hit.loss for hit in net.search(x, target.y, k=5, device="cpu")], dtype=torch.float64)
        torch.testing.assert_close(pool.best().loss, expected, rtol=1e-10, atol=0)


def test_the_simplest_finite_output_represents_its_class():
    net = PSRN(2, "koza", 2)
    x, target = problem(9, 7, 2)
    x[3, 0] = 0.0  # x1/x1 fails there, other ways to write 1 do not
    complexity = torch.tensor([5, 1])
    plan = BankPlan(net._architecture, target.rows, CPU)
    plan.use(complexity.tolist())
    ours = plan.build(x.T.contiguous(), torch.ones(1, dtype=torch.float64)).to_bank()
    truth = build_bank(net._architecture, x.T.contiguous(), complexity)
    alive = torch.cat([truth.plus, truth.minus[truth.minus != NO_EXPRESSION]])
    assert torch.equal(ours.stand_in[alive], truth.stand_in[alive])
    assert sorted(ours.plus_complexity.tolist()) == sorted(truth.plus_complexity.tolist())


def assert_scan_finds(net, x, target, k, truth):
    plan, bank, scale2 = device_bank(net, x, target)
    scan = DeviceScan(net._architecture.last_layer, plan.columns, target.rows, k, CPU, plan.directions)
    pool = Pool(k, target)
    for strip in scan.strips:
        scan.limit.fill_(pool.limit)
        packed = scan.launch(bank, target.y, target.weight, scale2, strip, unary=strip == 0)
        scan.collect(packed, bank, target.y, target.weight, scale2, strip, pool)
    best = pool.best()
    assert best is not None
    expected = torch.tensor([hit.loss for hit in truth], dtype=torch.float64)
    torch.testing.assert_close(best.loss, expected, rtol=1e-10, atol=0)
