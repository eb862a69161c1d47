"""What the server answers: JSON without the numbers that JSON lacks, and errors as sentences that say what to do."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

__all__ = ["RequestError", "json_answer", "plain"]


class RequestError(Exception):
    """A request that cannot be served: the HTTP status, and a sentence that says what to do."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence


def plain(value: Any) -> Any:
    """The value as JSON can hold it: infinity and NaN become None, tuples lists.

    >>> plain({"loss": float("inf"), "laws": (1.5, "x")})
    {'loss': None, 'laws': [1.5, 'x']}
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return str(value)


def json_answer(value: Any, status: int = 200) -> Response:
    """The answer with this value."""
    text = json.dumps(plain(value), allow_nan=False, separators=(",", ":"))
    return Response(text, status, media_type="application/json", headers={"Cache-Control": "no-store"})
