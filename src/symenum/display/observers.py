"""Which observer suits the place: a terminal, a notebook, a file, or nobody."""

from __future__ import annotations

import sys
from typing import TextIO

from symenum.display.notebook import NotebookTable, in_notebook
from symenum.display.progress import Lines, Observer, Quiet, Title
from symenum.display.terminal import LiveTable

__all__ = ["for_command", "for_estimator"]


def for_command(title: Title, rule: str, max_time: float | None, *, quiet: bool, several: bool = False) -> Observer:
    """For the command line, whose results go to stdout and all else to stderr. `several`: laws of several states."""
    if quiet:
        return Quiet()
    screen = all(stream is not None and stream.isatty() for stream in (sys.stdout, sys.stderr))
    return _on(sys.stderr, screen, title, rule, max_time, several)


def for_estimator(
    title: Title, rule: str, max_time: float | None, *, verbose: bool | int, several: bool = False
) -> Observer:
    """For an estimator: its own output in a notebook, a table on a terminal, lines elsewhere."""
    if not verbose:
        return Quiet()
    if in_notebook():
        return NotebookTable(title, rule)
    return _on(sys.stdout, sys.stdout is not None and sys.stdout.isatty(), title, rule, max_time, several)


def _on(
    stream: TextIO | None, screen: bool, title: Title, rule: str, max_time: float | None, several: bool
) -> Observer:
    if stream is None:  # closed by the shell
        return Quiet()
    if not screen:
        return Lines(stream, rule, title if several else None)
    from rich.console import Console

    return LiveTable(Console(file=stream, highlight=False), title, rule, max_time)
