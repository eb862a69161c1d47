"""`symenum fit`: a file in, the front of laws out.

The order of work keeps what was found: the folder for results is tried first, the front is printed before it is
written, and it is printed even if the search itself fails.
"""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import click

from symenum.cli.errors import Failure, InputError
from symenum.cli.examples import EXAMPLES, Example
from symenum.cli.live import LineProgress, LiveProgress, NoProgress, Progress
from symenum.cli.options import non_negative, seconds, split_list
from symenum.cli.outputs import PARTIAL, front_csv, prepare, write_results, write_whole
from symenum.cli.results import Law, Model, Report, Result, front_lines, laws_of
from symenum.cli.tables import Choice, Table, choose, read_frame

__all__ = ["fit", "run_fit"]

MakeModel = Callable[..., Model]


def _make_model(**settings: Any) -> Model:
    from symenum import PSERegressor

    model: Model = PSERegressor(**settings)
    return model


@click.command(no_args_is_help=True)
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
    "--stop-loss", metavar="NUMBER", callback=non_negative, help="Mean squared error that is good enough to end."
)
@click.option("--operators", default="koza", show_default=True, help='A set\'s name, or a list such as "+,*,sin".')
@click.option("--constants/--no-constants", default=True, show_default=True, help="Whether laws may hold constants.")
@click.option("--max-complexity", type=click.IntRange(min=0), default=50, show_default=True, help="Of a law.")
@click.option(
    "--model-selection",
    type=click.Choice(["best", "accuracy", "reward", "mdl"]),
    default="best",
    show_default=True,
    help="How the law is chosen from the front.",
)
@click.option("--token-generator", type=click.Choice(["gp", "mcts", "random"]), default="gp", show_default=True)
@click.option(
    "--top-k", type=click.IntRange(min=1), default=30, show_default=True, help="Candidates kept of each pass."
)
@click.option("--layers", type=click.IntRange(min=1), help="Layers of the network. [default: chosen]")
@click.option("--inputs", type=click.IntRange(min=1), help="Inputs of the network. [default: chosen]")
@click.option("--device", default="auto", show_default=True, help="'auto' or 'cpu'; see symenum devices.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="For results that repeat; also set --max-iterations.")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), help="Folder for front.csv, model.json, law.txt, law.tex."
)
@click.option("-q", "--quiet", is_flag=True, help="Print the law only.")
@click.option("--example", type=click.Choice(sorted(EXAMPLES)), help="Search a table that comes with symenum.")
@click.pass_context
def fit(
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
    quiet: bool,
    example: str | None,
    operators: str,
    **settings: Any,
) -> None:
    """Search for the law of a column of DATA: a table as CSV, TSV, text or Parquet.

    The front of laws, from simple to accurate, and the one to believe are printed at the end. Ctrl-C ends the search
    early and keeps what was found.
    """
    note = _silent if quiet else _say
    if (data is None) == (example is None):
        raise click.UsageError("Name one file with a table, such as data.csv, or an --example.")
    shown = EXAMPLES[example] if example is not None else None
    if shown is not None:
        target, drop = target or shown.target, drop or shown.drop
        if context.get_parameter_source("max_time") == click.core.ParameterSource.DEFAULT:
            settings["max_time"] = shown.max_time
    if out is not None:
        prepare(out)
    choice = Choice(target, features or None, drop, weights, drop_nan)
    with _path(data, shown) as path:
        where = f"'{path.name}'"
        frame = read_frame(path, note, header=header, delimiter=delimiter)
        table = choose(frame, choice, note, where)
    if shown is not None:
        note(shown.story)
    run_fit(
        table,
        {"operators": _operators(operators), "random_state": seed, **settings},
        out=out,
        quiet=quiet,
        source="" if data is None else str(data),
        make_model=context.obj or _make_model,
        example=shown,
    )


def run_fit(
    table: Table,
    settings: Mapping[str, Any],
    *,
    make_model: MakeModel = _make_model,
    out: Path | None = None,
    quiet: bool = False,
    source: str = "",
    example: Example | None = None,
) -> Result:
    """Search, print, write. `make_model` takes the settings of PSERegressor and gives an estimator."""
    rule = settings["model_selection"]
    recorder = _Recorder(None if out is None else out / PARTIAL)
    progress = _progress(table, rule, settings["max_time"], quiet)
    model: Model | None = None
    failure: str | None = None
    try:
        model = make_model(callbacks=[recorder, progress], **settings)
        with _terminated_like_interrupted(), progress:
            model.fit(table.X, table.y, sample_weight=table.weights)
    except (Exception, KeyboardInterrupt) as error:
        if recorder.front is None:
            raise _beginning_failed(error) from error
        failure = "interrupted" if isinstance(error, KeyboardInterrupt) else f"{type(error).__name__}: {error}"
        if not isinstance(error, KeyboardInterrupt):
            click.echo("".join(traceback.format_exception(error)), err=True)
    front = recorder.front if failure is not None or model is None else model.front_
    interrupted = failure == "interrupted" or (model is not None and getattr(model, "interrupted_", False))
    reason = failure if failure is not None or model is None else model.stop_reason_
    result = Result(
        target=table.target,
        names=tuple(table.X.columns),
        columns=table.columns,
        laws=laws_of(front),
        selected=front.select(rule),
        settings={**settings, "operators": _spelled(settings["operators"])},
        stop_reason=reason or "",
        interrupted=bool(interrupted),
        rows=len(table.y),
        source=source,
    )
    problems = [f"The search failed ({failure}); this is what it had found."] if failure and not interrupted else []
    problems += _deliver(result, table, out, quiet, example)
    if problems:
        raise Failure(" ".join(problems))
    return result


def _deliver(result: Result, table: Table, out: Path | None, quiet: bool, example: Example | None) -> list[str]:
    """Print and write the result; what went wrong is given back, since one must not keep the other from happening."""
    problems: list[str] = []
    lines = [f"{result.target} = {result.law.expression}"] if quiet else _summary(result, table, example)
    try:
        click.echo("\n".join(lines))
    except OSError as error:
        problems.append(f"The result could not be printed ({error.strerror or error}).")
    if out is None:
        return problems
    try:
        written = write_results(out, result)
        if not quiet:
            _say(f"Written to '{out}': {', '.join(path.name for path in written)}.")
    except OSError as error:
        if quiet:
            click.echo("\n".join(front_lines(result.laws, result.selected)))
        problems.append(
            f"The results could not be written to '{out}' ({error.strerror or error}). They are printed above: "
            "copy them from there."
        )
    return problems


def _summary(result: Result, table: Table, example: Example | None) -> list[str]:
    lines = front_lines(result.laws, result.selected)
    ended = (
        "You ended the search; this is what it had found." if result.interrupted else f"Ended: {result.stop_reason}."
    )
    lines += ["", ended, f"{result.target} = {result.law.expression}{_explained(result.law, table)}"]
    if example is not None:
        from symenum.expressions import parse, same_function

        same = same_function(result.law.expression, parse(example.law))
        lines.append(f"{example.known}: {'the same law' if same else 'not the same law'}.")
    return lines


def _explained(law: Law, table: Table) -> str:
    import numpy

    mean = numpy.average(table.y, weights=table.weights)
    variance = float(numpy.average((table.y - mean) ** 2, weights=table.weights))
    return f"    (R² = {1 - law.loss / variance:.8g})" if variance > 0 else ""


class _Recorder:
    """Keeps the last front, in memory and, if there is a path, on the disk: a power cut must not lose it either."""

    def __init__(self, path: Path | None) -> None:
        self.front: Any = None
        self._path = path
        self._written = ""

    def __call__(self, report: Report) -> None:
        self.front = report.front
        if self._path is None:
            return
        text = front_csv(laws_of(report.front))
        if text == self._written:
            return
        try:
            write_whole(self._path, text)
            self._written = text
        except OSError as error:
            _say(f"'{self._path}' could not be written ({error.strerror or error}); the search goes on.")
            self._path = None


def _beginning_failed(error: BaseException) -> BaseException:
    """What to raise for an error before anything was found."""
    if isinstance(error, KeyboardInterrupt):
        return click.Abort()
    if isinstance(error, (ValueError, TypeError)):
        return InputError(str(error))
    if isinstance(error, MemoryError):
        return Failure(f"Memory does not suffice: use fewer rows, --features, --layers or --inputs. {error}")
    return error


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """SIGTERM, which `timeout` and job queues send, ends the search as Ctrl-C does: with its results."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _path(data: Path | None, example: Example | None) -> Iterator[Path]:
    if example is None:
        assert data is not None
        yield data
    else:
        with as_file(files("symenum.data").joinpath(example.file)) as path:
            yield path


def _progress(table: Table, rule: str, max_time: float | None, quiet: bool) -> Progress:
    if quiet:
        return NoProgress()
    if not (sys.stdout.isatty() and sys.stderr.isatty()):
        return LineProgress(sys.stderr, rule)
    from rich.console import Console

    return LiveProgress(Console(stderr=True, highlight=False), table.target, rule, max_time)


def _operators(text: str) -> str | list[str]:
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


def _spelled(operators: str | list[str]) -> list[str]:
    from symenum.operators import get_operators

    return [operator.name for operator in get_operators(operators)]


def _say(message: str) -> None:
    click.echo(message, err=True)


def _silent(message: str) -> None:
    return None
