"""What the collection of doctests must not import."""

from __future__ import annotations

import importlib.util

# The GPU's kernels need Triton, which only torch for CUDA brings along.
collect_ignore_glob = [] if importlib.util.find_spec("triton") else ["src/symenum/*kernels.py"]
