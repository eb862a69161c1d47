"""`symenum resume`: goes on with a search from the checkpoint of `symenum fit --out DIR` or `--checkpoint FILE`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from symenum.cli.fit import run_fit
from symenum.cli.messages import InputError, say, silent
from symenum.cli.options import parameter_option, was_given
from symenum.cli.outputs import CHECKPOINT, Labels, Model, prepare_folder, read_labels
from symenum.cli.tables import ColumnChoice, Table, hold_out
from symenum.estimator.parameters import PARAMETERS

__all__ = ["resume_command"]


@click.command("resume", no_args_is_help=True)
@click.argument("saved", type=click.Path(path_type=Path, exists=True))
@parameter_option("max_time", default=None, help="Seconds to go on. [default: as before]")
@parameter_option("max_iterations", help="Steps, those before included. [default: as before]")
@click.option("--validation", type=click.Path(path_type=Path), help="A table of other rows to choose the law on.")
@parameter_option("model_selection", default=None, help="How the law is chosen. [default: as before]")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Folder for the results. [default: that of before]")
@click.option("-q", "--quiet", is_flag=True, help="Print the law only.")
def resume_command(
    saved: Path,
    max_time: float | None,
    max_iterations: int | None,
    validation: Path | None,
    model_selection: str | None,
    out: Path | None,
    quiet: bool,
) -> None:
    """Go on with the search saved in SAVED: a folder of results, or a checkpoint file.

    With an iteration limit and a seed the result is that of one search without a pause. Rows that were held out to
    choose the law are not saved: name them again with --validation, or choose by another rule.
    """
    path = saved / CHECKPOINT if saved.is_dir() else saved
    out = out or (saved if saved.is_dir() else None)
    context = click.get_current_context()
    options = {"max_time": max_time, "max_iterations": max_iterations, "model_selection": model_selection}
    changes = {name: value for name, value in options.items() if was_given(context, name)}
    labels = read_labels(path)
    table, settings = _read_checkpoint(path, changes, labels)
    table, validation_table = hold_out(table, ColumnChoice(), silent if quiet else say, validation)
    if validation_table is None and settings["model_selection"] == "validation":
        raise click.UsageError(
            "The law is to be chosen on rows that were held out, and these are not saved: name them with "
            "--validation FILE, or another rule with --model-selection."
        )
    if out is not None:
        prepare_folder(out)
    run_fit(
        table,
        settings,
        out=out,
        quiet=quiet,
        source=labels.source,
        make_model=lambda callbacks, **settings: _ResumedSearch(path, {**changes, "callbacks": callbacks}),
        validation=validation_table,
    )


def _read_checkpoint(path: Path, changes: dict[str, Any], labels: Labels) -> tuple[Table, dict[str, Any]]:
    """The table as `symenum fit` had it, and the parameters of PSERegressor."""
    import pandas

    from symenum import PSERegressor
    from symenum.estimator.persistence import open_checkpoint

    try:
        found = open_checkpoint(path, changes, list(PSERegressor().get_params()), with_data=True)
    except ValueError as error:
        raise InputError(f"{error}.") from error
    data = found.data
    if data is None or data.columns is None or len(data.columns) != len(labels.columns):
        raise InputError(f"'{path}' was not written by symenum fit: go on with PSERegressor.resume.")
    weights = None if data.weight is None else pandas.Series(data.weight)
    y = pandas.Series(data.y, name=labels.target)
    table = Table(data.frame(), y, weights, labels.target, labels.columns)
    rule = PARAMETERS["model_selection"].default
    return table, {"random_state": None, "model_selection": rule, "max_time": None, **found.parameters}


@dataclass(frozen=True)
class _ResumedSearch:
    """What `run_fit` takes for an estimator: its `fit` goes on from a checkpoint."""

    path: Path
    changes: Mapping[str, Any]

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **held_out: Any) -> Model:
        from symenum import PSERegressor

        model: Model = PSERegressor.resume(self.path, X, y, sample_weight, **held_out, **self.changes)
        return model
