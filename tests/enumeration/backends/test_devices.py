"""Which device a pass runs on, and what is said when there is none."""

from __future__ import annotations

import pytest
import torch

from symenum import PSRN
from symenum.enumeration import devices
from symenum.enumeration.devices import choose_devices

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
    monkeypatch.setattr(devices, "_fault", lambda index: None)
    assert choose_devices("auto", 1000) == ()
    assert choose_devices("auto", HUGE) == (torch.device("cuda", 0),)


def test_auto_falls_back_where_the_gpu_has_a_fault(monkeypatch):
    monkeypatch.setattr(devices, "_fault", lambda index: "too old")
    assert choose_devices("auto", HUGE) == ()
    with pytest.raises(ValueError, match="too old"):
        choose_devices("cuda", HUGE)
