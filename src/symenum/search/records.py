"""Frozen dataclasses of numbers and expressions to JSON's values and back, led by the types that are expected.

What a file says never decides what is made of it: a field becomes what its dataclass declares, an expression is read by
our own parser, and everything else is refused. So a file from anywhere can hold wrong values, but no code.
"""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Callable
from typing import Any, Union, get_args, get_origin, get_type_hints

from symenum.expressions import Apply, Constant, Expression, Variable, parse

__all__ = ["Read", "packed", "unpacked"]

_NODES = (Variable, Constant, Apply)
Read = Callable[[str], Expression]


def packed(value: object) -> Any:
    """The value as lists, dictionaries, text and numbers that JSON can hold; non-finite numbers as text."""
    if isinstance(value, _NODES):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: packed(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return [packed(one) for one in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    raise TypeError(f"a {type(value).__name__} cannot be written as data")


def unpacked(kind: Any, data: Any, read: Read = parse, where: str = "") -> Any:
    """The value of type `kind` that was packed; `read` makes expressions of text. ValueError: what is wrong."""
    if kind == Expression:
        return read(_checked(str, data, where))
    if get_origin(kind) in (Union, types.UnionType):
        (other,) = [one for one in get_args(kind) if one is not type(None)]
        return None if data is None else unpacked(other, data, read, where)
    if get_origin(kind) is tuple:
        return _tuple(get_args(kind), _checked(list, data, where), read, where)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _record(kind, _checked(dict, data, where), read, where)
    if kind is float:
        return _number(data, where)
    if kind not in (bool, int, str):
        raise TypeError(f"{where} is a {kind}, and only numbers, text, expressions, tuples and dataclasses can be kept")
    return _checked(kind, data, where)


def _record(kind: type, data: dict[str, Any], read: Read, where: str) -> Any:
    hints = get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind)]
    if set(data) != set(names):
        raise ValueError(f"{where or kind.__name__} has the fields {sorted(data)}, not {sorted(names)}")
    return kind(**{name: unpacked(hints[name], data[name], read, f"{where}.{name}") for name in names})


def _tuple(kinds: tuple[Any, ...], data: list[Any], read: Read, where: str) -> tuple[Any, ...]:
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        return tuple(unpacked(kinds[0], one, read, where) for one in data)
    if len(data) != len(kinds):
        raise ValueError(f"{where} has {len(data)} values, not {len(kinds)}")
    return tuple(unpacked(kind, one, read, where) for kind, one in zip(kinds, data, strict=True))


def _number(data: Any, where: str) -> float:
    if isinstance(data, (int, float)) and not isinstance(data, bool):
        return float(data)
    if data in ("inf", "-inf", "nan"):
        return float(data)
    raise ValueError(f"{where} is {data!r:.60}, not a number")


def _checked(kind: type, data: Any, where: str) -> Any:
    if not isinstance(data, kind) or (kind is int and isinstance(data, bool)):
        raise ValueError(f"{where} is {data!r:.60}, not of type {kind.__name__}")
    return data
