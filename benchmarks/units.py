"""Feynman's equations of SRBench with their units and without: laws found in the same time, and candidates of a pass.

    python benchmarks/units.py [--every 3] [--noise 0 0.1] [--seconds 20] [--problem I.8.14] [--of 4 --part 0]
    python benchmarks/units.py --random 20 [--noise 0 0.1] [--seconds 20]

Each equation is searched twice on one core, without and with `units`; `feynman_units.json` has the units of the
variables, and that of the target follows from the law. Noise is SRBench's, on the training target only, and the verdict
its own (`symenum.bench.judge`). With --of N only part --part of N of the equations is run. With --passes nothing is
searched: the candidates that a pass of three layers of koza on the columns scores, and its seconds, for equations of at
most four columns. With --random N the equations are the first N random laws of the development set that some variables
may have units in: settings are chosen on these. Their units are random ones among all that the law allows.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from symenum import PSRN, PSERegressor
from symenum.bench.judge import Judge, judge_front
from symenum.bench.problems import Problem, ProblemSet, get_set, with_noise
from symenum.bench.problems.problem import data_file
from symenum.core.dimensions import BASE_UNITS, DIMENSIONLESS, Dimension, eliminated
from symenum.engine.layer_dimensions import SlotDimensions
from symenum.estimator.unit_text import read_unit
from symenum.expressions import Apply, Constant, Expression, Units, Variable, fold
from symenum.operators.traits import DimensionRule
from symenum.search import Settings

SET, RANDOM = "srbench_130", "random"
TABLE = Path(__file__).with_name("feynman_units.json")
TARGET = "y"
MOST_COLUMNS = 4  # of an equation for --passes
ROWS = 32  # of a pass, as in a search
Powers = tuple[Fraction, ...]


@dataclass(frozen=True)
class Line:
    """One equation at one level of noise: whether it was found, without units and with them, and the chosen laws."""

    problem: str
    noise: float
    found: tuple[bool, bool]
    laws: tuple[str, str]
    seconds: tuple[float, float]


class OneCore(PSERegressor):
    """PSERegressor on one thread."""

    def _settings(self, *arguments: Any, **options: Any) -> Settings:
        return replace(super()._settings(*arguments, **options), threads=1)


def equations() -> dict[str, dict[str, str]]:
    """The units of the columns x1, x2, … and of y, by the name of the equation."""
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    records = json.loads(data_file("srbench/feynman.json", "srbench", "").read_text(encoding="utf-8"))
    found = {}
    for record in records:
        own = {**table["variables"], **table["equations"].get(record["name"], {})}
        names = [variable["name"] for variable in record["variables"]]
        if all(name in own for name in names):
            found[record["name"]] = {f"x{i + 1}": own[name] for i, name in enumerate(names)}
    return found


def with_target(units: Mapping[str, str], law: Any) -> dict[str, str]:
    """The units with that of the target, which the law has."""
    dimensions = {name: read_unit(text).dimension for name, text in units.items()}
    of_law = Units(dimensions, DIMENSIONLESS).of(law)
    assert of_law is not None  # numbers are plain ones here
    return {**units, TARGET: str(of_law)}


def laws_with_units(seed: int) -> Iterator[tuple[str, dict[str, str]]]:
    """The random laws in which some variables may have units, by name, with random ones for all variables."""
    for number, problem in enumerate(get_set(RANDOM).problems()):
        free = free_dimensions(problem.expression, problem.variables)
        if not free:
            continue
        rng = np.random.default_rng([seed, number])
        base = rng.permutation(len(BASE_UNITS))[: len(free)]
        powers = {name: [Fraction(0)] * len(BASE_UNITS) for name in problem.variables}
        for at, solution in zip(base, free, strict=False):
            for name, power in zip(problem.variables, solution, strict=True):
                powers[name][at] += power
        yield problem.name, {name: str(Dimension(tuple(own))) for name, own in powers.items()}


def free_dimensions(law: Expression, names: tuple[str, ...]) -> list[Powers]:
    """The exponents of one base unit in all variables that leave the law consistent: a basis of all that do."""
    zero = (Fraction(0),) * len(names)
    conditions: list[Powers] = []  # combinations of the exponents of the variables that must be zero

    def visit(node: Expression, operands: tuple[Powers, ...]) -> Powers:
        if isinstance(node, Variable):
            return tuple(Fraction(name == node.name) for name in names)
        if not isinstance(node, Apply):
            return zero
        rule = node.operator.dimension_rule
        if rule in (DimensionRule.PRODUCT, DimensionRule.QUOTIENT):
            sign = 1 if rule is DimensionRule.PRODUCT else -1
            return tuple(a + sign * b for a, b in zip(*operands, strict=True))
        if rule is DimensionRule.HOMOGENEOUS:
            conditions.extend(tuple(a - b for a, b in zip(operands[0], one, strict=True)) for one in operands[1:])
            return tuple(Fraction(node.operator.dimension_degree).limit_denominator(12) * a for a in operands[0])
        if rule is DimensionRule.POWER and isinstance(node.operands[1], Constant):
            power = Fraction(float(node.operands[1].value)).limit_denominator(12)
            if float(power) == float(node.operands[1].value):
                return tuple(power * a for a in operands[0])
        conditions.extend(operands)
        return zero

    fold(law, visit)
    return null_space(conditions, len(names))


def null_space(rows: list[Powers], width: int) -> list[Powers]:
    """A basis of the vectors of so many numbers that all rows are orthogonal to."""
    left = [list(row) for row in rows]
    pivots = eliminated(left, width)
    basis = []
    for column in range(width):
        if column not in pivots:
            own = {pivot: -left[row][column] for row, pivot in enumerate(pivots)}
            basis.append(tuple(own.get(i, Fraction(i == column)) for i in range(width)))
    return basis


def run(
    problems: ProblemSet, problem: Problem, units: Mapping[str, str], noise: float, seconds: float, judge: Judge
) -> Line:
    """One equation, without units and with them."""
    X, y = problem.sample(0)
    y = with_noise(y, noise, problems.protocol.noise, 0)
    found, laws, took = [], [], []
    for own in (None, with_target(units, problem.expression)):
        model = OneCore(list(problems.protocol.operators), max_time=seconds, random_state=0, units=own, device="cpu")
        began = time.perf_counter()
        with np.errstate(all="ignore"):
            model.fit(X, y)
        took.append(time.perf_counter() - began)
        front = [entry.expression for entry in model.front_]
        judged, verdict = judge_front(front, model.selected_index_, problem, problems.protocol.at(noise), judge)
        found.append(verdict.solved)
        laws.append(str(front[judged]))
    return Line(problem.name, noise, (found[0], found[1]), (laws[0], laws[1]), (took[0], took[1]))


def show_passes(names: list[str], of: Mapping[str, Mapping[str, str]]) -> None:
    """Candidates and seconds of a pass of three layers of koza on the columns, without units and with them."""
    problems = get_set(SET)
    print(f"{'equation':10s} {'columns':>7s} {'without':>10s} {'s':>6s} {'with units':>10s} {'s':>6s} {'share':>9s}")
    shares, faster = [], []
    for name in names:
        problem = problems.problem(name)
        X, y = problem.sample(0)
        if X.shape[1] > MOST_COLUMNS:
            continue
        dimensions = {one: read_unit(text).dimension for one, text in of[name].items()}
        target = Units(dimensions, DIMENSIONLESS).of(problem.expression)
        assert target is not None  # numbers are plain ones here
        slots = [Variable(one) for one in problem.variables]
        net = PSRN(X.shape[1], "koza", 3)
        scored, seconds = [], []
        for known in (None, [SlotDimensions.of(slots, Units(dimensions, target))]):
            began = time.perf_counter()
            (found,) = net.search_many(
                [X[:ROWS]], y[:ROWS], 30, slots=[slots], device="cpu", threads=1, dimensions=known
            )
            seconds.append(time.perf_counter() - began)
            scored.append(found.scored)
        shares.append(scored[1] / scored[0])
        faster.append(seconds[0] / seconds[1])
        print(
            f"{name:10s} {X.shape[1]:7d} {scored[0]:10.3g} {seconds[0]:6.2f} {scored[1]:10.3g} {seconds[1]:6.2f} "
            f"{shares[-1]:9.2g}",
            flush=True,
        )
    print(f"median share of the candidates {np.median(shares):.2g}, of the seconds {1 / np.median(faster):.2g}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=3)
    parser.add_argument("--noise", type=float, nargs="*", default=[0.0, 0.1])
    parser.add_argument("--seconds", type=float, default=20.0, help="for each search")
    parser.add_argument("--problem", nargs="*", default=None, help="only these equations")
    parser.add_argument("--of", type=int, default=1, help="parts that the equations are divided into")
    parser.add_argument("--part", type=int, default=0, help="the part that is run")
    parser.add_argument("--random", type=int, default=0, help="so many random laws with random units instead")
    parser.add_argument("--passes", action="store_true", help="candidates of a pass only")
    options = parser.parse_args()
    problems = get_set(RANDOM if options.random else SET)
    units = dict(islice(laws_with_units(0), options.random)) if options.random else equations()
    names = list(units) if options.random else [problem.name for problem in problems.problems()][:: options.every]
    names = [name for name in names if name in units and (options.problem is None or name in options.problem)]
    names = names[options.part :: options.of]
    if options.passes:
        show_passes(names, units)
        return
    lines: list[Line] = []
    with Judge() as judge:
        for noise in options.noise:
            for name in names:
                line = run(problems, problems.problem(name), units[name], noise, options.seconds, judge)
                lines.append(line)
                marks = " ".join("found" if one else "-    " for one in line.found)
                print(f"{noise:5g} {name:10s} {marks}  {line.laws[0]:.60}  |  {line.laws[1]:.60}", flush=True)
            of_level = [line for line in lines if line.noise == noise]
            without, known = (sum(line.found[at] for line in of_level) for at in (0, 1))
            print(f"noise {noise:g}: without units {without}, with units {known} of {len(of_level)}", flush=True)


if __name__ == "__main__":
    main()
