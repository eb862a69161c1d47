"""Which files the folder of a run holds, and what a search says of itself when it opens one.

The result of a search (model.json, front.csv, law.py, …) is of `symenum.estimator.saved_results`, the checkpoint of
`symenum.search.checkpoint`; they lie in the same folder. Here are the files that tell of the run itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = [
    "DATA",
    "EVENTS",
    "FORMAT",
    "FORMAT_VERSION",
    "FRONT",
    "FRONT_FORMAT",
    "LOCK",
    "LOG",
    "REQUEST",
    "RUN",
    "RUN_DIRECTORY_FILES",
    "STOP",
    "RunFacts",
    "RunPlace",
]

FORMAT = "symenum run"
FRONT_FORMAT = "symenum front"
FORMAT_VERSION = 1
"""Of run.json, events.jsonl and front.json together; a change that older versions cannot read raises it."""
RUN = "run.json"
"""What is searched, with which settings, since when, by which process. Written when a search starts or goes on."""
EVENTS = "events.jsonl"
"""One line for each start, step and end, appended."""
FRONT = "front.json"
"""The laws found so far, written when they have changed."""
DATA = "data.npz"
"""The trajectories of a search for laws of motion. The rows of another search lie beside its checkpoint."""
LOCK = "run.lock"
"""Locked by the process that searches for as long as it lives; always empty."""
STOP = "stop"
"""Whoever makes this file asks the search to end, with all that it has found."""
LOG = "log.txt"
"""What a search that the studio has started says in words."""
REQUEST = "request.json"
"""What the studio was asked for, where it has started the search."""
RUN_DIRECTORY_FILES = (RUN, EVENTS, FRONT, DATA, LOCK, STOP, LOG, REQUEST)


@dataclass(frozen=True)
class RunPlace:
    """The folder of a run, with what only the caller of the search knows.

    `target`, `columns` and `source`: names of the table's columns, and the file that it came from; "" and () where
    nothing more is known than the estimator knows. `results`: whether the estimator writes the result there, too; the
    command line writes its own.
    """

    path: Path
    target: str = ""
    columns: tuple[str, ...] = ()
    source: str = ""
    results: bool = True


@dataclass(frozen=True)
class RunFacts:
    """What run.json says of a search besides its time and process.

    `kind`: "law" for y = f(x), "motion" for x' = f(x). `targets`: y, or the states. `variables`: the names in formulas,
    each with the column of the table. `variances`: of each target, so that R² follows from a mean squared error;
    None where losses are of another kind. `data_hash`: SHA-256 of the rows and the settings.
    """

    kind: str
    targets: tuple[str, ...]
    variables: tuple[tuple[str, str], ...]
    rows: int
    settings: Mapping[str, Any]
    variances: tuple[float | None, ...] = ()
    source: str = ""
    data_hash: str = ""
    max_time: float | None = None
    elapsed_before: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict)
