"""Which device a pass runs on, and what is said when there is none."""

from __future__ import annotations

import pytest
import torch

from symenum import PSRN
from symenum.core import devices
from symenum.core.devices import choose_devices
from symenum.engine import network
from symenum.engine.cuda import passes as cuda

HUGE = 10**15


def test_the_cpu_is_the_cpu():
    assert choose_devices("cpu", HUGE) == ()


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:x", "cuda:-1", "mps", ""])
def test_an_unknown_device_is_refused_by_name(name):
    if name == "cuda:":
        pytest.skip("reads as cuda") if torch.cuda.is_available() else None
    with pytest.raises(ValueError, match="device"):
        choose_devices(name, HUGE)


@pytest.mark.parametrize("device", [None, 0, [], ["cuda", 1]])
def test_what_is_no_name_is_refused(device):
    with pytest.raises(TypeError, match="device must be"):
        choose_devices(device, HUGE)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_cuda_is_refused_and_auto_is_the_cpu():
    with pytest.raises(ValueError, match=r"device 'cuda:1'.*device='cpu'"):
        choose_devices("cuda:1", HUGE)
    assert choose_devices("auto", HUGE) == ()
    with pytest.raises(ValueError, match="CUDA"):
        PSRN(2, "arithmetic", 2).search([[1.0, 2.0], [2.0, 1.0]], [1.0, 2.0], device="cuda")


def test_auto_takes_the_gpu_for_large_passes_only(monkeypatch):
    monkeypatch.setattr(devices, "gpu_fault", lambda index: None)
    assert choose_devices("auto", 1000) == ()
    assert choose_devices("auto", HUGE) == (torch.device("cuda", 0),)


def test_auto_falls_back_where_the_gpu_has_a_fault(monkeypatch):
    monkeypatch.setattr(devices, "gpu_fault", lambda index: "too old")
    assert choose_devices("auto", HUGE) == ()
    with pytest.raises(ValueError, match="too old"):
        choose_devices("cuda", HUGE)


@pytest.mark.parametrize(
    ("capability", "count", "triton", "says"),
    [((7, 5), 1, True, "no TF32"), ((9, 0), 0, True, "numbered from 0"), ((9, 0), 1, False, "package triton")],
)
def test_what_is_wrong_with_a_gpu_is_said(monkeypatch, capability, count, triton, says):
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda index: capability)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: "an old card")
    monkeypatch.setattr(devices.importlib.util, "find_spec", lambda name: object() if triton else None)
    with pytest.raises(ValueError, match=f"device 'cuda'.*{says}.*device='cpu'"):
        choose_devices("cuda", HUGE)
    assert choose_devices("auto", HUGE) == ()


def test_auto_runs_on_the_cpu_where_the_gpu_has_too_little_memory_and_says_so(monkeypatch):
    def full(*arguments):
        raise MemoryError("a pass does not fit")

    net = PSRN(2, "arithmetic", 2)
    data, y = [[1.0, 2.0], [2.0, 1.0], [3.0, 5.0]], [1.0, 2.0, 4.0]
    truth = net.search(data, y, device="cpu")
    monkeypatch.setattr(
        network, "choose_devices", lambda device, work: () if device == "cpu" else (torch.device("cuda", 0),)
    )
    monkeypatch.setattr(cuda, "scan_network", full)
    with pytest.warns(RuntimeWarning, match=r"does not fit.*runs on the CPU"):
        assert net.search(data, y, device="auto") == truth
    with pytest.raises(MemoryError, match="does not fit"):
        net.search(data, y, device="cuda")
