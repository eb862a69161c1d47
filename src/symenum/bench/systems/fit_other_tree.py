"""A script: fits one table with the symenum of another source tree, and writes what its front has had.

    python fit_other_tree.py SOURCE TASK RESULT

SOURCE is the folder that holds the other tree's package, TASK and RESULT are JSON files. Only the public interface is
used, which is the same in all versions: PSERegressor, its callbacks, `equations_` and `selected_index_`. Nothing else
of this tree may be imported here: `symenum` is the other one. `other_tree` calls the script.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

__all__ = ["FrontWatch", "main"]


class FrontWatch:
    """A callback that remembers when each member of the front was first there, in seconds since the watch was made."""

    def __init__(self) -> None:
        self._begin = time.perf_counter()
        self._seen: dict[Any, float] = {}  # expression -> seconds

    def __call__(self, report: Any) -> None:
        now = self.seconds
        for entry in report.front:
            self._seen.setdefault(entry.expression, now)

    @property
    def seconds(self) -> float:
        """Since the watch was made."""
        return time.perf_counter() - self._begin

    def sightings(self) -> list[tuple[float, str]]:
        """Seconds and text of all that stood on the front, in the order of time."""
        return [(seconds, str(expression)) for expression, seconds in self._seen.items()]


def main(source: str, task_path: str, result_path: str) -> None:
    """Fit X and y of the task with its settings; what the other tree cannot do ends the process with a message."""
    sys.path[0] = source  # instead of this script's folder, whose modules are called like rivals
    try:
        symenum: Any = importlib.import_module("symenum")  # by name: it is not this tree's package
        regressor = symenum.PSERegressor
    except (ImportError, AttributeError) as error:
        _refuse(source, error)
    if Path(source).resolve() not in Path(symenum.__file__).resolve().parents:
        sys.exit(f"python finds another symenum than that in {source}: {symenum.__file__}")
    task = json.loads(Path(task_path).read_text(encoding="utf-8"))
    settings, threads = task["settings"], task["threads"]
    if "threads" in inspect.signature(regressor).parameters:  # elsewhere it takes all cores of the process
        settings["threads"] = threads
    import numpy as np

    X, y = np.array(task["X"]), np.array(task["y"])
    watch = FrontWatch()
    try:
        model = regressor(**settings, callbacks=watch).fit(X, y)
    except (ImportError, TypeError, ValueError) as error:  # a package, a parameter or an operator that is not there
        _refuse(source, error)
    seconds = watch.seconds
    table = model.equations_
    columns = (table["equation"], table["complexity"], table["loss"])
    result = {
        "laws": [(str(text), int(size), float(loss)) for text, size, loss in zip(*columns, strict=True)],
        "selected": int(model.selected_index_),
        "ended": f"{model.stop_reason_} (symenum {symenum.__version__})",
        "sightings": watch.sightings(),
        "seconds": seconds,
    }
    Path(result_path).write_text(json.dumps(result), encoding="utf-8")


def _refuse(source: str, error: Exception) -> NoReturn:
    sys.exit(f"the symenum in {source} cannot run this: {type(error).__name__}: {error}")


if __name__ == "__main__":
    main(*sys.argv[1:])
