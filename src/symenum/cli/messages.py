"""What commands write to stderr: notes, and the two errors that end a command with a message and no traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import click

__all__ = ["Failure", "InputError", "did_you_mean", "say", "silent"]


class InputError(click.ClickException):
    """The request or the data cannot be used as they are; the message says what to change."""

    exit_code = 2


class Failure(click.ClickException):
    """The request was fine, but something failed while it was carried out."""

    exit_code = 1


def did_you_mean(word: str, known: Iterable[str], likeness: float = 0.5) -> str:
    """A question that names the nearest known word, or "" if none is as near as `likeness` (from 0 to 1)."""
    by_case = {name.casefold(): name for name in known}
    close = difflib.get_close_matches(word.casefold(), list(by_case), n=1, cutoff=likeness)
    return f" Did you mean {by_case[close[0]]!r}?" if close else ""


def say(message: str) -> None:
    """Write a line to stderr: stdout is for results."""
    click.echo(message, err=True)


def silent(message: str) -> None:
    """What --quiet uses instead of `say`: writes nothing."""
