"""Sanity: how often true laws are refused, and whether anything absurd is printed.

    python benchmarks/sanity.py truth [--sets random nguyen …]      true laws on their own rows
    python benchmarks/sanity.py printed [--laws 200] [--tables 62] [--iterations 30]

`truth` asks the policy (`symenum.sanity`) about the true law of each problem, as if it were a find with noise, and
prints those that are refused and why, and what the question costs. `printed` searches random laws with 10% noise and
the development tables ($SYMENUM_DATA: pmlb, real_tables.json), and looks at every law of every front with a check that
shares no code with the policy (`symenum.bench.judge.plausibility`): laws with a pole in the box of the data, laws with
a wave that the rows do not resolve. Both numbers must be zero. `--sanity off` shows what is printed without the policy.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import torch

from symenum import PSERegressor
from symenum.bench.judge.plausibility import has_pole_in_box, has_unresolved_wave
from symenum.bench.problems import Case, get_set
from symenum.bench.problems.problem import data_file, with_noise
from symenum.bench.problems.random_laws import DEVELOPMENT, EVERY_OPERATOR
from symenum.core.target import check_target
from symenum.sanity import SANITY, Policy

NOISE = 0.1  # of the spread of y, on random laws
SETS = ("random", "random_single", "nguyen", "nguyen_c", "r", "r_star", "livermore", "feynman", "deep")


def truth(names: Sequence[str]) -> None:
    """Print, for each set, how many true laws are refused, which ones, and what judging one costs."""
    for name in names:
        cases = get_set(name).problems()
        refused, seconds = [], []
        for case in cases:
            began = time.perf_counter()
            reason = policy_of(case).reason(case.expression)
            seconds.append(time.perf_counter() - began)
            refused += [] if reason is None else [(case.name, str(case.expression), reason)]
        cost = f"{1e3 * np.median(seconds):.0f} ms, at most {1e3 * max(seconds):.0f} ms"
        print(f"{name}: {len(cases) - len(refused)} of {len(cases)} pass; {cost}", flush=True)
        for law, text, reason in refused:
            print(f"  {law}: {reason}: {text}")


def policy_of(case: Case) -> Policy:
    X, y = case.sample()
    target, _ = check_target(y, None, len(y))
    columns = {name: torch.tensor(np.ascontiguousarray(X[:, i])) for i, name in enumerate(case.variables)}
    return Policy.of(columns, target, sanity="on")


def printed(laws: int, tables: int, iterations: int, sanity: str) -> None:
    """Search random laws with noise and tables, and count what is absurd on their fronts."""
    total, poles, waves, refused = 0, 0, 0, Counter[str]()
    for name, X, y, operators in [*noisy_laws(laws), *development_tables(tables)]:
        model = PSERegressor(operators, max_iterations=iterations, max_time=None, random_state=0, sanity=sanity)
        model.fit(X, y)
        refused.update(model.refused_)
        columns = {f"x{i + 1}": np.ascontiguousarray(X[:, i]) for i in range(X.shape[1])}
        for law in model.front_:
            if law.loss <= model.front_.floor:
                continue
            pole = has_pole_in_box(law.expression, columns, y)
            wave = has_unresolved_wave(law.expression, columns)
            total, poles, waves = total + 1, poles + pole, waves + wave
            if pole or wave:
                print(f"  {name}: {'a pole' if pole else 'a wave'}: {law.expression}", flush=True)
    print(f"{total} laws printed: {poles} with a pole in the box, {waves} with a wave that the rows do not resolve")
    for reason, count in refused.most_common():
        print(f"  refused {count} times: {reason}")


def noisy_laws(count: int) -> Iterator[tuple[str, np.ndarray, np.ndarray, Sequence[str]]]:
    for name in DEVELOPMENT.names()[:count]:
        X, y = DEVELOPMENT.law(name).sample()
        yield name, X, with_noise(y, NOISE, "std", 0), EVERY_OPERATOR


def development_tables(count: int) -> Iterator[tuple[str, np.ndarray, np.ndarray, str]]:
    folder = data_file("pmlb", "sanity", "https://github.com/EpistasisLab/pmlb")
    found = []
    for path in sorted(folder.glob("*.tsv.gz")):
        with gzip.open(path, "rt") as file:
            rows = list(csv.reader(file, delimiter="\t"))
        at = rows[0].index("target")
        values = np.array(rows[1:], dtype=np.float64)
        found.append((path.name, np.delete(values, at, axis=1), values[:, at], "koza"))
    tables = json.loads(data_file("real_tables.json", "sanity", "the real tables").read_text())
    found += [(name, np.array(one["X"], float), np.array(one["y"], float), "koza") for name, one in tables.items()]
    yield from found[:: max(1, len(found) // max(count, 1))][:count]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("truth", "printed"))
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--laws", type=int, default=200)
    parser.add_argument("--tables", type=int, default=62)
    parser.add_argument("--iterations", type=int, default=30)
    parser.add_argument("--sanity", choices=SANITY, default="on")
    options = parser.parse_args()
    if options.what == "truth":
        truth(options.sets)
    else:
        printed(options.laws, options.tables, options.iterations, options.sanity)


if __name__ == "__main__":
    main()
