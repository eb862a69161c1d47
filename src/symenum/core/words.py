"""The nearest known word to one that is not known: the hint behind every "unknown …" message."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["did_you_mean", "nearest"]

# A share of equal letters (difflib's ratio): "sine" and "sin" have 0.86, two words that share nothing have 0.
_LIKENESS = 0.5


def nearest(word: str, known: Iterable[str], likeness: float = _LIKENESS) -> str | None:
    """The known word most like `word`, whatever the case of letters; None if none is at least as like as `likeness`.

    >>> nearest("Sine", ["sin", "exp"])
    'sin'
    """
    by_case = {name.casefold(): name for name in known}
    close = difflib.get_close_matches(word.casefold(), list(by_case), n=1, cutoff=likeness)
    return by_case[close[0]] if close else None


def did_you_mean(word: str, known: Iterable[str], likeness: float = _LIKENESS) -> str:
    """Text " (did you mean 'sin'?)" to stand behind an unknown word, or nothing where no known word is near."""
    found = nearest(word, known, likeness)
    return f" (did you mean {found!r}?)" if found is not None else ""
