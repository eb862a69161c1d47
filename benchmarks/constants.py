"""What half and twice of each number constant do: python benchmarks/constants.py [MODULE ...] [--jobs 2]

    python benchmarks/constants.py heads.affine          every number constant of one module
    python benchmarks/constants.py heads fitting tokens  of whole rooms
    python benchmarks/constants.py --jobs 16             of all that a search passes through

A constant that was chosen by trial should not matter much: a search that needs one number to be just so was tuned to
its examples. This command takes the module-level numbers of the package one by one, halves and doubles each, and
searches the same random laws (`symenum.bench.problems.random_laws`; they are on no list) with the same seeds: how many
are recovered, and how long all of them take relative to the unchanged program in the same run. Constants that are
exact by definition (a machine epsilon, a code number) are changed too; the table only says what happens.

Each pair of constant and factor is one process on one core. A constant that another one was computed from when its
module was imported moves alone.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "symenum"
ROOMS = ("scans", "fitting", "heads", "selection", "front", "tokens", "search")
FACTORS = (0.5, 2.0)
# Development laws that a search of 8 s on one core recovered in 0.2 to 3 s (benchmarks/random_laws.py, the H200's host,
# 2026-11-16): quicker ones pass through a stage or two only, slower ones would be lost to the clock.
LAWS = (8, 73, 93, 33, 50)
SECONDS = 6.0  # for each law
NOISE = 0.02  # of the spread of y, on the first law once more: constants of the fits under noise act there only
NOISY_SECONDS = 2.5  # a noisy law never ends a search


@dataclass(frozen=True)
class Variant:
    """A constant of a module, and what it is multiplied by; no module: the unchanged program."""

    module: str = ""
    name: str = ""
    factor: float = 1.0


@dataclass(frozen=True)
class Outcome:
    """What a variant recovered, of all laws, and the seconds of all searches together; `error`: it raised."""

    recovered: int
    seconds: float
    error: str = ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "modules", nargs="*", default=list(ROOMS), help="modules or rooms, such as heads.affine or fitting"
    )
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes at the same time")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(search_laws(Variant(**json.loads(options.worker)))))
        return
    variants = [Variant(module, name, factor) for module, name in constants(options.modules) for factor in FACTORS]
    if not variants:
        parser.error(f"no number constants in {', '.join(options.modules)}")
    unchanged = [Variant()] * 3
    with ThreadPoolExecutor(options.jobs) as pool:
        outcomes = pool.map(run, [*unchanged, *variants])
        base = [next(outcomes) for _ in unchanged]
        recovered = int(statistics.median(one.recovered for one in base))
        seconds = statistics.median(one.seconds for one in base)
        print(f"unchanged: {recovered} of {len(LAWS) + 1} recovered in {seconds:.1f} s; below: half / twice")
        print(f"{'constant':<56} {'recovered':>11} {'time':>13}", flush=True)
        for half in variants[:: len(FACTORS)]:
            print(row(half, [next(outcomes) for _ in FACTORS], Outcome(recovered, seconds)), flush=True)


def row(constant: Variant, outcomes: Sequence[Outcome], unchanged: Outcome) -> str:
    """What was recovered, and the seconds relative to the unchanged program, for half and twice of the constant."""
    recovered = " / ".join(one.error or str(one.recovered) for one in outcomes)
    seconds = " / ".join("" if one.error else f"{one.seconds / unchanged.seconds:.2f}" for one in outcomes)
    worse = any(one.error or one.recovered < unchanged.recovered for one in outcomes)
    name = f"{constant.module.removeprefix(PACKAGE + '.')}.{constant.name}"
    return f"{name:<56} {recovered:>11} {seconds:>13}{'  worse' if worse else ''}"


def constants(modules: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Module and name of the number constants of modules and rooms, as they stand in the source."""
    root = Path(importlib.import_module(PACKAGE).__file__ or "").parent
    for module in modules:
        path = root.joinpath(*module.split("."))
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
        for file in files:
            if "kernels" in file.name or "cuda" in file.as_posix():  # compiled by Triton, not looked up when called
                continue
            dotted = ".".join((PACKAGE, *file.relative_to(root).with_suffix("").parts)).removesuffix(".__init__")
            for node in ast.parse(file.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and is_number(node.value):
                    yield dotted, node.targets[0].id


def is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value != 0


def run(variant: Variant) -> Outcome:
    command = [sys.executable, __file__, "--worker", json.dumps(variant.__dict__)]
    one_core = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    limit = 30 + 1.5 * SECONDS * (len(LAWS) + 1)
    try:
        done = subprocess.run(
            command, env={**os.environ, **one_core}, capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return Outcome(0, limit, "hangs")
    if done.returncode:
        return Outcome(0, 0.0, done.stderr.strip().splitlines()[-1].partition(":")[0])
    return Outcome(**json.loads(done.stdout.splitlines()[-1]))


def change(variant: Variant) -> None:
    """Bind the constant anew in its module, and wherever it was imported by name."""
    before = getattr(importlib.import_module(variant.module), variant.name)
    after = before * variant.factor
    if isinstance(before, int):
        after = max(1, round(after)) if before > 0 else round(after)
    for module in [module for name, module in sys.modules.items() if name.partition(".")[0] == PACKAGE]:
        if vars(module).get(variant.name) == before:
            setattr(module, variant.name, after)


def search_laws(variant: Variant) -> dict[str, object]:
    """All laws with the constant changed, in this process."""
    import numpy as np

    from symenum import PSERegressor
    from symenum.bench.judge import recovered
    from symenum.bench.problems.random_laws import DEVELOPMENT, EVERY_OPERATOR, random_law

    for room in ROOMS:  # so that copies of the constant are there to be changed
        importlib.import_module(f"{PACKAGE}.{room}")
    if variant.module:
        change(variant)
    found, seconds = 0, 0.0
    for number, noise in [*((number, 0.0) for number in LAWS), (LAWS[0], NOISE)]:
        problem = random_law(DEVELOPMENT, number)
        X, y = problem.sample(0)
        y = y + noise * y.std() * np.random.default_rng(number).standard_normal(len(y))
        model = PSERegressor(
            operators=list(EVERY_OPERATOR), max_time=NOISY_SECONDS if noise else SECONDS, random_state=0
        )
        began = time.perf_counter()
        model.fit(X, y)
        seconds += time.perf_counter() - began
        if noise:
            residual = model.predict(X) - y
            found += bool(np.mean(residual**2) <= (1.5 * noise * y.std()) ** 2)
        else:
            found += any(recovered(entry.expression, problem) for entry in model.front_)
    return {"recovered": found, "seconds": seconds}


if __name__ == "__main__":
    main()
