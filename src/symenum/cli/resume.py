"""`symenum resume`: go on with a search that `symenum fit --out DIR` or `--checkpoint FILE` has kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from symenum.cli.errors import InputError
from symenum.cli.fit import run_fit
from symenum.cli.labels import CHECKPOINT, read_labels
from symenum.cli.options import seconds
from symenum.cli.outputs import prepare
from symenum.cli.tables import Table

__all__ = ["resume_command"]


@click.command("resume", no_args_is_help=True)
@click.argument("kept", type=click.Path(path_type=Path, exists=True))
@click.option("--max-time", metavar="SECONDS", callback=seconds, help="Seconds to go on. [default: as before]")
@click.option("--max-iterations", type=click.IntRange(min=1), help="Steps, those before included. [default: as before]")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Folder for the results. [default: that of before]")
@click.option("-q", "--quiet", is_flag=True, help="Print the law only.")
def resume_command(
    kept: Path, max_time: float | None, max_iterations: int | None, out: Path | None, quiet: bool
) -> None:
    """Go on with the search kept in KEPT: a folder of results, or a checkpoint file.

    With an iteration limit and a seed the result is that of one search without a pause.
    """
    path = kept / CHECKPOINT if kept.is_dir() else kept
    out = out or (kept if kept.is_dir() else None)
    context = click.get_current_context()
    given = {"max_time": max_time, "max_iterations": max_iterations}
    changes = {name: value for name, value in given.items() if _was_given(context, name)}
    labels = read_labels(path)
    table, settings = _opened(path, changes, labels.target, labels.columns)
    if out is not None:
        prepare(out)
    run_fit(
        table,
        settings,
        out=out,
        quiet=quiet,
        source=labels.source,
        make_model=lambda callbacks, **settings: _Resumed(path, {**changes, "callbacks": callbacks}),
    )


def _was_given(context: click.Context, option: str) -> bool:
    return context.get_parameter_source(option) == click.core.ParameterSource.COMMANDLINE


def _opened(path: Path, changes: dict[str, Any], target: str, columns: tuple[str, ...]) -> tuple[Table, dict[str, Any]]:
    """The table as `symenum fit` had it, and the settings."""
    import pandas

    from symenum import PSERegressor
    from symenum.estimator.keeping import opened

    try:
        found = opened(path, changes, list(PSERegressor().get_params()), with_data=True)
    except ValueError as error:
        raise InputError(f"{error}.") from error
    data = found.data
    if data is None or data.columns is None or len(data.columns) != len(columns):
        raise InputError(f"'{path}' was not written by symenum fit: go on with PSERegressor.resume.")
    weights = None if data.weight is None else pandas.Series(data.weight)
    table = Table(data.frame(), pandas.Series(data.y, name=target), weights, target, columns)
    return table, {"random_state": None, "model_selection": "best", "max_time": None, **found.parameters}


class _Resumed:
    """An estimator whose `fit` goes on from a checkpoint."""

    front_: Any
    interrupted_: bool
    stop_reason_: str
    selected_index_: int

    def __init__(self, path: Path, changes: dict[str, Any]) -> None:
        self._path = path
        self._changes = changes

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **held_out: Any) -> _Resumed:
        from symenum import PSERegressor

        self._model = model = PSERegressor.resume(self._path, X, y, sample_weight, **self._changes)
        self.front_, self.interrupted_, self.stop_reason_ = model.front_, model.interrupted_, model.stop_reason_
        self.selected_index_ = model.selected_index_
        return self

    def uncertainties(self, index: int | None = None) -> Any:
        return self._model.uncertainties(index)
