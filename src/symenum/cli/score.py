"""`symenum score`: fits the constants of the user's formula to a table, and prints how well it does."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from symenum.cli.messages import InputError, say, silent
from symenum.cli.options import assignment, assignments, in_options, parameter_options
from symenum.cli.tables import ColumnChoice, choose_columns, read_frame, table_path
from symenum.display.table import r_squared_text

if TYPE_CHECKING:
    from symenum.estimator import FittedForm

__all__ = ["score_command"]


@click.command("score", no_args_is_help=True)
@click.argument("data", type=click.Path(path_type=Path))
@click.argument("formula")
@click.option("-t", "--target", metavar="COLUMN", help="Column to explain: a name, or a number from 1. [default: last]")
@click.option("--drop", multiple=True, metavar="A,B,…", help="Columns to leave out.")
@click.option("--weights", metavar="COLUMN", help="Column with the weight of each row.")
@click.option("--one-hot", multiple=True, metavar="A,B,…", help="Columns of text to turn into columns of 0 and 1.")
@click.option(
    "--missing",
    type=click.Choice(("drop", "impute", "error")),
    default="drop",
    show_default=True,
    help="Rows with missing or infinite values: leave out, fill in medians, or refuse.",
)
@click.option("--drop-nan", is_flag=True, hidden=True, help="The same as --missing drop.")
@parameter_options("loss")
@click.option("--start", multiple=True, metavar="NAME=NUMBER", callback=assignments, help="Where a constant begins.")
@click.option(
    "--constant",
    multiple=True,
    metavar="NAME[=NUMBER]",
    help="A constant: with a number it keeps that value, without one it is fitted.",
)
@click.option("--fit-numbers", is_flag=True, help="Fit the formula's numbers with a decimal point too.")
@click.option("-q", "--quiet", is_flag=True, help="Print the law only, with all digits.")
def score_command(
    data: Path,
    formula: str,
    target: str | None,
    drop: tuple[str, ...],
    weights: str | None,
    one_hot: tuple[str, ...],
    missing: str,
    drop_nan: bool,
    loss: str,
    start: Mapping[str, float],
    constant: tuple[str, ...],
    fit_numbers: bool,
    quiet: bool,
) -> None:
    """Fit the constants of FORMULA to the table DATA, and say how well it does.

    Names in the formula that are no columns are its constants: symenum score data.csv --target y "a*x**2 + b". A name
    that looks like a column's is taken for a typo, unless --constant declares it.
    """
    fixed, fitted = _constants(constant)
    note = silent if quiet else say
    with table_path(data) as path:
        frame = read_frame(path, note)
        choice = ColumnChoice(target, None, drop, weights, "drop" if drop_nan else missing, one_hot=one_hot)
        table = choose_columns(frame, choice, note, f"'{path.name}'")
    if table.target in _names(formula):
        raise InputError(f"'{table.target}' is the column to explain: the formula is one of the other columns.")
    from symenum.estimator import fit_constants
    from symenum.estimator.formulas import UndeclaredNameError

    try:
        found = fit_constants(
            formula,
            table.X,
            table.y,
            table.weights,
            start={**dict.fromkeys(fitted), **start},
            constants=fixed,
            fit_numbers=fit_numbers,
            loss=loss,
        )
    except UndeclaredNameError as error:
        raise InputError(
            f"there is no column {error.name!r}. Did you mean {error.meant!r}? Constants must be declared with "
            f"--constant {error.name}, or be a single letter."
        ) from error
    except (ValueError, TypeError) as error:
        raise InputError(_in_options(str(error), fitted)) from error
    if found.loss == math.inf:
        raise InputError(
            f"'{formula}' has no finite values on all rows: look for a logarithm or a power of negative numbers and "
            "for a division by zero, or begin with other constants by --start."
        )
    click.echo(f"{table.target} = {found.expression}" if quiet else _report_text(found, table.target, loss))


def _names(formula: str) -> tuple[str, ...]:
    """The names in the formula; none where it cannot be read, which is said later."""
    from symenum.expressions import parse, variables

    try:
        return tuple(variables(parse(formula)))
    except ValueError:
        return ()


def _constants(given: Sequence[str]) -> tuple[dict[str, float], list[str]]:
    """The constants of --constant that keep their value, and the names of those that are fitted."""
    fixed: dict[str, float] = {}
    fitted: list[str] = []
    for text in given:
        name, sign, _ = text.partition("=")
        if not sign and name.strip().isidentifier():
            fitted.append(name.strip())
        else:
            fixed |= assignment(text)
    return fixed, fitted


def _in_options(message: str, fitted: Sequence[str]) -> str:
    """A message of `fit_constants` on a name in `start`, which is --start here, or --constant without a number."""
    for name in fitted:
        message = message.replace(f"start names {name!r}", f"--constant names {name!r}")
    return in_options(message).replace("start names", "--start names")


def _report_text(found: FittedForm, target: str, loss: str) -> str:
    from symenum.display.table import short_text

    lines = [f"{'constant':>10}  {'value':>14}  {'standard error':>14}"] if found.constants else []
    lines += [f"{name:>10}  {value:>14.8g}  {found.errors[name]:>14.2g}" for name, value in found.constants.items()]
    lines += [f"{loss} {found.loss:.6g}, complexity {found.complexity}, {r_squared_text(1 - found.r2)}", "The law:"]
    return "\n".join([*lines, f"{target} = {short_text(found.expression)}"])
