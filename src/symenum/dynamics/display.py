"""How laws of motion are shown: tables, LaTeX, source code (Python, NumPy, C), progress, and plots of trajectories.

The renderers of tables, terminals and figures are those of `symenum.display`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas

from symenum.display.figures import COLOURS
from symenum.display.notebook import front_html
from symenum.display.plots import new_panels
from symenum.display.progress import Observer, Title, observer_for_estimator
from symenum.display.table import equations_table, rows_of, terminal_width, text_table
from symenum.dynamics.derivatives import local_fit
from symenum.dynamics.modelica import modelica_model
from symenum.dynamics.selection import Judged
from symenum.dynamics.shared_parts import SharedPart
from symenum.dynamics.trajectory import make_map_pieces, make_pieces
from symenum.expressions import Expression, to_c, to_latex, to_numpy_source, to_python, written
from symenum.expressions.render import latex_name
from symenum.front import Front
from symenum.selection import rule_while_searching

if TYPE_CHECKING:
    from symenum.dynamics.regressor import ODERegressor

__all__ = [
    "FIELD",
    "LANGUAGES",
    "MAP",
    "RULE_IF_HELD_OUT",
    "START_WINDOW",
    "law_table",
    "left_side",
    "plot_trajectories",
    "print_system",
    "system_html",
    "system_latex",
    "system_source",
    "title_of",
    "watching",
]

LANGUAGES = ("python", "numpy", "c", "scipy", "modelica")
"""Languages of `system_source`."""
MAP = 0
"""What stands for the order of a map, whose laws give the next state and no derivative."""
FIELD = -1
"""What stands for the order of a field, whose derivative by time is one of several."""
RULE_IF_HELD_OUT = "mdl"
"""The rule that marks a law while the search runs, where held-out blocks decide at its end."""
START_WINDOW = 15
"""Samples that the start of a simulation is smoothed over: by trial, see benchmarks/constants.py."""

_DOTS, _LINE = COLOURS[:2]
_PANEL_HEIGHT, _MARGINS = 1.6, 1.4  # inches: of each state's panel, and of title and axis together


def law_table(front: Front, judged: Judged, names: Sequence[str]) -> pandas.DataFrame:
    """PSERegressor's columns, and the measures of each law: held-out loss, chi-square, bits, indistinguishable."""
    table = equations_table(rows_of(front), names)
    table.insert(2, "heldout_loss", judged.heldout)
    table.insert(3, "chi_square", judged.chi_square)
    table.insert(4, "bits", judged.bits)
    table.insert(5, "indistinguishable", judged.indistinguishable)
    return table


def print_system(
    fronts: Mapping[str, Front],
    judged: Sequence[Judged],
    chosen: Sequence[int],
    order: int,
    shared: Sequence[SharedPart] = (),
) -> str:
    """One table for each state; `~` marks laws that the data cannot tell from the chosen one (row `chosen`).

    A last line says so where there is such a law, and lines before it name terms that stand in several chosen laws.
    """
    parts = []
    for (name, front), judge, selected in zip(fronts.items(), judged, chosen, strict=True):
        table = text_table(rows_of(front), selected, width=terminal_width(), alike=judge.indistinguishable)
        parts.append(f"{left_side(name, order)} =\n{table}")
    if shared:
        parts.append("\n".join(["In several laws:", *(f"  {one}" for one in shared)]))
    marked = (alike for judge, row in zip(judged, chosen, strict=True) for alike in _others(judge, row))
    if any(marked):
        parts.append("~ marks laws that the data cannot tell from the chosen one.")
    return "\n\n".join(parts)


def _others(judge: Judged, chosen: int) -> list[bool]:
    """For each law but the chosen one, whether the data cannot tell it from the chosen one."""
    return [bool(alike) for i, alike in enumerate(judge.indistinguishable) if i != chosen]


def system_html(fronts: Mapping[str, Front], chosen: Sequence[int], order: int) -> str:
    """One table for each state, for the output of a cell of a notebook; the chosen law (row `chosen`) is bold."""
    pairs = zip(fronts.items(), chosen, strict=True)
    return "".join(front_html(rows_of(front), row, left_side(name, order)) for (name, front), row in pairs)


def left_side(state: str, order: int) -> str:
    """The derivative of a state in text, or its next value.

    >>> left_side("x", 1), left_side("q", 2), left_side("n", MAP), left_side("u", FIELD)
    ("x'", "q''", 'n(t+1)', 'u_t')
    """
    if order == FIELD:
        return f"{state}_t"
    return f"{state}(t+1)" if order == MAP else state + "'" * order


def system_latex(laws: Mapping[str, Expression], order: int, precision: int) -> str:
    """The laws as one aligned LaTeX environment (package amsmath)."""
    lines = []
    for name, law in laws.items():
        if order == FIELD:
            left = latex_name(left_side(name, order))
        else:
            left = f"{latex_name(name)}(t+1)" if order == MAP else latex_name(name, dots=order)
        lines.append(f"{left} &= {to_latex(written(law), precision)}")
    return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"


def system_source(
    laws: Mapping[str, Expression], names: Sequence[str], language: str, order: int, start: Mapping[str, float]
) -> str:
    """The system as source text in one of LANGUAGES.

    In Python and C one function for each law, f1, f2, …, of all variables, and `system` that calls them; "scipy" adds
    `solve`. `names`: the states (for order 2 positions, then velocities), then the inputs. `start`: where a model
    starts that must say it.
    """
    if language not in LANGUAGES:
        raise ValueError(f"language must be one of {', '.join(map(repr, [*LANGUAGES, 'latex']))}, not {language!r}")
    if order == MAP and language in ("scipy", "modelica"):
        raise ValueError(f'language "{language}" is for laws of motion in time: a map is a function to call again')
    if language == "modelica":
        return modelica_model(laws, names, order, start)
    write = {"python": to_python, "numpy": to_numpy_source, "scipy": to_numpy_source, "c": to_c}[language]
    head: list[str] = []
    bodies: list[str] = []
    for i, law in enumerate(laws.values()):
        lines = write(law, names, f"f{i + 1}").rstrip("\n").splitlines()
        first = next(at for at, line in enumerate(lines) if f"f{i + 1}(" in line)
        head += [line for line in _blocks(lines[:first]) if line not in head]
        bodies.append("\n".join(lines[first:]))
    count = len(laws)
    if language == "c":
        return "\n\n".join([*head, *bodies, _c_system(count, len(names), order)]) + "\n"
    parts = [*head, *bodies, _python_system(count, len(names), order)]
    if language == "scipy":
        parts[0] = f"{parts[0]}\nfrom scipy.integrate import solve_ivp"
        parts.append(_scipy_solve(count * order, names))
    return "\n\n\n".join(parts) + "\n"


def _blocks(lines: Sequence[str]) -> list[str]:
    """The parts between empty lines: imports and helpers."""
    text = "\n".join(lines)
    return [block.strip("\n") for block in text.split("\n\n") if block.strip()]


def _scipy_solve(count: int, names: Sequence[str]) -> str:
    """A function that integrates the system; with inputs it takes a function of time that gives them."""
    states, inputs = ", ".join(names[:count]), names[count:]
    parameter = ", u" if inputs else ""
    right = "lambda t, state: system(t, state, u(t))" if inputs else "system"
    lines = [
        f"def solve(start, times{parameter}, **options):",
        f'    """The states ({states}) at the times: an array (times, states).',
    ]
    if inputs:
        lines += ["", f"    u(t) gives the inputs ({', '.join(inputs)}) at a time."]
    else:
        lines += ["", "    `options` go to scipy.integrate.solve_ivp."]
    return "\n".join(
        [
            *lines,
            '    """',
            '    options = {"rtol": 1e-8, "atol": 1e-10, **options}',
            f"    done = solve_ivp({right}, (times[0], times[-1]), start, t_eval=times, **options)",
            "    if not done.success:",
            "        raise RuntimeError(done.message)",
            "    return done.y.T",
        ]
    )


def _python_system(laws: int, names: int, order: int) -> str:
    count = laws * max(1, order)
    if order == MAP:
        parameter, arguments = (", u=()", "*state, *u") if names > count else ("", "*state")
        values = ", ".join(f"f{i + 1}({arguments})" for i in range(laws))
        return f"def next_state(state{parameter}):\n    return [{values}]"
    parameter = ", u=()" if names > count else ""
    arguments = "*state, *u" if names > count else "*state"
    values = ", ".join(f"f{i + 1}({arguments})" for i in range(laws))
    moving = f"*state[{laws}:], " if order == 2 else ""
    return f"def system(t, state{parameter}):\n    return [{moving}{values}]"


def _c_system(laws: int, names: int, order: int) -> str:
    count = laws * max(1, order)
    arguments = ", ".join([f"state[{i}]" for i in range(count)] + [f"u[{i}]" for i in range(names - count)])
    if order == MAP:
        lines = ["void next_state(const double *state, const double *u, double *next) {"]
        lines += [] if names > count else ["    (void)u;"]
        return "\n".join([*lines, *(f"    next[{i}] = f{i + 1}({arguments});" for i in range(laws)), "}"])
    lines = ["void system_derivative(double t, const double *state, const double *u, double *derivative) {"]
    lines += ["    (void)t;", *([] if names > count else ["    (void)u;"])]
    if order == 2:
        lines += [f"    derivative[{i}] = state[{laws + i}];" for i in range(laws)]
    first = laws if order == 2 else 0
    lines += [f"    derivative[{first + i}] = f{i + 1}({arguments});" for i in range(laws)]
    return "\n".join([*lines, "}"])


# Progress of a search


def title_of(order: int) -> Title:
    """Gives the left side of the laws of a SystemReport, for laws of this order."""
    return lambda report: left_side(getattr(report, "state", ""), order)


def watching(model: ODERegressor) -> Observer:
    """The observer for the model's `verbose`: terminal, notebook or none."""
    rule = rule_while_searching(model.model_selection, RULE_IF_HELD_OUT)
    return observer_for_estimator(title_of(model._kind), rule, model.max_time, verbose=model.verbose, several=True)


# Trajectories


def plot_trajectories(model: ODERegressor, X: object, t: object, u: object = None) -> Any:
    """One panel for each state: the samples as dots, the laws simulated from the start of each piece as lines.

    X, t and u are what `fit` takes. Gives the figure; save it with `figure.savefig("trajectories.png")`.
    """
    count = len(model.state_names_)
    X, u = model.in_order_of_fit(X, u)
    if model.step == "map":
        return _plot_map(model, X, t, u)
    panels = new_panels(count, _PANEL_HEIGHT * count + _MARGINS)
    for piece in make_pieces(X, t, u):
        # A simulation from the first sample would follow its noise.
        begin = local_fit(piece.t, piece.X, START_WINDOW)
        start = begin.values[0] if model.order == 1 else np.concatenate([begin.values[0], begin.first[0]])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a motion that blows up is seen in the plot
            simulated = model.simulate(start, piece.t, piece.U if piece.U.size else None)
        for i, panel in enumerate(panels):
            panel.plot(piece.t, piece.X[:, i], ".", markersize=3, color=_DOTS, alpha=0.5)
            panel.plot(piece.t, simulated[:, i], linewidth=1.2, color=_LINE)
    for panel, name in zip(panels, model.state_names_, strict=True):
        panel.set_ylabel(name)
    labels = ["measured", "simulated from the start of each piece"]
    panels[0].figure.legend(panels[0].lines[:2], labels, loc="outside upper center", ncols=2)  # inside it hides peaks
    panels[-1].set_xlabel("time")
    return panels[0].figure


def _plot_map(model: ODERegressor, X: object, t: object, u: object) -> Any:
    """As `plot_trajectories`, with what the laws say from each sample to the next: chaos would not stay on the line."""
    count = len(model.state_names_)
    panels = new_panels(count, _PANEL_HEIGHT * count + _MARGINS)
    for piece in make_map_pieces(X, t, u):
        following = model.predict(piece.X[:-1], piece.U[:-1] if piece.U.size else None)
        for i, panel in enumerate(panels):
            panel.plot(piece.t, piece.X[:, i], ".", markersize=3, color=_DOTS, alpha=0.5)
            panel.plot(piece.t[1:], following[:, i], linewidth=1.2, color=_LINE)
    for panel, name in zip(panels, model.state_names_, strict=True):
        panel.set_ylabel(name)
    panels[0].figure.legend(panels[0].lines[:2], ["measured", "one step ahead"], loc="outside upper center", ncols=2)
    panels[-1].set_xlabel("time")
    return panels[0].figure
