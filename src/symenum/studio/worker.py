"""One search of the studio, as a process of its own: python -m symenum.studio.worker FOLDER.

FOLDER holds request.json, which the server has checked and written: the table, its columns and the parameters. What is
said goes to the log of the run; everything else is written by the same code as for `symenum fit --out` and
`symenum fit-ode --out`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from symenum.cli.fit import run_fit
from symenum.cli.fit_ode import Columns, choose_trajectories, run_fit_ode
from symenum.cli.messages import say
from symenum.cli.outputs import CHECKPOINT, write_labels
from symenum.cli.tables import ColumnChoice, choose_columns
from symenum.core.files import write_whole
from symenum.estimator.parameters import PARAMETERS
from symenum.estimator.table_labels import TableLabels
from symenum.run_directory import REQUEST
from symenum.studio.answers import RequestError
from symenum.studio.tables import read_table

__all__ = ["COLUMN_PARAMETERS", "MOTION_PARAMETERS", "main", "motion_parameters", "search_parameters"]

COLUMN_PARAMETERS = ("weights", "y_error", "x_error", "one_hot", "missing")
"""Parameters of a request that choose columns of the table; all others are those of PSERegressor."""
MOTION_PARAMETERS: Mapping[str, Any] = {
    **{"order": 1, "derivative": "weak", "model_selection": "trajectories", "trajectory": None},
    **{name: PARAMETERS[name].default for name in ("max_iterations", "max_complexity")},
    "system_complexity": None,
}
"""Parameters of a request for laws of motion, with their defaults; `trajectory` names a column."""
# Parameters that a page may not set: they name files or code, or belong to the worker.
_NOT_FROM_PAGES = frozenset({"checkpoint", "run_dir", "callbacks", "verbose", "warm_start", "missing"})


def search_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of PSERegressor among those of a request; ValueError for one that there is not."""
    chosen = {name: value for name, value in parameters.items() if name not in COLUMN_PARAMETERS}
    unknown = sorted(set(chosen) - (set(PARAMETERS) - _NOT_FROM_PAGES))
    if unknown:
        raise ValueError(f"parameters: there is no {unknown[0]!r:.40}; there are {', '.join(PARAMETERS)}")
    for name, value in chosen.items():
        constraint = PARAMETERS[name].constraint
        if constraint is not None and not constraint.allows(value):
            raise ValueError(f"{name} must be {constraint.words}, not {value!r:.40}")
    return chosen


def motion_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a search for laws of motion; ValueError for one that there is not."""
    unknown = sorted(set(parameters) - set(MOTION_PARAMETERS))
    if unknown:
        raise ValueError(f"parameters: there is no {unknown[0]!r:.40}; there are {', '.join(MOTION_PARAMETERS)}")
    return dict(parameters)


def main(folder: Path) -> None:
    """Read the request and search."""
    request = json.loads((folder / REQUEST).read_text(encoding="utf-8"))
    frame = read_table(Path(request["path"]), say)
    if request["kind"] == "motion":
        _search_motion(folder, request, frame)
    else:
        _search_law(folder, request, frame)


def _search_motion(folder: Path, request: Mapping[str, Any], frame: Any) -> None:
    parameters = motion_parameters(request.get("parameters") or {})
    trajectory = parameters.pop("trajectory", None)
    columns = Columns(request["time"], tuple(request["targets"]), tuple(request["inputs"]), trajectory=trajectory)
    found = choose_trajectories(frame, columns, say, "The table")
    used = [request["time"], *([] if trajectory is None else [trajectory]), *found.columns]
    write_whole(folder / "data.csv", frame[used].to_csv(index=False))
    settings = {
        **MOTION_PARAMETERS,
        **parameters,
        "operators": request["operators"],
        "max_time": request["max_time"],
        "random_state": request.get("random_state"),
    }
    settings.pop("trajectory")
    run_fit_ode(found, settings, out=folder, source=request["source"])


def _search_law(folder: Path, request: Mapping[str, Any], frame: Any) -> None:
    parameters = request.get("parameters") or {}
    choice = ColumnChoice(
        target=request["target"],
        features=tuple(request["inputs"]) or None,
        weights=parameters.get("weights"),
        missing=parameters.get("missing", "drop"),
        y_error=parameters.get("y_error"),
        x_error=tuple(parameters.get("x_error", ())),
        one_hot=tuple(parameters.get("one_hot", ())),
    )
    table = choose_columns(frame, choice, say, "The table")
    columns = {**table.X, table.target: table.y}
    write_whole(folder / "data.csv", type(table.X)(columns).to_csv(index=False))
    write_labels(folder / CHECKPOINT, TableLabels(table.target, table.columns, request["source"], table.encoding))
    settings = {
        "model_selection": PARAMETERS["model_selection"].default,
        **search_parameters(parameters),
        "operators": request["operators"],
        "max_time": request["max_time"],
        "random_state": request.get("random_state"),
    }
    run_fit(table, settings, out=folder, source=request["source"])


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except RequestError as error:
        print(error.sentence, file=sys.stderr)
        sys.exit(2)
