"""Random laws that are on no list: what the search recovers of them, and what each stage of the heads brings.

    python benchmarks/random_laws.py [--set random] [--laws 240] [--noise 0] [--max-time 20] [--seeds 1] [--jobs 2]
    python benchmarks/random_laws.py --without all [--laws 240] [--max-time 20] [--jobs 16]
    python benchmarks/random_laws.py --without "two terms" --without "affine"

The laws are drawn from a grammar (`symenum.bench.problems.random_laws`): depth 3 to 6, 2 to 7 variables, 0 to 4
constants, every operator, 200 rows. `--set random_single` takes laws of one variable, `--set random_final` laws of
other seeds, which are for final tables only; `--numbers` and `--depth` take some of them. A law is recovered if a law
of the front equals it to 1e-9 on fresh points, its constants rounded to two decimals; with noise, if a law of the front
has its structure (`symenum.bench.judge`). Behind the stroke: the law that the search itself selects.

With `--without` the laws that the whole search has recovered are searched once more for each stage, with the same seeds
and that stage left out everywhere: on the raw variables, on reduced problems and in passes with tokens. Lost are those
that are not recovered then. `tokens` stands for the token generator, `all` for every stage and tokens. The line
`nothing` is the whole search once more: the laws that it loses, it loses because of the clock. A stage without which no
more laws are lost has no effect that can be measured. `--won` searches the other laws too, to find those that are
recovered only without a stage.

Each run is a process of its own on one core with hard limits. What is done is kept in `--out` (one folder for each time
limit) and is not run again: after an interruption the same command goes on. `--report` only prints the tables.
"""

from __future__ import annotations

import argparse
import shlex
import statistics
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from symenum import __version__
from symenum.bench.jobs import BenchPlan, Job, Row
from symenum.bench.problems.random_laws import DEPTHS, LAW_SETS, LawSet
from symenum.bench.report import wilson
from symenum.bench.run import Limits, Progress, run_plan
from symenum.bench.store import read_rows
from symenum.core.threads import available_cores
from symenum.heads.stages import STAGE_NAMES

WHOLE = "symenum"
TOKENS = "tokens"
NOTHING = "nothing"
MEMORY = 4 << 30  # bytes of a run: sixteen of them fit into 64 GB


def system_without(stage: str) -> str:
    """The name of the system with a stage left out."""
    same = f"{WHOLE}:selection=best"  # the default, but a name of its own
    return {NOTHING: same, TOKENS: f"{WHOLE}:generator=none"}.get(stage, f"{WHOLE}:without={stage}")


def chosen(laws: LawSet, options: argparse.Namespace) -> list[str]:
    """The names of the laws that the options ask for; the first laws of a set have all shapes in turn."""
    numbers = options.numbers or range(1, min(options.laws, len(laws)) + 1)
    return [f"{laws.prefix}{number}" for number in numbers if laws.shape(number)[0] in options.depth]


def whole_plan(options: argparse.Namespace) -> BenchPlan:
    """The whole search on the chosen laws."""
    jobs = [
        Job(options.set, name, WHOLE, seed, options.noise)
        for seed in range(options.seeds)
        for name in chosen(LAW_SETS[options.set], options)
    ]
    return BenchPlan(tuple(jobs), (WHOLE,), ())


def ablation_plan(jobs: Sequence[Job], stages: Sequence[str]) -> BenchPlan:
    """The same laws and seeds with each stage left out, all stages of a law side by side."""
    systems = tuple(map(system_without, stages))
    return BenchPlan(tuple(replace(job, system=system) for job in jobs for system in systems), systems, ())


def tell(progress: Progress) -> None:
    row = progress.row
    what = "recovered" if row.solved else "not recovered" if row.ended == "done" else row.ended
    seconds = "" if row.seconds is None else f" in {row.seconds:.1f} s"
    left = f"{progress.seconds_left / 60:.0f} min left"
    say(f"[{progress.done}/{progress.total}] {row.job}: {what}{seconds}; {left}")


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def print_recovery(whole: Sequence[Row]) -> None:
    """Recovered of all by depth and number of variables, on the front / as the selected law."""
    variables = LAW_SETS[whole[0].job.set].variables
    shapes = [(row, *shape_of(row)) for row in whole]
    print("recovered on the front / selected, of the runs, by depth and number of variables")
    print(f"{'depth':8s}" + "".join(f"{f'{count} variables':>16s}" for count in variables) + f"{'all':>18s}")
    for depth in DEPTHS:
        cells = [cell([row for row, *one in shapes if one == [depth, count]]) for count in variables]
        print(f"{depth:<8d}" + "".join(f"{text:>16s}" for text in cells), end="")
        print(f"{cell([row for row, one, _ in shapes if one == depth]):>18s}")
    columns = [[row for row, _, one in shapes if one == count] for count in variables]
    print(f"{'all':8s}" + "".join(f"{cell(column):>16s}" for column in columns) + f"{cell(whole):>18s}")
    low, high = wilson(sum(row.solved for row in whole), len(whole))
    failed = sum(row.ended != "done" for row in whole)
    print(f"recovered: {share(whole):.1%} (95%: {low:.1%} to {high:.1%}); crashed or killed: {failed}")


def print_ablation(whole: Sequence[Row], parts: Sequence[Row], stages: Sequence[str]) -> None:
    """What is lost and won without each stage, on the runs that were done with and without it."""
    before = {(row.job.problem, row.job.seed): row for row in whole}
    head = f"{'without':32s}{'runs':>6s}{'whole':>7s}{'without':>9s}{'lost':>6s}{'won':>5s}{'median s':>10s}"
    print(f"\n{head}  laws lost")
    for stage in stages:
        own = [row for row in parts if row.job.system == system_without(stage)]
        pairs = [(before[row.job.problem, row.job.seed], row) for row in own]
        lost = [part.job.problem for first, part in pairs if first.solved and not part.solved]
        won = sum(part.solved and not first.solved for first, part in pairs)
        counts = (sum(first.solved for first, _ in pairs), sum(part.solved for _, part in pairs))
        seconds = [part.seconds for _, part in pairs if part.seconds is not None]
        median = f"{statistics.median(seconds):.1f}" if seconds else "-"
        line = f"{stage:32s}{len(pairs):6d}{counts[0]:7d}{counts[1]:9d}{len(lost):6d}{won:5d}{median:>10s}"
        print(f"{line}  {', '.join(dict.fromkeys(lost))}")


def shape_of(row: Row) -> tuple[int, int]:
    """The depth and the number of variables of the law of a run."""
    laws = LAW_SETS[row.job.set]
    return laws.shape(laws.number(row.job.problem))


def cell(rows: Sequence[Row]) -> str:
    chosen = sum(row.solved and row.judged == row.selected for row in rows)
    return f"{sum(row.solved for row in rows)} / {chosen} of {len(rows)}" if rows else "-"


def share(rows: Sequence[Row]) -> float:
    return sum(row.solved for row in rows) / len(rows) if rows else 0.0


def stages_of(names: Sequence[str]) -> list[str]:
    """The stages to leave out, each once; ValueError where there is no stage of a name."""
    known = (*STAGE_NAMES, TOKENS)
    stages = list(dict.fromkeys(known if "all" in names else names))
    unknown = [stage for stage in stages if stage not in known]
    if unknown:
        raise ValueError(f"there is no stage {unknown[0]!r}; known: {', '.join(known)}, all")
    return stages


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=LAW_SETS, default="random")
    parser.add_argument("--laws", type=int, default=240, help="the first so many laws of the set")
    parser.add_argument("--numbers", type=int, nargs="+", help="the laws of these numbers instead")
    parser.add_argument("--depth", type=int, nargs="+", choices=DEPTHS, default=list(DEPTHS), help="only of these")
    parser.add_argument("--noise", type=float, default=0.0, help="level of noise, in standard deviations of y")
    parser.add_argument("--max-time", type=float, default=20.0, help="seconds of a search")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=available_cores(), help="runs at the same time")
    parser.add_argument("--without", action="append", default=[], metavar="STAGE", help="a stage, tokens, or all")
    parser.add_argument("--won", action="store_true", help="leave stages out also on laws that were not recovered")
    parser.add_argument("--out", type=Path, default=None, help="default: build/random_laws_SECONDS")
    parser.add_argument("--report", action="store_true", help="print the tables of what is there, run nothing")
    options = parser.parse_args()
    size = len(LAW_SETS[options.set])
    if options.laws < 1 or not all(1 <= number <= size for number in options.numbers or ()):
        parser.error(f"--laws must be at least 1, and --numbers 1 to {size}")
    try:
        stages = stages_of(options.without)
    except ValueError as error:
        parser.error(str(error))
    out = options.out or Path("build") / f"random_laws_{options.max_time:g}"

    def done(plan: BenchPlan) -> list[Row]:
        """Run what is missing, and give back the rows of the plan."""
        if not options.report:
            command = shlex.join(["python", *sys.argv])
            limits = Limits(options.max_time, 1, MEMORY)
            run_plan(plan, out, limits, __version__, command, parallel=options.jobs, on_note=say, on_progress=tell)
        wanted = set(plan.jobs)
        return [row for row in read_rows(out)[1] if row.job in wanted]

    try:
        whole = done(whole_plan(options))
        noise = f"noise {options.noise:g}" if options.noise else "no noise"
        print(
            f"laws of the set {options.set}, {noise}, {options.max_time:g} s on one core each; {len(whole)} runs done"
        )
        if whole:
            print_recovery(whole)
        if stages:
            plan = ablation_plan([row.job for row in whole if row.solved or options.won], (NOTHING, *stages))
            print_ablation(whole, done(plan), (NOTHING, *stages))
    except KeyboardInterrupt:
        say(f"Interrupted: the same command goes on; what is done is kept in {out}, and --report shows it.")
        return 130
    except ValueError as error:  # a folder of other limits or of another version
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
