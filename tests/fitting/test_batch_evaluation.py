"""A machine in the memory of a device computes what it computes in the CPU's; torch's CPU stands for a device here."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import torch
from fitting.test_batch_program import TEXTS, columns

from symenum.expressions import parse
from symenum.fitting import refine
from symenum.fitting.batch_evaluation import HOST, DeviceBlocks, Machine
from symenum.fitting.batch_program import compile_program
from symenum.fitting.free_constants import postfix
from symenum.fitting.refine import Batch
from symenum.operators import make_operator

MODULE = importlib.import_module("symenum.fitting.refine")  # the package has a function of that name
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("copies", [1, 3])
def test_values_and_derivatives_are_the_hosts(device: str, copies: int) -> None:
    softplus = make_operator("softplus", torch.nn.functional.softplus)
    expressions = [*map(parse, TEXTS), parse("1.1*softplus(x*0.4)", operators=[softplus])]
    program = compile_program([postfix(expression) for expression in expressions], columns())
    members = np.arange(len(expressions))
    constants = program.starts[:, :, None] * (1 + 0.1 * np.arange(copies))
    found = []
    for blocks in (HOST, DeviceBlocks(torch.device(device))):
        machine = Machine(program, members, 30, copies, blocks=blocks)
        machine.load(program.data)
        machine.seeds[:] = 2.0
        found.append([blocks.give_back(part) for part in (machine.values(constants), machine.derivatives())])
    for ours, truth in zip(found[1], found[0], strict=True):
        np.testing.assert_allclose(ours, truth, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("device", DEVICES)
def test_constants_are_fitted_as_on_the_host(monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    data = columns(300)
    y = 3 * torch.sin(1.2 * data["x"] + 0.3) / (data["y"] + 2)
    families = [parse("2.0*sin(1.0*x + 0.1)/(y + 1.0)"), parse("1.0*x + 2.0*y + 0.5"), parse("1.5*exp(0.1*x) - y*0.3")]
    truth = refine(families, data, y)
    asked = []
    monkeypatch.setattr(MODULE, "_WORTH_A_DEVICE", 0)
    monkeypatch.setattr(MODULE, "_choose_device", lambda name, values: torch.device(name))
    init = Batch.__init__

    def watched(self: Batch, *arguments: object, **options: object) -> None:
        init(self, *arguments, **options)  # type: ignore[arg-type]
        asked.append(type(self._blocks))

    monkeypatch.setattr(Batch, "__init__", watched)
    found = refine(families, data, y, device=device)
    assert DeviceBlocks in asked
    for ours, theirs in zip(found, truth, strict=True):
        assert ours.loss == pytest.approx(theirs.loss, rel=1e-6, abs=1e-25)
        assert ours.constants == pytest.approx(theirs.constants, rel=1e-4)


def test_without_room_on_the_gpu_the_cpu_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*arguments: object) -> None:
        raise torch.cuda.OutOfMemoryError

    data = columns(300)
    y = 1.5 * data["x"] + 2
    monkeypatch.setattr(MODULE, "_WORTH_A_DEVICE", 0)
    monkeypatch.setattr(DeviceBlocks, "empty", none)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(MODULE, "_choose_device", lambda name, values: torch.device("cpu"))
    with pytest.warns(UserWarning, match="no memory left to fit"):
        (found,) = refine([parse("1.0*x + 1.0")], data, y, device="cuda")
    assert found.loss < 1e-20


def test_small_fits_never_ask_for_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*arguments: object) -> None:
        raise AssertionError("asked for a GPU")

    monkeypatch.setattr(MODULE, "choose_devices", never)
    (found,) = refine([parse("1.0*x + 1.0")], columns(), 1.5 * columns()["x"] + 2, device="auto")
    assert found.loss < 1e-20


def test_when_the_gpu_fails_the_cpu_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    error = RuntimeError("CUDA error: unspecified launch failure")

    def fail(*arguments: object) -> None:
        raise error

    data = columns(300)
    y = 1.5 * data["x"] + 2
    monkeypatch.setattr(MODULE, "_WORTH_A_DEVICE", 0)
    monkeypatch.setattr(DeviceBlocks, "empty", fail)
    monkeypatch.setattr(MODULE, "_choose_device", lambda name, values: torch.device("cpu"))
    with pytest.warns(UserWarning, match="the GPU failed while constants were fitted"):
        (found,) = refine([parse("1.1*x + 0.7")], data, y, device="cuda")
    assert found.loss < 1e-20
    error = RuntimeError("something else")
    with pytest.raises(RuntimeError, match="something else"):
        refine([parse("1.1*x + 0.7")], data, y, device="cuda")
