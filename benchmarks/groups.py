"""One form for many groups: laws with constants of each group's own, found again from 10 groups of 20 rows.

    python benchmarks/groups.py [--noise 0 0.01 0.1] [--seconds 30] [--law decay] [--seed 0]

Eight laws of our own making with one or two constants per group, and up to one that is shared. A law counts as found if
the chosen form is the right one: fitted to clean rows of every group it equals them up to rounding, and it has as many
constants per group as the truth. Beside it the error of the fit with noise against the clean law. One core.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas
import torch

from symenum import PSERegressor
from symenum.core.target import Training, check_target
from symenum.expressions import Constant, substitute
from symenum.heads.response import law_limit
from symenum.search import Settings
from symenum.search.one_form import GroupedLaw, GroupedRows, best_forms, forms_of

GROUPS, ROWS, NEW_ROWS = 10, 20, 200
Law = Callable[..., np.ndarray]


@dataclass(frozen=True)
class Case:
    """A law of the columns and the constants; the ranges of both."""

    name: str
    law: Law
    columns: tuple[tuple[float, float], ...]
    constants: tuple[tuple[float, float], ...]


CASES = (
    Case("decay", lambda x, a, b: a * np.exp(-b * x), ((0.1, 4),), ((1, 3), (0.3, 1.5))),
    Case("line on shared slope", lambda x, y, a: a + 1.7 * x * y, ((0.5, 3), (0.5, 3)), ((-2, 2),)),
    Case("saturation", lambda x, a, b: a * x / (b + x), ((0.1, 5),), ((1, 4), (0.5, 2))),
    Case("oscillation", lambda x, a, w: a * np.sin(w * x), ((0, 3),), ((1, 3), (1, 2))),
    Case("power of a distance", lambda x, y, a, b: a * x**2 / y + b, ((0.5, 2), (0.5, 2)), ((1, 4), (-1, 1))),
    Case("heat", lambda x, y, a: np.exp(-a * x) * y, ((0.1, 2), (1, 3)), ((0.5, 2),)),
    Case("falling body", lambda t, h, v: h + v * t - 4.905 * t**2, ((0, 2),), ((0, 10), (-5, 5))),
    Case("logarithm", lambda x, y, a, b: a * np.log(x) + b * y, ((0.5, 4), (0.5, 3)), ((1, 3), (-2, 2))),
)


class OneCore(PSERegressor):
    """PSERegressor on one thread."""

    def _settings(self, *arguments: Any, **options: Any) -> Settings:
        return replace(super()._settings(*arguments, **options), threads=1)


def drawn(case: Case, rows: int, seed: int, constants: np.ndarray) -> tuple[pandas.DataFrame, np.ndarray]:
    """Rows of each group, and the clean law."""
    rng = np.random.default_rng([seed, rows])
    tables, values = [], []
    for group, own in enumerate(constants):
        columns = [rng.uniform(low, high, rows) for low, high in case.columns]
        table = pandas.DataFrame({f"x{i + 1}": column for i, column in enumerate(columns)})
        tables.append(table.assign(group=f"g{group}"))
        values.append(case.law(*columns, *own))
    return pandas.concat(tables, ignore_index=True), np.concatenate(values)


def found(case: Case, noise: float, seconds: float, seed: int) -> tuple[bool, str, float]:
    """Whether the law is found, the form, and the seconds."""
    rng = np.random.default_rng([seed, 99])
    constants = np.stack([rng.uniform(low, high, GROUPS) for low, high in case.constants], axis=1)
    X, clean = drawn(case, ROWS, seed, constants)
    size = float(np.sqrt(np.mean(clean**2)))
    began = time.perf_counter()
    model = OneCore(max_time=seconds, random_state=seed, groups="group", device="cpu")
    model.fit(X, clean + noise * size * rng.normal(size=len(clean)))
    took = time.perf_counter() - began
    new, truth = drawn(case, NEW_ROWS, seed + 1, constants)
    error = float(np.sqrt(np.mean((model.predict(new) - truth) ** 2)))
    right = is_right(model.grouped_.laws[model.selected_index_], new, truth)
    right = right and model.constants_.shape[1] <= len(case.constants)
    return right, f"{model.best_expression_}  (error {error / size:.2g} of the size)", took


def is_right(law: GroupedLaw, table: pandas.DataFrame, clean: np.ndarray) -> bool:
    """Whether the form, all its numbers free, equals clean rows of every group up to rounding."""
    codes = pandas.factorize(table["group"])[0]
    names = [name for name in table.columns if name != "group"]
    target, _ = check_target(clean, None, len(clean))
    training = Training.of(torch.tensor(table[names].to_numpy()), names, target)
    groups = tuple(torch.tensor(np.flatnonzero(codes == group)) for group in range(GROUPS))
    first = {name: Constant(float(value)) for name, value in zip(law.names, law.values[0], strict=True)}
    forms = forms_of([substitute(law.form, first)])
    found = best_forms(forms, GroupedRows(training, groups))
    return bool(found) and found[0].loss <= law_limit(target)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--noise", type=float, nargs="*", default=[0.0, 0.01, 0.1])
    parser.add_argument("--seconds", type=float, default=30.0, help="for each search")
    parser.add_argument("--law", nargs="*", default=None, help="only these laws")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    cases = [case for case in CASES if options.law is None or case.name in options.law]
    for noise in options.noise:
        right = 0
        for case in cases:
            one, form, took = found(case, noise, options.seconds, options.seed)
            right += one
            print(f"{noise:5g} {case.name:22s} {'found' if one else '-    '} {took:5.1f} s  {form:.110}", flush=True)
        print(f"noise {noise:g}: {right} of {len(cases)}", flush=True)


if __name__ == "__main__":
    main()
