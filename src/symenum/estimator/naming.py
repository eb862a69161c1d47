"""Refusals that name the argument: scikit-learn's checks do not always say which one they are about."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

__all__ = ["check_columns", "naming_arguments"]

_NAMED = re.compile(r"\b(X|y|feature names|sample_weight)\b")


def check_columns(X: object) -> None:
    """Refuse a table of which two columns have one name: a law could not say which of them it means."""
    names = [str(name) for name in getattr(X, "columns", ())]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        shown = ", ".join(f"{name!r:.40}" for name in twice[:3]) + (", …" if len(twice) > 3 else "")
        raise ValueError(f"X has more than one column of the name {shown}: rename them")


@contextmanager
def naming_arguments(y: object) -> Iterator[None]:
    """Inside, a ValueError or TypeError of the checks of X and y names the one that it is about."""
    try:
        yield
    except (ValueError, TypeError) as error:
        if _NAMED.search(str(error)):
            raise
        raise type(error)(f"{'X' if _is_numbers(y) else 'y'}: {error}") from error


def _is_numbers(y: object) -> bool:
    try:
        values = np.asarray(y)
        return not np.iscomplexobj(values) and bool(np.isfinite(values.astype(np.float64)).all())
    except (ValueError, TypeError):
        return False
