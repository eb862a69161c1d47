"""Matplotlib, asked for only when something is drawn."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

__all__ = ["ACCENT", "DOTS", "make_figure", "new_axes"]

# Blue dots and a vermilion line: they differ for colour-blind eyes too (Okabe and Ito).
DOTS, ACCENT = "#0072B2", "#D55E00"


def _needed() -> None:
    if find_spec("matplotlib") is None:
        raise ImportError("plots need matplotlib, which is not installed: pip install 'symenum[plot]'")


def new_axes(given: Any) -> Any:
    """The axes that the caller has, or those of a new figure of pyplot, which a notebook shows by itself."""
    if given is not None:
        return given
    _needed()
    from matplotlib import pyplot

    _, axes = pyplot.subplots(figsize=(6.4, 4.0), layout="constrained")
    return axes


def make_figure(height: float) -> Any:
    """A figure that no window shows, for files."""
    _needed()
    from matplotlib.figure import Figure

    return Figure(figsize=(8.0, height), layout="constrained")
