"""Types of options that click does not have."""

from __future__ import annotations

import math
from collections.abc import Sequence

import click

__all__ = ["NonNegative", "Seconds", "split_list"]


class Seconds(click.ParamType):
    """A time limit: a number above zero, or "none"."""

    name = "seconds"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float | None:
        if isinstance(value, str) and value.strip().lower() == "none":
            return None
        number = _number(value)
        if number is None or not 0 < number < math.inf:
            self.fail(f"{value!r} is no time limit: give seconds above 0, such as 60, or 'none'", param, ctx)
        return number


class NonNegative(click.ParamType):
    """A finite number of at least zero."""

    name = "number"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = _number(value)
        if number is None or not 0 <= number < math.inf:
            self.fail(f"{value!r} must be a number of 0 or more, such as 1e-6", param, ctx)
        return number


def _number(value: object) -> float | None:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def split_list(values: Sequence[str]) -> tuple[str, ...]:
    """Words of options that may be repeated or hold several words with commas between them."""
    return tuple(word for value in values for part in value.split(",") if (word := part.strip()))
