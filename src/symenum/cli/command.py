"""The options of `symenum fit`, and what they mean; `fit` does the work."""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import click

from symenum.cli.errors import InputError
from symenum.cli.examples import EXAMPLES
from symenum.cli.fit import make_regressor, run_fit, say, silent
from symenum.cli.held_out import hold_out
from symenum.cli.labels import CHECKPOINT, Labels, write_labels
from symenum.cli.options import MODEL_SELECTIONS, assignments, memory, non_negative, seconds, split_list, was_given
from symenum.cli.outputs import prepare
from symenum.cli.tables import Choice, Table, choose, read_frame

__all__ = ["fit_command", "operators_of", "table_path"]


@click.command("fit", no_args_is_help=True)
@click.argument("data", required=False, type=click.Path(path_type=Path))
@click.option("-t", "--target", metavar="COLUMN", help="Column to explain: a name, or a number from 1. [default: last]")
@click.option("--features", multiple=True, metavar="A,B,…", help="Columns to explain it with. [default: all others]")
@click.option("--drop", multiple=True, metavar="A,B,…", help="Columns to leave out.")
@click.option("--weights", metavar="COLUMN", help="Column with the weight of each row.")
@click.option("--drop-nan", is_flag=True, help="Leave out rows with missing or infinite values.")
@click.option("--header/--no-header", default=None, help="Whether the first line names the columns. [default: detect]")
@click.option("--delimiter", help="Between columns: one character, 'tab' or 'space'. [default: detect]")
@click.option(
    "--max-time",
    metavar="SECONDS",
    default="60",
    callback=seconds,
    show_default=True,
    help="Seconds to search, or 'none'.",
)
@click.option("--max-iterations", type=click.IntRange(min=1), help="Steps to search.")
@click.option(
    "--stop-loss", metavar="NUMBER", callback=non_negative, help="Loss that is good enough to end the search."
)
@click.option("--operators", default="koza", show_default=True, help='A set\'s name, or a list such as "+,*,sin".')
@click.option("--constants/--no-constants", default=True, show_default=True, help="Whether laws may hold constants.")
@click.option("--max-complexity", type=click.IntRange(min=1), default=50, show_default=True, help="Of a law.")
@click.option("--max-depth", type=click.IntRange(min=1), help="Of a law: operators inside one another.")
@click.option("--loss", default="mse", show_default=True, help="mse, mae, huber, log_cosh or relative.")
@click.option("--guess", multiple=True, metavar="FORMULA", help='A law to begin with, such as "a*x**2 + b".')
@click.option(
    "--constant", multiple=True, metavar="NAME=NUMBER", callback=assignments, help="A constant to appear by its name."
)
@click.option("--require", multiple=True, metavar="A,B,…", help="Variables that every law must have.")
@click.option("--validation", type=click.Path(path_type=Path), help="A table of other rows to choose the law on.")
@click.option(
    "--validation-fraction", type=click.FloatRange(0, 1, min_open=True, max_open=True), help="Hold so many rows out."
)
@click.option("--errors", is_flag=True, help="Show the standard errors of the law's constants.")
@click.option(
    "--model-selection",
    type=click.Choice(MODEL_SELECTIONS),
    default="best",
    show_default=True,
    help="How the law is chosen from the front.",
)
@click.option("--token-generator", default="gp", show_default=True, help="gp, mcts, random, or one of a --plugin.")
@click.option(
    "--top-k", type=click.IntRange(min=1), default=30, show_default=True, help="Candidates kept of each pass."
)
@click.option("--layers", type=click.IntRange(min=1), help="Layers of the network. [default: chosen]")
@click.option("--inputs", type=click.IntRange(min=1), help="Inputs of the network. [default: chosen]")
@click.option("--max-memory", metavar="SIZE", callback=memory, help="Such as 2GB. [default: from the machine]")
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda or cuda:1; see symenum devices.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="For results that repeat; also set --max-iterations.")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    help="Folder for report.html, front.csv, model.json, law.txt, law.tex.",
)
@click.option(
    "--checkpoint",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to keep the search in, for symenum resume. [default: in --out]",
)
@click.option("-q", "--quiet", is_flag=True, help="Print the law only.")
@click.option("--example", type=click.Choice(sorted(EXAMPLES)), help="Search a table that comes with symenum.")
@click.pass_context
def fit_command(
    context: click.Context,
    /,
    data: Path | None,
    target: str | None,
    features: tuple[str, ...],
    drop: tuple[str, ...],
    weights: str | None,
    drop_nan: bool,
    header: bool | None,
    delimiter: str | None,
    seed: int | None,
    out: Path | None,
    checkpoint: Path | None,
    quiet: bool,
    example: str | None,
    operators: str,
    guess: tuple[str, ...],
    constant: Mapping[str, float],
    require: tuple[str, ...],
    validation: Path | None,
    validation_fraction: float | None,
    errors: bool,
    **settings: Any,
) -> None:
    """Search for the law of a column of DATA: a table as CSV, TSV, text or Parquet, or - for standard input.

    The front of laws, from simple to accurate, and the one to believe are printed at the end. Ctrl-C ends the search
    early and keeps what was found.
    """
    note = silent if quiet else say
    _let_any_letter_be_printed()
    shown = EXAMPLES[example] if example is not None else None
    if shown is not None:
        target, drop = target or shown.target, drop or shown.drop
        settings |= {name: value for name, value in shown.settings.items() if not was_given(context, name)}
    choice = Choice(target, features or None, drop, weights, drop_nan)
    table = _read_table(data, example, choice, note, header, delimiter)
    table, held = hold_out(table, choice, note, validation, validation_fraction, seed, header, delimiter)
    if held is None and settings["model_selection"] == "validation":
        raise click.UsageError("--model-selection validation needs --validation FILE or --validation-fraction.")
    settings |= _knowledge(settings["constants"], guess, constant, require)
    if out is not None:
        prepare(out)
    if shown is not None:
        note(shown.story)
    source = str(data) if data is not None else f"example {example}"
    kept = _labelled_checkpoint(checkpoint, out, Labels(table.target, table.columns, source))
    run_fit(
        table,
        {"operators": operators_of(operators), "random_state": seed, "checkpoint": kept, **settings},
        out=out,
        quiet=quiet,
        source=source,
        make_model=context.obj or make_regressor,
        example=shown,
        held=held,
        errors=errors,
    )


def _let_any_letter_be_printed() -> None:
    # A terminal that cannot show a letter of a column's name must not cost the result.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _read_table(
    data: Path | None,
    example: str | None,
    choice: Choice,
    note: Callable[[str], None],
    header: bool | None,
    delimiter: str | None,
) -> Table:
    if (data is None) == (example is None):
        raise click.UsageError("Name one file with a table, such as data.csv, or an --example.")
    with table_path(data, example or "") as path:
        frame = read_frame(path, note, header=header, delimiter=delimiter)
        return choose(frame, choice, note, f"'{path.name}'")


def _labelled_checkpoint(checkpoint: Path | None, out: Path | None, labels: Labels) -> Path | None:
    """The file to keep the search in, if it is to be kept, with the labels written beside it."""
    kept = checkpoint or (None if out is None else out / CHECKPOINT)
    if kept is not None:
        write_labels(kept, labels)
    return kept


@contextmanager
def table_path(data: Path | None, example: str = "") -> Iterator[Path]:
    """The file to read; what comes through a pipe is put into one, since a table is looked at before it is read."""
    if data is None:
        with as_file(files("symenum.data").joinpath(EXAMPLES[example].file)) as path:
            yield path
    elif str(data) == "-" or data.is_fifo():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "standard input"
            with click.open_file(str(data), "rb") as source, path.open("wb") as copy:
                shutil.copyfileobj(source, copy)
            yield path
    else:
        yield data


def _knowledge(
    constants: bool, guess: tuple[str, ...], constant: Mapping[str, float], require: tuple[str, ...]
) -> dict[str, Any]:
    """Settings of the estimator for what the user knows; only those that were given."""
    if constant and not constants:
        raise click.UsageError("--constant and --no-constants contradict each other.")
    told: dict[str, Any] = {"guesses": list(guess), "required_variables": list(split_list(require))}
    if constant:
        told["constants"] = dict(constant)
    return {name: value for name, value in told.items() if value}


def operators_of(text: str) -> str | list[str]:
    """A set's name as it is; a list of names and signs cut at its commas."""
    from symenum.operators import OPERATOR_SETS, get_operators

    name = text.strip().lower().replace("-", "_")
    operators: str | list[str] = name if name in OPERATOR_SETS else list(split_list([text]))
    try:
        get_operators(operators)
    except ValueError as error:
        known = f" Sets: {', '.join(OPERATOR_SETS)}." if "," not in text else ""
        raise InputError(f"--operators: {error}{known}") from error
    return operators
