"""The report of `symenum fit` as one HTML page."""

from __future__ import annotations

import shlex
import sys

from symenum.cli.results import Course, Result
from symenum.cli.tables import Table

__all__ = ["REPORT", "fit_report"]

REPORT = "report.html"


def fit_report(result: Result, table: Table, course: Course) -> str:
    """The page of a result, of the data behind it, and of how its search went."""
    from symenum.report import Content, Evidence, LawRow, report_page, run_facts

    evidence = Evidence.of(
        table.X.to_numpy(dtype=float),
        table.y.to_numpy(dtype=float),
        result.names,
        result.columns,
        result.target,
        None if table.weights is None else table.weights.to_numpy(dtype=float),
    )
    run = {"command": shlex.join(["symenum", *sys.argv[1:]]), "data": result.source}
    run |= run_facts(result.stop_reason, course.elapsed, course.steps, course.scored, course.plan)
    laws = [LawRow(law.expression, law.complexity, law.loss, law.score) for law in result.laws]
    squared = result.settings.get("loss", "mse") == "mse"
    content = Content(
        result.target, laws, result.selected, evidence, course.floor, run, result.settings, squared=squared
    )
    return report_page(content)
