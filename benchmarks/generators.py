"""Do the token generators earn their keep? The set `deep`, the same number of passes for each of them, one table.

    python benchmarks/generators.py [--passes 20] [--seeds 0 1] [--full] [--generators gp mcts random]

A pass is that of a three-layer koza network on five slots, the variables and the tokens. So that hundreds of searches
fit into minutes its last layer is not scanned (`light_pass.py`): the law is found if the network holds it, and what the
generators learn from is less than the network would give them. With --full the network itself is scanned, on 20 rows
as in the paper. A problem counts as recovered if a candidate equals the law to 1e-9 on 1,000 fresh points of a range
twice as wide. No law of the set is within reach of a pass from the raw variables (`make_deep_problems.py`).
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from light_pass import combined, good_fits, laws

from symenum.bench.judge import recovered
from symenum.bench.problems import Problem, problem_set
from symenum.enumeration import PSRN
from symenum.enumeration.shortlist import Candidate
from symenum.enumeration.target import Target, check_target
from symenum.enumeration.threads import torch_threads
from symenum.expressions import Expression, Variable
from symenum.heads import build_features
from symenum.heads.goal import is_law
from symenum.operators import Kind, get_operators
from symenum.tokens import GENERATORS, Material, Praised, get_generator

SLOTS = 5
LAYERS = 3
KEPT = 10  # candidates of the network
SCANNED = 20  # rows
OPERATORS = get_operators("koza")
UNARY = tuple(operator for operator in OPERATORS if operator.kind is Kind.UNARY and operator.form is None)

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Line:
    """One line of the table: the pass that found the law (None: none), and the seconds of proposing and of passes."""

    problem: str
    generator: str
    seed: int
    found_at: int | None
    proposing: float
    passing: float


@dataclass(frozen=True)
class Task:
    """A problem's data, and the passes on them."""

    problem: Problem
    seed: int
    full: bool

    @cached_property
    def sample(self) -> tuple[Array, Array]:
        return self.problem.sample(self.seed)

    @cached_property
    def target(self) -> Target:
        return check_target(self.sample[1], None, len(self.sample[1]))[0]

    @property
    def variables(self) -> list[Expression]:
        return [Variable(name) for name in self.problem.variables]

    def material(self) -> Material:
        X, _ = self.sample
        columns = {name: torch.from_numpy(X[:, i].copy()) for i, name in enumerate(self.problem.variables)}
        return Material(OPERATORS, columns, self.target.y, self.target.weight, None)

    def one_pass(self, tokens: tuple[Expression, ...]) -> list[Candidate]:
        """The candidates of a pass on the variables and the tokens, judged on all rows."""
        X, y = self.sample
        slots = [*self.variables, *tokens]
        values = np.stack([self.problem.values(X, slot) for slot in slots], axis=1)
        rows = np.random.default_rng(self.seed).permutation(len(y))[:SCANNED]
        if self.full:
            net = PSRN(len(slots), OPERATORS, LAYERS)
            found = [one.expression for one in net.search(values[rows], y[rows], slots=slots, k=KEPT)]
        else:
            found = []
        with torch_threads(1):
            columns = torch.from_numpy(values[rows].T.copy())
            bank = build_features(slots, columns, OPERATORS, LAYERS - 1, with_one=False)
            target = torch.from_numpy(y[rows])
            found += laws(bank, target, UNARY) if not self.full else []
            for terms in good_fits(bank, target, UNARY):
                on_all = torch.from_numpy(np.stack([self.problem.values(X, term) for term in terms]))
                if bool(torch.isfinite(on_all).all()):
                    found.append(combined(terms, on_all, self.target.y))
        return [one for one in map(self.judged, found) if math.isfinite(one.loss)]

    def judged(self, expression: Expression) -> Candidate:
        X, _ = self.sample
        values = torch.from_numpy(self.problem.values(X, expression))
        return Candidate(expression, float(self.target.loss(values[None])))

    def is_recovered(self, found: list[Candidate]) -> bool:
        return any(is_law(one, self.target) and recovered(one.expression, self.problem) for one in found)


def reward(candidate: Candidate) -> float:
    return float(0.99**candidate.complexity / (1 + math.sqrt(candidate.loss)))


def joined(front: list[Candidate], found: list[Candidate]) -> list[Candidate]:
    """The non-dominated candidates by complexity and loss."""
    out: list[Candidate] = []
    for candidate in sorted([*front, *found], key=lambda candidate: (candidate.complexity, candidate.loss)):
        if not out or candidate.loss < out[-1].loss:
            out.append(candidate)
    return out


def run(task: Task, name: str, passes: int) -> Line:
    """One search, until the law is found or the passes are over; the first pass, from the variables, does not count."""
    material = task.material()
    generator = get_generator(name)
    rng = np.random.default_rng(task.seed)
    state = generator.start(material)
    tokens: tuple[Expression, ...] = ()
    front: list[Candidate] = []
    proposing = passing = 0.0
    for number in range(passes + 1):
        start = time.perf_counter()
        found = task.one_pass(tokens)
        if task.is_recovered(found):
            return Line(task.problem.name, name, task.seed, number, proposing, passing)
        front = joined(front, found)
        middle = time.perf_counter()
        praised = [Praised(candidate.expression, reward(candidate)) for candidate in front]
        state = generator.learn(material, state, max(map(reward, found), default=0.0), praised)
        tokens, state = generator.propose(material, state, SLOTS - len(task.variables), rng)
        passing += middle - start
        proposing += time.perf_counter() - middle
    return Line(task.problem.name, name, task.seed, None, proposing, passing)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passes", type=int, default=20)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1])
    parser.add_argument("--full", action="store_true", help="scan the whole last layer")
    parser.add_argument("--generators", nargs="*", default=list(GENERATORS), choices=list(GENERATORS))
    parser.add_argument("--problem", nargs="*", default=None, help="only these problems")
    options = parser.parse_args()
    problems = [p for p in problem_set("deep") if not options.problem or p.name in options.problem]
    lines: list[Line] = []
    print(f"{'problem':9s}" + "".join(f"{name:>14s}" for name in options.generators) + "   law")
    for problem in problems:
        cells = []
        for name in options.generators:
            tasks = [Task(problem, seed, options.full) for seed in options.seeds]
            new = [run(task, name, options.passes) for task in tasks]
            lines += new
            cells.append(" ".join("-" if line.found_at is None else str(line.found_at) for line in new))
        print(f"{problem.name:9s}" + "".join(f"{cell:>14s}" for cell in cells) + f"   {problem.text}", flush=True)
    print(f"\n{options.passes} passes; a number is the pass that found the law")
    for name in options.generators:
        own = [line for line in lines if line.generator == name]
        count = sum(line.found_at or options.passes for line in own)
        found = sum(line.found_at is not None for line in own)
        print(
            f"{name:8s} {found:3d} of {len(own):3d} recovered; "
            f"{sum(line.proposing for line in own) / count:.3f} s proposing and "
            f"{sum(line.passing for line in own) / count:.3f} s enumerating per pass"
        )


if __name__ == "__main__":
    main()
