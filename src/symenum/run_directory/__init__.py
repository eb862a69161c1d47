"""The folder of a run: what a page, a report, `resume` and a colleague need of a search, alive or not.

`RunWriter` writes it while a search runs; `read_run` and `RunReader` read it. docs/guide/run-folder.md says what each
file holds. Everything is plain JSON, JSON lines and npz: a file from anywhere can hold wrong values, but no code.
"""

from symenum.run_directory.layout import (
    DATA,
    EVENTS,
    FRONT,
    LOG,
    REQUEST,
    RUN,
    RUN_DIRECTORY_FILES,
    STOP,
    RunFacts,
    RunPlace,
)
from symenum.run_directory.lock import FolderIsBusyError, RunLock, is_held
from symenum.run_directory.reader import (
    LawRecord,
    MoveRecord,
    Run,
    RunReader,
    Status,
    TargetFront,
    Variable,
    ask_to_stop,
    read_run,
    sorted_runs,
)
from symenum.run_directory.writer import NoRunWriter, RunWriter

__all__ = [
    "DATA",
    "EVENTS",
    "FRONT",
    "LOG",
    "REQUEST",
    "RUN",
    "RUN_DIRECTORY_FILES",
    "STOP",
    "FolderIsBusyError",
    "LawRecord",
    "MoveRecord",
    "NoRunWriter",
    "Run",
    "RunFacts",
    "RunLock",
    "RunPlace",
    "RunReader",
    "RunWriter",
    "Status",
    "TargetFront",
    "Variable",
    "ask_to_stop",
    "is_held",
    "read_run",
    "sorted_runs",
]
