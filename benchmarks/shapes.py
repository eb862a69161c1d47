"""Random laws with noise and few rows, with their true shape and without: the error outside the box of the data.

    python benchmarks/shapes.py [--laws 40] [--rows 60] [--noise 0.1] [--seconds 10] [--first 0]

The laws are the first of the development set that rise or fall in at least one variable over a box twice as wide as
that of the data, as `Shape` proves it; the shape that is given is all that is proved of the law: rising, falling,
convex, concave in each variable, and the sign. The error is that against the clean law at 2,000 points of the wide box
outside the narrow one, relative to the spread of the law there. One core.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from symenum import PSERegressor
from symenum.bench.problems import Problem, get_set
from symenum.expressions import Expression, evaluate
from symenum.sanity.shapes import Bounded, Requirement, Shape, Sloped, Verdict
from symenum.search import Settings

SET = "random"
WIDENED = 0.5  # of the width of the data's box, added on each side of it
POINTS = 2000


class OneCore(PSERegressor):
    """PSERegressor on one thread."""

    def _settings(self, *arguments: Any, **options: Any) -> Settings:
        return replace(super()._settings(*arguments, **options), threads=1)


def wide_box(problem: Problem, X: np.ndarray) -> dict[str, tuple[float, float]]:
    """A box twice as wide as that of the rows; of a variable that is positive, positive."""
    found = {}
    for at, name in enumerate(problem.variables):
        low, high = float(X[:, at].min()), float(X[:, at].max())
        step = WIDENED * (high - low)
        found[name] = (low / 2 if 0 < low < step else low - step, high + step)
    return found


def true_shape(law: Expression, box: dict[str, tuple[float, float]]) -> dict[str, Any]:
    """All that is proved of the law over the box, as the parameter `shape` takes it."""
    shape: dict[str, Any] = {}
    words: tuple[tuple[str, int, int], ...] = (
        ("increasing", 1, 1), ("decreasing", -1, 1), ("convex", 1, 2), ("concave", -1, 2),
    )  # fmt: skip
    for name in box:
        proved = [word for word, sign, order in words if is_proved(law, Sloped("", name, sign, order), box)]
        if proved:
            shape[name] = proved
    if is_proved(law, Bounded("", 0.0, open_low=True), box):
        shape["y"] = "positive"
    return shape


def is_proved(law: Expression, requirement: Requirement, box: dict[str, tuple[float, float]]) -> bool:
    return Shape((requirement,), box).verdict(law) is Verdict.PROVED


def cases(
    rows: int,
) -> Iterator[tuple[Problem, np.ndarray, np.ndarray, dict[str, Any], dict[str, tuple[float, float]]]]:
    """Laws that rise or fall in a variable, with their rows, their shape and the wide box."""
    for problem in get_set(SET).problems():
        X, y = problem.sample(0)
        X, y = X[:rows], y[:rows]
        box = wide_box(problem, X)
        shape = true_shape(problem.expression, box)
        if any({"increasing", "decreasing"} & set(words) for name, words in shape.items() if name != "y"):
            yield problem, X, y, shape, box


def error_outside(law: Expression, problem: Problem, X: np.ndarray, box: dict[str, tuple[float, float]]) -> float:
    """The root mean square error against the clean law at points outside the rows' box, in units of its spread."""
    rng = np.random.default_rng(7)
    points = {name: rng.uniform(*box[name], 4 * POINTS) for name in problem.variables}
    inside = np.ones(4 * POINTS, dtype=bool)
    for at, name in enumerate(problem.variables):
        inside &= (points[name] >= X[:, at].min()) & (points[name] <= X[:, at].max())
    outside = {name: column[~inside][:POINTS] for name, column in points.items()}
    with np.errstate(all="ignore"):
        truth, found = evaluate(problem.expression, outside), evaluate(law, outside)
    error = float(np.sqrt(np.mean((found - truth) ** 2)))
    return error / float(truth.std()) if np.isfinite(error) else np.inf


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--laws", type=int, default=40)
    parser.add_argument("--first", type=int, default=0, help="laws to leave out at the beginning")
    parser.add_argument("--rows", type=int, default=60)
    parser.add_argument("--noise", type=float, default=0.1, help="in units of the root mean square of y")
    parser.add_argument("--seconds", type=float, default=10.0, help="for each search")
    options = parser.parse_args()
    ratios: list[float] = []
    errors: list[tuple[float, float]] = []
    marks: Counter[str] = Counter()
    for number, (problem, X, y, shape, box) in enumerate(cases(options.rows)):
        if number < options.first:
            continue
        if len(ratios) == options.laws:
            break
        noisy = y + options.noise * np.sqrt(np.mean(y**2)) * np.random.default_rng(number).normal(size=len(y))
        pair = []
        for known in (None, shape):
            model = OneCore(
                max_time=options.seconds, random_state=0, device="cpu", shape=known, shape_box=box if known else None
            )
            began = time.perf_counter()
            model.fit(X, noisy, variable_names=problem.variables)
            pair.append(error_outside(model.best_expression_, problem, X, box))
            took = time.perf_counter() - began
        marks.update(str(mark).split(":")[0] for mark in model.equations_["shape"])
        errors.append((pair[0], pair[1]))
        ratios.append(pair[1] / pair[0] if np.isfinite(pair[0]) else 0.0)
        print(
            f"{problem.name:12s} without {pair[0]:9.3g}  with {pair[1]:9.3g}  {took:4.1f} s  {problem.text:.70}",
            flush=True,
        )
    without, known = (float(np.median([pair[at] for pair in errors])) for at in (0, 1))
    print(
        f"{len(errors)} laws: median error outside {without:.3g} without, {known:.3g} with; ratio {known / without:.2f}"
    )
    print(f"median of the ratios {float(np.median(ratios)):.2f}; verdicts of all laws of the fronts: {dict(marks)}")


if __name__ == "__main__":
    main()
