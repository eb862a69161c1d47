"""What is run, and what is kept of a run: a job and a row, as JSON and back."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from symenum.bench.systems.base import Law

__all__ = ["Job", "Row", "row_from_json", "row_to_json"]

_UNSAFE = re.compile(r"[^A-Za-z0-9.=_-]+")


@dataclass(frozen=True)
class Job:
    """One run: a system on a problem with a seed."""

    set: str
    problem: str
    system: str
    seed: int
    noise: float = 0.0

    @property
    def key(self) -> str:
        """A name for files, the same for the same job."""
        noise = f"n{self.noise:g}" if self.noise else ""
        parts = (self.set, self.problem, self.system, f"s{self.seed}", noise)
        return "__".join(_UNSAFE.sub("+", part.replace("*", "star")) for part in parts if part)

    def __str__(self) -> str:
        noise = f", noise {self.noise:g}" if self.noise else ""
        return f"{self.problem} by {self.system}, seed {self.seed}{noise}"


@dataclass(frozen=True)
class Row:
    """The result of a job. `ended` is "done", or how it failed; `words` say more. Laws go from simple to accurate.

    `judged` is the law that the verdicts are about: -1 where there is none. `seconds` are those of the search alone,
    `wall` those of the process.
    """

    job: Job
    version: str
    max_time: float
    ended: str
    words: str = ""
    seconds: float | None = None
    wall: float = 0.0
    peak: int = 0
    laws: tuple[Law, ...] = ()
    selected: int = -1
    judged: int = -1
    numeric: bool = False
    symbolic: str | None = None
    structure: bool = False
    solved: bool = False
    r2: float | None = None

    @property
    def law(self) -> Law | None:
        """The law that was judged."""
        return self.laws[self.judged] if self.laws else None

    @property
    def disagree(self) -> bool:
        """Whether one verdict says yes and the other no."""
        return (self.symbolic == "yes" and not self.numeric) or (self.symbolic == "no" and self.numeric)


def row_to_json(row: Row) -> str:
    """One line."""
    return json.dumps(asdict(row), ensure_ascii=False, sort_keys=True)


def row_from_json(text: str) -> Row:
    """A row; ValueError where the text is not one, cut off for example."""
    try:
        record: Mapping[str, Any] = json.loads(text)
        known = {field.name for field in fields(Row)}
        values = {name: value for name, value in record.items() if name in known}
        values["job"] = Job(**record["job"])
        values["laws"] = tuple(Law(**law) for law in record.get("laws", ()))
        return Row(**values)
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise ValueError(f"no row of a benchmark: {error}") from error
