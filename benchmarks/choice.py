"""Which rule chooses the right law of a front, and whether the band of the chosen law holds: two tables.

    python benchmarks/choice.py [--laws 60] [--noise 0.01 0.1] [--tables] [--splits 1] [--max-time 20] [--jobs 2]
    python benchmarks/choice.py --report [--runs build/choice.jsonl]

First the fronts are made: the first random laws of development (`symenum.bench.problems.random_laws`) with 300 rows and
noise, and, with `--tables`, the tables below $SYMENUM_DATA (pmlb and real_tables.json), a quarter of whose rows are
held out. Each run is one line of JSON in the file `--runs`: the rows, the front and the runners-up. Runs that are there
are not made again; `--report` makes none.

Then each rule chooses from each front. Of the random laws: how often the chosen law has the structure of the true one
(`symenum.bench.judge`), among the runs in which a law of the front has it; and the median of its error against the true
law on fresh rows of the same range, in units of the noise. Of the tables: `gap`, the mean of the best R² of the front
on the held-out rows less that of the chosen law; median, mean and worst R² of the chosen law; on how many tables it is
below -0.1 where a straight line is above 0; its median complexity. R² below -1 counts as -1 in means.

With `--outliers 0.05` so many rows of the random laws are first moved by up to ten standard deviations of y, the laws
staying as they are: what was chosen without outliers should be chosen with them.

The band of `predict(return_std=True)`: the part of fresh points at which the true law is within 1.96 standard
deviations of the chosen one, and the median over the runs of the band's width over the error.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch

from symenum import PSERegressor
from symenum.bench.judge import same_structure
from symenum.bench.problems.problem import Array, data_file, law_operators, with_noise
from symenum.bench.problems.random_laws import DEVELOPMENT, EVERY_OPERATOR
from symenum.core.target import Target, Training
from symenum.core.threads import single_threaded
from symenum.expressions import Expression, evaluate, parse, walk
from symenum.expressions.candidate import Candidate
from symenum.fitting.free_constants import free_constants
from symenum.fitting.losses import Squared
from symenum.heads.response import law_limit
from symenum.selection import (
    DEFAULT_RULE,
    MODEL_SELECTIONS,
    choose_law,
    description_length,
    find_alternatives,
    law_price,
    make_band,
    on_folds,
)
from symenum.selection.evidence import noise_surprise
from symenum.selection.influence import leverage

ROWS = 300  # of a random law
TEST_ROWS = 500  # fresh rows of a random law
HELD_OUT = 0.25  # part of the rows of a table
NOMINAL = 1.96  # standard deviations: a band of 95%
OUTLIERS = 10.0  # standard deviations of y: the largest of them
LOW_R2 = -1.0  # lower values count as this in means
ORIGINAL = "https://github.com/EpistasisLab/pmlb, and the R datasets collected at https://vincentarelbundock.github.io"


# The runs


@dataclass(frozen=True)
class Run:
    """One search: X (rows, columns) and y of the fit and of the test, the laws that it kept, the true law if known.

    `noise` is 0 for a table. The y of a test of a random law have no noise.
    """

    name: str
    noise: float
    X: list[list[float]]
    y: list[float]
    X_test: list[list[float]]
    y_test: list[float]
    law: str | None
    front: list[str]
    runners_up: list[str]


@dataclass(frozen=True)
class Question:
    """What is searched: the fields of a Run before its laws, and operators and seconds of the search."""

    run: Run
    operators: str | tuple[str, ...]
    max_time: float

    def answer(self) -> Run:
        run = self.run
        model = PSERegressor(self.operators, max_time=self.max_time, random_state=0)
        with single_threaded():
            model.fit(np.array(run.X), np.array(run.y))
        kept = [str(law.expression) for law in model._kept]
        return replace(run, front=kept[: len(model.front_)], runners_up=kept[len(model.front_) :])


def random_questions(laws: int, levels: Sequence[float], max_time: float) -> Iterator[Question]:
    for number in range(1, laws + 1):
        problem = replace(DEVELOPMENT.law(f"{DEVELOPMENT.prefix}{number}"), rows=ROWS)
        X, y = problem.sample()
        X_test, y_test = problem.test()
        for noise in levels:
            rows = X.tolist(), with_noise(y, noise, "std", number).tolist()
            fresh = X_test[:TEST_ROWS].tolist(), y_test[:TEST_ROWS].tolist()
            run = Run(f"{problem.name} {noise:g}", noise, *rows, *fresh, problem.text, [], [])
            yield Question(run, EVERY_OPERATOR, max_time)


def table_questions(splits: int, max_time: float) -> Iterator[Question]:
    for name, X, y in tables():
        for split in range(splits):
            order = np.random.default_rng(split).permutation(len(y))
            cut = round((1 - HELD_OUT) * len(y))
            inside, outside = order[:cut], order[cut:]
            rows = X[inside].tolist(), y[inside].tolist(), X[outside].tolist(), y[outside].tolist()
            yield Question(Run(f"{name} {split}", 0.0, *rows, None, [], []), "koza", max_time)


def tables() -> Iterator[tuple[str, Array, Array]]:
    """Name, X and y of the tables of development."""
    real = json.loads(data_file("real_tables.json", "tables", ORIGINAL).read_text(encoding="utf-8"))
    for name, table in real.items():
        yield name, np.array(table["X"], dtype=np.float64), np.array(table["y"], dtype=np.float64)
    for path in sorted(data_file("pmlb", "tables", ORIGINAL).glob("*.tsv.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            names = file.readline().split()
            values = np.loadtxt(file, ndmin=2)
        at = names.index("target")
        yield path.name.removesuffix(".tsv.gz"), np.delete(values, at, axis=1), values[:, at]


def make_runs(questions: Iterable[Question], path: Path, jobs: int) -> None:
    """Answer those that the file does not have, and add them to it."""
    done = {run.name for run in read_runs(path)}
    missing = [question for question in questions if question.run.name not in done]
    path.parent.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool, path.open("a", encoding="utf-8") as file:
        answers = as_completed([pool.submit(question.answer) for question in missing])
        for count, answer in enumerate(answers, start=1):
            run = answer.result()
            file.write(json.dumps(asdict(run)) + "\n")
            file.flush()
            print(f"[{count}/{len(missing)}] {run.name}: {len(run.front)} laws", file=sys.stderr, flush=True)


def with_outliers(run: Run, share: float) -> Run:
    """The run with that share of its rows moved by up to ten standard deviations of y; a table stays as it is."""
    if not run.noise or not share:
        return run
    rng = np.random.default_rng(len(run.name))
    y = np.array(run.y)
    moved = rng.permutation(len(y))[: round(share * len(y))]
    y[moved] += OUTLIERS * float(np.std(y)) * rng.uniform(-1, 1, len(moved))
    return replace(run, y=y.tolist())


def read_runs(path: Path) -> list[Run]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8") as file:
        return [Run(**json.loads(line)) for line in file]


# What the rules see of a run


@dataclass(frozen=True)
class Judged:
    """A run with its laws read: the front as `choose_law` takes it, and what each of its laws is worth."""

    run: Run

    @cached_property
    def training(self) -> Training:
        y = torch.tensor(self.run.y, dtype=torch.float64)
        X = torch.tensor(self.run.X, dtype=torch.float64)
        names = [f"x{i + 1}" for i in range(X.shape[1])]
        return Training.of(X, names, Target(y, torch.full((len(y),), 1 / len(y), dtype=torch.float64)))

    @cached_property
    def test_columns(self) -> dict[str, torch.Tensor]:
        X = torch.tensor(self.run.X_test, dtype=torch.float64)
        return {f"x{i + 1}": X[:, i].contiguous() for i in range(X.shape[1])}

    @cached_property
    def entries(self) -> tuple[Candidate, ...]:
        return tuple(map(self.candidate, self.run.front))

    def candidate(self, text: str) -> Candidate:
        law = parse(text)
        return Candidate(law, float(self.training.target.loss(evaluate(law, self.training.columns)[None])))

    discount = 0.99

    @property
    def floor(self) -> float:
        return law_limit(self.training.target)

    @property
    def rows(self) -> int:
        return len(self.run.y)

    @cached_property
    def right(self) -> list[bool]:
        """Whether each law of the front has the structure of the true one."""
        if self.run.law is None:
            return [False] * len(self.entries)
        true = parse(self.run.law, law_operators())
        return [same_structure(entry.expression, true) for entry in self.entries]

    @cached_property
    def test_errors(self) -> list[float]:
        """The root mean square error of each law of the front on the test rows; inf where it is not finite."""
        y = torch.tensor(self.run.y_test, dtype=torch.float64)
        sizes = [(evaluate(entry.expression, self.test_columns) - y).square().mean().sqrt() for entry in self.entries]
        return [float(size) if bool(size.isfinite()) else math.inf for size in sizes]

    def r2(self, at: int) -> float:
        return 1 - self.test_errors[at] ** 2 / float(np.var(self.run.y_test))

    @cached_property
    def line_r2(self) -> float:
        """R² of the linear regression on the test rows."""
        A, A_test = (np.c_[np.ones(len(X)), np.array(X)] for X in (self.run.X, self.run.X_test))
        predicted = A_test @ np.linalg.lstsq(A, np.array(self.run.y), rcond=None)[0]
        return float(1 - np.mean((predicted - self.run.y_test) ** 2) / np.var(self.run.y_test))

    def squares(self, law: Expression) -> Array:
        """The squared residuals (rows,)."""
        found: Array = (evaluate(law, self.training.columns) - self.training.target.y).square().numpy()
        return found

    def leverage(self, law: Expression) -> Array:
        """How much each row moves its own fitted value (rows,), from 0 to 1."""
        return np.minimum(leverage(law, self.training), 0.999)


# The rules

Rule = Callable[[Judged], int]


def least(cost: Callable[[Judged, Candidate], float]) -> Rule:
    """The law of the least cost in nats."""
    return lambda one: min(range(len(one.entries)), key=lambda i: cost(one, one.entries[i]))


def surprise(one: Judged, law: Candidate) -> float:
    """Minus the log-likelihood under normal noise, up to a constant."""
    return 0.5 * one.rows * math.log(max(law.loss, one.floor))


def left_out(one: Judged, law: Candidate) -> float:
    """The same for each row under the law fitted without it, by leverage."""
    squares = one.squares(law.expression) / (1 - one.leverage(law.expression)) ** 2
    return 0.5 * one.rows * math.log(max(float(squares.mean()), one.floor))


def tails(one: Judged, law: Candidate, degrees: float = 8.0) -> float:
    """Minus the log-likelihood under noise with the tails of Student's t."""
    return noise_surprise(one.squares(law.expression), one.floor, degrees)


def price(one: Judged, law: Candidate) -> float:
    return law_price(law.expression, one.rows)


def constants(law: Candidate) -> int:
    return len(free_constants(law.expression, integers=False))


def bits(one: Judged, law: Candidate) -> float:
    return math.log(2) * description_length(law.expression, one.rows)


def by_folds(one: Judged) -> int:
    held = on_folds([entry.expression for entry in one.entries], one.training, Squared(), one.floor, 0)
    chosen = held.select()
    return 0 if chosen is None else chosen


def named(rule: str) -> Rule:
    return lambda one: choose_law(one, rule, None, one.training, Squared())


def symbols(one: Judged, law: Candidate) -> float:
    """Half a nat for each symbol and each different symbol: a price that does not grow with the rows."""
    nodes = list(walk(law.expression))
    different = {getattr(node, "name", None) or type(node).__name__ for node in nodes}
    return 0.5 * len(nodes) * math.log(1 + len(different))


RULES: dict[str, Rule] = {
    **{rule: named(rule) for rule in MODEL_SELECTIONS},
    # The default with other noise, and with its price less and more.
    "evidence, normal noise": least(lambda one, law: surprise(one, law) + price(one, law)),
    "evidence, t of 2": least(lambda one, law: tails(one, law, 2.0) + price(one, law)),
    "evidence, price * 0.8": least(lambda one, law: tails(one, law) + 0.8 * price(one, law)),
    "evidence, price * 1.25": least(lambda one, law: tails(one, law) + 1.25 * price(one, law)),
    # BIC: half a logarithm of the rows for each unit of complexity, or for each constant, with and without symbols.
    "bic of complexity": least(lambda one, law: surprise(one, law) + 0.5 * math.log(one.rows) * law.complexity),
    "bic of constants": least(lambda one, law: surprise(one, law) + 0.5 * math.log(one.rows) * constants(law)),
    "bic with symbols": least(
        lambda one, law: surprise(one, law) + 0.5 * math.log(one.rows) * constants(law) + symbols(one, law)
    ),
    "half mdl": least(lambda one, law: surprise(one, law) + 0.5 * bits(one, law)),
    # The fractional Bayes factor: 1/√rows of the data are spent on the prior.
    "fractional Bayes": least(
        lambda one, law: (
            (1 - one.rows**-0.5) * surprise(one, law) + 0.25 * math.log(one.rows) * constants(law) + symbols(one, law)
        )
    ),
    "leave one out": least(left_out),
    "leave one out, symbols": least(lambda one, law: left_out(one, law) + symbols(one, law)),
    "best on the front": lambda one: min(range(len(one.entries)), key=lambda i: one.test_errors[i]),
}


# What is printed


def rule_line(name: str, rule: Rule, judged: Sequence[Judged], levels: Sequence[float]) -> str:
    """One line of the table: the random laws at each level of noise, then the tables."""
    line = f"{name:24s}"
    for noise in levels:
        runs = [one for one in judged if one.run.noise == noise]
        chosen = [rule(one) for one in runs]
        on_front = [(one, at) for one, at in zip(runs, chosen, strict=True) if any(one.right)]
        right = sum(one.right[at] for one, at in on_front)
        errors = [one.test_errors[at] / noise_of(one) for one, at in zip(runs, chosen, strict=True)]
        share = f"{right / len(on_front):.0%}" if on_front else "-"
        line += f"{f'{right} of {len(on_front)}':>14s}{share:>6s}{statistics.median(errors):8.3f}"
    found = [(one, rule(one)) for one in judged if not one.run.noise]
    if found:
        r2 = [one.r2(at) for one, at in found]
        best = [max(one.r2(i) for i in range(len(one.entries))) for one, _ in found]
        gap = statistics.fmean(max(b, LOW_R2) - max(r, LOW_R2) for b, r in zip(best, r2, strict=True))
        mean = statistics.fmean(max(r, LOW_R2) for r in r2)
        below = sum(r < -0.1 and one.line_r2 > 0 for (one, _), r in zip(found, r2, strict=True))
        size = statistics.median(one.entries[at].complexity for one, at in found)
        line += f"{gap:9.3f}{statistics.median(r2):9.3f}{mean:8.3f}{min(r2):8.2f}{below:7d}{size:8g}"
    return line


def noise_of(one: Judged) -> float:
    return one.run.noise * float(np.std(one.run.y_test))


def print_rules(judged: Sequence[Judged], levels: Sequence[float]) -> None:
    head = f"{'rule':24s}" + "".join(f"{f'{noise:.0%} noise: right':>20s}{'error':>8s}" for noise in levels)
    tables = any(not one.run.noise for one in judged)
    print(head + (f"{'gap':>9s}{'median':>9s}{'mean':>8s}{'worst':>8s}{'below':>7s}{'size':>8s}" if tables else ""))
    for name, rule in RULES.items():
        print(rule_line(name, rule, judged, levels), flush=True)


def print_bands(judged: Sequence[Judged], levels: Sequence[float]) -> None:
    print(f"\n{'noise':8s}{'runs':>6s}{'in the band':>13s}{'of right laws':>15s}{'of others':>11s}{'width/error':>13s}")
    for noise in levels:
        found = [band_of(one) for one in judged if one.run.noise == noise]
        right = [inside for inside, _, is_right in found if is_right]
        others = [inside for inside, _, is_right in found if not is_right]
        ratio = statistics.median(ratio for _, ratio, _ in found)
        means = [f"{statistics.fmean(part):.1%}" if part else "-" for part in (right + others, right, others)]
        print(f"{noise:<8g}{len(found):6d}{means[0]:>13s}{means[1]:>15s}{means[2]:>11s}{ratio:13.2f}", flush=True)


def band_of(one: Judged) -> tuple[float, float, bool]:
    """The part of the fresh points in the band, its width over the error, and whether the chosen law is right."""
    at = RULES[DEFAULT_RULE](one)
    law = one.entries[at].expression
    kept = [*one.entries, *map(one.candidate, one.run.runners_up)]
    alternatives = find_alternatives(law, kept, one.training, one.floor, Squared())
    std = make_band(law, alternatives, one.training).std(one.test_columns)
    error = np.abs(evaluate(law, one.test_columns).numpy() - np.array(one.run.y_test))
    rounding = 1e-9 * float(np.std(one.run.y_test))  # a law without fitted constants that is right has no band
    width = NOMINAL * std + rounding
    return float(np.mean(error <= width)), float(np.median(width) / max(np.median(error), rounding)), one.right[at]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--laws", type=int, default=60, help="the first so many random laws of development")
    parser.add_argument("--noise", type=float, nargs="+", default=[0.01, 0.1], help="in standard deviations of y")
    parser.add_argument("--tables", action="store_true", help="also the tables below $SYMENUM_DATA")
    parser.add_argument("--splits", type=int, default=1, help="of the rows of each table")
    parser.add_argument("--max-time", type=float, default=20.0, help="seconds of a search")
    parser.add_argument("--jobs", type=int, default=1, help="searches at the same time")
    parser.add_argument("--runs", type=Path, default=Path("build/choice.jsonl"), help="the file of the runs")
    parser.add_argument("--report", action="store_true", help="make no runs, print the tables of those that are there")
    parser.add_argument("--outliers", type=float, default=0.0, help="share of the rows of random laws that are moved")
    parser.add_argument("--folds", action="store_true", help="also cross-validation, seconds for each front")
    options = parser.parse_args()
    if not options.report:
        questions = [*random_questions(options.laws, options.noise, options.max_time)]
        questions += table_questions(options.splits, options.max_time) if options.tables else []
        make_runs(questions, options.runs, options.jobs)
    if options.folds:
        RULES["kfold"] = by_folds
    judged = [Judged(with_outliers(run, options.outliers)) for run in read_runs(options.runs)]
    if not judged:
        parser.error(f"--runs: '{options.runs}' has no runs: leave out --report to make some")
    levels = sorted({one.run.noise for one in judged if one.run.noise})
    with np.errstate(all="ignore"):
        print_rules(judged, levels)
        print_bands(judged, levels)


if __name__ == "__main__":
    main()
