"""Reports of measured tables, as R² against size, and of noisy laws that are judged by their error.

The figures of a table are medians over its splits, as those that SRBench has published; figures of a set are medians
and means over its tables. Which law a system chose is the row's; nothing is judged here.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from symenum.bench.jobs import Row
from symenum.bench.judge.errors import MAX_ERROR_RATIO
from symenum.bench.problems import MissingDataError, get_set
from symenum.bench.problems.measured import published_tables
from symenum.display.html import Table
from symenum.display.svg import Dot, labelled_dots

__all__ = ["error_tables", "is_error_row", "is_measured_row", "measured_plots", "measured_tables"]

_LOWEST_R2 = -1.0  # a mean must not be that of one table: lower R², undefined laws and failed runs count as this
_BAD_R2 = -0.1  # below, a law is worse than the mean of the training rows by more than chance
_MAX_CHARACTERS = 110  # of a law in a table
_PUBLISHED_METHODS = ("Operon", "XGB", "RandomForest")  # columns of the table of tables; eleven would be too wide


def is_measured_row(row: Row) -> bool:
    """Whether a row is of a set of measured tables."""
    return _rule(row.job.set) == "held out"


def is_error_row(row: Row) -> bool:
    """Whether a row is of a set whose laws are judged by their error."""
    return _rule(row.job.set) == "clean error"


def _rule(name: str) -> str:
    try:
        return get_set(name).protocol.rule
    except ValueError:  # a set of a plugin that is not here
        return ""


# Measured tables


@dataclass(frozen=True)
class _Figures:
    """A method on the tables of a set: R² of the chosen law and of the best on the front, size and seconds."""

    method: str
    r2: tuple[float, ...]  # of each table
    size: float | None  # median
    seconds: float | None  # median
    best: tuple[float, ...] = ()  # of each table
    gap: float | None = None  # mean over the runs of best - chosen
    worst: float | None = None  # over all runs, not bounded
    bad: int = 0  # runs
    failed: int = 0  # runs


def measured_tables(rows: Sequence[Row]) -> list[Table]:
    """What was reached on measured tables: by set and system, by table, and the chosen laws."""
    rows = [row for row in rows if is_measured_row(row)]
    if not rows:
        return []
    return [_size_table(rows), _by_table(rows), _law_table(rows)]


def _size_table(rows: Sequence[Row]) -> Table:
    cells = [
        (
            f"{name}: {group}" if group else name,
            figures.method,
            str(len(figures.r2)),
            f"{statistics.median(figures.r2):.3f}",
            f"{statistics.fmean(figures.r2):.3f}",
            f"{statistics.fmean(figures.best):.3f}" if figures.best else "",
            _number(figures.gap, "{:.3f}"),
            _number(figures.worst, "{:.3g}"),
            str(figures.bad or ""),
            _number(figures.size, "{:g}"),
            _number(figures.seconds, "{:.3g}"),
            str(figures.failed or ""),
        )
        for name, group, part in _parts(rows)
        for figures in [*_own_figures(part, rows), *_published_figures(part)]
    ]
    note = (
        "R² of the chosen law on held-out rows. A table's R² is the median over its splits; the set's median and mean "
        f"are over tables. R² below {_LOWEST_R2:g}, laws that are not defined on a held-out row and failed runs count "
        f"as {_LOWEST_R2:g}, except under worst, which is the lowest R² of all runs as it is. best: the mean of the "
        "best R² of any law on the front; gap: the mean over runs of best - chosen. bad: runs "
        f"with R² below {_BAD_R2:g} (where the system linear was run too: only those where it is above 0). size: the "
        "median complexity of laws, or nodes of trees. Published: medians of SRBench over ten splits, other machines, "
        "hours for some, sizes counted by SymPy."
    )
    columns = (
        *("set", "system", "tables", "R² median", "R² mean", "best", "gap", "worst", "bad"),
        *("size", "seconds", "failed"),
    )
    return Table("R² against size", note, columns, tuple(cells))


def measured_plots(rows: Sequence[Row]) -> list[str]:
    """Pictures of the median R² against the median size, one for each set and group.

    A line is the front of a system: at each size the median R² of the most accurate laws up to that size.
    """
    rows = [row for row in rows if is_measured_row(row)]
    plots = []
    for name, group, part in _parts(rows):
        title = f"{name}{f', {group}' if group else ''}: median R² on held-out rows against size"
        dots = [
            Dot(figures.method, max(figures.size, 1.0), statistics.median(figures.r2), published="(" in figures.method)
            for figures in [*_own_figures(part, rows), *_published_figures(part)]
            if figures.size is not None
        ]
        systems = dict.fromkeys(row.job.system for row in part)
        lines = {system: _front_line([row for row in part if row.job.system == system]) for system in systems}
        lines = {system: line for system, line in lines.items() if len(line) > 1}
        plots.append(labelled_dots(title, dots, lines, "size (complexity, nodes of trees)", "median R²"))
    return plots


def _front_line(rows: Sequence[Row]) -> list[tuple[float, float]]:
    """Sizes, and at each the median over tables of the R² of the most accurate law that is not larger."""
    sizes = sorted({law.complexity for row in rows for law in row.laws})
    line = []
    for size in sizes:
        of_tables = _over_tables(rows, lambda row, size=size: _r2_up_to(row, size))  # type: ignore[misc]
        line.append((max(float(size), 1.0), statistics.median(of_tables)))
    return line


def _r2_up_to(row: Row, size: int) -> float:
    """The R² on test points of the law with the smallest training loss that is not larger than this."""
    allowed = [i for i, law in enumerate(row.laws) if law.complexity <= size]
    if not allowed:
        return 0.0  # as a constant has
    return _bounded(row.test_r2[min(allowed, key=lambda i: row.laws[i].loss)])


def _own_figures(part: Sequence[Row], rows: Sequence[Row]) -> list[_Figures]:
    lines = {_run(row): row.r2 for row in rows if row.job.system == "linear"}
    found = []
    for system in dict.fromkeys(row.job.system for row in part):
        own = [row for row in part if row.job.system == system]
        fronts = any(len(row.laws) > 1 for row in own)
        sizes = [row.complexity for row in own if row.complexity is not None]
        seconds = [row.seconds for row in own if row.seconds is not None]
        bad = [row for row in own if _bounded(row.r2) < _BAD_R2 and (lines.get(_run(row), 1.0) or 0.0) > 0]
        found.append(
            _Figures(
                system,
                tuple(_over_tables(own, lambda row: _bounded(row.r2))),
                statistics.median(sizes) if sizes else None,
                statistics.median(seconds) if seconds else None,
                tuple(_over_tables(own, lambda row: _bounded(row.best_r2))) if fronts else (),
                statistics.fmean(_bounded(row.best_r2) - _bounded(row.r2) for row in own) if fronts else None,
                min(-math.inf if row.r2 is None else row.r2 for row in own),
                len(bad),
                sum(row.ended != "done" for row in own),
            )
        )
    return found


def _published_figures(part: Sequence[Row]) -> list[_Figures]:
    """What is published for the tables of these rows, method by method, the best first."""
    tables = {row.job.problem for row in part}
    published = [figure for figure in published_tables() if figure.table in tables]
    found = []
    for method in dict.fromkeys(figure.method for figure in published):
        own = [figure for figure in published if figure.method == method]
        found.append(
            _Figures(
                f"{method} (published)",
                tuple(max(figure.r2, _LOWEST_R2) for figure in own),
                statistics.median(figure.size for figure in own),
                statistics.median(figure.seconds for figure in own),
                worst=min(figure.r2 for figure in own),
            )
        )
    return sorted(found, key=lambda figures: -statistics.median(figures.r2))


def _by_table(rows: Sequence[Row]) -> Table:
    systems = list(dict.fromkeys(row.job.system for row in rows))
    published = {(figure.table, figure.method): figure for figure in published_tables()}
    methods = [method for method in _PUBLISHED_METHODS if any((row.job.problem, method) in published for row in rows)]
    cells = []
    for key in dict.fromkeys((row.job.set, row.job.problem) for row in rows):
        line = [key[1]]
        for system in systems:
            own = [row for row in rows if (row.job.set, row.job.problem) == key and row.job.system == system]
            line.append(_of_splits(own))
        for method in methods:
            figure = published.get((key[1], method))
            line.append("" if figure is None else f"{figure.r2:.3f} ({figure.size:g})")
        cells.append(tuple(line))
    return Table(
        "Tables",
        "Medians over the splits: R² of the chosen law, its size in brackets, and after a slash the best R² of any law "
        "on the front.",
        ("table", *systems, *(f"{method} (published)" for method in methods)),
        tuple(cells),
    )


def _of_splits(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    sizes = [row.complexity for row in rows if row.complexity is not None]
    size = f" ({statistics.median(sizes):g})" if sizes else ""
    best = statistics.median(_bounded(row.best_r2) for row in rows)
    front = f" / {best:.3f}" if any(len(row.laws) > 1 for row in rows) else ""
    return f"{statistics.median(_bounded(row.r2) for row in rows):.3f}{size}{front}"


def _law_table(rows: Sequence[Row]) -> Table:
    cells = []
    for row in rows:
        if len(row.laws) < 2:  # the line and the trees
            continue
        law = row.laws[row.selected]
        best = "-" if row.best_r2 is None else f"{row.best_r2:.3f}"
        r2 = "not defined" if row.r2 is None else f"{row.r2:.3f}"
        cells.append(
            (row.job.problem, row.job.system, str(row.job.seed), r2, best, str(law.complexity), _cut(law.text))
        )
    columns = ("table", "system", "seed", "R²", "best", "size", "law")
    return Table("Chosen laws", "R² on held-out rows, and the best of any law on the front.", columns, tuple(cells))


def _parts(rows: Sequence[Row]) -> Iterable[tuple[str, str, list[Row]]]:
    """Each set as a whole (group ""), and each of its groups where it has several."""
    for name in dict.fromkeys(row.job.set for row in rows):
        own = [row for row in rows if row.job.set == name]
        yield name, "", own
        groups = _groups(name)
        names = list(dict.fromkeys(groups.get(row.job.problem, "") for row in own))
        if len(names) > 1:
            for group in names:
                yield name, group, [row for row in own if groups.get(row.job.problem, "") == group]


def _groups(name: str) -> dict[str, str]:
    """The groups of a set's tables; none where the tables are not here."""
    try:
        return {problem.name: str(getattr(problem, "group", "")) for problem in get_set(name).problems()}
    except MissingDataError:
        return {}


def _over_tables(rows: Sequence[Row], value: Callable[[Row], float]) -> list[float]:
    """The median of a value over the splits of each table."""
    tables: dict[str, list[float]] = {}
    for row in rows:
        tables.setdefault(row.job.problem, []).append(value(row))
    return [statistics.median(values) for values in tables.values()]


def _run(row: Row) -> tuple[str, str, int, float]:
    return row.job.set, row.job.problem, row.job.seed, row.job.noise


def _bounded(r2: float | None) -> float:
    return _LOWEST_R2 if r2 is None else max(r2, _LOWEST_R2)


# Noisy laws, judged by their error


def error_tables(rows: Sequence[Row]) -> list[Table]:
    """How many laws are about as good as the true form fitted to the same rows: by system, and law by law."""
    rows = [row for row in rows if is_error_row(row)]
    if not rows:
        return []
    cells = []
    for name, system in dict.fromkeys((row.job.set, row.job.system) for row in rows):
        own = [row for row in rows if (row.job.set, row.job.system) == (name, system)]
        fronts = [row for row in own if row.error_ratios]
        marked = sum(row.solved for row in own)
        best = sum(_within(row.best_error_ratio) for row in fronts)
        strict = sum(_within(row.error_ratio, math.sqrt(MAX_ERROR_RATIO)) for row in fronts)
        ratios = [math.inf if row.error_ratio is None else row.error_ratio for row in fronts]
        seconds = [row.seconds for row in own if row.seconds is not None]
        sizes = [row.complexity for row in own if row.complexity is not None]
        cells.append(
            (
                name,
                system,
                f"{marked} of {len(own)} ({100 * marked / len(own):.0f}%)",
                f"{best} of {len(own)} ({100 * best / len(own):.0f}%)" if fronts else "",
                str(strict) if fronts else "",
                f"{statistics.median(ratios):.3g}" if ratios else "",
                f"{statistics.median(sizes):g}" if sizes else "",
                _number(statistics.median(seconds) if seconds else None, "{:.3g}"),
                str(sum(row.ended != "done" for row in own) or ""),
            )
        )
    summary = Table(
        "Errors against the clean truth",
        f"Runs whose error on fresh clean points is at most {MAX_ERROR_RATIO:g} times that of the true form with its "
        "constants fitted to the same noisy rows; errors are root mean squares. On the front: any law of it. "
        "Strict: of the chosen laws, those whose mean square error is at most 3 times as large. Ratio: the median.",
        ("set", "system", "chosen", "on the front", "strict", "ratio", "size", "seconds", "failed"),
        tuple(cells),
    )
    return [summary, _error_law_table(rows)]


def _error_law_table(rows: Sequence[Row]) -> Table:
    cells = [
        (
            row.job.problem,
            row.job.system,
            str(row.job.seed),
            "yes" if row.solved else "no",
            _number(row.error_ratio, "{:.3g}"),
            _number(row.best_error_ratio, "{:.3g}"),
            "" if row.complexity is None else str(row.complexity),
            _cut(row.laws[row.selected].text) if row.laws else "",
        )
        for row in rows
    ]
    columns = ("problem", "system", "seed", "close", "ratio", "best ratio", "size", "law")
    return Table("Noisy laws", "Errors of the chosen law, and of the best on the front.", columns, tuple(cells))


def _within(ratio: float | None, limit: float = MAX_ERROR_RATIO) -> bool:
    return ratio is not None and ratio <= limit


def _number(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_CHARACTERS else f"{text[: _MAX_CHARACTERS - 1]}…"
