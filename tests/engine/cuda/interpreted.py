"""Triton's kernels on the CPU, through its interpreter: slow, so only on the smallest of sizes."""

from __future__ import annotations

import os

import pytest
import torch

if torch.cuda.is_available():  # the kernels of this process are compiled; tests marked gpu run them
    pytest.skip("there is a GPU", allow_module_level=True)
os.environ["TRITON_INTERPRET"] = "1"  # read when the kernels are defined
# Older interpreters do not understand the NumPy of today.
pytest.importorskip("triton", minversion="3.9", reason="needs Triton's interpreter (pip install '.[kernels]')")

CPU = torch.device("cpu")
