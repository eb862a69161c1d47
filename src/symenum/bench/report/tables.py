"""The tables of a report, as headings and cells; `page` writes them as Markdown or HTML."""

from __future__ import annotations

from collections.abc import Sequence

from symenum.bench.published import PublishedSet, published_problem, published_set
from symenum.bench.report.summary import Group
from symenum.bench.rows import Row
from symenum.display.html import Table

__all__ = ["failure_table", "problem_table", "set_table", "unsolved_table"]

_SHORT = 110
_METHODS = ("PSE", "PySR", "Operon")  # of the nine published, those that fit beside ours


def set_table(groups: Sequence[Group]) -> Table:
    """One line for each set, level of noise and system; after them the published ones."""
    cells: list[tuple[str, ...]] = []
    for name, noise in dict.fromkeys((group.set, group.noise) for group in groups):
        members = [group for group in groups if (group.set, group.noise) == (name, noise)]
        for group in members:
            low, high = group.interval
            cells.append(
                (
                    _with_noise(name, noise),
                    group.system,
                    f"{group.solved} of {len(group.rows)}",
                    f"{100 * group.recovery:.1f}% ({100 * low:.0f} to {100 * high:.0f})",
                    _seconds(group.seconds),
                    _seconds(group.seconds_solved),
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
    seconds = "" if figure.seconds is None else f"{_seconds(figure.seconds)} (mean)"
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
            line.append("" if group is None else f"{group.solved} of {len(group.rows)}, {_seconds(group.seconds)} s")
        if published:
            by_method = {figure.method: figure for figure in published_problem(key[1])}
            for method in _METHODS:
                figure = by_method.get(method)
                seconds = "" if figure is None or figure.seconds is None else f", {figure.seconds:.0f} s"
                line.append("" if figure is None else f"{figure.recovery:.0f}%{seconds}")
        cells.append(tuple(line))
    methods = tuple(f"{method} (published)" for method in _METHODS) if published else ()
    return Table("Problems", "Solved runs and the median of seconds.", ("problem", *systems, *methods), tuple(cells))


def unsolved_table(rows: Sequence[Row], laws: dict[tuple[str, str], str]) -> Table:
    """The runs that did not find the law, with the closest expression that they have."""
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


def _seconds(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def _cut(text: str) -> str:
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 1]}…"
