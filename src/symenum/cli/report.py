"""The report of `symenum fit` as one HTML page."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

from symenum.cli.results import Result
from symenum.cli.tables import Table

if TYPE_CHECKING:
    from symenum.watch import Report

__all__ = ["REPORT", "fit_report"]

REPORT = "report.html"


def fit_report(result: Result, table: Table, last: Report) -> str:
    """The page of a result, of the data behind it, and of the last step of its search."""
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
    run |= run_facts(result.stop_reason, last.elapsed, last.iteration, last.scored, last.message)
    laws = [LawRow(law.expression, law.complexity, law.loss, law.score) for law in result.laws]
    squared = result.settings.get("loss", "mse") == "mse"
    content = Content(
        result.target, laws, result.selected, evidence, last.front.floor, run, result.settings, squared=squared
    )
    return report_page(content)
