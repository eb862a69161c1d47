"""Options: checks that click does not have, each the callback of an option, and what several commands share."""

from __future__ import annotations

import math
from collections.abc import Sequence

import click

__all__ = ["MODEL_SELECTIONS", "assignments", "memory", "non_negative", "seconds", "split_list", "was_given"]

# Those of the estimator, whose module would import torch; a test compares them.
MODEL_SELECTIONS = ("best", "accuracy", "reward", "mdl", "validation", "kfold")


def seconds(context: click.Context, option: click.Parameter, value: str | None) -> float | None:
    """A time limit: a number above zero, or None for "none"."""
    if value is None or value.strip().lower() == "none":
        return None
    number = _number(value)
    if not 0 < number < math.inf:
        raise click.BadParameter(f"{value!r} is no time limit: give seconds above 0, such as 60, or 'none'.")
    return number


def non_negative(context: click.Context, option: click.Parameter, value: str | None) -> float | None:
    """A finite number of at least zero, where one is given."""
    if value is None:
        return None
    number = _number(value)
    if not 0 <= number < math.inf:
        raise click.BadParameter(f"{value!r} must be a number of 0 or more, such as 1e-6.")
    return number


def assignments(context: click.Context, option: click.Parameter, values: Sequence[str]) -> dict[str, float]:
    """Numbers by name, of an option that may be repeated: g=9.81."""
    found: dict[str, float] = {}
    for value in values:
        name, sign, text = value.partition("=")
        number = _number(text)
        if not sign or not name.strip() or not math.isfinite(number):
            raise click.BadParameter(f"{value!r} must be a name and a number, such as g=9.81.")
        found[name.strip()] = number
    return found


def memory(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """A size such as 2GB, where one is given."""
    if value is not None:
        from symenum.enumeration.memory import memory_limit

        try:
            memory_limit(value)
        except ValueError as error:
            raise click.BadParameter(f"{error}.") from error
    return value


def was_given(context: click.Context, option: str) -> bool:
    """Whether the user has set the option, be it to its default."""
    return context.get_parameter_source(option) != click.core.ParameterSource.DEFAULT


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def split_list(values: Sequence[str]) -> tuple[str, ...]:
    """Words of options that may be repeated or hold several words with commas between them."""
    return tuple(word for value in values for part in value.split(",") if (word := part.strip()))
