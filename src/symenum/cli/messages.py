"""What commands write to stderr: notes, and the two errors that end a command with a message and no traceback."""

from __future__ import annotations

from collections.abc import Iterable

import click

from symenum.core.words import nearest

__all__ = ["Failure", "InputError", "did_you_mean", "say", "silent"]


class InputError(click.ClickException):
    """The request or the data cannot be used as they are; the message says what to change."""

    exit_code = 2


class Failure(click.ClickException):
    """The request was fine, but something failed while it was carried out."""

    exit_code = 1


def did_you_mean(word: str, known: Iterable[str], likeness: float = 0.5) -> str:
    """A question that names the nearest known word, or "" if none is as near as `likeness` (from 0 to 1)."""
    found = nearest(word, known, likeness)
    return "" if found is None else f" Did you mean {found!r}?"


def say(message: str) -> None:
    """Write a line to stderr: stdout is for results."""
    click.echo(message, err=True)


def silent(message: str) -> None:
    """What --quiet uses instead of `say`: writes nothing."""
