"""A fit of ODERegressor in the folder of a run: who writes the folder, what it says, and what it holds at the end."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pandas

from symenum.core.files import write_whole
from symenum.dynamics.display import RULE_IF_HELD_OUT, left_side
from symenum.dynamics.system import System
from symenum.dynamics.trajectory import Piece
from symenum.estimator.persistence import json_parameters, run_place
from symenum.estimator.saved_results import MOTION_MODEL
from symenum.expressions import Expression
from symenum.run_directory import RUN, NoRunWriter, RunFacts, RunPlace, RunWriter
from symenum.run_directory.trajectories import Trajectory, write_trajectories
from symenum.selection import rule_while_searching

if TYPE_CHECKING:
    from symenum.dynamics.regressor import ODERegressor

REPORT = "report.html"
"""The page about the fit, in the folder of a run."""

__all__ = ["REPORT", "end_motion_run", "law_lines", "open_motion_run", "result_texts"]


def open_motion_run(
    model: ODERegressor, pieces: Sequence[Piece], system: System, stop: Callable[[], object], elapsed_before: float
) -> RunWriter | NoRunWriter:
    """Who writes the folder of the fit: nobody without `run_dir`. An error where the folder holds another run.

    `elapsed_before`: seconds of the search that this one goes on with.
    """
    place = run_place(model.run_dir)
    if place is None:
        return NoRunWriter()
    if place.results and (place.path / RUN).exists() and elapsed_before == 0:
        raise ValueError(
            f"run_dir: '{place.path}' holds a run already: name another folder, or go on with that run by "
            f"ODERegressor.resume('{place.path}')"
        )
    try:
        write_trajectories(place.path, [Trajectory(piece.t, piece.X, piece.U) for piece in pieces])
    except OSError as error:
        why = error.strerror or error
        if isinstance(error, (PermissionError, NotADirectoryError, FileExistsError)):
            raise ValueError(f"run_dir: the folder '{place.path}' cannot be written ({why}): name another") from error
        warnings.warn(
            f"run_dir: the trajectories could not be written to '{place.path}' ({why})", RuntimeWarning, stacklevel=3
        )
    rule = rule_while_searching(model.model_selection, RULE_IF_HELD_OUT)
    return RunWriter(place.path, _facts(model, pieces, system, place, elapsed_before), rule, stop)


def _facts(
    model: ODERegressor, pieces: Sequence[Piece], system: System, place: RunPlace, elapsed_before: float
) -> RunFacts:
    names = model._names
    variables = (*names.variables, *names.accelerations)
    # The names of the table are those of states and inputs; derivatives have none but that in formulas.
    of_table = dict(zip((*names.states, *names.inputs), place.columns, strict=False))
    return RunFacts(
        kind="motion",
        targets=names.states,
        variables=tuple((name, of_table.get(name, name)) for name in variables),
        rows=sum(map(len, pieces)),
        settings=json_parameters(model.get_params(deep=False)),
        variances=tuple(equation.variance for equation in system.equations),
        source=place.source,
        max_time=model.max_time,
        elapsed_before=elapsed_before,
        details={
            "motion": {
                "inputs": list(names.inputs),
                "velocities": list(names.velocities),
                "accelerations": list(names.accelerations),
                "step": model.step,
            }
        },
    )


def end_motion_run(writer: RunWriter | NoRunWriter, model: ODERegressor) -> None:
    """Write the results where the folder is the estimator's own, and say how the search ended."""
    place = run_place(model.run_dir)
    if place is None:
        return
    if place.results:
        for name, text in result_texts(model).items():
            write_whole(place.path / name, text)
        model.report(place.path / REPORT)
    writer.finish(
        model.fronts_,
        model.selected_,
        reason="; ".join(f"{name}: {reason}" for name, reason in model.stop_reason_.items()),
        interrupted=model.interrupted_,
        elapsed=model.elapsed_,
    )


def result_texts(model: ODERegressor) -> dict[str, str]:
    """The result as files, by their names: laws, fronts, and the system as source code and in LaTeX."""
    tables = [table.drop(columns=["sympy_format", "lambda_format"]) for table in model.equations_.values()]
    fronts = pandas.concat(tables, keys=model.equations_, names=["state", "row"]).reset_index()
    texts = {
        "laws.txt": f"{law_lines(model)}\n",
        "fronts.csv": fronts.to_csv(index=False),
        "system.tex": f"{model.latex()}\n",
        MOTION_MODEL: model.saved_text(),
    }
    # Laws that are coupled by accelerations have no explicit form.
    return texts if model.coupled else {**texts, "system.py": str(model.export("python"))}


def law_lines(model: ODERegressor, write: Callable[[Expression], str] = str) -> str:
    """One line for each law, with all digits unless `write` rounds them."""
    return "\n".join(f"{left_side(name, model._kind)} = {write(law)}" for name, law in model.best_expressions_.items())
