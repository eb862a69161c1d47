"""The laws of a front as rows, and the rows as a table: a DataFrame to work with, text to read.

Every display shows laws as `LawRow`s: estimator, command line, terminal, notebook and report. Nothing here imports
torch or pandas at once: the command line starts with this module.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pandas

    from symenum.expressions import Expression

__all__ = [
    "MARK",
    "Front",
    "LawRow",
    "equations_table",
    "r_squared_text",
    "rows_of",
    "selected_row",
    "short_text",
    "terminal_width",
    "text_table",
    "weighted_loss_text",
]

MARK = ">>>>"
"""Stands before the law that is chosen."""
_ALIKE_MARK = "   ~"  # as wide as MARK: stands before a law that the data cannot tell from the chosen one
_MIN_WIDTH = 60  # characters of a line: mark and numbers take 41 of them; a narrower terminal wraps the lines


class Front(Protocol):
    """The front of a search, as far as it is shown: entries by complexity ascending, each with a number per entry."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def scores(self) -> Sequence[float]: ...
    def rewards(self) -> Sequence[float]: ...
    def select(self, rule: str) -> int: ...


@dataclass(frozen=True)
class LawRow:
    """One law of a front with its numbers."""

    expression: Expression
    complexity: int
    loss: float
    score: float
    reward: float

    @property
    def written(self) -> Expression:
        """The law as people write it: what every output shows. `complexity` is that of the law as it was found."""
        from symenum.expressions import written

        return written(self.expression)

    def numbers(self) -> tuple[str, str, str]:
        """Complexity, loss and score, as they are printed."""
        return f"{self.complexity}", f"{self.loss:.4g}", f"{self.score:.4g}"


def rows_of(front: Front) -> tuple[LawRow, ...]:
    """The rows of a front, by complexity ascending."""
    return tuple(
        LawRow(entry.expression, int(entry.complexity), float(entry.loss), float(score), float(reward))
        for entry, score, reward in zip(front, front.scores(), front.rewards(), strict=True)
    )


def selected_row(front: Front, rule: str) -> int | None:
    """The index of the row that a rule picks; None for an empty front."""
    return front.select(rule) if len(front) else None


def short_text(expression: Expression) -> str:
    """The law as people write it, its constants rounded to five significant digits: to read, not to compute with."""
    from symenum.expressions import to_text, written
    from symenum.expressions.render import SHOWN_DIGITS

    return to_text(written(expression), SHOWN_DIGITS)


def equations_table(
    laws: Sequence[LawRow], names: Sequence[str], validation: Sequence[float] | None = None
) -> pandas.DataFrame:
    """One row for each law, in PySR's columns; `lambda_format` takes arrays (rows, features).

    `equation` is the law as people write it, with all digits.
    `validation`: the loss of each law on rows that were held out, for a column of its own.
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
            "equation": [str(law.written) for law in laws],
            "sympy_format": [to_sympy(law.expression) for law in laws],
            "lambda_format": [to_callable(law.expression, names) for law in laws],
        }
    )


def text_table(
    laws: Sequence[LawRow], selected: int | None, *, width: int | None = None, alike: Sequence[bool] = ()
) -> str:
    """The front as text, >>>> at the chosen row; constants are rounded, and lines longer than `width` are cut.

    `alike`: for each row, whether the data cannot tell it from the chosen one; such a row is marked with ~.
    """
    lines = [_line("", ("complexity", "loss", "score"), "equation")]
    for i, law in enumerate(laws):
        mark = MARK if i == selected else _ALIKE_MARK if i < len(alike) and alike[i] else ""
        lines.append(_line(mark, law.numbers(), short_text(law.expression)))
    return "\n".join(line if width is None or len(line) <= width else f"{line[: width - 1]}…" for line in lines)


def r_squared_text(unexplained: float) -> str:
    """R² = 1 - `unexplained`, the share of the variance of y that a law leaves; near 1 the text shows what is missing.

    >>> r_squared_text(0.25), r_squared_text(2e-7)
    ('R² = 0.75', 'R² = 1 - 2e-07')
    """
    shown_whole = unexplained > 1e-3 or unexplained == 0  # four digits show a share of 1e-3 and no less
    return f"R² = {1 - unexplained:.4g}" if shown_whole else f"R² = 1 - {unexplained:.2g}"


def weighted_loss_text(target: str, *, squared: bool) -> str:
    """What the loss is where the target has errors; `squared`: it is the mean squared error.

    >>> weighted_loss_text("y", squared=True)
    'The loss is the mean squared error, rows weighted by 1/error², in squared units of y.'
    """
    if squared:
        return f"The loss is the mean squared error, rows weighted by 1/error², in squared units of {target}."
    return "The loss is a mean over the rows, weighted by 1/error²."


def terminal_width() -> int | None:
    """Characters of a line on this terminal, at least 60; None in a file, a pipe or a notebook, where none is cut."""
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    return max(_MIN_WIDTH, shutil.get_terminal_size().columns)


def _line(mark: str, numbers: tuple[str, str, str], law: str) -> str:
    complexity, loss, score = numbers
    return f"{mark:4} {complexity:>10} {loss:>11} {score:>11}  {law}"
