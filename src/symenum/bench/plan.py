"""What a bench runs: sets, seeds, systems and noise to a list of jobs, and what must be said about it first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from symenum.bench.rows import Job
from symenum.bench.systems import check_system
from symenum.problems import get_set

__all__ = ["BenchPlan", "make_bench_plan"]

_DRAW = 20_251  # a share of the problems is always the same


@dataclass(frozen=True)
class BenchPlan:
    """The jobs, and notes: systems that are skipped, problems that were drawn."""

    jobs: tuple[Job, ...]
    systems: tuple[str, ...]
    notes: tuple[str, ...]


def make_bench_plan(
    sets: Sequence[str],
    *,
    seeds: int,
    systems: Sequence[str],
    noise: Sequence[float] | None = None,
    problems: Sequence[str] = (),
    share: float = 1.0,
) -> BenchPlan:
    """Jobs seed by seed, so that an interrupted bench has seen all problems. Without `noise`, none.

    `share` draws that part of each set's problems, the same every time.
    """
    if not sets:
        raise ValueError("name at least one problem set; symenum bench list shows them")
    if not 0 < share <= 1:
        raise ValueError(f"the share of problems must be above 0 and at most 1, not {share!r}")
    notes: list[str] = []
    runnable = []
    for system in dict.fromkeys(systems):
        why = check_system(system)
        if why is None:
            runnable.append(system)
        else:
            notes.append(f"{system} is skipped: {why}")
    jobs: list[Job] = []
    for name in dict.fromkeys(get_set(one).name for one in sets):
        known = [problem.name for problem in get_set(name).problems()]
        chosen = [get_set(name).problem(one).name for one in problems] or known
        if share < 1:
            count = max(1, round(share * len(chosen)))
            drawn = set(np.random.default_rng(_DRAW).permutation(chosen)[:count].tolist())
            chosen = [one for one in chosen if one in drawn]
            notes.append(f"{name}: {count} of {len(known)} problems, drawn at random: {', '.join(chosen)}")
        jobs += [
            Job(name, problem, system, seed, level)
            for seed in range(seeds)
            for level in noise or (0.0,)
            for problem in chosen
            for system in runnable
        ]
    return BenchPlan(tuple(jobs), tuple(runnable), tuple(notes))
