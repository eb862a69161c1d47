"""What each token generator adds over random tokens, on random laws that the heads alone do not find.

    python benchmarks/generators.py list --out hard.json [--laws 120] [--depth 3 4 5] [--max-time 8] [--jobs 2]
    python benchmarks/generators.py run hard.json [--passes 40] [--seconds 0] [--device cpu] [--jobs 2]

`list` searches random laws (`symenum.bench.problems.random_laws`, by default the set for development) with the heads
and no tokens, and writes those that are not recovered in `--max-time` seconds, with the fronts that the heads leave.

`run` starts from that front (with `--from-nothing` from an empty one) and lets every generator work in the same plain
loop: propose the tokens of `--batch` passes, deal them into sets, scan a network on the variables and each set, fit the
best candidates of the batch, update the front, learn. There are no heads, so that only tokens can find anything. All
generators have the same number of `--passes`, or the same `--seconds` of proposing, scanning and fitting. The network
has `--layers` layers on the variables and `--tokens` tokens.

The table shows, for each generator: laws recovered with Wilson's 95% interval; the median over laws of log10(1 - R²) of
the best law found (at least -12; lower is better; the mean over seeds for each law); and in how many laws it ended
below and above random tokens, with the p value of the sign test. Then the seconds per pass of each kind of work.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
from scipy.stats import binomtest

from symenum.bench.judge import recovered
from symenum.bench.problems import Problem
from symenum.bench.problems.random_laws import EVERY_OPERATOR, LAW_SETS
from symenum.bench.report import wilson
from symenum.bench.systems import make_system
from symenum.core.budget import NO_LIMIT
from symenum.core.target import check_target
from symenum.core.threads import single_threaded
from symenum.engine import PSRN
from symenum.expressions import Expression, Variable, parse
from symenum.expressions.candidate import Candidate
from symenum.front import Front
from symenum.operators import get_operators
from symenum.search.front_update import near, runners_up
from symenum.search.polish import refined
from symenum.search.problem import Settings, Task, make_task
from symenum.selection import reward
from symenum.tokens import GENERATORS, ScoredExpression, deal, get_generator

OPERATORS = get_operators(EVERY_OPERATOR)
NETWORK_ROWS = 32  # rows of a pass, drawn anew for each batch, as in a search
MIN_UNEXPLAINED = 1e-12  # smaller 1 - R² count as this: a law that is recovered must not outweigh all others
RANDOM = "random"


@dataclass(frozen=True)
class HardLaw:
    """A law that the heads do not find: its set and name, and the texts of the laws on the front that they leave."""

    set: str
    name: str
    front: tuple[str, ...]


@dataclass(frozen=True)
class Job:
    """One run: a law, a generator, a seed."""

    law: HardLaw
    generator: str
    seed: int


@dataclass(frozen=True)
class Limits:
    """What all runs have in common; `passes` or `seconds` ends a run, 0 is no limit."""

    passes: int
    seconds: float
    batch: int
    tokens: int
    layers: int
    top_k: int
    device: str
    from_nothing: bool


@dataclass(frozen=True)
class Result:
    """What a run has found: whether the law, its best log10(1 - R²), and the seconds of each kind of work."""

    job: Job
    recovered: bool
    decades: float
    passes: int
    proposing: float
    scanning: float
    fitting: float


# The laws that the heads do not find


def heads_alone(set_name: str, max_time: float, name: str) -> HardLaw | None:
    """The law of that name as a hard law; None where the heads recover it."""
    problem = LAW_SETS[set_name].law(name)
    X, y = problem.sample(0)
    system = make_system("symenum:generator=none")
    found = system.fit(X, y, operators=EVERY_OPERATOR, seed=0, max_time=max_time, cores=1)
    front = tuple(law.text for law in found.laws)
    return None if any(recovered(parse(text), problem) for text in front) else HardLaw(set_name, name, front)


def make_list(options: argparse.Namespace) -> None:
    laws = LAW_SETS[options.set]
    names = [name for name in laws.names() if laws.shape(laws.number(name))[0] in options.depth][: options.laws]
    hard = [one for one in spread(partial(heads_alone, options.set, options.max_time), names, options.jobs) if one]
    options.out.write_text(json.dumps([asdict(one) for one in hard], indent=1), encoding="utf-8")
    print(f"{len(hard)} of {len(names)} laws are not recovered by the heads in {options.max_time:g} s: {options.out}")


# One run


def make_search(problem: Problem, seed: int, device: str) -> Task:
    X, y = problem.sample(seed)
    target, rows = check_target(y, None, len(y))
    settings = Settings(operators=OPERATORS, threads=1, device=device, seed=seed)
    return make_task(problem.variables, torch.from_numpy(X)[rows], target, settings)


def run(limits: Limits, job: Job) -> Result:
    """The plain loop on one law, until it is found or the limits are reached."""
    problem = LAW_SETS[job.law.set].law(job.law.name)
    task = make_search(problem, job.seed, limits.device)
    context, data, target = task.token_context, task.data, task.data.target
    variables: list[Expression] = [Variable(name) for name in problem.variables]
    network = PSRN(len(variables) + limits.tokens, OPERATORS, limits.layers)
    generator, rng = get_generator(job.generator), np.random.default_rng([job.seed, 1])
    texts = () if limits.from_nothing else job.law.front
    known = [candidate for text in texts if (candidate := data.candidate(parse(text))) is not None]
    front = task.empty_front.update(known, task.settings.max_complexity)
    clock = Clock()
    with single_threaded():
        state = generator.start(context)
        state = generator.learn(context, state, best_reward(task, front), scored(task, front))
        clock.lap("proposing")
        passes = 0
        while not front.has_law() and not over(limits, passes, clock.total):
            tokens, state = generator.propose(context, state, limits.batch * limits.tokens, rng)
            sets = deal(tokens, limits.batch, limits.tokens, rng)
            clock.lap("proposing")
            rows = torch.from_numpy(np.sort(rng.choice(target.rows, min(NETWORK_ROWS, target.rows), replace=False)))
            part = target.at(rows)
            best: dict[Expression, float] = {}
            for one in sets:
                slots = [*variables, *one]
                values = torch.stack([data.evaluate(slot) for slot in slots])[:, rows]
                if len(slots) < network.inputs or not bool(torch.isfinite(values).all()):
                    continue
                found = network.search(values.T, part.y, limits.top_k, slots=slots, threads=1, device=limits.device)
                best.update((candidate.expression, candidate.loss) for candidate in found)
            passes += limits.batch
            clock.lap("scanning")
            chosen = sorted(best, key=lambda expression: best[expression])[: limits.top_k]
            laws = [law for law in refined(task, chosen, [], front, NO_LIMIT) if task.allows(law.expression)]
            front = front.update(laws, task.settings.max_complexity)
            clock.lap("fitting")
            told = [*front, *near(front, runners_up(laws))]
            state = generator.learn(context, state, best_reward(task, laws), scored(task, told))
            clock.lap("proposing")
    solved = any(entry.loss <= front.floor and recovered(entry.expression, problem) for entry in front)
    unexplained = min((entry.loss for entry in front), default=math.inf) / task.scale
    decades = math.log10(min(max(unexplained, MIN_UNEXPLAINED), 1.0))
    return Result(job, solved, decades, passes, clock["proposing"], clock["scanning"], clock["fitting"])


class Clock:
    """Seconds of each kind of work."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, kind: str) -> None:
        """Count the seconds since the last call as that kind."""
        now = time.perf_counter()
        self._seconds[kind] = self._seconds.get(kind, 0.0) + now - self._last
        self._last = now

    def __getitem__(self, kind: str) -> float:
        return self._seconds.get(kind, 0.0)

    @property
    def total(self) -> float:
        return sum(self._seconds.values())


def over(limits: Limits, passes: int, seconds: float) -> bool:
    return bool((limits.passes and passes >= limits.passes) or (limits.seconds and seconds >= limits.seconds))


def scored(task: Task, laws: Iterable[Candidate]) -> list[ScoredExpression]:
    return [ScoredExpression(law.expression, reward(law.loss / task.scale, law.complexity)) for law in laws]


def best_reward(task: Task, laws: Iterable[Candidate] | Front) -> float:
    return max((one.reward for one in scored(task, laws)), default=0.0)


# All runs and their table


def spread(function: Callable, items: Sequence, jobs: int):  # type: ignore[no-untyped-def, type-arg]
    """`function` of each item, in `jobs` processes; each result as soon as those before it are there."""
    if jobs == 1:
        yield from map(function, items)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=quiet) as pool:
        yield from pool.map(function, items)


def quiet() -> None:
    torch.set_num_threads(1)
    np.seterr(all="ignore")


def print_table(results: Sequence[Result], generators: Sequence[str]) -> None:
    by_law = {
        name: {
            law: statistics.mean(r.decades for r in results if r.job.generator == name and r.job.law.name == law)
            for law in dict.fromkeys(r.job.law.name for r in results)
        }
        for name in generators
    }
    print(
        f"{'':8s}{'recovered':>22s}{'median log10(1-R²)':>20s}{'below : above random':>22s}{'p':>8s}   seconds per pass"
    )
    for name in generators:
        own = [result for result in results if result.job.generator == name]
        hits = sum(result.recovered for result in own)
        low, high = wilson(hits, len(own))
        cell = f"{hits} of {len(own)} ({100 * low:.0f}-{100 * high:.0f}%)"
        median = statistics.median(by_law[name].values())
        pair = p = ""
        if name != RANDOM and RANDOM in generators:
            apart = [by_law[name][law] - by_law[RANDOM][law] for law in by_law[name]]
            below, above = sum(one < -0.01 for one in apart), sum(one > 0.01 for one in apart)
            pair, p = f"{below} : {above}", f"{binomtest(below, max(1, below + above)).pvalue:.1g}"
        passes = max(1, sum(result.passes for result in own))
        work = [sum(getattr(r, kind) for r in own) / passes for kind in ("proposing", "scanning", "fitting")]
        times = f"{work[0]:.3f} proposing, {work[1]:.3f} scanning, {work[2]:.3f} fitting"
        print(f"{name:8s}{cell:>22s}{median:20.2f}{pair:>22s}{p:>8s}   {times}")


def run_all(options: argparse.Namespace) -> None:
    hard = [HardLaw(one["set"], one["name"], tuple(one["front"])) for one in json.loads(options.file.read_text())]
    numbers = options.numbers or [LAW_SETS[one.set].number(one.name) for one in hard]
    hard = [one for one in hard if LAW_SETS[one.set].number(one.name) in numbers][: options.laws]
    limits = Limits(
        options.passes, options.seconds, options.batch, options.tokens, options.layers, options.top_k, options.device,
        options.from_nothing,
    )  # fmt: skip
    if not (limits.passes or limits.seconds):
        raise SystemExit("--passes or --seconds must be above 0: a law that is never found would be searched forever")
    jobs = [Job(law, name, seed) for law in hard for seed in options.seeds for name in options.generators]
    results: list[Result] = []
    begin = time.perf_counter()
    for number, result in zip(count(1), spread(partial(run, limits), jobs, options.jobs), strict=False):
        results.append(result)
        if options.each:
            job = result.job
            what = f"{job.law.name} {job.generator} {job.seed}: {'recovered' if result.recovered else ''}"
            print(f"[{number}/{len(jobs)}] {what} {result.decades:.2f} {result.passes}", file=sys.stderr, flush=True)
    print(f"{limits}; {len(hard)} laws, seeds {options.seeds}; {time.perf_counter() - begin:.0f} s")
    print_table(results, options.generators)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    lister = commands.add_parser("list", help="find the laws that the heads alone do not find")
    lister.add_argument("--set", default="random", choices=list(LAW_SETS))
    lister.add_argument("--laws", type=int, default=120)
    lister.add_argument("--depth", type=int, nargs="*", default=[3, 4, 5])
    lister.add_argument("--max-time", type=float, default=8.0, help="seconds on one core")
    lister.add_argument("--out", type=Path, required=True)
    lister.set_defaults(work=make_list)
    runner = commands.add_parser("run", help="run the generators on these laws")
    runner.add_argument("file", type=Path)
    runner.add_argument("--laws", type=int, default=None, help="only so many of the laws")
    runner.add_argument("--numbers", type=int, nargs="*", help="only the laws of these numbers")
    runner.add_argument("--seeds", type=int, nargs="*", default=[0])
    runner.add_argument("--generators", nargs="*", default=list(GENERATORS), choices=list(GENERATORS))
    runner.add_argument("--passes", type=int, default=40)
    runner.add_argument("--seconds", type=float, default=0.0)
    runner.add_argument("--batch", type=int, default=4, help="passes for which tokens are proposed at once")
    runner.add_argument("--tokens", type=int, default=3, help="tokens of a pass")
    runner.add_argument("--layers", type=int, default=2)
    runner.add_argument("--top-k", type=int, default=30, help="candidates of a pass, and fits of a batch")
    runner.add_argument("--device", default="cpu")
    runner.add_argument("--from-nothing", action="store_true", help="start from an empty front")
    runner.add_argument("--each", action="store_true", help="print each run")
    runner.set_defaults(work=run_all)
    for command in (lister, runner):
        command.add_argument("--jobs", type=int, default=2, help="processes, of one core each")
    options = parser.parse_args()
    quiet()
    options.work(options)


if __name__ == "__main__":
    main()
