"""What each parameter of the estimator may be: one table, checked in `fit`, never in `__init__`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path

from symenum.estimator.validation import HELD_OUT
from symenum.front import MODEL_SELECTIONS

__all__ = ["as_callbacks", "check_parameters"]


@dataclass(frozen=True)
class Constraint:
    """A test and the words for what passes it."""

    allows: Callable[[object], bool]
    words: str


def _whole(least: int, *, or_none: bool = False) -> Constraint:
    def allows(value: object) -> bool:
        number = isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least
        return number or (or_none and value is None)

    return Constraint(allows, f"a whole number of at least {least}{' or None' if or_none else ''}")


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def _number(least: float, most: float = math.inf, *, open_below: bool = False, or_none: bool = False) -> Constraint:
    def allows(value: object) -> bool:
        if value is None:
            return or_none
        if not isinstance(value, Real) or not _is_number(value):
            return False
        number = float(value)
        return (least < number if open_below else least <= number) and number <= most

    below = "above" if open_below else "of at least"
    above = "" if most == math.inf else f" and at most {most:g}"
    return Constraint(allows, f"a number {below} {least:g}{above}{' or None' if or_none else ''}")


def _one_of(*choices: str) -> Constraint:
    return Constraint(
        lambda value: isinstance(value, str) and value in choices, f"one of {', '.join(map(repr, choices))}"
    )


def _is_range(value: object) -> bool:
    if isinstance(value, str) or not isinstance(value, Iterable):
        return False
    ends = list(value)
    return len(ends) == 2 and all(map(_is_number, ends)) and ends[0] < ends[1]


def _is_callbacks(value: object) -> bool:
    return value is None or callable(value) or (isinstance(value, Iterable) and all(map(callable, value)))


# `operators`, `random_state`, `device`, `max_memory`, `loss`, `token_generator`, `guesses` and what laws may look like
# are checked by those who know what they mean.
_TABLE: Mapping[str, Constraint] = {
    "max_time": _number(0.0, open_below=True, or_none=True),
    "max_iterations": _whole(1, or_none=True),
    "stop_loss": _number(0.0, or_none=True),
    "layers": _whole(1, or_none=True),
    "inputs": _whole(1, or_none=True),
    "constants": Constraint(
        lambda value: isinstance(value, (bool, Mapping)), "True or False, or a mapping such as {'g': 9.81}"
    ),
    "constant_range": Constraint(_is_range, "a pair (low, high) of numbers with low < high"),
    "top_k": _whole(1),
    "discount": _number(0.0, 1.0, open_below=True),
    "max_complexity": _whole(1),
    "max_depth": _whole(1, or_none=True),
    "model_selection": _one_of(*MODEL_SELECTIONS, *HELD_OUT),
    "verbose": Constraint(lambda value: isinstance(value, (bool, Integral)), "True, False or a whole number"),
    "callbacks": Constraint(_is_callbacks, "a callable, a sequence of callables, or None"),
    "checkpoint": Constraint(lambda value: value is None or isinstance(value, (str, Path)), "a file's path or None"),
    "warm_start": Constraint(lambda value: isinstance(value, bool), "True or False"),
}


def as_callbacks(value: Callable[..., object] | Iterable[Callable[..., object]] | None) -> list[Callable[..., object]]:
    """The callables of the parameter `callbacks`, which may be one, several or none."""
    return [value] if callable(value) else list(value or ())


def check_parameters(parameters: Mapping[str, object]) -> None:
    """Refuse the first parameter that is not what the table allows."""
    for name, constraint in _TABLE.items():
        if name in parameters and not constraint.allows(parameters[name]):
            raise ValueError(f"{name} must be {constraint.words}, not {parameters[name]!r}")
    limits = (parameters["max_time"], parameters["max_iterations"])
    if limits == (None, None) and not as_callbacks(parameters["callbacks"]):  # type: ignore[arg-type]
        raise ValueError("max_time and max_iterations are both None: the search would not end; give one of them")
