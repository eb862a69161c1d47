"""The front as tables: a DataFrame to work with, and text to read."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

import pandas

from symenum.expressions import to_callable, to_sympy, to_text
from symenum.front import Front

__all__ = ["equations_table", "print_table"]

_NARROWEST = 60
_DIGITS = 5  # of constants, in what is printed; equations_ has them all


def equations_table(front: Front, names: Sequence[str], validation: Sequence[float] | None = None) -> pandas.DataFrame:
    """One row for each law, in PySR's columns; `lambda_format` takes arrays (rows, features).

    `validation`: the laws' losses on rows that were held out, for a column of their own.
    """
    held_out = {} if validation is None else {"validation_loss": list(validation)}
    return pandas.DataFrame(
        {
            "complexity": [entry.complexity for entry in front],
            "loss": [entry.loss for entry in front],
            **held_out,
            "score": front.scores(),
            "reward": front.rewards(),
            "equation": [str(entry.expression) for entry in front],
            "sympy_format": [to_sympy(entry.expression) for entry in front],
            "lambda_format": [to_callable(entry.expression, names) for entry in front],
        }
    )


def print_table(front: Front, selected: int) -> str:
    """The front as text, >>>> at the chosen row; long laws are cut to the width of the terminal."""
    width = max(_NARROWEST, shutil.get_terminal_size((120, 24)).columns)
    lines = ["     complexity        loss       score  equation"]
    for i, (entry, score) in enumerate(zip(front, front.scores(), strict=True)):
        mark = ">>>>" if i == selected else "    "
        line = f"{mark} {entry.complexity:>10} {entry.loss:>11.4g} {score:>11.4g}  {to_text(entry.expression, _DIGITS)}"
        lines.append(line if len(line) <= width else f"{line[: width - 1]}…")
    return "\n".join(lines)
