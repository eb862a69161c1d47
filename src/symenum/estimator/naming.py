"""Refusals of scikit-learn's checks that do not say which argument they are about, with its name put before."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

__all__ = ["naming_arguments"]

_NAMED = re.compile(r"\b(X|y|feature names|sample_weight)\b")


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
        return bool(np.isfinite(np.asarray(y, dtype=np.float64)).all())
    except (ValueError, TypeError):
        return False
