"""The report of a fit as one HTML page: no script, no network, and nothing of the user's is markup."""

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
    Evidence,
    LawOnRows,
    fit_figure,
    front_figure,
    law_on_rows,
    residual_figure,
)
from symenum.display.html import Markup, Table, html_page, html_table
from symenum.display.rows import LawRow
from symenum.display.svg import svg_figure
from symenum.expressions import Expression, mathml_equation, to_latex, to_mathml, to_text

__all__ = ["Content", "installed_version", "report_page", "run_facts"]

_DIGITS = 4  # of constants in formulas; the law to copy has them all
_MOST_COLUMNS = 60  # of the data that are listed


@dataclass(frozen=True)
class Content:
    """All that the page says. `floor`: losses up to it are zero up to rounding. `run`: how the law was found.

    `squared`: whether the loss is the mean squared error; of another loss there is no R².
    """

    target: str
    laws: Sequence[LawRow]
    selected: int
    evidence: Evidence | None
    floor: float = 0.0
    run: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    squared: bool = True

    @property
    def law(self) -> LawRow:
        return self.laws[self.selected]

    @property
    def loss_name(self) -> str:
        return "mean squared error" if self.squared else "loss"


def report_page(content: Content) -> str:
    """The page, as text of one HTML file."""
    body = [f"<h1>A law for {escape(content.target)}</h1>", _chosen(content)]
    if content.evidence is None:
        body.append("<p>The data are not with the model: no summary of them, and no plot of the fit.</p>")
        body.append(f'<div class="plots">{_front_plot(content)}</div>')
    else:
        fitted = law_on_rows(content.law.expression, content.evidence)
        figures = (fit_figure(fitted, content.target), residual_figure(fitted, content.target))
        plots = (_front_plot(content), *map(svg_figure, figures))
        body.append(f'<div class="plots">{"".join(plots)}</div>')
        body += [f"<p>{escape(note)}</p>" for note in _notes(content.evidence, fitted)]
    body.append(html_table(_front_table(content)))
    if content.evidence is not None:
        body.append(html_table(_data_table(content.evidence)))
    body.append(html_table(Table("How it was found", "", ("", ""), tuple(content.run.items()))))
    settings = tuple((name, str(value)) for name, value in content.settings.items())
    body.append(html_table(Table("Settings", "", ("setting", "value"), settings)))
    return html_page(f"A law for {content.target}", "".join(body))


def _chosen(content: Content) -> str:
    law = content.law
    facts = f"{content.loss_name.capitalize()} {law.loss:.4g}, complexity {law.complexity}"
    explained = _explained(law.loss, content.evidence) if content.squared else ""
    return (
        f'<div class="law wide">{mathml_equation(content.target, law.expression, _DIGITS)}</div>'
        f"<p>{escape(facts + explained)}. With every digit, to copy:</p>"
        f"<p><code>{escape(to_text(law.expression))}</code></p>"
        f"<p>In LaTeX: <code>{escape(to_latex(law.expression, _DIGITS))}</code></p>"
    )


def _explained(loss: float, evidence: Evidence | None) -> str:
    if evidence is None or not 0 < evidence.variance < np.inf:
        return ""
    rest = loss / evidence.variance
    return f", R² = {1 - rest:.4f}" if rest > 1e-4 else f", R² = 1 - {rest:.1g}"


def _front_plot(content: Content) -> str:
    return svg_figure(front_figure(content.laws, content.selected, content.floor, content.loss_name))


def _notes(evidence: Evidence, fitted: LawOnRows) -> list[str]:
    notes = []
    if evidence.rows > len(evidence.y):
        notes.append(f"The plots show {len(evidence.y)} of {evidence.rows} rows, evenly spaced.")
    if fitted.undefined:
        notes.append(f"At {fitted.undefined} of these rows the law has no finite value; they are not drawn.")
    return notes


def _front_table(content: Content) -> Table:
    return Table(
        "The front",
        "Each law is more accurate than all simpler ones; the chosen one is marked. Score: how fast the logarithm of "
        "the loss falls with complexity.",
        ("complexity", "loss", "score", content.target),
        tuple((*law.numbers(), _formula(law.expression)) for law in content.laws),
        content.selected,
    )


def _formula(expression: Expression) -> Markup:
    return Markup(f'<math displaystyle="true"><mrow>{to_mathml(expression, _DIGITS)}</mrow></math>')


def _data_table(evidence: Evidence) -> Table:
    listed = [evidence.target, *evidence.variables][:_MOST_COLUMNS]
    count = len(evidence.variables)
    left = count + 1 - len(listed)
    more = f" {left} further columns are not listed." if left else ""
    return Table(
        "The data",
        f"{evidence.rows} rows, {count} variable{'s' * (count != 1)}. The first line is the target.{more}",
        ("column", "in the law", "least", "median", "greatest", "distinct values"),
        tuple(_data_cells(one) for one in listed),
    )


def _data_cells(one: ColumnSummary) -> tuple[str, ...]:
    numbers = (f"{value:.6g}" for value in (one.least, one.median, one.most))
    return (one.column, one.name, *numbers, str(one.distinct))


def run_facts(reason: str, seconds: float, steps: int, scored: int, plan: str) -> dict[str, str]:
    """What a report says of a run; versions, machine and date are those of now."""
    versions = [f"{package} {installed_version(package)}" for package in ("symenum", "torch")]
    return {
        "ended": reason,
        "time": f"{seconds:.1f} s",
        "steps": str(steps),
        "candidates that the network scored": f"{scored:.4g}",
        "network": plan,
        "versions": ", ".join([f"Python {platform.python_version()}", *versions]),
        "machine": f"{platform.system()} {platform.machine()}",
        "written": datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
    }


def installed_version(package: str) -> str:
    """The version of a package, in words where it is used from its source."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "from source"
