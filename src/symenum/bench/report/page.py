"""A report of rows: Markdown, and one HTML page that needs nothing else."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from symenum.bench.report.summary import Group, by_problem, by_set
from symenum.bench.report.tables import failure_table, problem_table, set_table, unsolved_table
from symenum.bench.rows import Row
from symenum.display.html import Table, html_page, html_table, inline, markdown_table
from symenum.display.svg import bars, points, steps
from symenum.problems import MissingDataError, get_set

__all__ = ["html_report", "markdown_report"]

_MOST_FRONTS = 6


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
    return [
        set_table(by_set(rows)),
        problem_table(by_problem(rows)),
        unsolved_table(rows, _laws(rows)),
        failure_table(rows),
    ]


def _laws(rows: Sequence[Row]) -> dict[tuple[str, str], str]:
    """The laws of the problems, where their set can be read here."""
    laws: dict[tuple[str, str], str] = {}
    for name in dict.fromkeys(row.job.set for row in rows):
        try:
            problems = get_set(name).problems()
        except (MissingDataError, ValueError):
            continue
        laws |= {(name, problem.name): str(problem.expression) for problem in problems}
    return laws


def _plots(rows: Sequence[Row]) -> list[str]:
    sets = by_set(rows)
    several = len({(group.set, group.noise) for group in sets}) > 1
    shares = {
        f"{name}{f' {noise:g}' if noise else ''}": {
            group.system: (group.recovery, *group.interval)
            for group in sets
            if (group.set, group.noise) == (name, noise)
        }
        for name, noise in dict.fromkeys((group.set, group.noise) for group in sets)
    }
    plots = [bars("Recovery with 95% intervals", shares, "recovered")] if several else []
    for name, noise in dict.fromkeys((group.set, group.noise) for group in sets):
        members = [group for group in sets if (group.set, group.noise) == (name, noise)]
        title = f"{name}{f', noise {noise:g}' if noise else ''}: recovered within a time"
        plots.append(steps(title, {group.system: _growth(group) for group in members}, "seconds", "recovered"))
    return plots + _fronts(rows)


def _growth(group: Group) -> list[tuple[float, float]]:
    times = sorted(row.seconds for row in group.rows if row.solved and row.seconds is not None)
    growth = [(seconds, (i + 1) / len(group.rows)) for i, seconds in enumerate(times)]
    end = max([*times, *(row.max_time for row in group.rows)])
    return [*growth, (end, growth[-1][1] if growth else 0.0)]


def _fronts(rows: Sequence[Row]) -> list[str]:
    """Pictures of fronts, of the problems that took longest."""
    first: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        if row.laws and not row.job.noise:
            first.setdefault((row.job.set, row.job.problem), {}).setdefault(row.job.system, row)
    hardest = sorted(first, key=lambda key: -max(row.seconds or 0.0 for row in first[key].values()))[:_MOST_FRONTS]
    return [
        points(
            f"Front of {problem}",
            {
                system: [
                    (law.complexity, max(law.loss, 1e-32))
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
