"""The report of a fit of laws of motion as one HTML page: no script, no network, no text of the user's as markup."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from symenum.display.figures import Figure, Series, front_figure
from symenum.display.html import Markup, Table, html_page, html_table
from symenum.display.report import run_facts
from symenum.display.svg import svg_figure
from symenum.display.table import LawRow, rows_of
from symenum.dynamics.derivatives import local_fit
from symenum.dynamics.display import START_WINDOW, left_side
from symenum.dynamics.trajectory import Piece
from symenum.estimator.persistence import json_parameters
from symenum.expressions import Expression, to_mathml, to_text, written
from symenum.expressions.render import SHOWN_DIGITS

if TYPE_CHECKING:
    from symenum.dynamics.regressor import ODERegressor

__all__ = ["motion_report"]

Array = npt.NDArray[np.float64]

_MOST_POINTS = 600  # of a curve: more than a screen has columns for a plot of its width
_MEASURED, _SIMULATED = 0, 1  # indices of colours


def motion_report(model: ODERegressor) -> str:
    """The page: the text of one HTML file."""
    states = model.state_names_
    title = f"Laws of motion of {', '.join(states)}"
    body = [f"<h1>{escape(title)}</h1>", _chosen_laws(model)]
    body.append(f"<p>In LaTeX: <code>{escape(model.latex())}</code></p>")
    if model.shared_parts_:
        listed = "; ".join(str(part) for part in model.shared_parts_)
        body.append(f"<p>{escape(f'Terms that stand in several laws: {listed}.')}</p>")
    piece = max(model._of_fit, key=len)
    body.append(f'<div class="plots">{"".join(map(svg_figure, _motion_figures(model, piece)))}</div>')
    body += [html_table(table) for table in _tables_of_choice(model)]
    for state in states:
        rows, chosen = rows_of(model.fronts_[state]), model.selected_[state]
        body.append(f'<div class="plots">{svg_figure(front_figure(rows, chosen, f"loss of {state}"))}</div>')
        body.append(html_table(_front_table(model, state, rows, chosen)))
    reason = "; ".join(f"{state}: {why}" for state, why in model.stop_reason_.items())
    facts = run_facts(reason, model.elapsed_, model.n_iter_, model.scored_, "one search for each state")
    body.append(html_table(Table("How they were found", "", ("", ""), tuple(facts.items()))))
    settings = tuple((name, str(value)) for name, value in json_parameters(model.get_params(deep=False)).items())
    body.append(html_table(Table("Settings", "", ("setting", "value"), settings)))
    return html_page(title, "".join(body))


def _chosen_laws(model: ODERegressor) -> str:
    lines = []
    for state, law in model.best_expressions_.items():
        left = escape(left_side(state, model._kind))
        lines.append(f'<div class="law wide"><code>{left} =</code> {_formula(law)}</div>')
        lines.append(f"<p><code>{left} = {escape(to_text(law))}</code></p>")
    return "".join(lines)


def _motion_figures(model: ODERegressor, piece: Piece) -> list[Figure]:
    """For each state the samples of the longest trajectory, and what the laws make of its start."""
    inputs = piece.U if piece.U.size and not model._measured else None
    if model.step == "map":
        times, name = piece.t[1:], "one step ahead"
        followed = model.predict(piece.X[:-1], None if inputs is None else inputs[:-1])
    else:
        begin = local_fit(piece.t, piece.X, START_WINDOW)
        start = begin.values[0] if model.order == 1 else np.concatenate([begin.values[0], begin.first[0]])
        times, name = piece.t, "simulated from the start"
        own = None if not model.input_names_ else piece.U[:, : len(model.input_names_)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a motion that blows up is seen in the plot
            followed = model.simulate(start, piece.t, own)
    figures = []
    for i, state in enumerate(model.state_names_):
        stride = max(1, len(piece.t) // _MOST_POINTS)
        measured = Series("measured", piece.t[::stride], piece.X[::stride, i], colour=_MEASURED)
        line = Series(name, times[::stride], followed[::stride, i], dots=False, joined="straight", colour=_SIMULATED)
        figures.append(Figure(f"{state}: measured, and {name}", "time", state, (measured, line)))
    return figures


def _tables_of_choice(model: ODERegressor) -> list[Table]:
    """Noise, constants with their errors, and laws that the trajectories cannot tell from the chosen ones."""
    tables = []
    if model.noise_:
        rows = tuple((state, f"errors of {noise}") for state, noise in model.noise_.items())
        tables.append(Table("Errors of the samples", "As measured, not as told.", ("state", "errors"), rows))
    if model.trajectories_ is None:
        return tables
    moving = zip(model._moving, model.trajectories_.chi_square, strict=True)
    chi = tuple((state, f"{value:.4g}") for state, value in moving)
    note = "Mean squared residuals of the fitted motion in units of the samples' errors: about 1 for the truth."
    tables.append(Table("The fit to the trajectories", note, ("state", "chi-square"), chi))
    constants = tuple(
        (row.state, f"{row.value:.8g}", f"{row.error:.2g}") for row in model.constants_.itertuples(index=False)
    )
    note = "From left to right in each law, as fitted."
    tables.append(
        Table("Constants and their standard errors", note, ("state", "constant", "standard error"), constants)
    )
    others = tuple(
        (row.state, str(row.equation), f"{row.bits:.2f}", f"{row.weight:.3f}")
        for row in model.alternatives_.itertuples(index=False)
    )
    note = "Laws that the trajectories cannot tell from the chosen one; bits are those that the whole grows by."
    tables.append(Table("Alternatives", note, ("state", "law", "bits", "weight"), others))
    return tables


def _front_table(model: ODERegressor, state: str, rows: Sequence[LawRow], chosen: int) -> Table:
    shown = tuple((*row.numbers(), _formula(row.expression)) for row in rows)
    left = left_side(state, model._kind)
    note = "Each law is more accurate than all simpler ones, on averaged derivatives; the chosen one is marked."
    return Table(f"The front of {left}", note, ("complexity", "loss", "score", left), shown, chosen)


def _formula(law: Expression) -> Markup:
    return Markup(f'<math displaystyle="true"><mrow>{to_mathml(written(law), SHOWN_DIGITS)}</mrow></math>')
