"""Random laws that are on no list: what a search recovers of them, beside other systems, and what each stage brings.

    python benchmarks/random_laws.py [--set random] [--laws 240] [--noise 0 0.01 0.1] [--max-time 20] [--cores 1]
    python benchmarks/random_laws.py --against ../v01 --cores 2 --max-time 60
    python benchmarks/random_laws.py --system symenum:generator=gp --system symenum:generator=random --unfound-by-heads
    python benchmarks/random_laws.py --without all [--laws 240] [--max-time 20] [--jobs 16]

The laws are drawn from a grammar (`symenum.bench.problems.random_laws`): depth 3 to 6, 2 to 7 variables, 0 to 4
constants, every operator, 200 rows. `--set random_single` takes laws of one variable, `--set random_final` laws of
other seeds, which are for final tables only; `--numbers` and `--depth` take some of them. A law is recovered if a law
of the front equals it to 1e-9 on fresh points, its constants rounded to two decimals; with noise, if a law of the front
has its structure (`symenum.bench.judge`). Behind the stroke: the law that the search itself selects. Each level of
noise has its own tables.

Several systems (`--system`, as `symenum bench run` names them) run law by law in turn, so that all meet the same
machine. `--against` adds the symenum of another source tree, such as a git worktree of an earlier version; its laws are
judged by the rules of this one. Their table in pairs counts the laws that only one of two systems recovers.
`--unfound-by-heads` first searches all laws without tokens, with the same time limit, and takes only those that this
does not recover.

With `--without` the laws that the whole search has recovered are searched once more for each stage, with the same seeds
and that stage left out everywhere: on the raw variables, on reduced problems and in passes with tokens. Lost are those
that are not recovered then. `tokens` stands for the token generator, `all` for every stage and tokens. The line
`nothing` is the whole search once more: the laws that it loses, it loses because of the clock. A stage without which no
more laws are lost has no effect that can be measured. `--won` searches the other laws too, to find those that are
recovered only without a stage.

Each run is a process of its own on `--cores` cores with hard limits. What is done is kept in `--out` (one folder for
each time limit and number of cores) and is not run again: after an interruption the same command goes on. After a
change of the code take another folder. `--report` only prints the tables.
"""

from __future__ import annotations

import argparse
import shlex
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from symenum import __version__
from symenum.bench.compare import by_time_table, group_table, paired_table, rows_of, text_table
from symenum.bench.jobs import BenchPlan, Job, Row
from symenum.bench.problems import get_set
from symenum.bench.problems.random_laws import DEPTHS, LAW_SETS, LawSet
from symenum.bench.report import wilson
from symenum.bench.run import Limits, Progress, run_plan
from symenum.bench.store import read_rows
from symenum.bench.systems import check_system, make_system
from symenum.bench.systems.other_tree import SymenumAt
from symenum.core.threads import available_cores
from symenum.heads.stages import STAGE_NAMES

WHOLE = "symenum"
OTHER_TREE = "symenum_at"
NO_TOKENS = f"{WHOLE}:generator=none"
TOKENS = "tokens"
NOTHING = "nothing"
MEMORY = 4  # GiB of a run: sixteen of them fit into 64 GB


# What is run


def systems_of(options: argparse.Namespace) -> list[str]:
    """The systems that the options ask for, each once, with the device where one is named."""
    names = [*(options.system or [WHOLE]), *(f"{OTHER_TREE}:path={path.resolve()}" for path in options.against)]
    return list(dict.fromkeys(on_device(name, options.device) for name in names))


def on_device(system: str, device: str | None) -> str:
    """The name of a system that runs on that device; a device that the name already has stays, rivals have none."""
    name, _, settings = system.partition(":")
    if device is None or name not in (WHOLE, OTHER_TREE) or "device=" in settings:
        return system
    return f"{name}:{','.join(filter(None, [settings, f'device={device}']))}"


def check_systems(systems: Sequence[str], operators: Sequence[str]) -> None:
    """ValueError or RuntimeError where a system cannot run here, said before any run is spent on it."""
    for name in systems:
        obstacle = check_system(name)
        if obstacle is not None:
            raise ValueError(f"{name}: {obstacle}")
        system = make_system(name)
        if isinstance(system, SymenumAt):
            system.check(operators)


def system_without(stage: str) -> str:
    """The name of the system with a stage left out."""
    same = f"{WHOLE}:selection=evidence"  # the default, but a name of its own
    return {NOTHING: same, TOKENS: NO_TOKENS}.get(stage, f"{WHOLE}:without={stage}")


def chosen(laws: LawSet, options: argparse.Namespace) -> list[str]:
    """The names of the laws that the options ask for; the first laws of a set have all shapes in turn."""
    numbers = options.numbers or range(1, min(options.laws, len(laws)) + 1)
    return [f"{laws.prefix}{number}" for number in numbers if laws.shape(number)[0] in options.depth]


def law_jobs(options: argparse.Namespace) -> list[Job]:
    """The chosen laws with all seeds and levels of noise, for the whole search."""
    return [
        Job(options.set, name, WHOLE, seed, noise)
        for seed in range(options.seeds)
        for name in chosen(LAW_SETS[options.set], options)
        for noise in dict.fromkeys(options.noise)
    ]


def plan_of(jobs: Sequence[Job], systems: Sequence[str]) -> BenchPlan:
    """The jobs by each of the systems, all systems of a law side by side."""
    return BenchPlan(tuple(replace(job, system=system) for job in jobs for system in systems), tuple(systems), ())


def unfound(jobs: Sequence[Job], rows: Sequence[Row]) -> list[Job]:
    """The jobs whose law the rows do not recover; a run that crashed or was killed says nothing, and is left out."""
    missed = {replace(row.job, system=WHOLE) for row in rows if row.ended == "done" and not row.solved}
    return [job for job in jobs if replace(job, system=WHOLE) in missed]


def stages_of(names: Sequence[str]) -> list[str]:
    """The stages to leave out, each once; ValueError where there is no stage of a name."""
    known = (*STAGE_NAMES, TOKENS)
    stages = list(dict.fromkeys(known if "all" in names else names))
    unknown = [stage for stage in stages if stage not in known]
    if unknown:
        raise ValueError(f"there is no stage {unknown[0]!r}; known: {', '.join(known)}, all")
    return stages


# What is printed


def tell(progress: Progress) -> None:
    row = progress.row
    what = "recovered" if row.solved else "not recovered" if row.ended == "done" else row.ended
    seconds = "" if row.seconds is None else f" in {row.seconds:.1f} s"
    left = f"{progress.seconds_left / 60:.0f} min left"
    say(f"[{progress.done}/{progress.total}] {row.job}: {what}{seconds}; {left}")


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def print_tables(rows: Sequence[Row], systems: Sequence[str]) -> None:
    """What the systems recover at one level of noise: by depth and variables, in pairs, and by time."""
    if len(systems) == 1:
        print_recovery(rows)
    else:
        print("\n" + text_table(group_table(rows, systems, "depth", depth_of)))
        print("\n" + text_table(group_table(rows, systems, "number of variables", variables_of)))
        print("\n" + text_table(paired_table(rows, systems)))
    print("\n" + text_table(by_time_table(rows, systems)))


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


def print_ablation(whole: Sequence[Row], parts: Sequence[Row], systems: Mapping[str, str]) -> None:
    """What is lost and won without each stage, on the runs that were done with and without it.

    `systems` has the name of the system without a stage for each stage.
    """
    before = {replace(row.job, system=WHOLE): row for row in whole}
    head = f"{'without':32s}{'runs':>6s}{'whole':>7s}{'without':>9s}{'lost':>6s}{'won':>5s}{'median s':>10s}"
    print(f"\n{head}  laws lost")
    for stage, system in systems.items():
        pairs = [(before[replace(row.job, system=WHOLE)], row) for row in rows_of(parts, system)]
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


def depth_of(row: Row) -> int:
    return shape_of(row)[0]


def variables_of(row: Row) -> int:
    return shape_of(row)[1]


def cell(rows: Sequence[Row]) -> str:
    chosen = sum(row.solved and row.judged == row.selected for row in rows)
    return f"{sum(row.solved for row in rows)} / {chosen} of {len(rows)}" if rows else "-"


def share(rows: Sequence[Row]) -> float:
    return sum(row.solved for row in rows) / len(rows) if rows else 0.0


def read_options(parser: argparse.ArgumentParser, arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options of the command line, or of these arguments, checked but for the systems."""
    parser.add_argument("--set", choices=LAW_SETS, default="random")
    parser.add_argument("--laws", type=int, default=240, help="the first so many laws of the set")
    parser.add_argument("--numbers", type=int, nargs="+", help="the laws of these numbers instead")
    parser.add_argument("--depth", type=int, nargs="+", choices=DEPTHS, default=list(DEPTHS), help="only of these")
    parser.add_argument("--noise", type=float, nargs="+", default=[0.0], help="levels, in standard deviations of y")
    parser.add_argument("--max-time", type=float, default=20.0, help="seconds of a search")
    parser.add_argument("--seeds", type=int, default=1, help="runs of each law: seeds 0, 1, …")
    parser.add_argument("--cores", type=int, default=1, help="cores and threads of each run")
    parser.add_argument("--jobs", type=int, help="runs at the same time; default: as many as the cores allow")
    parser.add_argument("--memory", type=float, default=MEMORY, help="GiB of each run")
    parser.add_argument("--system", action="append", help=f"name:options, default {WHOLE}; several are compared")
    parser.add_argument("--against", action="append", type=Path, default=[], help="another source tree of symenum")
    parser.add_argument("--device", help="of all systems of ours that name none: auto, cpu, cuda")
    parser.add_argument("--unfound-by-heads", action="store_true", help="only laws that no search without tokens finds")
    parser.add_argument("--without", action="append", default=[], metavar="STAGE", help="a stage, tokens, or all")
    parser.add_argument("--won", action="store_true", help="leave stages out also on laws that were not recovered")
    parser.add_argument("--out", type=Path, help="default: build/random_laws_SECONDS, with the cores where not one")
    parser.add_argument("--report", action="store_true", help="print the tables of what is there, run nothing")
    options = parser.parse_args(arguments)
    size, cores = len(LAW_SETS[options.set]), available_cores()
    if options.laws < 1 or not all(1 <= number <= size for number in options.numbers or ()):
        parser.error(f"--laws must be at least 1, and --numbers 1 to {size}")
    if not 1 <= options.cores <= cores and not options.report:
        parser.error(f"--cores must be 1 to {cores}, the cores of this machine")
    places = max(1, cores // max(1, options.cores))
    options.jobs = places if options.jobs is None else options.jobs
    if not 1 <= options.jobs <= places:
        parser.error(f"--jobs must be 1 to {places}: each run has {options.cores} of the {cores} cores for itself")
    if options.without and (options.system or options.against):
        parser.error("--without compares with the whole search alone: leave out --system and --against")
    if options.out is None:
        cores_part = f"_{options.cores}cores" if options.cores > 1 else ""
        options.out = Path("build") / f"random_laws_{options.max_time:g}{cores_part}"
    return options


def rows_done(plan: BenchPlan, options: argparse.Namespace) -> list[Row]:
    """Run what is missing, and give back the rows of the plan."""
    if not options.report:
        command = shlex.join(["python", *sys.argv])
        limits = Limits(options.max_time, options.cores, round(options.memory * 2**30))
        jobs, out = options.jobs, options.out
        run_plan(plan, out, limits, __version__, command, parallel=jobs, on_note=say, on_progress=tell)
    wanted = set(plan.jobs)
    return [row for row in read_rows(options.out)[1] if row.job in wanted]


def run_and_print(options: argparse.Namespace) -> None:
    """All that the options ask for; ValueError or RuntimeError where it cannot be run."""
    systems, stages = systems_of(options), stages_of(options.without)
    if not options.report:
        check_systems(systems, get_set(options.set).protocol.operators)
    jobs = law_jobs(options)
    if options.unfound_by_heads:
        by_heads = rows_done(plan_of(jobs, [on_device(NO_TOKENS, options.device)]), options)
        jobs = unfound(jobs, by_heads)
        print(f"{len(jobs)} of {len(by_heads)} runs do not recover their law without tokens; the tables are of these")
    rows = rows_done(plan_of(jobs, systems), options)
    cores = "one core" if options.cores == 1 else f"{options.cores} cores"
    for noise in dict.fromkeys(options.noise):
        whole = [row for row in rows if row.job.noise == noise]
        level = f"noise {noise:g}" if noise else "no noise"
        print(
            f"\nlaws of the set {options.set}, {level}, {options.max_time:g} s on {cores} each; {len(whole)} runs done"
        )
        if whole:
            print_tables(whole, systems)
        if whole and stages:
            parts = {stage: on_device(system_without(stage), options.device) for stage in (NOTHING, *stages)}
            repeated = [row.job for row in whole if row.solved or options.won]
            print_ablation(whole, rows_done(plan_of(repeated, list(parts.values())), options), parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options = read_options(parser)
    try:
        run_and_print(options)
    except KeyboardInterrupt:
        say(f"Interrupted: the same command goes on; what is done is kept in {options.out}, and --report shows it.")
        return 130
    except (ValueError, RuntimeError) as error:  # no such system, a folder of other limits, a tree that cannot run
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
