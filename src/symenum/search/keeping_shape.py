"""The front of the laws that keep the shape that the user knows, chosen when a search has ended.

While it runs, the front holds what fits best, since a law that breaks the shape may be on the way to one that keeps it.
The runners-up of such a search are laws that keep it, as far as a quick look tells (`step`). Here all of them are
looked at closely, and make the front of the result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from symenum.expressions.candidate import Candidate
from symenum.front import Front
from symenum.search.problem import Task
from symenum.search.state import State

__all__ = ["Kept", "keeping_shape"]


@dataclass(frozen=True)
class Kept:
    """The front, and how many laws were kept off it, by what they break.

    Where no law keeps the shape, the front is as it was, and nothing is counted.
    """

    front: Front
    refused: dict[str, int]


def keeping_shape(task: Task, front: Front, state: State) -> Kept:
    """The front of the laws of a search that keep the shape; `front`: that of the search."""
    shape, max_complexity = task.settings.shape, task.settings.max_complexity
    if shape is None:
        return Kept(front, {})
    refused: Counter[str] = Counter()
    possible: list[Candidate] = []
    for law in [*front, *_on_all_rows(task, state.runners_up)]:
        broken = shape.seen_broken(law.expression)
        refused.update(f"not {text}" for text in broken)
        possible += [] if broken else [law]
    while possible:
        found = replace(front, entries=()).update(possible, max_complexity)
        wrong = {entry.expression for entry in found if shape.broken(entry.expression)}
        if not wrong:
            return Kept(found, dict(refused))
        refused.update(f"not {text}" for law in wrong for text in shape.broken(law))
        possible = [law for law in possible if law.expression not in wrong]
    return Kept(front, {})


def _on_all_rows(task: Task, laws: Iterable[Candidate]) -> list[Candidate]:
    return [judged for law in laws if (judged := task.judge(law)) is not None]
