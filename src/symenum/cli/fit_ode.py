"""`symenum fit-ode`: reads trajectories from a file, and prints and writes a front of laws for each state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from symenum.cli.fit import operators_of
from symenum.cli.messages import Failure, InputError, did_you_mean, say, silent
from symenum.cli.options import in_options, parameter_option, parameter_options, split_list
from symenum.cli.outputs import prepare_folder
from symenum.cli.tables import read_frame, table_path
from symenum.core.files import write_whole
from symenum.core.interrupts import ctrl_c_ignored, sigterm_as_ctrl_c
from symenum.display.progress import observer_for_command
from symenum.display.table import short_text
from symenum.run_directory.layout import RunPlace

if TYPE_CHECKING:
    import numpy
    import pandas

    from symenum.dynamics import ODERegressor

__all__ = ["Columns", "Trajectories", "choose_trajectories", "fit_ode_command", "run_fit_ode"]

PICTURE = "trajectories.png"


@click.command("fit-ode", no_args_is_help=True)
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--time", "time_column", metavar="COLUMN", help="Column with the times; a map needs none.")
@click.option("--states", multiple=True, metavar="A,B,…", help="Columns that move. [default: all others]")
@click.option("--inputs", multiple=True, metavar="A,B,…", help="Columns of external inputs: they need no law.")
@click.option("--drop", multiple=True, metavar="A,B,…", help="Columns to leave out.")
@click.option("--trajectory", metavar="COLUMN", help="Column that tells several trajectories apart.")
@click.option(
    "--step",
    type=click.Choice(["time", "map"]),
    default="time",
    show_default=True,
    help="map: the laws give the next state, x(t+1).",
)
@click.option("--order", type=click.IntRange(1, 2), default=1, show_default=True, help="2: the laws give q''.")
@click.option(
    "--derivative",
    type=click.Choice(["weak", "savitzky_golay", "spline", "central"]),
    default="weak",
    show_default=True,
    help="How derivatives are taken from the samples.",
)
@parameter_option("max_time", help="For all laws, or 'none'.")
@parameter_option("max_iterations", help="Steps to search for each law.")
@parameter_options("operators")
@parameter_option("max_complexity", help="Of one law.")
@click.option("--system-complexity", type=click.IntRange(min=0), help="Of all laws together.")
@click.option(
    "--model-selection",
    type=click.Choice(["trajectories", "mdl", "heldout", "validation", "best", "accuracy", "reward"]),
    default="trajectories",
    show_default=True,
    help="How laws are chosen from the fronts.",
)
@click.option("--validation", type=click.Path(path_type=Path), help="A table of other trajectories to choose laws on.")
@click.option("--guess", multiple=True, metavar="STATE=FORMULA", help="A law to begin with, such as x=a*x*y + b.")
@parameter_option("units", help="Of a state, an input or the time; for all of them, or none.")
@parameter_option("dimensional_constants", default=True, help="With --units: constants may have units, as rates do.")
@click.option(
    "--loss",
    type=click.Choice(["mse", "huber"]),
    default="mse",
    show_default=True,
    help="huber: samples far off do not decide.",
)
@parameter_options("max_depth", "device", "max_memory", "random_state")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), help="Folder for laws, fronts, source code and a picture."
)
@click.option("--overwrite", is_flag=True, help="Write to --out even if it holds a run. [default: a new folder]")
@click.option("-q", "--quiet", is_flag=True, help="Print the laws only, with all digits.")
def fit_ode_command(
    data: Path,
    time_column: str | None,
    states: tuple[str, ...],
    inputs: tuple[str, ...],
    drop: tuple[str, ...],
    trajectory: str | None,
    operators: str,
    out: Path | None,
    overwrite: bool,
    quiet: bool,
    validation: Path | None,
    guess: tuple[str, ...],
    units: Any,
    **settings: Any,
) -> None:
    """Search for the laws of motion of the states in DATA, a table with one row for each time.

    Missing values and long pauses are gaps. The picture of measured and simulated trajectories needs matplotlib.
    """
    note = silent if quiet else say
    if validation is None and settings["model_selection"] == "validation":
        raise click.UsageError("--model-selection validation needs --validation FILE, a table of other trajectories.")
    if time_column is None and settings["step"] != "map":
        raise click.UsageError("Missing option '--time': name the column with the times (--step map needs none).")
    columns = Columns(time_column, split_list(states), split_list(inputs), split_list(drop), trajectory)
    guesses = _guesses(guess)
    found = _read(data, columns, note)
    held_out = None if validation is None else _read(validation, columns, note)
    if out is not None:
        out = prepare_folder(out, overwrite=overwrite)
    settings = {**settings, "operators": operators_of(operators), "guesses": guesses}
    settings["units"] = _units(units, found, time_column)
    run_fit_ode(found, settings, out=out, quiet=quiet, source=str(data), validation=held_out)


def _read(data: Path, columns: Columns, note: Callable[[str], None]) -> Trajectories:
    """The trajectories of a table."""
    with table_path(data) as path:
        frame = read_frame(path, note)
    return choose_trajectories(frame, columns, note, f"'{data.name}'")


def _units(given: Any, found: Trajectories, time_column: str | None) -> Any:
    """Units by the names that formulas have for the columns of the table, and by ODERegressor's name of the time."""
    from symenum.dynamics.knowledge import name_of_time
    from symenum.expressions import formula_names

    if not isinstance(given, Mapping):
        return given
    called: dict[str, str] = dict(formula_names(found.columns))
    if time_column is not None:
        if time_column not in given:
            raise InputError(f"--units says nothing of the time: add {time_column}=s, or whatever its unit is.")
        called |= {time_column: name_of_time(tuple(called.values()))}
    return {called.get(name, name): unit for name, unit in given.items()}


def _guesses(texts: Sequence[str]) -> dict[str, list[str]] | None:
    """Formulas by state, from STATE=FORMULA."""
    found: dict[str, list[str]] = {}
    for text in texts:
        state, sign, formula = text.partition("=")
        if not sign or not state.strip() or not formula.strip():
            raise InputError(f"--guess must be STATE=FORMULA, such as x=a*x*y + b, not {text!r}.")
        found.setdefault(state.strip(), []).append(formula.strip())
    return found or None


def run_fit_ode(
    found: Trajectories | None,
    settings: Mapping[str, Any],
    *,
    out: Path | None = None,
    quiet: bool = False,
    source: str = "",
    validation: Trajectories | None = None,
    checkpoint: Path | None = None,
) -> None:
    """Search, print the laws and write them to `out`; `source` names the file that the trajectories came from.

    `checkpoint`: a search to go on with, with its own trajectories and with `settings` that differ from before.
    """
    from symenum.dynamics.run_record import law_lines

    if out is not None:
        columns = () if found is None else found.columns
        settings = {**settings, "run_dir": RunPlace(out, columns=columns, source=source, results=False)}
    model = _fit(found, settings, quiet, validation, checkpoint)
    with ctrl_c_ignored():
        click.echo(law_lines(model) if quiet else f"{model}\n\n{_endings(model)}\n{law_lines(model, short_text)}")
        if out is not None:
            _write(out, model, silent if quiet else say)


def _fit(
    found: Trajectories | None,
    settings: Mapping[str, Any],
    quiet: bool,
    validation: Trajectories | None,
    checkpoint: Path | None,
) -> ODERegressor:
    from symenum.dynamics import ODERegressor
    from symenum.dynamics.display import MAP, RULE_IF_HELD_OUT, title_of
    from symenum.selection import rule_while_searching

    held_out = None if validation is None else (validation.states, validation.times, validation.inputs)
    try:
        before = {} if checkpoint is None else ODERegressor.saved_parameters(checkpoint)
        whole = {**ODERegressor().get_params(), **before, **settings}
        rule = rule_while_searching(whole["model_selection"], RULE_IF_HELD_OUT)
        title = title_of(MAP if whole["step"] == "map" else whole["order"])
        progress = observer_for_command(title, rule, whole["max_time"], quiet=quiet, several=True)
        with sigterm_as_ctrl_c(), progress:
            if found is None:
                assert checkpoint is not None
                return ODERegressor.resume(checkpoint, validation=held_out, callbacks=[progress], **settings)
            model = ODERegressor(callbacks=[progress], **settings)
            return model.fit(found.states, found.times, found.inputs, validation=held_out)
    except (ValueError, TypeError) as error:
        raise InputError(_in_options(str(error))) from error


def _in_options(message: str) -> str:
    """A message of ODERegressor in the words of the command line, which takes trajectories from one table."""
    return in_options(message).replace(
        "or give several trajectories as a list", "or name the column that tells trajectories apart with --trajectory"
    )


def _endings(model: ODERegressor) -> str:
    lines = [f"{name}: ended, {reason}." for name, reason in model.stop_reason_.items()]
    return "\n".join([*lines, "The laws, with five digits of each constant:"])


def _write(out: Path, model: ODERegressor, note: Any) -> None:
    from symenum.dynamics.run_record import REPORT, result_texts

    texts = result_texts(model)
    try:
        for name, text in texts.items():
            write_whole(out / name, text)
        model.report(out / REPORT)
        written = [*texts, REPORT]
        if find_spec("matplotlib") is None:
            note("No picture of the trajectories: it needs matplotlib (pip install 'symenum[plot]').")
        else:
            import matplotlib

            from symenum.dynamics.display import plot_trajectories

            matplotlib.use("Agg")  # for a file, with no window
            plot_trajectories(model, *model.trajectories_of_fit()).savefig(out / PICTURE, dpi=150)
            written.append(PICTURE)
    except OSError as error:
        raise Failure(f"The results could not be written to '{out}' ({error.strerror or error}).") from error
    note(f"Written to '{out}': {', '.join(written)}.")


@dataclass(frozen=True)
class Columns:
    """The columns that the user has named; without `states` they are all columns that have no other use."""

    time: str | None
    states: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    trajectory: str | None = None


@dataclass(frozen=True)
class Trajectories:
    """One entry for each trajectory: times (points,), states and inputs (points, columns); inputs None without any.

    The times of a map may be None: it goes from row to row.

    Missing values stay NaN: they are gaps. `columns`: the names of states and inputs in the table.
    """

    times: list[numpy.ndarray] | None
    states: list[pandas.DataFrame]
    inputs: list[pandas.DataFrame] | None
    columns: tuple[str, ...] = ()


def choose_trajectories(
    frame: pandas.DataFrame, columns: Columns, note: Callable[[str], None], where: str
) -> Trajectories:
    """Take times, states and inputs from a frame; `where` names the file in messages."""
    from symenum.expressions import formula_names

    names = [str(name) for name in frame.columns]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InputError(f"{where} has more than one column called {', '.join(repeated)}: give each its own name.")
    time = None if columns.time is None else _find(columns.time, names, "--time")
    inputs = [_find(name, names, "--inputs") for name in columns.inputs]
    drop = [_find(name, names, "--drop") for name in columns.drop]
    trajectory = None if columns.trajectory is None else _find(columns.trajectory, names, "--trajectory")
    states = [_find(name, names, "--states") for name in columns.states]
    if not states:
        states = [name for name in names if name not in (time, trajectory, *inputs, *drop)]
    if not states:
        raise InputError(f"There is no column left for a state in {where}: the time is '{time}'.")
    numbers = _numbers(frame, [*states, *inputs], where)
    if time is not None:
        advice = "Give the times as numbers, such as days since the first."
        numbers[time] = _numbers(frame, [time], where, advice)[time]
    called = formula_names([*states, *inputs])
    changed = {name: new for name, new in called.items() if new != name}
    if changed:
        pairs = ", ".join(f"'{name}' is {new}" for name, new in changed.items())
        note(f"Names that formulas cannot use are changed: {pairs}.")
    parts = [frame] if trajectory is None else [part for _, part in frame.groupby(trajectory, sort=False)]
    groups = [numbers.loc[part.index] for part in parts]
    return Trajectories(
        None if time is None else [group[time].to_numpy() for group in groups],
        [group[states].rename(columns=called) for group in groups],
        [group[inputs].rename(columns=called) for group in groups] if inputs else None,
        (*states, *inputs),
    )


def _find(name: str, names: Sequence[str], option: str) -> str:
    if name in names:
        return name
    raise InputError(
        f"{option}: there is no column '{name}'.{did_you_mean(name, names)} The columns are: {', '.join(names)}."
    )


_LEAVE_OUT = "Leave the column out with --drop, or name the states with --states."


def _numbers(frame: pandas.DataFrame, columns: Sequence[str], where: str, advice: str = _LEAVE_OUT) -> pandas.DataFrame:
    import pandas

    found = {}
    for name in columns:
        column = frame[name]
        values = pandas.to_numeric(column, errors="coerce")
        wrong = (values.isna() & column.notna()).to_numpy()
        if wrong.any():
            first = int(wrong.argmax())
            raise InputError(
                f"Column '{name}' of {where} holds {str(column.iloc[first])[:40]!r} in row {first + 1}, which is no "
                f"number. {advice}"
            )
        found[name] = values.astype("float64")
    return pandas.DataFrame(found, index=frame.index)
