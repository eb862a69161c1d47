"""`symenum resume`: goes on with a search from a checkpoint, of `symenum fit`, of `fit-ode`, or one made in Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from symenum.cli.fit import run_fit
from symenum.cli.fit_ode import run_fit_ode
from symenum.cli.messages import InputError, say, silent
from symenum.cli.options import parameter_option, parameter_options, was_given
from symenum.cli.outputs import CHECKPOINT, Model, prepare_folder
from symenum.cli.tables import ColumnChoice, Table, hold_out
from symenum.estimator.parameters import PARAMETERS
from symenum.estimator.saved_results import holds_laws_of_motion
from symenum.estimator.table_labels import TableLabels, labels_path, read_labels

__all__ = ["resume_command"]

_LAWS = "model.json"  # of a folder of results: the laws, from which no search can go on
_TARGET = "y"  # of a search that began in Python, where a target need not have a name


@click.command("resume", no_args_is_help=True)
@click.argument("saved", type=click.Path(path_type=Path, exists=True))
@parameter_option("max_time", default=None, help="Seconds to go on. [default: as before]")
@parameter_option("max_iterations", help="Steps, those before included. [default: as before]")
@click.option("--validation", type=click.Path(path_type=Path), help="A table of other rows to choose the law on.")
@parameter_option("model_selection", default=None, help="How the law is chosen. [default: as before]")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Folder for the results. [default: that of before]")
@click.option("--overwrite", is_flag=True, help="Write to --out even if it holds another run.")
@parameter_options("cluster")
@click.option("-q", "--quiet", is_flag=True, help="Print the law only.")
def resume_command(
    saved: Path,
    max_time: float | None,
    max_iterations: int | None,
    validation: Path | None,
    model_selection: str | None,
    out: Path | None,
    overwrite: bool,
    cluster: str | None,
    quiet: bool,
) -> None:
    """Go on with the search saved in SAVED: a folder of results, or a checkpoint file, also one made in Python.

    With an iteration limit and a seed the result is that of one search without a pause. Rows that were held out to
    choose the law are not saved: name them again with --validation, or choose by another rule.
    """
    path = saved / CHECKPOINT if saved.is_dir() else saved
    if saved.name == _LAWS:
        raise InputError(f"'{saved}' holds laws and no search: name its folder, or the checkpoint beside it.")
    if saved.is_dir() and holds_laws_of_motion(saved) and not path.exists():
        raise InputError(
            f"'{saved}' is a folder of symenum fit-ode of an older version, which kept no checkpoint: run symenum "
            "fit-ode again, with a longer --max-time."
        )
    if saved.is_dir() and not path.exists():
        raise InputError(
            f"The folder '{saved}' holds no {CHECKPOINT}: name a folder of --out, or the file of a --checkpoint. If a "
            "search there ended before it wrote one, start it again."
        )
    goes_on_there = saved.is_dir() and (out is None or out.resolve() == saved.resolve())
    out = out or (saved if saved.is_dir() else None)
    context = click.get_current_context()
    options = {"max_time": max_time, "max_iterations": max_iterations, "model_selection": model_selection}
    changes = {name: value for name, value in options.items() if was_given(context, name)}
    if _is_of_motion(path):
        if cluster is not None:
            raise click.UsageError("--cluster is for searches of symenum fit: laws of motion are found on one machine.")
        if validation is not None:
            raise click.UsageError(
                "--validation is for symenum fit: give trajectories to ODERegressor.resume in Python."
            )
        if out is not None:
            out = prepare_folder(out, overwrite=overwrite or goes_on_there)
        run_fit_ode(None, changes, out=out, quiet=quiet, checkpoint=path)
        return
    if cluster is not None:
        changes["cluster"] = cluster
    table, settings, source, is_array = _read_checkpoint(path, changes)
    table, validation_table = hold_out(table, ColumnChoice(), silent if quiet else say, validation)
    if validation_table is None and settings["model_selection"] == "validation":
        raise click.UsageError(
            "The law is to be chosen on rows that were held out, and these are not saved: name them with "
            "--validation FILE, or another rule with --model-selection."
        )
    if out is not None:
        out = prepare_folder(out, overwrite=overwrite or goes_on_there)
    run_fit(
        table,
        settings,
        out=out,
        quiet=quiet,
        source=source,
        make_model=lambda callbacks, run_dir=None, **settings: _ResumedSearch(
            path, {**changes, "callbacks": callbacks, "run_dir": run_dir}, is_array
        ),
        validation=validation_table,
    )


def _is_of_motion(path: Path) -> bool:
    """Whether the file is the checkpoint of a search for laws of motion."""
    from symenum.search.checkpoint import MOTION_FORMAT, format_of

    try:
        return format_of(path) == MOTION_FORMAT
    except OSError:
        return False  # what is wrong with it is said when it is read


def _read_checkpoint(path: Path, changes: dict[str, Any]) -> tuple[Table, dict[str, Any], str, bool]:
    """The table of the fit, the parameters of PSERegressor, the file of the table, and whether X was an array."""
    import pandas

    from symenum import PSERegressor
    from symenum.estimator.grouped_files import with_labels
    from symenum.estimator.persistence import open_checkpoint

    try:
        found = open_checkpoint(path, changes, list(PSERegressor().get_params()), with_data=True)
    except ValueError as error:
        hint = "" if labels_path(path).exists() else " A search with code of your own goes on with PSERegressor.resume."
        raise InputError(f"{error}.{hint}") from error
    data = found.data
    if data is None:
        raise InputError(f"'{path}' has come without its data: go on with PSERegressor.resume.")
    names = data.variables
    try:
        labels = read_labels(path, len(names)) or TableLabels(_TARGET, data.columns or names, str(path))
    except ValueError as error:
        raise InputError(f"{error}: go on with PSERegressor.resume.") from error
    weights = None if data.weight is None else pandas.Series(data.weight)
    y = pandas.Series(data.y, name=labels.target)
    y_error = None if data.y_error is None else pandas.Series(data.y_error)
    x_error = None if data.x_error is None else pandas.DataFrame(data.x_error, columns=list(names))
    frame = pandas.DataFrame(data.X, columns=list(names))
    groups = found.checkpoint.about.get("groups")
    frame = frame if groups is None else with_labels(frame, groups)
    table = Table(frame, y, weights, labels.target, labels.columns, y_error, x_error, labels.encoding)
    rule = PARAMETERS["model_selection"].default
    parameters = {"random_state": None, "model_selection": rule, "max_time": None, **found.parameters}
    return table, parameters, labels.source, data.columns is None


@dataclass(frozen=True)
class _ResumedSearch:
    """What `run_fit` takes for an estimator: its `fit` goes on from a checkpoint, with the data beside it.

    `is_array`: the search began with an array, so that rows to choose the law on must come as one, too.
    """

    path: Path
    changes: Mapping[str, Any]
    is_array: bool

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **held_out: Any) -> Model:
        from symenum import PSERegressor

        validation = held_out.get("validation")
        if validation is not None and self.is_array:
            validation = (validation[0].to_numpy(), *validation[1:])
        model: Model = PSERegressor.resume(self.path, validation=validation, **self.changes)
        return model
