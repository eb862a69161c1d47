"""A run as the page gets it: plain values, laws as text and LaTeX, the names of the table as they stand in it.

Laws are made from text by our own parser; a law that it cannot read (with operators of the user's own) is shown as its
text only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from symenum.run_directory import LawRecord, Run, Status, TargetFront

__all__ = ["law_words", "snapshot", "summary"]

# Files that the page offers for download, where they are there.
DOWNLOADS = (
    *("report.html", "model.json", "front.csv", "law.py", "law.tex", "law.txt", "data.csv"),
    *("laws.txt", "fronts.csv", "system.py", "system.tex", "motion.json", "trajectories.png", "log.txt"),
    *("run.json", "front.json", "events.jsonl"),
)
_REMEMBERED = 4096  # laws whose text and LaTeX are remembered: several fronts of 200 laws


def summary(run: Run) -> dict[str, Any]:
    """A line of the list of runs."""
    front = next((one for one in run.fronts if one.laws), None)
    return {
        "id": run.folder.name,
        "name": run_name(run),
        "kind": run.kind,
        "status": run.status.value,
        "message": run.message,
        "target": ", ".join(run.targets),
        "rows": run.rows,
        "columns": len(run.variables),
        "created": run.created,
        "elapsed": run.elapsed,
        "best": None if front is None else _best(front),
    }


def snapshot(run: Run) -> dict[str, Any]:
    """All that the page shows of a run without being asked for a law."""
    ending = run.ending
    shown: dict[str, Any] = {
        **{name: value for name, value in summary(run).items() if name != "best"},
        "columns": [{"name": one.name, "label": one.column, "unit": None} for one in run.variables],
        "source": run.source,
        "settings": run.settings,
        "reason": ending.get("reason", ""),
        "time_left": _time_left(run),
        "max_time": run.max_time,
        "scored": run.scored,
        "rate": run.rate,
        "iteration": run.iteration,
        "move": run.move,
        "plan": run.plan,
        "errors": run.errors,
        "schedule": [
            {"move": one.move, "turns": one.turns, "seconds": one.seconds, "gain": one.gain} for one in run.schedule
        ],
        "confidence": _texts(ending.get("confidence")),
        "alternatives": _alternatives(ending.get("alternatives")),
        "refused": ending.get("refused") if isinstance(ending.get("refused"), dict) else {},
        "files": [name for name in DOWNLOADS if (run.folder / name).is_file()],
        "number": run.number,
    }
    if run.kind == "motion":
        shown["states"] = [{"name": one.target, "front": _laws(one), "selected": one.selected} for one in run.fronts]
    else:
        front = run.fronts[0] if run.fronts else TargetFront("")
        shown |= {"front": _laws(front), "selected": front.selected}
    return shown


def run_name(run: Run) -> str:
    """What a run is called: the name that it was given in the studio, or that of its folder."""
    name = run.details.get("name")
    return name if isinstance(name, str) and name else run.folder.name


def _time_left(run: Run) -> float | None:
    if run.max_time is None or run.status is not Status.RUNNING:
        return None
    return max(0.0, run.max_time - run.elapsed)


def _best(front: TargetFront) -> dict[str, Any]:
    law = front.laws[front.selected if front.selected is not None else -1]
    words = law_words(law.equation)
    return {**words, "loss": law.loss, "complexity": law.complexity}


def _laws(front: TargetFront) -> list[dict[str, Any]]:
    return [_law(index, law, front) for index, law in enumerate(front.laws)]


def _law(index: int, law: LawRecord, front: TargetFront) -> dict[str, Any]:
    return {
        "index": index,
        "complexity": law.complexity,
        "loss": law.loss,
        "score": law.score,
        "r2": front.r_squared(law),
        **law_words(law.equation),
    }


@lru_cache(maxsize=_REMEMBERED)
def _words(equation: str) -> tuple[str, str | None]:
    from symenum.display.table import short_text
    from symenum.expressions import parse, to_latex, written
    from symenum.expressions.render import SHOWN_DIGITS

    try:
        law = parse(equation)
        return short_text(law), to_latex(written(law), SHOWN_DIGITS)
    except (ValueError, RecursionError):  # operators of the user's own, or a file that was changed
        return equation, None


def law_words(equation: str) -> dict[str, Any]:
    """The law as text and as LaTeX, its constants rounded; LaTeX is None where our parser cannot read the law."""
    text, latex = _words(equation)
    return {"text": text, "latex": latex}


def _texts(value: object) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else []


def _alternatives(value: object) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        return []
    fine = [one for one in value if isinstance(one, Mapping) and isinstance(one.get("equation"), str)]
    return [
        {**law_words(one["equation"]), "weight": _number(one.get("weight")), "loss": _number(one.get("loss"))}
        for one in fine
    ]


def _number(value: object) -> float | None:
    fine = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if fine else None  # type: ignore[arg-type]
