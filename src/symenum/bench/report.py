"""Reports of a bench: figures with their uncertainty, beside published ones, as Markdown and as one HTML page.

The published figures are data of the package. Those for single problems and for the sets are the paper's (Supplementary
Tables, six sets and the 50 dimensions); the SRBench rates are those published for the 130 problems (SRBench's own, the
authors' figure for PSE and PySR, and Keplearn's). The verdicts on laws are in the rows: nothing is judged here.
"""

from __future__ import annotations

import csv
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from scipy.stats import binomtest

from symenum.bench.jobs import Row
from symenum.bench.measured_report import error_tables, is_error_row, is_measured_row, measured_plots, measured_tables
from symenum.bench.motion_report import is_motion_row, motion_tables
from symenum.bench.problems import MissingDataError, get_set
from symenum.display.html import Table, html_page, html_table, inline, markdown_table
from symenum.display.svg import bars, points, steps

__all__ = [
    "Group",
    "by_problem",
    "by_set",
    "html_report",
    "markdown_report",
    "published_problem",
    "published_set",
    "wilson",
]

_MAX_FRONTS = 6  # plots of fronts on a page
_MIN_PLOTTED_LOSS = 1e-32  # mean squared error; the axis is logarithmic, and smaller losses are rounding
_ACCURATE_R2 = 0.99  # above, SRBench calls a solution accurate
_MAX_CHARACTERS = 110  # of a law in a table
_NO_TABLE = Table("", "", (), ())  # left out of a report
_PUBLISHED_METHODS = ("PSE", "PySR", "Operon")  # columns of the table of problems; nine methods would be too wide


# The report and its parts


def markdown_report(manifest: Mapping[str, Any], rows: Sequence[Row], notes: Sequence[str] = ()) -> str:
    """The report as Markdown; plots are on the HTML page only."""
    parts = ["# Benchmark", *_facts(manifest, rows, notes)]
    parts += [markdown_table(table) for table in _tables(rows) if table.cells]
    return "\n\n".join(parts) + "\n"


def html_report(manifest: Mapping[str, Any], rows: Sequence[Row], notes: Sequence[str] = ()) -> str:
    """The report as one page with its plots inside."""
    facts = "".join(f"<p>{inline(fact)}</p>" for fact in _facts(manifest, rows, notes))
    tables = "".join(html_table(table) for table in _tables(rows) if table.cells)
    plots = "".join(f"<div>{plot}</div>" for plot in _plots(rows) if plot)
    return html_page("symenum benchmark", f'<h1>Benchmark</h1>{facts}<div class="plots">{plots}</div>{tables}')


def _facts(manifest: Mapping[str, Any], rows: Sequence[Row], notes: Sequence[str]) -> list[str]:
    machine = manifest.get("machine", {})
    versions = ", ".join(f"{name} {version}" for name, version in manifest.get("versions", {}).items())
    seeds = sorted({row.job.seed for row in rows})
    facts = [
        f"{len(rows)} runs of at most {manifest.get('max_time')} s on {manifest.get('cores')} "
        f"core{'s' * (manifest.get('cores') != 1)} each, {manifest.get('memory', 0) / 2**30:.1f} GB; "
        f"seeds {', '.join(map(str, seeds)) or '-'}.",
        f"Machine: {machine.get('cpu', 'unknown')}, {machine.get('cores', '?')} cores, "
        f"{machine.get('memory_gb', '?')} GB, GPU: {machine.get('gpu', 'none')}. "
        f"Load when it began: {machine.get('load', '?')}.",
        f"Versions: {versions}.",
        *(f"Command: `{command}`" for command in manifest.get("commands", ())),
        *notes,
    ]
    other = {row.version for row in rows} - {manifest.get("version")}
    if other:
        facts.append(f"Some rows are of other versions of symenum: {', '.join(sorted(other))}.")
    return facts


def _tables(rows: Sequence[Row]) -> list[Table]:
    known = _with_known_laws(rows)
    size, *by_table = measured_tables(rows) or [_NO_TABLE]
    errors, *by_law = error_tables(rows) or [_NO_TABLE]
    motion, *by_system = motion_tables(rows) or [_NO_TABLE]
    return [
        size,
        errors,
        motion,
        set_table(by_set(known)),
        problem_table(by_problem(known)),
        *by_table,
        *by_law,
        *by_system,
        unsolved_table(known, _laws(known)),
        failure_table(rows),
    ]


def _with_known_laws(rows: Sequence[Row]) -> list[Row]:
    """The rows of problems that are solved or not; the others have tables of their own (`measured_report`)."""
    return [row for row in rows if not (is_measured_row(row) or is_error_row(row) or is_motion_row(row))]


def _laws(rows: Sequence[Row]) -> dict[tuple[str, str], str]:
    """The laws of the problems, where their set can be read here."""
    keys = dict.fromkeys((row.job.set, row.job.problem) for row in rows)
    return {key: law for key in keys if (law := _law(*key)) is not None}


def _law(name: str, problem: str) -> str | None:
    try:
        law = getattr(get_set(name).problem(problem), "expression", None)
        return None if law is None else str(law)
    except (MissingDataError, ValueError):
        return None


def _plots(rows: Sequence[Row]) -> list[str]:
    return measured_plots(rows) + _recovery_plots(_with_known_laws(rows))


def _recovery_plots(rows: Sequence[Row]) -> list[str]:
    sets = by_set(rows)
    shares = {
        f"{name}{f' {noise:g}' if noise else ''}": {
            group.system: (group.recovery, *group.interval) for group in systems
        }
        for (name, noise), systems in _by_set_and_noise(sets).items()
    }
    plots = [bars("Recovery with 95% intervals", shares, "recovered")] if len(shares) > 1 else []
    for (name, noise), systems in _by_set_and_noise(sets).items():
        title = f"{_with_noise(name, noise)}: recovered within a time"
        plots.append(steps(title, {group.system: _growth(group) for group in systems}, "seconds", "recovered"))
    return plots + _fronts(rows)


def _growth(group: Group) -> list[tuple[float, float]]:
    """Seconds, and the share of the runs that were solved within them; the last point is at the time limit."""
    times = sorted(row.seconds for row in group.rows if row.solved and row.seconds is not None)
    growth = [(seconds, (i + 1) / len(group.rows)) for i, seconds in enumerate(times)]
    end = max([*times, *(row.max_time for row in group.rows)])
    return [*growth, (end, growth[-1][1] if growth else 0.0)]


def _fronts(rows: Sequence[Row]) -> list[str]:
    """Plots of the fronts of the problems that took longest; the first run of each system without noise."""
    first: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        if row.laws and not row.job.noise:
            first.setdefault((row.job.set, row.job.problem), {}).setdefault(row.job.system, row)
    hardest = sorted(first, key=lambda key: -max(row.seconds or 0.0 for row in first[key].values()))[:_MAX_FRONTS]
    return [
        points(
            f"Front of {problem}",
            {
                system: [
                    (law.complexity, max(law.loss, _MIN_PLOTTED_LOSS))
                    for law in sorted(row.laws, key=lambda law: law.complexity)
                    if math.isfinite(law.loss)
                ]
                for system, row in first[name, problem].items()
            },
            "complexity",
            "mean squared error",
        )
        for name, problem in hardest
    ]


def set_table(groups: Sequence[Group]) -> Table:
    """One line for each set, level of noise and system; after those of a set come the published figures for it."""
    cells: list[tuple[str, ...]] = []
    for (name, noise), systems in _by_set_and_noise(groups).items():
        for group in systems:
            low, high = group.interval
            cells.append(
                (
                    _with_noise(name, noise),
                    group.system,
                    f"{group.solved} of {len(group.rows)}",
                    f"{100 * group.recovery:.1f}% ({100 * low:.0f} to {100 * high:.0f})",
                    _short_seconds(group.seconds),
                    _short_seconds(group.seconds_solved),
                    f"{100 * group.accurate:.1f}%",
                    "" if group.complexity is None else f"{group.complexity:g}",
                    str(group.failed or ""),
                )
            )
        cells += [_published(_with_noise(name, noise), figure) for figure in published_set(name, noise)]
    return Table(
        "Sets",
        "Recovery with Wilson's 95% interval. Seconds are medians: of all runs, and of those that found the law. "
        "Published figures are from other machines (an A100 for PSE) and longer limits.",
        ("set", "system", "solved", "recovery", "seconds", "to the law", "R² > 0.99", "complexity", "failed"),
        tuple(cells),
    )


def _published(name: str, figure: PublishedSet) -> tuple[str, ...]:
    recovery = "" if figure.recovery is None else f"{figure.recovery:.1f}%"
    seconds = "" if figure.seconds is None else f"{_short_seconds(figure.seconds)} (mean)"
    accurate = "" if figure.r2 is None else f"{figure.r2:.0f}%"
    return name, f"{figure.method} (published)", "", recovery, seconds, "", accurate, "", ""


def problem_table(groups: Sequence[Group]) -> Table:
    """One line for each problem: solved and seconds by each system, and the published recovery of some methods."""
    systems = list(dict.fromkeys(group.system for group in groups))
    published = any(published_problem(group.problem) for group in groups)
    cells: list[tuple[str, ...]] = []
    for key in dict.fromkeys((group.set, group.problem, group.noise) for group in groups):
        line = [key[1] if not key[2] else f"{key[1]}, noise {key[2]:g}"]
        for system in systems:
            mine = [group for group in groups if (group.set, group.problem, group.noise) == key]
            group = next((one for one in mine if one.system == system), None)
            line.append(
                "" if group is None else f"{group.solved} of {len(group.rows)}, {_short_seconds(group.seconds)} s"
            )
        if published:
            by_method = {figure.method: figure for figure in published_problem(key[1])}
            for method in _PUBLISHED_METHODS:
                figure = by_method.get(method)
                seconds = "" if figure is None or figure.seconds is None else f", {figure.seconds:.0f} s"
                line.append("" if figure is None else f"{figure.recovery:.0f}%{seconds}")
        cells.append(tuple(line))
    methods = tuple(f"{method} (published)" for method in _PUBLISHED_METHODS) if published else ()
    return Table("Problems", "Solved runs and the median of seconds.", ("problem", *systems, *methods), tuple(cells))


def unsolved_table(rows: Sequence[Row], laws: dict[tuple[str, str], str]) -> Table:
    """The runs that did not find the law, with the expression of the smallest loss that they found."""
    cells = []
    for row in rows:
        if row.solved or row.law is None:
            continue
        best = row.laws[-1]
        cells.append(
            (
                row.job.problem,
                row.job.system,
                str(row.job.seed),
                "" if row.r2 is None else f"{row.r2:.6f}",
                f"{'yes' if row.numeric else 'no'}, {row.symbolic or '-'}",
                _cut(laws.get((row.job.set, row.job.problem), "")),
                _cut(best.text),
            )
        )
    return Table(
        "Not solved",
        "The law and the closest expression found (the smallest loss of the front). Verdicts: numeric, symbolic.",
        ("problem", "system", "seed", "R² of the chosen", "verdicts", "law", "closest found"),
        tuple(cells),
    )


def failure_table(rows: Sequence[Row]) -> Table:
    """The runs that crashed or were killed, and those whose two verdicts disagree."""
    cells = [
        (
            row.job.problem,
            row.job.system,
            str(row.job.seed),
            row.ended,
            _cut(row.words.splitlines()[-1] if row.words else ""),
        )
        for row in rows
        if row.ended != "done"
    ]
    cells += [
        (
            row.job.problem,
            row.job.system,
            str(row.job.seed),
            "verdicts disagree",
            f"numeric {'yes' if row.numeric else 'no'}, symbolic {row.symbolic}: {_cut(row.law.text)}",
        )
        for row in rows
        if row.disagree and row.law is not None
    ]
    return Table("Failed, killed, or in dispute", "", ("problem", "system", "seed", "how", "words"), tuple(cells))


def _with_noise(name: str, noise: float) -> str:
    return f"{name}, noise {noise:g}" if noise else name


def _short_seconds(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_CHARACTERS else f"{text[: _MAX_CHARACTERS - 1]}…"


# The figures


def wilson(hits: int, total: int) -> tuple[float, float]:
    """Wilson's 95% interval of a share; unlike the usual ± it is not empty for 20 of 20.

    >>> [round(end, 3) for end in wilson(20, 20)]
    [0.839, 1.0]
    """
    if not total:
        return 0.0, 1.0
    interval = binomtest(hits, total).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)


@dataclass(frozen=True)
class Group:
    """The runs of one system on one set (`problem` is "") or on one problem, at one level of noise."""

    set: str
    problem: str
    system: str
    noise: float
    rows: tuple[Row, ...]

    @property
    def solved(self) -> int:
        return sum(row.solved for row in self.rows)

    @property
    def recovery(self) -> float:
        return self.solved / len(self.rows)

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.solved, len(self.rows))

    @property
    def accurate(self) -> float:
        """The share of runs whose chosen law has R² > 0.99 on clean test points."""
        return sum(row.r2 is not None and row.r2 > _ACCURATE_R2 for row in self.rows) / len(self.rows)

    @property
    def seconds(self) -> float | None:
        """The median seconds of a run, solved or not; a run that failed counts with its time limit."""
        return statistics.median(_seconds(row) for row in self.rows) if self.rows else None

    @property
    def seconds_solved(self) -> float | None:
        """The median seconds of the runs that were solved."""
        times = [_seconds(row) for row in self.rows if row.solved]
        return statistics.median(times) if times else None

    @property
    def complexity(self) -> float | None:
        """The median complexity of the laws that were judged."""
        values = [row.law.complexity for row in self.rows if row.law is not None]
        return statistics.median(values) if values else None

    @property
    def failed(self) -> int:
        return sum(row.ended != "done" for row in self.rows)


def by_set(rows: Sequence[Row]) -> list[Group]:
    """One group for each set, noise and system, in the order of the rows."""
    return _groups(rows, lambda row: (row.job.set, "", row.job.system, row.job.noise))


def by_problem(rows: Sequence[Row]) -> list[Group]:
    """One group for each problem, noise and system, in the order of the rows."""
    return _groups(rows, lambda row: (row.job.set, row.job.problem, row.job.system, row.job.noise))


def _groups(rows: Iterable[Row], key: Callable[[Row], tuple[str, str, str, float]]) -> list[Group]:
    found: dict[tuple[str, str, str, float], list[Row]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return [Group(*names, tuple(members)) for names, members in found.items()]


def _by_set_and_noise(groups: Iterable[Group]) -> dict[tuple[str, float], list[Group]]:
    found: dict[tuple[str, float], list[Group]] = {}
    for group in groups:
        found.setdefault((group.set, group.noise), []).append(group)
    return found


def _seconds(row: Row) -> float:
    return row.seconds if row.seconds is not None else max(row.max_time, row.wall)


# Published figures


@dataclass(frozen=True)
class PublishedProblem:
    """A method's recovery on one problem, in percent, and its mean time in seconds where it is published."""

    method: str
    recovery: float
    seconds: float | None


@dataclass(frozen=True)
class PublishedSet:
    """A method's figures on a set: recovery and R² > 0.99 in percent, and mean seconds, where they are published."""

    method: str
    recovery: float | None
    r2: float | None
    seconds: float | None


def published_problem(problem: str) -> tuple[PublishedProblem, ...]:
    """The published figures for a problem, one of each method; none for problems that are not in the paper."""
    return tuple(
        PublishedProblem(row["method"], float(row["recovery_percent"]), _optional(row["seconds"]))
        for row in _rows("published_problems.csv")
        if row["problem"] == problem
    )


def published_set(name: str, noise: float = 0.0) -> tuple[PublishedSet, ...]:
    """The published figures for a set at a level of noise, one of each method."""
    key = f"{name}@{noise:g}" if name.startswith("srbench") else name
    figures: dict[str, dict[str, float]] = {}
    for row in _rows("published_sets.csv"):
        if row["set"] == key:
            figures.setdefault(row["method"], {})[row["figure"]] = float(row["value"])
    return tuple(
        PublishedSet(method, by.get("recovery_percent"), by.get("r2_above_0.99_percent"), by.get("seconds"))
        for method, by in figures.items()
    )


def _optional(text: str) -> float | None:
    return float(text) if text else None


@cache
def _rows(file: str) -> tuple[dict[str, str], ...]:
    with files("symenum.data").joinpath(file).open(encoding="utf-8") as lines:
        return tuple(csv.DictReader(lines))
