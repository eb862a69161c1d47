"""`symenum fit-ode`: a trajectory in, one front of laws for each state out."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from symenum.cli.command import operators_of, table_path
from symenum.cli.errors import Failure, InputError
from symenum.cli.fit import say, silent
from symenum.cli.options import seconds
from symenum.cli.outputs import prepare, write_whole
from symenum.cli.tables import read_frame
from symenum.cli.trajectories import Columns, Trajectories, choose_trajectories
from symenum.watch import for_command

if TYPE_CHECKING:
    from symenum.dynamics import ODERegressor

__all__ = ["fit_ode_command"]

PICTURE = "trajectories.png"


@click.command("fit-ode", no_args_is_help=True)
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--time", "time_column", metavar="COLUMN", required=True, help="Column with the times.")
@click.option("--states", multiple=True, metavar="A,B,…", help="Columns that move. [default: all others]")
@click.option("--inputs", multiple=True, metavar="A,B,…", help="Columns of external inputs: they need no law.")
@click.option("--drop", multiple=True, metavar="A,B,…", help="Columns to leave out.")
@click.option("--trajectory", metavar="COLUMN", help="Column that tells several trajectories apart.")
@click.option("--order", type=click.IntRange(1, 2), default=1, show_default=True, help="2: the laws give q''.")
@click.option(
    "--derivative",
    type=click.Choice(["weak", "savitzky_golay", "spline", "central"]),
    default="weak",
    show_default=True,
    help="How derivatives are taken from the samples.",
)
@click.option(
    "--max-time", metavar="SECONDS", default="60", callback=seconds, show_default=True, help="For all laws, or 'none'."
)
@click.option("--max-iterations", type=click.IntRange(min=1), help="Steps to search for each law.")
@click.option("--operators", default="koza", show_default=True, help='A set\'s name, or a list such as "+,*,sin".')
@click.option("--max-complexity", type=click.IntRange(min=1), default=50, show_default=True, help="Of one law.")
@click.option("--system-complexity", type=click.IntRange(min=0), help="Of all laws together.")
@click.option(
    "--model-selection",
    type=click.Choice(["mdl", "heldout", "best", "accuracy", "reward"]),
    default="mdl",
    show_default=True,
    help="How laws are chosen from the fronts.",
)
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="For results that repeat; also set --max-iterations.")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), help="Folder for laws, fronts, source code and a picture."
)
@click.option("-q", "--quiet", is_flag=True, help="Print the laws only.")
def fit_ode_command(
    data: Path,
    time_column: str,
    states: tuple[str, ...],
    inputs: tuple[str, ...],
    drop: tuple[str, ...],
    trajectory: str | None,
    operators: str,
    seed: int | None,
    out: Path | None,
    quiet: bool,
    **settings: Any,
) -> None:
    """Search for the laws of motion of the states in DATA, a table with one row for each time.

    Missing values and long pauses are gaps. The picture of measured and simulated trajectories needs matplotlib.
    """
    note = silent if quiet else say
    with table_path(data) as path:
        frame = read_frame(path, note)
    found = choose_trajectories(frame, Columns(time_column, states, inputs, drop, trajectory), note, f"'{data.name}'")
    if out is not None:
        prepare(out)
    model = _fitted(found, {**settings, "operators": operators_of(operators), "random_state": seed}, quiet)
    click.echo(_laws(model) if quiet else f"{model}\n\n{_endings(model)}\n{_laws(model)}")
    if out is not None:
        _write(out, model, found, note)


def _fitted(found: Trajectories, settings: Mapping[str, Any], quiet: bool) -> ODERegressor:
    from symenum.dynamics import ODERegressor
    from symenum.dynamics.progress import RULE_IF_HELD_OUT, title_of
    from symenum.selection import rule_while_searching

    rule = rule_while_searching(settings["model_selection"], RULE_IF_HELD_OUT)
    progress = for_command(title_of, rule, settings["max_time"], quiet=quiet, several=True)
    model = ODERegressor(callbacks=[progress], **settings)
    try:
        with progress:
            return model.fit(found.states, found.times, found.inputs)
    except (ValueError, TypeError) as error:
        raise InputError(str(error)) from error


def _laws(model: ODERegressor) -> str:
    from symenum.dynamics.exports import left_side

    return "\n".join(f"{left_side(name, model.order)} = {law}" for name, law in model.best_expressions_.items())


def _endings(model: ODERegressor) -> str:
    lines = [f"{name}: ended, {reason}." for name, reason in model.stop_reason_.items()]
    return "\n".join([*lines, "~ marks laws that the data cannot tell from the chosen one.", "The laws:"])


def _write(out: Path, model: ODERegressor, found: Trajectories, note: Any) -> None:
    import pandas

    tables = [table.drop(columns=["sympy_format", "lambda_format"]) for table in model.equations_.values()]
    fronts = pandas.concat(tables, keys=model.equations_, names=["state", "row"]).reset_index()
    texts = {
        "laws.txt": f"{_laws(model)}\n",
        "fronts.csv": fronts.to_csv(index=False),
        "system.py": str(model.export("python")),
        "system.tex": f"{model.latex()}\n",
    }
    try:
        for name, text in texts.items():
            write_whole(out / name, text)
        written = [*texts]
        if find_spec("matplotlib") is None:
            note("No picture of the trajectories: it needs matplotlib (pip install 'symenum[plot]').")
        else:
            import matplotlib

            from symenum.plots import plot_trajectories

            matplotlib.use("Agg")  # for a file, with no window
            plot_trajectories(model, found.states, found.times, found.inputs).savefig(out / PICTURE, dpi=150)
            written.append(PICTURE)
    except OSError as error:
        raise Failure(f"The results could not be written to '{out}' ({error.strerror or error}).") from error
    note(f"Written to '{out}': {', '.join(written)}.")
