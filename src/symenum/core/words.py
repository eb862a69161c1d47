"""The nearest known word to one that is not known: the hint behind every "unknown …" message."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

__all__ = ["did_you_mean", "looks_like", "nearest"]

# A share of equal letters (difflib's ratio): "sine" and "sin" have 0.86, two words that share nothing have 0.
_LIKENESS = 0.5
_SAME_WORD = 0.75  # the same share from which one word is the other with a typo: "mass0" and "mass" have 0.89
_SHORTEST_PART = 3  # letters from which the beginning of a word stands for it: "temp" for "temperature"


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


def looks_like(word: str, known: Iterable[str]) -> str | None:
    """The known word that `word` may have been meant for: with a typo, cut short, or with another number at its end.

    >>> looks_like("tempertaure", ["temperature"]), looks_like("x9", ["x1", "x2"]), looks_like("rate", ["mass"])
    ('temperature', 'x1', None)
    """
    listed = list(known)
    close = nearest(word, listed, _SAME_WORD)
    if close is not None:
        return close
    for name in listed:
        short, long = sorted((word.casefold(), name.casefold()), key=len)
        if len(short) >= _SHORTEST_PART and long.startswith(short):
            return name
        if name != _stem(name) and _stem(name) == _stem(word) != word:
            return name
    return None


def _stem(word: str) -> str:
    """The word without the digits at its end."""
    return re.sub(r"[0-9]+$", "", word)
