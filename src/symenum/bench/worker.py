"""One run in a process of its own: python -m symenum.bench.worker JOB RESULT, both JSON files. `run` calls it."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from symenum.bench.jobs import Job
from symenum.bench.problems import MotionProblem, get_set, with_noise
from symenum.bench.systems import MotionSystem, check_found, make_system
from symenum.bench.systems.ours import Symenum
from symenum.core.files import write_whole
from symenum.core.registration import load_plugins
from symenum.run_directory.layout import RunPlace

__all__ = ["main"]


def main(job_path: str, result_path: str) -> None:
    """Fit one problem with one system and write the laws; any error ends the process with a traceback on stderr."""
    load_plugins()
    record: dict[str, Any] = json.loads(Path(job_path).read_text(encoding="utf-8"))
    job, cores = Job(**record["job"]), int(record["cores"])
    if record["first_core"] is not None and hasattr(os, "sched_setaffinity"):  # the same conditions for all systems
        os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[record["first_core"] :][:cores]))
    problems = get_set(job.set)
    problem = problems.problem(job.problem)
    system = make_system(job.system)
    if record.get("run_dir") is not None and isinstance(system, Symenum):  # rivals have no such folders
        source = f"{job.set}, {job}"
        # What an earlier try of this job has left there is overwritten.
        system = replace(system, run_dir=RunPlace(Path(record["run_dir"]), source=source, results=False))
    if isinstance(problem, MotionProblem):
        t, X = problem.noisy(job.noise, job.seed)
        fit = partial(cast(MotionSystem, system).fit_motion, t, X)
    else:
        X, y = problem.sample(job.seed)
        fit = partial(system.fit, X, with_noise(y, job.noise, problems.protocol.noise, job.seed))
    with np.errstate(all="ignore"):
        begin = time.perf_counter()
        found = fit(
            operators=problems.protocol.operators,
            seed=job.seed,
            max_time=float(record["max_time"]),
            cores=cores,
        )
        seconds = time.perf_counter() - begin
        check_found(job.system, found)
        result = asdict(replace(found, predictor=None))
        if found.predictor is not None:
            predicted = np.asarray(found.predictor.predict(problem.test(job.seed)[0]), dtype=np.float64)
            result |= {"predicted": predicted.tolist(), "size": found.predictor.size}
    if found.seconds is None:
        result["seconds"] = seconds
    write_whole(Path(result_path), json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
