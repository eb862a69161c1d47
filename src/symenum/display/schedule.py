"""What a search did when: one row for each move, as a DataFrame and as text."""

from __future__ import annotations

import pandas

from symenum.search.state import State

__all__ = ["schedule_table", "schedule_text"]


def schedule_table(state: State) -> pandas.DataFrame:
    """The moves in the order of their first turns.

    `turns`; `seconds` and their `share` of all; `first` and `last`: seconds from the start of the search to the begin
    of the first and of the last turn; `gain`: decades by which the move has lowered the front, averaged over all
    complexities; `error`: why it had to end.
    """
    total = sum(record.seconds for record in state.records) or 1.0
    rows = []
    for record in state.records:
        begins = [turn.began for turn in state.history if turn.move == record.move]
        rows.append(
            {
                "move": record.move,
                "turns": record.turns,
                "seconds": record.seconds,
                "share": record.seconds / total,
                "first": min(begins, default=float("nan")),
                "last": max(begins, default=float("nan")),
                "gain": record.gain,
                "error": record.error,
            }
        )
    columns = ["move", "turns", "seconds", "share", "first", "last", "gain", "error"]
    return pandas.DataFrame(rows, columns=columns)


def schedule_text(table: pandas.DataFrame) -> str:
    """The table as `symenum fit --explain` prints it."""
    lines = [f"{'move':34s}{'turns':>6s}{'seconds':>9s}{'share':>7s}{'first':>8s}{'last':>8s}{'gain':>8s}"]
    for row in table.itertuples():
        times = f"{row.first:8.1f}{row.last:8.1f}"
        lines.append(f"{row.move:34s}{row.turns:6d}{row.seconds:9.2f}{row.share:7.0%}{times}{row.gain:8.3f}")
        if row.error:
            lines.append(f"  failed: {row.error}")
    return "\n".join(lines)
