"""The front as tables: a DataFrame to work with, and text to read."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING

from symenum.display.rows import MARK, LawRow, short_text

if TYPE_CHECKING:
    import pandas

__all__ = ["equations_table", "terminal_width", "text_table"]

_NARROWEST = 60  # characters; a narrower terminal wraps the lines
_ALIKE = "   ~"


def equations_table(
    laws: Sequence[LawRow], names: Sequence[str], validation: Sequence[float] | None = None
) -> pandas.DataFrame:
    """One row for each law, in PySR's columns; `lambda_format` takes arrays (rows, features).

    `validation`: the laws' losses on rows that were held out, for a column of their own.
    """
    import pandas

    from symenum.expressions import to_callable, to_sympy

    held_out = {} if validation is None else {"validation_loss": list(validation)}
    return pandas.DataFrame(
        {
            "complexity": [law.complexity for law in laws],
            "loss": [law.loss for law in laws],
            **held_out,
            "score": [law.score for law in laws],
            "reward": [law.reward for law in laws],
            "equation": [str(law.expression) for law in laws],
            "sympy_format": [to_sympy(law.expression) for law in laws],
            "lambda_format": [to_callable(law.expression, names) for law in laws],
        }
    )


def text_table(
    laws: Sequence[LawRow], selected: int | None, *, width: int | None = None, alike: Sequence[bool] = ()
) -> str:
    """The front as text, >>>> at the chosen row; constants are rounded, and lines longer than `width` are cut.

    `alike`: rows that the data cannot tell from the chosen one, marked with ~.
    """
    lines = [_line("", ("complexity", "loss", "score"), "equation")]
    for i, law in enumerate(laws):
        mark = MARK if i == selected else _ALIKE if i < len(alike) and alike[i] else ""
        lines.append(_line(mark, law.numbers(), short_text(law.expression)))
    return "\n".join(line if width is None or len(line) <= width else f"{line[: width - 1]}…" for line in lines)


def terminal_width() -> int:
    """Characters of a line on this terminal, or 120 where there is none."""
    return max(_NARROWEST, shutil.get_terminal_size((120, 24)).columns)


def _line(mark: str, numbers: tuple[str, str, str], law: str) -> str:
    complexity, loss, score = numbers
    return f"{mark:4} {complexity:>10} {loss:>11} {score:>11}  {law}"
