"""Matplotlib, asked for only when something is drawn."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

__all__ = ["ACCENT", "DOTS", "new_axes", "new_panels"]

# Blue dots and a vermilion line: they differ for colour-blind eyes too (Okabe and Ito).
DOTS, ACCENT = "#0072B2", "#D55E00"


def new_axes(given: Any) -> Any:
    """The axes that the caller has, or those of a new figure."""
    return given if given is not None else new_panels(1, 4.0)[0]


def new_panels(count: int, height: float) -> list[Any]:
    """Axes one below the other in a new figure of pyplot, which a notebook shows by itself."""
    if find_spec("matplotlib") is None:
        raise ImportError("plots need matplotlib, which is not installed: pip install 'symenum[plot]'")
    from matplotlib import pyplot

    _, axes = pyplot.subplots(count, 1, sharex=True, squeeze=False, figsize=(6.4, height), layout="constrained")
    return list(axes[:, 0])
