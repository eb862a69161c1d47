"""Names in the text of a law."""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["rename"]

_NAME = re.compile(r"[A-Za-z_]\w*")


def rename(text: str, names: Mapping[str, str]) -> str:
    """The text with whole names replaced; functions and pi stay unless they are named too.

    >>> rename("x*exp(-x)/xy", {"x": "x1"})
    'x1*exp(-x1)/xy'
    """
    return _NAME.sub(lambda match: names.get(match.group(), match.group()), text)
