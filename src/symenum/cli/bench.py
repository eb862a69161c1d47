"""`symenum bench`: list the problem sets, run systems on them, report the results, run the ablations."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from symenum import __version__
from symenum.cli.messages import Failure, InputError, did_you_mean, say
from symenum.cli.options import split_list

if TYPE_CHECKING:
    from symenum.bench.jobs import BenchPlan, Row

__all__ = ["bench_group"]

_GIB = 1 << 30  # bytes
_BY_PROBLEM = re.compile(
    "\n## (?:Problems|Tables|Noisy laws|Systems in motion)\n"
)  # the tables of a report that are not printed


@click.group("bench")
def bench_group() -> None:
    """Check claims of symbolic regression: run systems on public problems, and report what they recover."""


@bench_group.command("list")
def list_command() -> None:
    """Show the problem sets."""
    from symenum.bench.problems import SETS, MissingDataError

    for one in SETS.values():
        try:
            count = str(len(one.problem_names()))
        except MissingDataError:
            count = "-"
        click.echo(f"{one.name:20} {count:>4}  {one.title}")
    click.echo("\n-: needs files; symenum bench run says which, and where the public originals are.")


def _run_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that `run` and `ablation` share."""
    for option in (
        click.option("--seeds", type=click.IntRange(1), help="Runs of each problem. [default: 1; 3 splits of tables]"),
        click.option("--max-time", type=click.FloatRange(0, min_open=True), default=60.0, show_default=True),
        click.option("--cores", type=click.IntRange(1), default=1, show_default=True, help="Cores for each run."),
        click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Runs at the same time."),
        click.option("--memory", type=click.FloatRange(0, min_open=True), default=8.0, show_default=True, help="GB."),
        click.option("--problem", "problems", multiple=True, help="Only this problem; may be repeated."),
        click.option("--share", type=float, default=1.0, help="Only this part of the problems, drawn at random."),
        click.option(
            "-o",
            "--out",
            type=click.Path(path_type=Path),
            default=Path("bench-results"),
            show_default=True,
            help="Folder of the results.",
        ),
        click.option("--run-dirs", type=click.Path(path_type=Path), help="Keep each run of symenum in a folder there."),
    ):
        command = option(command)
    return command


@bench_group.command("run", no_args_is_help=True)
@click.argument("sets", nargs=-1, required=True)
@click.option("--systems", multiple=True, default=("symenum",), show_default=True, metavar="A,B,…")
@click.option("--noise", default="0", show_default=True, metavar="LEVEL,…", help="Levels of noise on the target.")
@click.option("--cluster", metavar="ADDRESS", help="Where to run, such as tcp://host:8786. [default: this machine]")
@_run_options
def run_command(
    sets: tuple[str, ...],
    systems: tuple[str, ...],
    noise: str,
    cluster: str | None,
    seeds: int | None,
    max_time: float,
    cores: int,
    jobs: int,
    memory: float,
    problems: tuple[str, ...],
    share: float,
    out: Path,
    run_dirs: Path | None,
) -> None:
    """Run systems on problem SETS. What is in the folder already is not run again; Ctrl-C loses nothing."""
    from symenum.bench.jobs import make_bench_plan

    with _input_errors():
        levels = [float(level) for level in noise.split(",")]
        plan = make_bench_plan(
            sets,
            seeds=seeds,
            systems=_split_systems(systems),
            noise=levels,
            problems=problems,
            share=share,
        )
        if cluster is not None and run_dirs is not None:
            raise InputError("--run-dirs is for runs on this machine: leave it out, or --cluster.")
        _run_plan(
            plan, out, max_time=max_time, cores=cores, jobs=jobs, memory=memory, run_dirs=run_dirs, cluster=cluster
        )


@bench_group.command("report", no_args_is_help=True)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--judge", is_flag=True, help="Judge all runs again first, by the rules of this version.")
def report_command(folder: Path, judge: bool) -> None:
    """Write report.md and report.html of a FOLDER of results, and print the table of sets."""
    from symenum.bench.run import judge_again
    from symenum.bench.store import Store, read_rows

    with _input_errors():
        if judge:
            _, rows, _ = read_rows(folder)
            with Store(folder).locked():
                say(f"{judge_again(Store(folder), rows)} of {len(rows)} verdicts changed.")
        _write_report(folder)


@bench_group.command("ablation", no_args_is_help=True)
@click.argument("name")
@click.option("--set", "sets", multiple=True, help="Other problem sets than the ablation's own.")
@_run_options
def ablation_command(
    name: str,
    sets: tuple[str, ...],
    seeds: int | None,
    max_time: float,
    cores: int,
    jobs: int,
    memory: float,
    problems: tuple[str, ...],
    share: float,
    out: Path,
    run_dirs: Path | None,
) -> None:
    """Run an ablation of the paper: generators, constants, heads, duplicates, efficiency or inputs."""
    from symenum.bench.ablation import MEASUREMENTS, VARIANTS
    from symenum.bench.jobs import make_bench_plan
    from symenum.display.html import html_table, markdown_table

    with _input_errors():
        if name in MEASUREMENTS:
            result = MEASUREMENTS[name]()
            out.mkdir(parents=True, exist_ok=True)
            text = markdown_table(result.table)
            (out / f"{name}.md").write_text(f"{text}\n", encoding="utf-8")
            (out / f"{name}.html").write_text(f"{html_table(result.table)}{result.plot}", encoding="utf-8")
            click.echo(text)
            return
        if name not in VARIANTS:
            known = [*VARIANTS, *MEASUREMENTS]
            raise InputError(f"There is no ablation '{name}'.{did_you_mean(name, known)} Known: {', '.join(known)}.")
        variants = VARIANTS[name]()
        plan = make_bench_plan(
            sets or variants.sets, seeds=seeds, systems=variants.systems, problems=problems, share=share
        )
        _run_plan(plan, out, max_time=max_time, cores=cores, jobs=jobs, memory=memory, run_dirs=run_dirs)


def _run_plan(
    plan: BenchPlan,
    out: Path,
    *,
    max_time: float,
    cores: int,
    jobs: int,
    memory: float,
    run_dirs: Path | None,
    cluster: str | None = None,
) -> None:
    """Run a plan, write its results to a folder, and print a line for each run and then the report."""
    from symenum.bench.run import Limits, Progress, run_plan
    from symenum.cluster import ClusterError

    for note in plan.notes:
        say(note)
    if not plan.systems:
        raise InputError("None of the systems can run here.")

    def print_run(progress: Progress) -> None:
        row = progress.row
        seconds = "" if row.seconds is None else f" in {row.seconds:.2f} s"
        what = _outcome(row)
        say(f"[{progress.done}/{progress.total}] {row.job}: {what}{seconds}; {_duration(progress.seconds_left)} left")

    limits = Limits(max_time, cores, int(memory * _GIB))
    command = shlex.join(["symenum", *sys.argv[1:]])
    try:
        run_plan(
            plan,
            out,
            limits,
            __version__,
            command,
            parallel=jobs,
            run_dirs=run_dirs,
            cluster=cluster,
            on_note=say,
            on_progress=print_run,
        )
    except ClusterError as error:
        raise Failure(f"{error}. What is done is kept in {out}; the same command goes on from there.") from error
    except KeyboardInterrupt:
        say(f"Interrupted: what is done is kept in {out}; the same command goes on from there.")
        raise SystemExit(130) from None
    _write_report(out)


def _outcome(row: Row) -> str:
    """How a run ended, in a word or a figure."""
    from symenum.bench.measured_report import is_measured_row

    if row.ended != "done":
        return row.ended
    if is_measured_row(row):
        return "not defined on a held-out row" if row.r2 is None else f"R² {row.r2:.3f}"
    if row.motion is not None:
        verdicts = {"reproduced": row.motion.reproduced, "second start": row.motion.second, "form": row.motion.form}
        return ", ".join(f"{name} {'yes' if holds else 'no'}" for name, holds in verdicts.items())
    return "solved" if row.solved else "not solved"


def _write_report(folder: Path) -> None:
    """Write report.md and report.html into the folder, and print the tables of sets."""
    from symenum.bench.report import html_report, markdown_report
    from symenum.bench.store import read_rows

    manifest, rows, broken = read_rows(folder)
    notes = [f"{len(broken)} half-written files were left out: {', '.join(broken)}."] if broken else []
    text = markdown_report(manifest, rows, notes)
    (folder / "report.md").write_text(text, encoding="utf-8")
    (folder / "report.html").write_text(html_report(manifest, rows, notes), encoding="utf-8")
    click.echo(_BY_PROBLEM.split(text)[0])
    say(f"Reports: {folder / 'report.md'}, {folder / 'report.html'}")


def _split_systems(systems: tuple[str, ...]) -> list[str]:
    """Cut at commas, but not at those between the options of a system (symenum:generator=gp,range=-1..1)."""
    found: list[str] = []
    for word in split_list(systems):
        if "=" in word and ":" not in word and found:
            found[-1] += f",{word}"
        else:
            found.append(word)
    return found


@contextmanager
def _input_errors() -> Iterator[None]:
    """An error that the user can correct becomes one message."""
    try:
        yield
    except (ValueError, FileNotFoundError) as error:
        raise InputError(f"{error}") from error


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
