"""Which device a pass runs on, and what is said when there is none."""

from __future__ import annotations

import pytest
import torch

from symenum import PSRN
from symenum.core import devices
from symenum.core.devices import DeviceLostError, choose_devices, pass_rate
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


NET = PSRN(2, "arithmetic", 2)
DATA, Y = [[1.0, 2.0], [2.0, 1.0], [3.0, 5.0]], [1.0, 2.0, 4.0]


@pytest.fixture
def fake_gpu(monkeypatch):
    """A device that is there, and fails as each test says."""
    monkeypatch.setattr(
        network, "choose_devices", lambda device, work: () if device == "cpu" else (torch.device("cuda", 0),)
    )
    monkeypatch.setattr(cuda, "_room", lambda device: 1 << 30)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    NET.sizes  # noqa: B018  (duplicates are found on the CPU, before the device fails)


def failing(error):
    def fail(*arguments, **options):
        raise error

    return fail


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("CUDA error: unspecified launch failure\nCompile with TORCH_USE_CUDA_DSA"),
        RuntimeError("Triton Error [CUDA]: an illegal memory access was encountered"),
        torch.cuda.OutOfMemoryError("CUDA out of memory"),
        torch.cuda.OutOfMemoryError(),
    ],
)
@pytest.mark.parametrize("device", ["auto", "cuda"])
@pytest.mark.usefixtures("fake_gpu")
def test_a_gpu_that_fails_in_the_middle_is_said_in_one_way_and_the_cpu_goes_on(monkeypatch, error, device):
    monkeypatch.setattr(cuda, "_shard", failing(error))
    monkeypatch.setattr(cuda, "_free", lambda: None)
    for search in (
        lambda where: NET.search(DATA, Y, device=where),
        lambda where: NET.search_many([DATA, DATA], Y, slots=[None, ["a", "b"]], device=where),
    ):
        with pytest.raises(DeviceLostError, match=r"cuda:0.*device='cpu'") as raised:
            search(device)
        assert "\n" not in str(raised.value)
        assert search("cpu")


@pytest.mark.usefixtures("fake_gpu")
def test_an_error_that_is_not_the_gpus_stays_what_it_is(monkeypatch):
    monkeypatch.setattr(cuda, "_shard", failing(RuntimeError("something else")))
    with pytest.raises(RuntimeError, match="something else") as raised:
        NET.search(DATA, Y, device="cuda")
    assert not isinstance(raised.value, DeviceLostError)


@pytest.mark.usefixtures("fake_gpu")
def test_a_gpu_that_fails_while_duplicates_are_found_is_lost(monkeypatch):
    monkeypatch.setattr(network.Architecture, "prepare", failing(RuntimeError("CUDA error: device lost")))
    with pytest.raises(DeviceLostError, match="device lost"):
        NET.search(DATA, Y, device="cuda")


@pytest.mark.parametrize("device", ["auto", "cuda"])
def test_a_gpu_that_is_gone_is_lost(monkeypatch, device):
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(DeviceLostError, match="gone"):
        choose_devices(device, HUGE)
    assert choose_devices("cpu", HUGE) == ()


def test_the_rate_of_a_pass_follows_the_device_and_the_threads(monkeypatch):
    monkeypatch.setattr(devices, "gpu_fault", lambda index: "there is none")
    assert pass_rate("auto", 2) == pass_rate("cpu", 2)
    assert pass_rate("cpu", 1) < pass_rate("cpu", 2) <= 2 * pass_rate("cpu", 1)
    monkeypatch.setattr(devices, "gpu_fault", lambda index: None)
    assert pass_rate("auto", 1) == pass_rate("cuda", 16) > 100 * pass_rate("cpu", 16)
