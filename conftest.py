"""What the collection of doctests must not import, and where no test may write."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest

# The GPU's kernels need Triton, which only torch for CUDA brings along.
collect_ignore_glob = [] if importlib.util.find_spec("triton") else ["src/symenum/*kernels.py"]

_ROOT = Path(__file__).resolve().parent
# What Python and the tools keep in the tree, which git ignores; names that begin with a dot are such, too.
_CACHES = {"__pycache__", "build"}


def _refuse_to_write_into_the_tree(event: str, arguments: tuple[object, ...]) -> None:
    """Fails the running test that opens a file of the working tree for writing, makes a folder or renames into it.

    A result left there is committed by the next `git add` (ten files once were). Only this process is watched: a
    command that a test starts must be given a folder.
    """
    if event == "open":
        path, _, flags = arguments
        if not isinstance(flags, int) or not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            return
    elif event == "os.mkdir":
        path = arguments[0]
    elif event == "os.rename":
        path = arguments[1]
    else:
        return
    if not isinstance(path, str | bytes | os.PathLike) or "PYTEST_CURRENT_TEST" not in os.environ:
        return
    where = Path(os.path.abspath(os.fsdecode(path)))  # noqa: PTH100 (Path.resolve would follow links, one call of the system each)
    if not where.is_relative_to(_ROOT):
        return
    parts = where.relative_to(_ROOT).parts
    if not any(part in _CACHES or part.startswith(".") for part in parts):
        pytest.fail(f"{os.environ['PYTEST_CURRENT_TEST']} writes {where} into the working tree: use tmp_path")


sys.addaudithook(_refuse_to_write_into_the_tree)
