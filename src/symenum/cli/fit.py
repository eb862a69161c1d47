"""`symenum fit`: reads a table from a file, searches, and prints and writes the front of laws.

No failure costs what was found: the folder for results is tried before the search, the front is printed before it is
written, and what was found before a search failed is printed, too.
"""

from __future__ import annotations

import io
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from symenum.cli.messages import Failure, InputError, say, silent
from symenum.cli.options import in_options, parameter_options, split_list, was_given
from symenum.cli.outputs import (
    CHECKPOINT,
    REPORT,
    Model,
    Result,
    RunSummary,
    Search,
    error_lines,
    fit_report,
    fitted_numbers,
    front_csv,
    prepare_folder,
    stated_confidence,
    write_labels,
    write_results,
)
from symenum.cli.tables import (
    EXAMPLES,
    ColumnChoice,
    Example,
    Table,
    choose_columns,
    hold_out,
    read_frame,
    table_path,
)
from symenum.cluster.errors import ClusterError
from symenum.core.files import write_whole
from symenum.core.interrupts import ctrl_c_ignored, sigterm_as_ctrl_c
from symenum.display.progress import Observer, Report, observer_for_command
from symenum.display.table import LawRow, r_squared_text, rows_of, short_text, text_table, weighted_loss_text
from symenum.estimator.parameters import PARAMETERS
from symenum.estimator.table_labels import TableLabels
from symenum.run_directory.layout import RunPlace

__all__ = ["fit_command", "make_regressor", "operators_of", "run_fit"]

MakeModel = Callable[..., Search]
"""Takes the parameters of PSERegressor and returns an estimator; tests put their own in its place."""

_INTERRUPTED = "interrupted"  # the stop reason of a search that a second Ctrl-C has ended


@click.command("fit", no_args_is_help=True)
@click.argument("data", required=False, type=click.Path(path_type=Path))
@click.option("-t", "--target", metavar="COLUMN", help="Column to explain: a name, or a number from 1. [default: last]")
@click.option("--features", multiple=True, metavar="A,B,…", help="Columns to explain it with. [default: all others]")
@click.option("--drop", multiple=True, metavar="A,B,…", help="Columns to leave out.")
@click.option("--weights", metavar="COLUMN", help="Column with the weight of each row.")
@click.option("--y-error", metavar="COLUMN|NUMBER", help="Standard error of the target in each row.")
@click.option(
    "--x-error", multiple=True, metavar="NAME=COLUMN|NUMBER", help="Standard error of a variable. May be repeated."
)
@click.option("--one-hot", multiple=True, metavar="A,B,…", help="Columns of text to turn into columns of 0 and 1.")
@click.option(
    "--missing",
    type=click.Choice(("drop", "impute", "error")),
    default="drop",
    show_default=True,
    help="Rows with missing or infinite values: leave out, fill in medians, or refuse.",
)
@click.option("--drop-nan", is_flag=True, hidden=True, help="The same as --missing drop.")
@click.option("--header/--no-header", default=None, help="Whether the first line names the columns. [default: detect]")
@click.option("--delimiter", help="Between columns: one character, 'tab' or 'space'. [default: detect]")
@parameter_options(
    "max_time",
    "max_iterations",
    "stop_loss",
    "operators",
    "constants",
    "max_complexity",
    "max_depth",
    "complexity_of_operators",
    "complexity_of_constants",
    "select_k_features",
    "denoise",
    "loss",
    "guesses",
    "required_variables",
    "units",
    "dimensional_constants",
    "template",
    "shape",
    "shape_box",
    "groups",
)
@click.option("--validation", type=click.Path(path_type=Path), help="A table of other rows to choose the law on.")
@click.option(
    "--validation-fraction", type=click.FloatRange(0, 1, min_open=True, max_open=True), help="Hold so many rows out."
)
@click.option("--errors", is_flag=True, help="Show the standard errors of the law's constants.")
@click.option("--explain", is_flag=True, help="Show which move of the search ran when, and what it brought.")
@parameter_options(
    "model_selection",
    "sanity",
    "token_generator",
    "top_k",
    "layers",
    "inputs",
    "max_memory",
    "device",
    "random_state",
    "shares",
    "cluster",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    help="Folder for report.html, front.csv, model.json, law.txt, law.tex, law.py.",
)
@click.option("--overwrite", is_flag=True, help="Write to --out even if it holds a run. [default: a new folder]")
@parameter_options("checkpoint")
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
    y_error: str | None,
    x_error: tuple[str, ...],
    one_hot: tuple[str, ...],
    missing: str,
    drop_nan: bool,
    header: bool | None,
    delimiter: str | None,
    out: Path | None,
    overwrite: bool,
    checkpoint: Path | None,
    quiet: bool,
    example: str | None,
    constant: Mapping[str, float],
    validation: Path | None,
    validation_fraction: float | None,
    errors: bool,
    explain: bool,
    **settings: Any,
) -> None:
    """Search for the law of a column of DATA: a table as CSV, TSV, text or Parquet, or - for standard input.

    The front of laws, from simple to accurate, and the one to believe are printed at the end. Ctrl-C ends the search
    early and keeps what was found.
    """
    note = silent if quiet else say
    _escape_what_cannot_be_printed()
    chosen_example = EXAMPLES[example] if example is not None else None
    if chosen_example is not None:
        target, drop = target or chosen_example.target, drop or chosen_example.drop
        settings |= {name: value for name, value in chosen_example.settings.items() if not was_given(context, name)}
    missing = "drop" if drop_nan else missing
    units_in_names = isinstance(settings["units"], str)  # the word names, and no mapping
    choice = ColumnChoice(
        target, features or None, drop, weights, missing, y_error, x_error, one_hot, settings["groups"], units_in_names
    )
    if x_error and y_error is None:
        raise click.UsageError("--x-error needs --y-error too: a row counts by both errors together.")
    table = _read_table(data, example, choice, note, header, delimiter)
    table, validation_table = hold_out(
        table, choice, note, validation, validation_fraction, settings["random_state"], header, delimiter
    )
    if validation_table is None and settings["model_selection"] == "validation":
        raise click.UsageError("--model-selection validation needs --validation FILE or --validation-fraction.")
    settings = {**settings, "units": _units_of(table, settings["units"]), "groups": table.group}
    settings = _estimator_parameters(settings, constant)
    if out is not None:
        out = prepare_folder(out, overwrite=overwrite)
    if chosen_example is not None:
        note(chosen_example.story)
    source = str(data) if data is not None else f"example {example}"
    checkpoint = _labelled_checkpoint(checkpoint, out, TableLabels(table.target, table.columns, source, table.encoding))
    run_fit(
        table,
        {**settings, "checkpoint": checkpoint},
        out=out,
        quiet=quiet,
        source=source,
        make_model=context.obj or make_regressor,
        example=chosen_example,
        validation=validation_table,
        errors=errors,
        explain=explain,
    )


def _escape_what_cannot_be_printed() -> None:
    """Let streams escape letters that the terminal cannot show: a column's name must not cost the result."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _read_table(
    data: Path | None,
    example: str | None,
    choice: ColumnChoice,
    note: Callable[[str], None],
    header: bool | None,
    delimiter: str | None,
) -> Table:
    if (data is None) == (example is None):
        raise click.UsageError("Name one file with a table, such as data.csv, or an --example.")
    with table_path(data, example or "") as path:
        frame = read_frame(path, note, header=header, delimiter=delimiter)
        return choose_columns(frame, choice, note, f"'{path.name}'")


def _labelled_checkpoint(checkpoint: Path | None, out: Path | None, labels: TableLabels) -> Path | None:
    """The file of the checkpoint, --checkpoint or one in --out, with the labels written beside it; or None."""
    path = checkpoint or (None if out is None else out / CHECKPOINT)
    if path is not None:
        write_labels(path, labels)
    return path


def _estimator_parameters(settings: Mapping[str, Any], constant: Mapping[str, float]) -> dict[str, Any]:
    """The options as parameters of PSERegressor, in the order of its table; without empty lists, which are defaults."""
    parameters = {**settings, "operators": operators_of(settings["operators"])}
    parameters["guesses"] = list(settings["guesses"])
    parameters["shares"] = settings["shares"] or []
    parameters["cluster"] = settings["cluster"] or []
    parameters["units"] = settings["units"] or []
    parameters["dimensional_constants"] = settings["dimensional_constants"] or []
    parameters["shape"], parameters["shape_box"] = settings["shape"] or [], settings["shape_box"] or []
    parameters["template"], parameters["groups"] = settings["template"] or [], settings["groups"] or []
    parameters["required_variables"] = list(split_list(settings["required_variables"]))
    if constant and not settings["constants"]:
        raise click.UsageError("--constant and --no-constants contradict each other.")
    if constant:
        parameters["constants"] = dict(constant)
    return {name: parameters[name] for name in PARAMETERS if name in parameters and parameters[name] != []}


def _units_of(table: Table, units: Mapping[str, str] | str | None) -> dict[str, str] | None:
    """The units by the names that columns have in laws; "names": those in the names of the file's columns."""
    from symenum.estimator.unit_text import FROM_NAMES, unit_in_name

    if units is None:
        return None
    in_laws = {str(column): name for column, name in zip(table.columns, table.X.columns, strict=True)}
    if not isinstance(units, str):
        return {in_laws.get(name, name): unit for name, unit in units.items()}
    assert units == FROM_NAMES  # the only word that the option takes
    found = {column: unit_in_name(column) for column in (*in_laws, table.target)}
    without = [column for column, split in found.items() if split is None]
    if without:
        raise InputError(
            f"--units names: the column {without[0]!r} has no unit in its name; call it as in 'speed [m/s]'"
        )
    return {in_laws.get(column, column): split[1] for column, split in found.items() if split is not None}


def operators_of(text: str) -> str | list[str]:
    """The value of --operators: the name of a set, or a list of names and signs that is cut at its commas."""
    from symenum.operators import OPERATOR_SETS, get_operators

    name = text.strip().lower().replace("-", "_")
    operators: str | list[str] = name if name in OPERATOR_SETS else list(split_list([text]))
    try:
        get_operators(operators)
    except ValueError as error:
        known = f" Sets: {', '.join(OPERATOR_SETS)}." if "," not in text else ""
        raise InputError(f"--operators: {str(error).rstrip('.')}.{known}") from error
    return operators


def make_regressor(**settings: Any) -> Search:
    from symenum import PSERegressor

    model: Search = PSERegressor(**settings)
    return model


def run_fit(
    table: Table,
    settings: Mapping[str, Any],
    *,
    make_model: MakeModel = make_regressor,
    out: Path | None = None,
    quiet: bool = False,
    source: str = "",
    example: Example | None = None,
    validation: Table | None = None,
    errors: bool = False,
    explain: bool = False,
) -> Result:
    """Search, print the result and write it to the folder `out`.

    `settings` are parameters of PSERegressor. `source` names the table in the files. `validation`: rows that the search
    does not see, to choose the law on. `errors`: print the standard errors of the law's constants. `explain`: print
    what the moves of the search did.
    """
    from symenum.selection import rule_while_searching

    rule = rule_while_searching(settings["model_selection"])
    recorder = _Recorder()
    if out is not None:
        place = RunPlace(out, table.target, table.columns, source, results=False)
        settings = {**settings, "run_dir": place}
    progress = observer_for_command(lambda report: table.target, rule, settings["max_time"], quiet=quiet)
    model, failure = _search(make_model, table, settings, validation, recorder, progress)
    result = _result(table, settings, rule, source, model, recorder.last, failure)
    problems = []
    if failure and not result.interrupted:
        problems.append(f"The search failed ({failure}); this is what it had found.")
    with ctrl_c_ignored():
        if errors and model is not None:
            result, problem = _with_errors(result, model)
            problems += problem
        if model is not None and (out is not None or not quiet):
            result, problem = _with_confidence(result, model, settings["model_selection"])
            problems += problem
        problems += _deliver(result, table, RunSummary.of(model, recorder.last), out, quiet, example)
        if table.y_error is not None and model is not None and not quiet:
            squared = result.settings.get("loss", "mse") == "mse"
            problems += _print(weighted_loss_text(result.target, squared=squared))
            problems += _print(_chi_square_line(model, len(table.y)))
        if result.confidence and not quiet:
            problems += _print("\n".join(result.confidence))
        if settings.get("groups") is not None and model is not None and not quiet:
            problems += _print(f"\n{model.constants_.to_string()}")
        if settings.get("shape") is not None and model is not None and not quiet:
            problems += _print("\n".join(model.shape_lines()))
        if settings.get("units") is not None and model is not None and not quiet:
            problems += _print("\n".join(model.unit_lines()))
        if result.errors is not None:
            problems += _print("\n".join(error_lines(result.errors)))
        if explain and model is not None:
            from symenum.display.schedule import schedule_text

            problems += _print("\n" + schedule_text(model.schedule_))
    if problems:
        raise Failure(" ".join(problems))
    return result


def _search(
    make_model: MakeModel,
    table: Table,
    settings: Mapping[str, Any],
    validation: Table | None,
    recorder: _Recorder,
    progress: Observer,
) -> tuple[Model | None, str | None]:
    """The fitted model, or None and why the search failed after its first step; an earlier error is raised."""
    try:
        search = make_model(callbacks=[recorder, progress], **settings)
        with sigterm_as_ctrl_c(), progress:
            held_out = {} if validation is None else {"validation": (validation.X, validation.y, validation.weights)}
            return search.fit(table.X, table.y, sample_weight=table.weights, **held_out, **table.fit_arguments), None
    except (Exception, KeyboardInterrupt) as error:
        if recorder.last is None:
            raise _error_before_first_step(error) from error
        if isinstance(error, KeyboardInterrupt):
            return None, _INTERRUPTED
        if isinstance(error, ClusterError):  # it says what was tried; our frames would say nothing to anybody
            return None, f"{error}"
        click.echo("".join(traceback.format_exception(error)), err=True)
        return None, f"{type(error).__name__}: {error}"


def _result(
    table: Table,
    settings: Mapping[str, Any],
    rule: str,
    source: str,
    model: Model | None,
    last: Any,
    failure: str | None,
) -> Result:
    """The result of a fitted model; without one, that of the last report, with the law that `rule` chooses."""
    front = last.front if model is None else model.front_
    from symenum.estimator.grouped_files import groups_document

    grouped = getattr(model, "grouped_", None)
    constants = () if grouped is None else grouped.all_names[len(grouped.names) :]
    names: tuple[str, ...] = tuple(table.X.columns)
    columns: tuple[str | None, ...] = table.columns
    if grouped is not None:  # as in files of `save`: the columns without that of the groups, then the constants
        kept = [(name, column) for name, column in zip(names, columns, strict=True) if name != grouped.column]
        names = (*(name for name, _ in kept), *constants)
        columns = (*(column for _, column in kept), *(None for _ in constants))
    return Result(
        target=table.target,
        names=names,
        columns=columns,
        laws=rows_of(front),
        selected=front.select(rule) if model is None else model.selected_index_,
        settings={**_plain_settings(settings), "operators": _operator_names(settings["operators"])},
        stop_reason=(failure or "") if model is None else model.stop_reason_,
        interrupted=failure == _INTERRUPTED if model is None else model.interrupted_,
        rows=len(table.y),
        source=source,
        run=RunSummary.of(model, last),
        encoding=table.encoding,
        groups=None if grouped is None else groups_document(grouped),
    )


def _with_errors(result: Result, model: Model) -> tuple[Result, list[str]]:
    """The result with the standard errors of its constants, and what went wrong: that must not cost the result."""
    try:
        return replace(result, errors=fitted_numbers(model.uncertainties())), []
    except (ArithmeticError, RuntimeError, ValueError, MemoryError) as error:
        return result, [f"The standard errors could not be computed ({type(error).__name__}: {error})."]


def _with_confidence(result: Result, model: Model, rule: str) -> tuple[Result, list[str]]:
    """The result with how sure its choice is, and what went wrong: that must not cost the result."""
    try:
        return replace(result, confidence=stated_confidence(model, rule)), []
    except (ArithmeticError, RuntimeError, ValueError, MemoryError) as error:
        return result, [f"How sure the choice is could not be computed ({type(error).__name__}: {error})."]


def _deliver(
    result: Result, table: Table, summary: RunSummary, out: Path | None, quiet: bool, example: Example | None
) -> list[str]:
    """Print and write the result. Returns what went wrong: an error of one must not prevent the other."""
    lines = [f"{result.target} = {result.law.written}"] if quiet else _result_lines(result, table, example)
    problems = _print("\n".join(lines))
    if out is None:
        return problems
    try:
        written = [*write_results(out, result), out / REPORT]
        write_whole(out / REPORT, fit_report(result, table, summary))
        if not quiet:
            say(f"Written to '{out}': {', '.join(path.name for path in written)}.")
    except (OSError, ValueError) as error:  # ValueError: text that the file system cannot encode
        why = getattr(error, "strerror", None) or error
        problems += [
            f"The results could not be written to '{out}' ({why}). They are printed above: copy them from there.",
            *_print(f"\n{front_csv(result.laws)}"),  # with every digit, as the file would have it
        ]
    return problems


def _print(text: str) -> list[str]:
    """Print to stdout; returns what went wrong, if anything."""
    try:
        click.echo(text)
    except OSError as error:
        return [f"The result could not be printed ({error.strerror or error})."]
    return []


def _result_lines(result: Result, table: Table, example: Example | None) -> list[str]:
    """The front, why the search ended, and the chosen law."""
    lines = text_table(result.laws, result.selected).splitlines()
    ended = (
        "You ended the search; this is what it had found." if result.interrupted else f"Ended: {result.stop_reason}."
    )
    lines += ["", ended, f"{_r_squared(result, table)}The law:", f"{result.target} = {result.law.written}"]
    short = short_text(result.law.expression)
    if short != str(result.law.written):
        lines += ["With five digits of each constant:", f"{result.target} = {short}"]
    if example is not None and example.target == result.target:
        lines.append(f"{example.known}; on these rows the two differ by {_difference(result.law, table, example):.2%}.")
    return lines


def _chi_square_line(model: Any, rows: int) -> str:
    """A sentence with the chi-square of the chosen law, and what to think of it."""
    row = model.equations_.iloc[model.selected_index_]
    total, reduced = float(row["chi_square"]), float(row["reduced_chi_square"])
    each = f"{reduced:.3g} for each degree of freedom (about 1 where law and errors are right)"
    return f"Chi-square {total:.4g} on {rows:,} rows: {each}."


def _r_squared(result: Result, table: Table) -> str:
    """A sentence with R², which follows from the mean squared error; "" for another loss."""
    import numpy

    from symenum.core.exactness import overflow_allowed

    if result.settings.get("loss", "mse") != "mse":
        return ""
    weights = table.row_weights
    with overflow_allowed():
        mean = numpy.average(table.y, weights=weights)
        variance = float(numpy.average((table.y - mean) ** 2, weights=weights))
    if not 0 < variance < float("inf"):  # the squares of very small values are zero, those of very large ones infinite
        return ""
    return f"{r_squared_text(result.law.loss / variance)}. "


def _difference(law: LawRow, table: Table, example: Example) -> float:
    """The largest relative difference between the law and the known law on the rows of the table."""
    from symenum.expressions import parse, to_callable

    found, known = (to_callable(tree, tuple(table.X.columns))(table.X) for tree in (law.expression, parse(example.law)))
    return float(abs(found / known - 1).max())


class _Recorder:
    """A callback that holds the last report: what was found before a search fails."""

    def __init__(self) -> None:
        self.last: Any = None

    def __call__(self, report: Report) -> None:
        self.last = report


def _error_before_first_step(error: BaseException) -> BaseException:
    """What to raise for an error before anything was found."""
    if isinstance(error, KeyboardInterrupt):
        return click.Abort()
    if isinstance(error, (ValueError, TypeError)):
        return InputError(in_options(str(error)))
    if isinstance(error, ClusterError):
        return Failure(f"{error}.")
    if isinstance(error, MemoryError):
        return Failure(f"Memory does not suffice: use fewer rows, --features, --layers or --inputs. {error}")
    from symenum.core.devices import DeviceLostError

    if isinstance(error, DeviceLostError):
        return Failure(f"The GPU failed: use --device cpu. {error}")
    return error


def _plain_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as model.json can hold them: paths as text, and without the folder that it lies in."""
    kept = {name: value for name, value in settings.items() if name != "run_dir"}
    return {name: str(value) if isinstance(value, Path) else value for name, value in kept.items()}


def _operator_names(operators: str | list[str]) -> list[str]:
    from symenum.operators import get_operators

    return [operator.name for operator in get_operators(operators)]
