"""Warnings that name the user's line: the one that called into the package, however deep the cause was found."""

from __future__ import annotations

import sys
import warnings

__all__ = ["warn_user"]

_BETWEEN = {"symenum", "sklearn", "contextlib", "functools", "threading"}  # packages whose frames are not the user's


def warn_user(text: str, category: type[Warning] = UserWarning) -> None:
    """`warnings.warn`, whose line and file are those of the nearest caller outside the package.

    In a thread of the package there is none; then it is the outermost frame.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] in _BETWEEN:
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)
