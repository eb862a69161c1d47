"""Options of commands: those of the table of parameters, and how their texts become values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from symenum.estimator.parameters import PARAMETERS, OneOf, Option, Parameter, WholeNumber

__all__ = [
    "assignment",
    "assignments",
    "in_options",
    "parameter_option",
    "parameter_options",
    "split_list",
    "was_given",
]

Command = TypeVar("Command", bound=Callable[..., Any])

_LARGEST_SEED = 2**32 - 1  # what NumPy's RandomState takes


def parameter_options(*names: str) -> Callable[[Command], Command]:
    """The options of these parameters of PSERegressor, in this order; a command gets their values by these names."""

    def decorate(command: Command) -> Command:
        for name in reversed(names):  # decorators are applied from the last one up
            parameter = PARAMETERS[name]
            for option in reversed(parameter.options):
                command = _decorator(parameter, option, {})(command)
        return command

    return decorate


def parameter_option(name: str, **changes: Any) -> Callable[[Command], Command]:
    """The first option of a parameter with another default or another help text."""
    parameter = PARAMETERS[name]
    return _decorator(parameter, parameter.options[0], changes)


def _decorator(parameter: Parameter, option: Option, changes: Mapping[str, Any]) -> Callable[[Command], Command]:
    """An option of a parameter. The command gets the first option by the parameter's name, any other by its flag's."""
    first = parameter.options[0] is option
    default = changes.get("default", parameter.default) if first and not option.repeated else None
    shape: dict[str, Any] = {"help": option.help, "metavar": option.metavar, "multiple": option.repeated}
    if default is not None:
        shape |= {"default": f"{default:g}" if isinstance(default, float) else default, "show_default": True}
    if isinstance(parameter.constraint, WholeNumber):
        shape["type"] = click.IntRange(min=parameter.constraint.minimum)
    elif isinstance(parameter.constraint, OneOf):
        shape["type"] = click.Choice(parameter.constraint.choices)
    shape |= {name: value for name, value in changes.items() if name != "default"}
    return click.option(option.flag, *([parameter.name] if first else []), **{**shape, **_READERS[option.reads]})


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


def assignments(
    context: click.Context, option: click.Parameter, values: Sequence[str], example: str = "g=9.81"
) -> dict[str, float]:
    """Numbers by name, of an option that may be repeated: g=9.81."""
    found: dict[str, float] = {}
    for value in values:
        found |= assignment(value, example)
    return found


def assignment(text: str, example: str = "g=9.81") -> dict[str, float]:
    """The number of a text such as g=9.81, by its name."""
    name, sign, value = text.partition("=")
    number = _number(value)
    if not sign or not name.strip() or not math.isfinite(number):
        raise click.BadParameter(f"{text!r} must be a name and a number, such as {example}.")
    return {name.strip(): number}


def constants(context: click.Context, option: click.Parameter, values: Sequence[str]) -> dict[str, float]:
    """Numbers by name, of an option that may be repeated: g=9.81; a constant of nature needs no number: c."""
    from symenum.estimator.physical_constants import PHYSICAL_CONSTANTS

    found: dict[str, float] = {}
    for value in values:
        name = value.strip()
        found |= {name: PHYSICAL_CONSTANTS[name][0]} if name in PHYSICAL_CONSTANTS else assignment(value)
    return found


def weights(context: click.Context, option: click.Parameter, values: Sequence[str]) -> dict[str, int] | None:
    """Whole numbers by name, of an option that may be repeated: sin=5; None where none is given."""
    found = assignments(context, option, values, "sin=5")
    wrong = [name for name, value in found.items() if value < 0 or not value.is_integer()]
    if wrong:
        raise click.BadParameter(f"{wrong[0]} must have a whole number of 0 or more, such as {wrong[0]}=5.")
    return {name: int(value) for name, value in found.items()} or None


def units(context: click.Context, option: click.Parameter, values: Sequence[str]) -> dict[str, str] | str | None:
    """Units by name, of an option that may be repeated: v=m/s; "names" where the columns' names hold them."""
    if not values:
        return None
    if any(value.strip() == "names" for value in values):
        if len(values) > 1:
            raise click.BadParameter("'names' stands alone: the units are then those in the names of the columns.")
        return "names"
    found: dict[str, str] = {}
    for value in values:
        for part in value.split(","):
            name, sign, unit = part.partition("=")
            if not sign or not name.strip():
                raise click.BadParameter(f"{part!r} must be a name and a unit, such as v=m/s, or the word names.")
            found[name.strip()] = unit.strip()
    return found


def shape(context: click.Context, option: click.Parameter, values: Sequence[str]) -> dict[str, Any] | None:
    """What is known of how laws behave: x1=increasing, y=0..1, and conditions on f such as "f(0) = 0"."""
    found: dict[str, Any] = {}
    for value in values:
        if re.match(r"f\s*(\(|->)", value.strip()):
            found.setdefault("f", []).append(value.strip())
            continue
        name, sign, word = value.partition("=")
        if not sign or not name.strip():
            raise click.BadParameter(f"{value!r} must be as in x1=increasing, y=0..1 or 'f(0) = 0'.")
        found[name.strip()] = _ends(word) if ".." in word else [*found.get(name.strip(), []), word.strip()]
    return found or None


def ranges(context: click.Context, option: click.Parameter, values: Sequence[str]) -> dict[str, Any] | None:
    """Low and high ends by name, of an option that may be repeated: x1=0..10."""
    found: dict[str, Any] = {}
    for value in values:
        name, sign, word = value.partition("=")
        if not sign or ".." not in word:
            raise click.BadParameter(f"{value!r} must be a name and a range, such as x1=0..10.")
        found[name.strip()] = _ends(word)
    return found or None


def _ends(text: str) -> tuple[float, float]:
    """Both ends of a range such as 0..10; inf for no end."""
    low, _, high = text.partition("..")
    ends = _number(low), _number(high)
    if any(math.isnan(end) for end in ends):
        raise click.BadParameter(f"{text!r} must be two numbers, such as 0..10.")
    return ends


def memory(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """A size such as 2GB, where one is given."""
    if value is not None:
        from symenum.core.memory import memory_limit

        try:
            memory_limit(value)
        except ValueError as error:
            raise click.BadParameter(f"{error}.") from error
    return value


_READERS: Mapping[str, Mapping[str, Any]] = {
    "text": {},
    "switch": {"type": bool},
    "seconds": {"callback": seconds},
    "number": {"callback": non_negative},
    "assignments": {"callback": assignments},
    "constants": {"callback": constants},
    "shares": {"callback": partial(assignments, example="network=0.5")},
    "weights": {"callback": weights},
    "units": {"callback": units},
    "shape": {"callback": shape},
    "ranges": {"callback": ranges},
    "size": {"callback": memory},
    "seed": {"type": click.IntRange(0, _LARGEST_SEED)},
    "file": {"type": click.Path(path_type=Path, dir_okay=False)},
}
"""For each value of `Option.reads`, the arguments of `click.option` that read such text."""


def in_options(message: str) -> str:
    """A message about parameters of PSERegressor in the words of the command line: --require for required_variables.

    A name that is a plain word too (loss, constants, shares) stands for the parameter only at the beginning.

    >>> in_options("required_variables names 'b'"), in_options("shares has 'foo'"), in_options("the loss is infinite")
    ("--require names 'b'", "--share has 'foo'", 'the loss is infinite')
    >>> in_options("no CUDA: use device='cpu'")
    'no CUDA: use --device cpu'
    """
    for name, parameter in PARAMETERS.items():
        if parameter.options:
            flag = parameter.options[-1].flag.split("/")[0]  # of --constants and --constant the one with values
            message = re.sub(rf"\b{name}='(\w+)'", rf"{flag} \1", message)
            message = re.sub(rf"\b{name}\b" if "_" in name else rf"\A{name}\b", flag, message)
    return message


def was_given(context: click.Context, option: str) -> bool:
    """Whether the user has set the option, even if to its default."""
    return context.get_parameter_source(option) != click.core.ParameterSource.DEFAULT


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def split_list(values: Sequence[str]) -> tuple[str, ...]:
    """The words of an option that may be repeated, and each time may hold several words with commas between them."""
    return tuple(word for value in values for part in value.split(",") if (word := part.strip()))
