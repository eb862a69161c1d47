"""The symenum of another source tree, such as a git worktree of an earlier version, to run two versions side by side.

Each fit is a process of its own that imports that tree (`fit_other_tree`). The other tree gives texts; they are read
and judged here, so that both versions are judged by the same rules. The memory of a run counts that of the worker, too,
which waits meanwhile (0.4 GB); its seconds are those of the other tree's `fit` alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from symenum.bench.problems.problem import Array
from symenum.bench.systems import fit_other_tree
from symenum.bench.systems.base import Found, Law, Sighting

__all__ = ["SymenumAt"]

_CHECK_ROWS = 20  # rows of the table on which `check` tries the other tree
_CHECK_SECONDS = 5.0  # its time limit


@dataclass(frozen=True)
class SymenumAt:
    """The symenum below `path`, a folder that holds src/symenum; `settings` are further parameters of PSERegressor."""

    path: Path
    settings: Mapping[str, str]

    @classmethod
    def of(cls, options: Mapping[str, str]) -> SymenumAt:
        """The system of options such as path=../v01, device=cpu, token_generator=random."""
        known = ("path", "device", "token_generator")
        unknown = sorted(set(options) - set(known))
        if unknown:
            raise ValueError(f"symenum_at has no option {unknown[0]!r}; known: {', '.join(known)}")
        if "path" not in options:
            raise ValueError("symenum_at needs the other source tree, as in symenum_at:path=../v01")
        path = Path(options["path"]).expanduser().resolve()
        if not (path / "src" / "symenum" / "__init__.py").is_file():
            raise ValueError(f"path must be a source tree of symenum, but {path} has no src/symenum")
        return cls(path, {name: value for name, value in options.items() if name != "path"})

    def fit(self, X: Array, y: Array, *, operators: Sequence[str], seed: int, max_time: float, cores: int) -> Found:
        """See `System`; the seconds are those of the other tree's `fit`, without the start of its process."""
        settings = {"operators": list(operators), "random_state": seed, "max_time": max_time, **self.settings}
        return self._run({"X": X.tolist(), "y": y.tolist(), "settings": settings, "threads": cores})

    def check(self, operators: Sequence[str]) -> None:
        """Fit a small table with these operators; RuntimeError where the other tree cannot."""
        x = np.linspace(1.0, 2.0, _CHECK_ROWS)
        self.fit(x[:, None], x**2, operators=operators, seed=0, max_time=_CHECK_SECONDS, cores=1)

    def _run(self, task: Mapping[str, Any]) -> Found:
        source = str(self.path / "src")
        others = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([source, *others])}
        with tempfile.TemporaryDirectory(prefix="symenum-at-") as folder:
            task_path, result_path = Path(folder) / "task.json", Path(folder) / "result.json"
            task_path.write_text(json.dumps(task), encoding="utf-8")
            command = [sys.executable, str(fit_other_tree.__file__), source, str(task_path), str(result_path)]
            ended = subprocess.run(
                command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False
            )
            if ended.returncode:
                raise RuntimeError(ended.stderr.strip() or f"{source}: its process ended with {ended.returncode}")
            result = json.loads(result_path.read_text(encoding="utf-8"))
        return Found(
            tuple(Law(*law) for law in result["laws"]),
            result["selected"],
            result["ended"],
            tuple(Sighting(*sighting) for sighting in result["sightings"]),
            result["seconds"],
        )
