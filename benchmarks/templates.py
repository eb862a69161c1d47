"""Templates: laws that are known in part, their unknown functions drawn from the grammar of random laws.

    python benchmarks/templates.py [--templates 20] [--noise 0 0.01] [--seconds 60] [--seed 1] [--jobs 1] [--cores 2]

Each case is a skeleton with two or three unknown functions of one or two variables; each function is a random law of
depth 1 to 3 with 0 to 2 constants (`symenum.bench.problems.random_laws`), in variables of its own. A draw counts as a
case if the law is finite, of the size of a measurement, and moves with each of its functions. 200 rows; the search gets
the template as text, and all operators. Seed 1 is for development, seed 2 for final tables only.

Without noise a case is recovered if a law of the front equals it to 1e-9 on fresh points, its constants as they are or
rounded to two decimals. With noise: if a law of the front has its form, that is, fitted to clean rows with all numbers
free it equals the law up to rounding, and it has no more operators than the law with a scale and an offset more for
each unknown function. `chosen`: whether the law that the search marks is such a law. Noise is in units of the root mean
square of y.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import Any

import numpy as np
import torch

from symenum import PSERegressor
from symenum.bench.judge import recovered
from symenum.bench.judge.numeric import rounded
from symenum.bench.problems import Problem
from symenum.bench.problems.random_laws import EVERY_OPERATOR, LawSet, random_law
from symenum.core.target import check_target
from symenum.estimator.template_text import read_template
from symenum.expressions import Apply, Expression, Variable, evaluate, parse, substitute, walk
from symenum.expressions.template import formal_names
from symenum.fitting import refine
from symenum.fitting.free_constants import freed
from symenum.heads.response import law_limit
from symenum.search import Settings

ROWS = 200
SKELETONS = (
    "f(x1) + g(x2, x3)",
    "a*f(x1)*g(x2, x3) + h(x4)",
    "f(x1)*g(x2) + c",
    "f(x1) - f(x2) + g(x3)",
    "f(x1) + g(x2) + h(x3)",
    "f(x1)*g(x2) + h(x3)",
    "f(x1)/g(x2)",
    "x1*f(x2) + g(x3)",
    "f(x1)*(g(x2) + h(x3))",
    "f(x1, x2)*g(x3)",
    "tanh(f(x1) + g(x2))",
    "f(x1 - x2) + g(x3)",
    "exp(a*f(x1))*g(x2)",
    "a*f(x1) + b*x2*g(x3)",
    "f(x1)*f(x2) + g(x3)",
)
DEPTHS = {1: range(1, 4), 2: range(2, 4)}  # of a function's law, by its number of variables
MOVES = 0.05  # of y's spread: at least so much a function must move it


@dataclass(frozen=True)
class TemplateCase:
    """A template, the law behind it, and the ranges of the variables."""

    text: str
    functions: dict[str, str]
    problem: Problem


def drawn(seed: int, number: int) -> TemplateCase:
    """Case `number` of a seed: the first draw that is a law. The same every time."""
    rng = np.random.default_rng([seed, number])
    text = SKELETONS[number % len(SKELETONS)]
    names = sorted({name for name in ("x1", "x2", "x3", "x4") if name in text})
    template = read_template(text, names, {})
    assert template is not None
    while True:
        functions: dict[str, Expression] = {}
        ranges = dict.fromkeys(names, (0.5, 3.0))
        for function in template.functions:
            arity = template.arity(function)
            depth = DEPTHS[arity][int(rng.integers(len(DEPTHS[arity])))]
            own_seed = int(rng.integers(1 << 31))
            laws = LawSet("", "", "", own_seed, range(arity, arity + 1), range(depth, depth + 1), (0, 2))
            law = random_law(laws, 1)
            formal = formal_names(arity)
            to_formal = {f"x{at + 1}": Variable(name) for at, name in enumerate(formal)}
            functions[function] = substitute(law.expression, to_formal)
            for call in template.calls_of(function):
                for at, argument in enumerate(call.arguments):
                    if isinstance(argument, Variable):
                        ranges[argument.name] = (float(law.bounds[0][at]), float(law.bounds[1][at]))
        constants = {name: parse(f"{rng.uniform(0.5, 2):.2f}") for name in template.constants}
        whole = substitute(template.with_functions(functions), constants)
        low, high = zip(*(ranges[name] for name in names), strict=True)
        problem = Problem(f"Template-{seed}-{number}", str(whole), tuple(names), low, high, ROWS)
        if is_case(problem, functions, template, constants):
            return TemplateCase(text, {name: str(one) for name, one in functions.items()}, problem)


def is_case(
    problem: Problem, functions: dict[str, Expression], template: Any, constants: dict[str, Expression]
) -> bool:
    """Whether the law is finite, of a measurement's size, and moves where one of its functions is made constant."""
    low, high = problem.bounds
    X = np.random.default_rng(5).uniform(low, high, (2000, len(low)))
    columns = {name: np.ascontiguousarray(X[:, at]) for at, name in enumerate(problem.variables)}
    with np.errstate(all="ignore"):
        y = evaluate(problem.expression, columns)
        size = np.median(np.abs(y))
        if not np.isfinite(y).all() or np.abs(y).max() > min(1e4, 100 * size) or y.std() < 1e-3 * np.abs(y).max():
            return False
        for function in functions:
            level = substitute(functions[function], {name: parse("1.5") for name in formal_names(2)})
            flat = substitute(template.with_functions({**functions, function: level}), constants)
            moved = evaluate(flat, columns) - y
            moved = moved[np.isfinite(moved)]
            if len(moved) and np.std(moved) < MOVES * y.std():
                return False
    return len(problem.fresh()[1]) > 500


def has_form(found: Expression, case: TemplateCase) -> bool:
    """Whether the form, all numbers free, equals clean rows up to rounding, with few operators more than the law."""
    problem = case.problem
    most = operators(problem.expression) + 2 * len(case.functions)
    if operators(found) > most:
        return False
    X, y = problem.test(3)
    target, _ = check_target(y, None, len(y))
    columns = {name: torch.tensor(X[:, at]) for at, name in enumerate(problem.variables)}
    (fitted,) = refine([freed(found)], columns, target.y, target.weight, starts=8, steps=100, seed=0)
    return bool(fitted.loss <= 1e6 * law_limit(target))  # a fit may miss the last three digits of a constant


def operators(law: Expression) -> int:
    return sum(isinstance(node, Apply) for node in walk(law))


def is_right(found: Expression, case: TemplateCase, noise: float) -> bool:
    if noise:
        return has_form(found, case)
    return any(recovered(one, case.problem) for one in (found, rounded(found, 2)))


class FewCores(PSERegressor):
    """PSERegressor on so many threads."""

    cores = 2

    def _settings(self, *arguments: Any, **options: Any) -> Settings:
        return replace(super()._settings(*arguments, **options), threads=type(self).cores)


def searched(job: tuple[int, int, float, float, int]) -> tuple[bool, bool, float, str]:
    """Whether a law of the front is the law, whether the chosen one is, the seconds, and a line to print."""
    seed, number, noise, seconds, cores = job
    torch.set_num_threads(cores)
    FewCores.cores = cores
    case = drawn(seed, number)
    X, y = case.problem.sample(seed)
    y = y + noise * np.sqrt(np.mean(y**2)) * np.random.default_rng([seed, number, 1]).normal(size=len(y))
    began, cpu = time.perf_counter(), time.process_time()
    model = FewCores(EVERY_OPERATOR, template=case.text, max_time=seconds, random_state=0, device="cpu").fit(X, y)
    took, worked = time.perf_counter() - began, time.process_time() - cpu
    front = any(is_right(entry.expression, case, noise) for entry in model.front_)
    chosen = is_right(model.front_[model.selected_index_].expression, case, noise)
    verdict = "found, chosen" if chosen else "found" if front else "-"
    line = (
        f"{noise:5g} {number:3d} {verdict:14s} {took:5.1f} s {worked:5.1f} CPU s  {case.text:28s} "
        f"{case.problem.expression!s:.80}\n{'':20s}{model.best_expression_!s:.150}"
    )
    return front, chosen, took, line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--templates", type=int, default=20)
    parser.add_argument("--numbers", type=int, nargs="*", default=None, help="only these cases")
    parser.add_argument("--noise", type=float, nargs="*", default=[0.0, 0.01])
    parser.add_argument("--seconds", type=float, default=60.0, help="for each search")
    parser.add_argument("--seed", type=int, default=1, help="1: development; 2: final tables")
    parser.add_argument("--jobs", type=int, default=1, help="searches at the same time")
    parser.add_argument("--cores", type=int, default=2, help="threads of each search")
    options = parser.parse_args()
    numbers = options.numbers or range(options.templates)
    for noise in options.noise:
        work = [(options.seed, number, noise, options.seconds, options.cores) for number in numbers]
        right = marked = 0
        with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
            for front, chosen, _, line in pool.map(searched, work):
                right, marked = right + front, marked + chosen
                print(line, flush=True)
        print(f"noise {noise:g}: {right} of {len(work)} on the front, {marked} chosen", flush=True)


if __name__ == "__main__":
    main()
