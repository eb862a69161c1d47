"""Reports of laws of motion: how many trajectories they reproduce, and how many have the true form."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from symenum.bench.jobs import Row
from symenum.bench.problems import get_set
from symenum.display.html import Table

__all__ = ["is_motion_row", "motion_tables"]

_MAX_CHARACTERS = 160  # of the laws of a system in a table


def is_motion_row(row: Row) -> bool:
    """Whether a row is about laws of motion: also that of a run that failed."""
    return row.motion is not None or _rule(row.job.set) == "motion"


def _rule(name: str) -> str:
    try:
        return get_set(name).protocol.rule
    except ValueError:  # a set of a plugin that is not here
        return ""


def motion_tables(rows: Sequence[Row]) -> list[Table]:
    """The shares by set, noise and system, and the chosen laws of each problem."""
    rows = [row for row in rows if is_motion_row(row)]
    return [_share_table(rows), _law_table(rows)] if rows else []


def _share_table(rows: Sequence[Row]) -> Table:
    groups: dict[tuple[str, float, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.job.set, row.job.noise, row.job.system), []).append(row)
    cells = [_share_line(*key, group) for key, group in groups.items()]
    note = (
        "Shares of the runs. reproduced: from the start of the fitted run, R² above 0.9 on every state, without noise; "
        "second start: the same for a run that was not fitted. Chaotic motion is judged on its first Lyapunov time. "
        "form: every law has the structure of the true one; equations: the share of single equations. Failed runs "
        "count as not reproduced. Noise is multiplicative."
    )
    columns = ("set", "noise", "system", "runs", "reproduced", "second start", "form", "equations", "seconds", "failed")
    return Table("Laws of motion", note, columns, tuple(cells))


def _share_line(name: str, noise: float, system: str, rows: Sequence[Row]) -> tuple[str, ...]:
    verdicts = [row.motion for row in rows if row.motion is not None]
    equations = sum(len(row.laws) for row in rows)
    seconds = [row.seconds for row in rows if row.seconds is not None]
    return (
        name,
        f"{noise:g}",
        system,
        str(len(rows)),
        _percent(sum(verdict.reproduced for verdict in verdicts), len(rows)),
        _percent(sum(verdict.second for verdict in verdicts), len(rows)),
        _percent(sum(verdict.form for verdict in verdicts), len(rows)),
        _percent(sum(verdict.forms for verdict in verdicts), equations),
        f"{statistics.median(seconds):.3g}" if seconds else "",
        str(sum(row.ended != "done" for row in rows) or ""),
    )


def _percent(count: int, total: int) -> str:
    return f"{100 * count / total:.1f}%" if total else ""


def _law_table(rows: Sequence[Row]) -> Table:
    cells = tuple(
        (
            row.job.problem,
            f"{row.job.noise:g}",
            row.job.system,
            str(row.job.seed),
            _r2(row.motion.r2 if row.motion else None),
            _r2(row.motion.second_r2 if row.motion else None),
            "yes" if row.motion is not None and row.motion.form else "no",
            _cut("; ".join(law.text for law in row.laws)),
        )
        for row in rows
    )
    columns = ("problem", "noise", "system", "seed", "R²", "R² second", "form", "chosen laws")
    return Table("Systems in motion", "R² is the worst of all states; - where the laws end early.", columns, cells)


def _r2(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_CHARACTERS else f"{text[: _MAX_CHARACTERS - 1]}…"
