"""The report of a fit as one HTML page: no script, no network, and no text of the user's is read as markup."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from html import escape
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from symenum.display.figures import (
    ColumnSummary,
    DataSummary,
    LawOnRows,
    fit_figure,
    front_figure,
    law_on_rows,
    residual_figure,
)
from symenum.display.html import Markup, Table, html_page, html_table
from symenum.display.svg import svg_figure
from symenum.display.table import LawRow, r_squared_text, weighted_loss_text
from symenum.expressions import Expression, mathml_equation, to_latex, to_mathml, to_text
from symenum.expressions.render import SHOWN_DIGITS
from symenum.version import __version__

__all__ = ["ReportContent", "installed_version", "report_page", "run_facts"]

_MAX_COLUMNS = 60  # columns of the data in the table: about two screens


@dataclass(frozen=True)
class ReportContent:
    """All that the page says.

    `run`: how the law was found, as names and texts. `squared`: the loss is the mean squared error, from which R²
    follows. `errors`: the numbers of the chosen law that are no integers, from left to right, each with its standard
    error; None where they are not to be shown. `confidence`: sentences on how sure the choice is. `weighted_by_errors`:
    the target has errors, by which rows count in the loss.
    """

    target: str
    laws: Sequence[LawRow]
    selected: int
    data: DataSummary | None
    run: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    squared: bool = True
    errors: Sequence[tuple[float, float]] | None = None
    confidence: Sequence[str] = ()
    weighted_by_errors: bool = False

    @property
    def law(self) -> LawRow:
        return self.laws[self.selected]

    @property
    def loss_name(self) -> str:
        return "mean squared error" if self.squared else "loss"


def report_page(content: ReportContent) -> str:
    """The page: the text of one HTML file."""
    body = [f"<h1>A law for {escape(content.target)}</h1>", _chosen_law(content)]
    if content.data is None:
        body.append("<p>The data are not with the model: no summary of them, and no plot of the fit.</p>")
        body.append(f'<div class="plots">{_front_plot(content)}</div>')
    else:
        fitted = law_on_rows(content.law.expression, content.data)
        figures = (fit_figure(fitted, content.target), residual_figure(fitted, content.target))
        plots = (_front_plot(content), *map(svg_figure, figures))
        body.append(f'<div class="plots">{"".join(plots)}</div>')
        body += [f"<p>{escape(note)}</p>" for note in _notes(content.data, fitted)]
    if content.errors is not None:
        body.append(html_table(_errors_table(content.errors)))
    body.append(html_table(_front_table(content)))
    if content.data is not None:
        body.append(html_table(_data_table(content.data)))
    body.append(html_table(Table("How it was found", "", ("", ""), tuple(content.run.items()))))
    settings = tuple((name, str(value)) for name, value in content.settings.items())
    body.append(html_table(Table("Settings", "", ("setting", "value"), settings)))
    return html_page(f"A law for {content.target}", "".join(body))


def _chosen_law(content: ReportContent) -> str:
    law = content.law
    facts = f"{content.loss_name.capitalize()} {law.loss:.4g}, complexity {law.complexity}"
    if content.squared and content.data is not None and 0 < content.data.variance < np.inf:
        facts += f", {r_squared_text(law.loss / content.data.variance)}"
    sure = "".join(f"<p>{escape(sentence)}</p>" for sentence in content.confidence)
    return (
        f'<div class="law wide">{mathml_equation(content.target, law.written, SHOWN_DIGITS)}</div>{sure}'
        f"<p>{escape(facts)}. With every digit, to copy:</p>"
        f"<p><code>{escape(to_text(law.written))}</code></p>"
        f"<p>In LaTeX: <code>{escape(to_latex(law.written, SHOWN_DIGITS))}</code></p>"
    )


def _front_plot(content: ReportContent) -> str:
    return svg_figure(front_figure(content.laws, content.selected, content.loss_name))


def _notes(data: DataSummary, fitted: LawOnRows) -> list[str]:
    notes = []
    if data.rows > len(data.y):
        notes.append(f"The plots show {len(data.y)} of {data.rows} rows, evenly spaced.")
    if fitted.undefined:
        notes.append(f"At {fitted.undefined} of these rows the law has no finite value; they are not drawn.")
    return notes


def _front_table(content: ReportContent) -> Table:
    note = (
        "Each law is more accurate than all simpler ones; the chosen one is marked. Score: how fast the logarithm of "
        "the loss falls with complexity."
    )
    if content.weighted_by_errors:
        note += f" {weighted_loss_text(content.target, squared=content.squared)}"
    return Table(
        "The front",
        note,
        ("complexity", "loss", "score", content.target),
        tuple((*law.numbers(), _formula(law.written)) for law in content.laws),
        content.selected,
    )


def _errors_table(errors: Sequence[tuple[float, float]]) -> Table:
    note = "From left to right in the law. An error is infinite where the data do not determine the constant."
    return Table(
        "Constants and their standard errors",
        note if errors else "The law has no fitted constants.",
        ("constant", "standard error"),
        tuple((f"{value:.8g}", f"{error:.2g}") for value, error in errors),
    )


def _formula(expression: Expression) -> Markup:
    return Markup(f'<math displaystyle="true"><mrow>{to_mathml(expression, SHOWN_DIGITS)}</mrow></math>')


def _data_table(data: DataSummary) -> Table:
    listed = [data.target, *data.variables][:_MAX_COLUMNS]
    count = len(data.variables)
    unlisted = count + 1 - len(listed)
    more = f" {unlisted} further columns are not listed." if unlisted else ""
    return Table(
        "The data",
        f"{data.rows} rows, {count} variable{'s' * (count != 1)}. The first line is the target.{more}",
        ("column", "in the law", "least", "median", "greatest", "distinct values"),
        tuple(_data_cells(column) for column in listed),
    )


def _data_cells(summary: ColumnSummary) -> tuple[str, ...]:
    numbers = (f"{value:.6g}" for value in (summary.minimum, summary.median, summary.maximum))
    return (summary.column, summary.name, *numbers, str(summary.distinct))


def run_facts(reason: str, seconds: float, steps: int, scored: int, plan: str) -> dict[str, str]:
    """What a report says of a run; versions, machine and date are those of this moment."""
    versions = f"Python {platform.python_version()}, symenum {__version__}, torch {installed_version('torch')}"
    return {
        "ended": reason,
        "time": f"{seconds:.1f} s",
        "steps": str(steps),
        "candidates that the network scored": f"{scored:.4g}",
        "network": plan,
        "versions": versions,
        "machine": f"{platform.system()} {platform.machine()}",
        "written": datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
    }


def installed_version(package: str) -> str:
    """The version of an installed package; "from source" for one that is used without being installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "from source"
