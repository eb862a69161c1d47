"""The records of a bench: a plan of jobs (set, problem, system, seed, noise), and a row with the result of each job.

Rows are written as JSON and read back. Running jobs and keeping rows in a folder are in `run` and `store`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from symenum.bench.judge.motion import MotionVerdict
from symenum.bench.problems import get_set
from symenum.bench.systems import Law, Sighting, check_system, make_system

__all__ = ["BenchPlan", "Job", "Row", "make_bench_plan", "row_from_json", "row_to_json"]

_NOT_IN_FILE_NAMES = re.compile(r"[^A-Za-z0-9.=_-]+")
_SHARE_SEED = 20_251  # draws a share of the problems; one number for all benches, so that they draw the same problems


@dataclass(frozen=True)
class Job:
    """One run: a system on a problem with a seed; `noise` is the level of noise on the target (`with_noise`)."""

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
        return "__".join(_NOT_IN_FILE_NAMES.sub("+", part.replace("*", "star")) for part in parts if part)

    def __str__(self) -> str:
        noise = f", noise {self.noise:g}" if self.noise else ""
        return f"{self.problem} by {self.system}, seed {self.seed}{noise}"


@dataclass(frozen=True)
class Row:
    """The result of a job: what it was run with, how it ended, its laws, and the verdicts on one of them.

    `ended` is "done", or how it failed; `words` is what the system or its process said last. `seconds` are those of the
    search (None where it failed), `wall` those of the whole process; `peak` is its memory in bytes. `laws` go from
    simple to accurate; `selected` is the index of the law that the system chose, `judged` the index of the law that
    `numeric`, `symbolic`, `structure` and `solved` are about (-1 where there is no law). `r2` is that of the selected
    law on clean test points. `sightings` are the members that the front has had, in the order of time, and `found_at`
    the seconds at which one that counts as the law first stood there: the end of the run for a system that tells no
    sightings, None where the law was not found.

    `test_r2` are the R² of all laws on the test points, None where a law is not defined on one of them; `error_ratios`,
    of laws that are judged by their error, are these errors over that of the true form fitted to the same rows. A
    system that gives predictions and no law has `predicted`, its values on the test points, and `size`, its number of
    nodes. Of laws of motion, `laws` are the chosen ones, one for each state, and `motion` is the verdict on them. The
    names of the fields are those of the JSON files.
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
    sightings: tuple[Sighting, ...] = ()
    found_at: float | None = None
    test_r2: tuple[float | None, ...] = ()
    error_ratios: tuple[float | None, ...] = ()
    predicted: tuple[float, ...] = ()
    size: int | None = None
    motion: MotionVerdict | None = None

    @property
    def law(self) -> Law | None:
        """The law that was judged."""
        return self.laws[self.judged] if self.laws else None

    @property
    def complexity(self) -> int | None:
        """The size of what the system chose: the complexity of a law, or the nodes of trees; None without either."""
        return self.laws[self.selected].complexity if self.laws else self.size

    @property
    def best_r2(self) -> float | None:
        """The best R² of a law of the front on the test points."""
        return max((value for value in self.test_r2 if value is not None), default=self.r2)

    @property
    def error_ratio(self) -> float | None:
        """The error of the chosen law over that of the true form fitted to the same rows."""
        return self.error_ratios[self.selected] if self.error_ratios else None

    @property
    def best_error_ratio(self) -> float | None:
        """The smallest such ratio of a law of the front."""
        return min((value for value in self.error_ratios if value is not None), default=None)

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
        for name in ("test_r2", "error_ratios", "predicted"):
            values[name] = tuple(record.get(name, ()))
        values["sightings"] = tuple(Sighting(**sighting) for sighting in record.get("sightings", ()))
        if record.get("motion") is not None:
            values["motion"] = MotionVerdict(**record["motion"])
        return Row(**values)
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise ValueError(f"no row of a benchmark: {error}") from error


@dataclass(frozen=True)
class BenchPlan:
    """The jobs, and notes: systems that are skipped, problems that were drawn."""

    jobs: tuple[Job, ...]
    systems: tuple[str, ...]
    notes: tuple[str, ...]


def make_bench_plan(
    sets: Sequence[str],
    *,
    seeds: int | None,
    systems: Sequence[str],
    noise: Sequence[float] | None = None,
    problems: Sequence[str] = (),
    share: float = 1.0,
) -> BenchPlan:
    """The jobs of all seeds 0, 1, … below `seeds`, seed by seed: an interrupted bench has then seen all problems.

    Without `seeds` each set has the number of its protocol: three for measured tables, one for others.

    `noise` are the levels of noise, each run for itself; without, there is none. `problems` are the only ones to run
    where any is named. `share` draws that part of each set's problems, the same ones every time.
    """
    if not sets:
        raise ValueError("name at least one problem set; symenum bench list shows them")
    if not 0 < share <= 1:
        raise ValueError(f"the share of problems must be above 0 and at most 1, not {share!r}")
    notes: list[str] = []
    runnable = []
    for system in dict.fromkeys(systems):
        obstacle = check_system(system)
        if obstacle is None:
            runnable.append(system)
        else:
            notes.append(f"{system} is skipped: {obstacle}")
    jobs: list[Job] = []
    for name in dict.fromkeys(get_set(one).name for one in sets):
        able = [system for system in runnable if _can_run(system, name)]
        notes += [
            f"{system} is skipped on {name}: it finds no laws of motion" for system in runnable if system not in able
        ]
        known = list(get_set(name).problem_names())
        chosen = [get_set(name).problem(one).name for one in problems] or known
        if share < 1:
            count = max(1, round(share * len(chosen)))
            drawn = set(np.random.default_rng(_SHARE_SEED).permutation(chosen)[:count].tolist())
            chosen = [one for one in chosen if one in drawn]
            notes.append(f"{name}: {count} of {len(known)} problems, drawn at random: {', '.join(chosen)}")
        jobs += [
            Job(name, problem, system, seed, level)
            for seed in range(get_set(name).protocol.seeds if seeds is None else seeds)
            for level in noise or (0.0,)
            for problem in chosen
            for system in able
        ]
    return BenchPlan(tuple(jobs), tuple(runnable), tuple(notes))


def _can_run(system: str, problem_set: str) -> bool:
    """Whether a system has the method that the set needs."""
    return get_set(problem_set).protocol.rule != "motion" or hasattr(make_system(system), "fit_motion")
