"""What each token generator finds of the set `deep` in the same number of passes; one table.

    python benchmarks/generators.py [--passes 20] [--seeds 0 1] [--full] [--generators gp mcts random]

A pass is that of a three-layer koza network on five slots, the variables and the tokens. So that hundreds of searches
fit into minutes, the last layer is not scanned but looked up: for each sub-expression of the second layer, the partner
that would make the law is looked up among all of them, so that exactly the laws of the network are found. The good fits
that generators learn from come from a part of the network: all functions of one sub-expression, and the sums, products
and quotients of the simplest sub-expressions, each with its best scale and offset. With --full the network itself is
scanned, on 20 rows as in the paper. A problem counts as recovered if a candidate equals the law on fresh points, also
of a range twice as wide (`symenum.bench.judge`). No pass from the raw variables finds a law of the set
(`make_deep_problems.py`).
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
from torch import Tensor

from symenum.bench.judge import recovered
from symenum.bench.problems import Problem, problem_set
from symenum.core.target import Target, check_target
from symenum.core.threads import torch_threads
from symenum.engine import PSRN
from symenum.engine.layer import apply_poisoned
from symenum.expressions import Constant, Expression, Variable, apply
from symenum.expressions.candidate import Candidate
from symenum.fitting import linear_combination, plain_number
from symenum.heads import Features, build_features
from symenum.heads.response import is_law
from symenum.operators import OPERATORS, Kind, Operator, get_operators
from symenum.tokens import GENERATORS, ScoredExpression, TokenContext, get_generator

SLOTS = 5
LAYERS = 3
TOP_K = 10  # candidates of the network with --full
SCAN_ROWS = 20  # as in the paper
KOZA = get_operators("koza")
UNARY = tuple(operator for operator in KOZA if operator.kind is Kind.UNARY and operator.form is None)

Array = npt.NDArray[np.float64]
SAME = 1e-10  # largest relative difference of a law and the target at a row
FITS_PER_FORM = 3  # good fits of each form and tier
TIERS = (60, 500)  # numbers of the simplest sub-expressions, scanned for themselves: the front needs simple fits too


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

    def context(self) -> TokenContext:
        X, _ = self.sample
        columns = {name: torch.from_numpy(X[:, i].copy()) for i, name in enumerate(self.problem.variables)}
        return TokenContext(KOZA, columns, self.target.y, self.target.weight, None)

    def one_pass(self, tokens: tuple[Expression, ...]) -> list[Candidate]:
        """The candidates of a pass on the variables and the tokens, judged on all rows."""
        X, y = self.sample
        slots = [*self.variables, *tokens]
        values = np.stack([self.problem.values(X, slot) for slot in slots], axis=1)
        rows = np.random.default_rng(self.seed).permutation(len(y))[:SCAN_ROWS]
        if self.full:
            net = PSRN(len(slots), KOZA, LAYERS)
            found = [one.expression for one in net.search(values[rows], y[rows], slots=slots, k=TOP_K)]
        else:
            found = []
        with torch_threads(1):
            columns = torch.from_numpy(values[rows].T.copy())
            bank = build_features(slots, columns, KOZA, LAYERS - 1, with_one=False)
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
    context = task.context()
    generator = get_generator(name)
    rng = np.random.default_rng(task.seed)
    state = generator.start(context)
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
        scored = [ScoredExpression(candidate.expression, reward(candidate)) for candidate in front]
        state = generator.learn(context, state, max(map(reward, found), default=0.0), scored)
        tokens, state = generator.propose(context, state, SLOTS - len(task.variables), rng)
        passing += middle - start
        proposing += time.perf_counter() - middle
    return Line(task.problem.name, name, task.seed, None, proposing, passing)


def laws(bank: Features, y: Tensor, unary: tuple[Operator, ...], limit: int = 10) -> list[Expression]:
    """The candidates a + b, a - b, a*b, a/b and u(a) of the bank that equal y (rows,), simplest first."""
    V = bank.values
    order = torch.argsort(V[:, 0], stable=True)
    keys = V[order, 0].contiguous()
    found: list[tuple[int, Expression]] = []
    for operator in unary:
        near = (apply_poisoned(operator, V, None) - y).abs() <= SAME * y.abs()
        hits = torch.nonzero(near.all(dim=1)).flatten().tolist()
        found += [(int(bank.complexity[i]) + operator.complexity, apply(operator, bank.expression(i))) for i in hits]
    # y = a + b is looked up as b = y - a, and so on; a division by zero finds no partner.
    for name, partner in {"add": y - V, "sub": V - y, "mul": y / V, "div": V / y}.items():
        slack = SAME * (V.abs() + y.abs() + partner.abs())
        low = torch.searchsorted(keys, (partner - slack)[:, 0].contiguous())
        high = torch.searchsorted(keys, (partner + slack)[:, 0].contiguous(), right=True)
        count = torch.where(torch.isfinite(partner[:, 0]), high - low, 0)
        i = torch.repeat_interleave(torch.arange(len(V)), count)
        step = torch.arange(len(i)) - torch.repeat_interleave(count.cumsum(0) - count, count)
        j = order[low[i] + step]
        hit = ((V[j] - partner[i]).abs() <= slack[i]).all(dim=1)
        i, j = i[hit], j[hit]
        cheap = torch.argsort(bank.complexity[i] + bank.complexity[j], stable=True)[:limit]
        for a, b in zip(i[cheap].tolist(), j[cheap].tolist(), strict=True):
            cost = int(bank.complexity[a] + bank.complexity[b])
            found.append((cost, apply(name, bank.expression(a), bank.expression(b))))
    found.sort(key=lambda item: item[0])
    return [law for _, law in found[:limit]]


def good_fits(bank: Features, y: Tensor, unary: tuple[Operator, ...]) -> list[tuple[Expression, ...]]:
    """Terms (one or two, the constant aside) whose linear combinations are near y."""
    target = (y - y.mean()) / (y - y.mean()).norm()
    out: list[tuple[Expression, ...]] = []
    for size in (*TIERS, len(bank)):
        some = bank.simplest(size)
        for operator in (OPERATORS["identity"], *unary):
            share = _unit(apply_poisoned(operator, some.values, None)) @ target
            best = torch.topk(share.abs(), min(FITS_PER_FORM, len(share))).indices.tolist()
            out += [(apply(operator, some.expression(i)),) for i in best]
    for size in TIERS:
        some = bank.simplest(size)
        unit = _unit(some.values)
        share, g = unit @ target, unit @ unit.T
        left, right = share[:, None], share[None, :]
        pair = (left.square() + right.square() - 2 * g * left * right) / (1 - g.square())
        pair = torch.where(1 - g.square() > 1e-8, pair, 0.0)
        out += [(some.expression(i), some.expression(j)) for i, j in _best(pair)]
        for name, partner in (("mul", some.values), ("div", some.values.reciprocal())):
            fine = torch.isfinite(partner).all(dim=1)
            W = torch.where(fine[:, None], partner, 0.0)
            mean, square = some.values @ W.T / len(y), some.values.square() @ W.square().T
            spread = square - len(y) * mean.square()
            along = ((some.values * target) @ W.T).square() / spread.clamp_min(1e-300)
            along = torch.where(fine & (spread > 1e-9 * square), along, 0.0)
            out += [(apply(name, some.expression(i), some.expression(j)),) for i, j in _best(along)]
    return list(dict.fromkeys(out))


def combined(terms: tuple[Expression, ...], values: Tensor, y: Tensor) -> Expression:
    """The least-squares combination of the terms (values (terms, rows)) and a constant."""
    A = torch.cat([values, torch.ones(1, len(y), dtype=torch.float64)]).T
    solution = torch.linalg.lstsq(A, y[:, None], driver="gelsd").solution.flatten().tolist()
    return linear_combination([plain_number(value) for value in solution], [*terms, Constant(1)])


def _best(score: Tensor) -> list[tuple[int, int]]:
    """The places of the largest entries of a square matrix, each pair once."""
    places = torch.topk(score.flatten(), min(2 * FITS_PER_FORM, score.numel())).indices.tolist()
    pairs = [(place // score.shape[1], place % score.shape[1]) for place in places]
    return list({tuple(sorted(pair)): pair for pair in pairs}.values())[:FITS_PER_FORM]


def _unit(rows: Tensor) -> Tensor:
    """Rows centred and of unit norm; zero where a row is constant or not finite."""
    safe = torch.where(torch.isfinite(rows).all(dim=1)[:, None], rows, 0.0)
    centred = safe - safe.mean(dim=1, keepdim=True)
    norm = centred.norm(dim=1, keepdim=True)
    return torch.where(norm > 1e-9 * safe.norm(dim=1, keepdim=True), centred / norm.clamp_min(1e-300), 0.0)


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
        count = max(1, sum(line.found_at or options.passes for line in own))
        found = sum(line.found_at is not None for line in own)
        print(
            f"{name:8s} {found:3d} of {len(own):3d} recovered; "
            f"{sum(line.proposing for line in own) / count:.3f} s proposing and "
            f"{sum(line.passing for line in own) / count:.3f} s enumerating per pass"
        )


if __name__ == "__main__":
    main()
