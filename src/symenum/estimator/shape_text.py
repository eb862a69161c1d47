"""The parameter `shape`: what the user knows of a law's behaviour, read from words and short formulas."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from symenum.core.words import did_you_mean
from symenum.sanity.shapes import Bounded, Limit, Mirrored, Point, Requirement, Shape, Sloped, Swapped

__all__ = ["read_shape"]

_OF_VARIABLES = ("increasing", "decreasing", "convex", "concave", "linear", "even", "odd")
_OF_TARGET = ("positive", "negative", "nonnegative", "nonpositive")
_CONDITIONS = "f"  # the key of `shape` that holds formulas; the law is called f in them
_EXAMPLES = "'f(0) = 0', 'f(x1=0) = 0', 'f -> 1 for x1 -> inf', 'f(x1, x2) = f(x2, x1)' or 'f(-x1) = -f(x1)'"
_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|[-+]?inf"
_LIMIT = re.compile(rf"f\s*->\s*(?P<value>{_NUMBER})\s+for\s+(?P<name>\S+)\s*->\s*(?P<towards>[-+]?inf)")
_POINT = re.compile(rf"f\s*\((?P<at>[^()]*)\)\s*=\s*(?P<value>{_NUMBER})")
_SYMMETRY = re.compile(r"f\s*\((?P<left>[^()]*)\)\s*=\s*(?P<sign>-?)\s*f\s*\((?P<right>[^()]*)\)")


def read_shape(
    shape: object, box: object, names: Sequence[str], target: str, columns: Mapping[str, Any]
) -> Shape | None:
    """The requirements on a law in these variables, and their box; None where the user gives none.

    `box`: low and high ends by variable; of others those of the data. `columns` (rows,) by name.
    """
    if shape is None:
        if box is not None:
            raise ValueError("shape_box needs a shape: say what must hold in that box")
        return None
    found = list(_requirements(shape, names, target))
    if not found:
        raise ValueError("shape is empty: say what must hold, such as {'x1': 'increasing'}, or leave it out")
    return Shape(tuple(found), _box(box, names, columns))


def _requirements(shape: object, names: Sequence[str], target: str) -> Iterator[Requirement]:
    if isinstance(shape, str) or not isinstance(shape, (Mapping, list, tuple)):
        raise ValueError(f"shape must be a mapping such as {{'x1': 'increasing', 'y': 'positive'}}, not {shape!r:.60}")
    if not isinstance(shape, Mapping):
        for text in shape:
            yield _condition(text, names)
        return
    for name, value in shape.items():
        if name == _CONDITIONS and name not in names:
            for text in [value] if isinstance(value, str) else value:
                yield _condition(text, names)
        elif name in names:
            for word in _words(value):
                yield from _of_variable(str(name), word)
        elif name in (target, "y"):
            yield from _of_target(str(name), value)
        else:
            raise ValueError(
                f"shape names {name!r}, which is no variable{did_you_mean(str(name), [*names, target])}; there are "
                f"{', '.join(names[:20])}, {target} for the law's values, and f for conditions such as {_EXAMPLES}"
            )


def _words(value: object) -> list[str]:
    if isinstance(value, str):
        return [word.strip() for word in value.split(",")]
    if isinstance(value, Iterable):
        return [str(word).strip() for word in value]
    raise ValueError(f"shape must hold words such as 'increasing', not {value!r:.60}")


def _of_variable(name: str, word: str) -> Iterator[Requirement]:
    text = f"{word} in {name}"
    if word in ("increasing", "decreasing"):
        yield Sloped(text, name, 1 if word == "increasing" else -1)
        return
    if word in ("convex", "concave", "linear"):
        for sign in {"convex": (1,), "concave": (-1,), "linear": (1, -1)}[word]:
            yield Sloped(text, name, sign, order=2)
        return
    if word in ("even", "odd"):
        yield Mirrored(text, (name,), 1 if word == "even" else -1)
        return
    raise ValueError(
        f"shape of {name!r} must be {', '.join(_OF_VARIABLES)}, not {word!r:.40}{did_you_mean(word, _OF_VARIABLES)}"
    )


def _of_target(name: str, value: object) -> Iterator[Requirement]:
    pair = list(value) if isinstance(value, (tuple, list)) else []
    if len(pair) == 2 and all(one is None or (isinstance(one, Real) and not isinstance(one, bool)) for one in pair):
        low = -math.inf if pair[0] is None else float(pair[0])
        high = math.inf if pair[1] is None else float(pair[1])
        if not low < high:
            raise ValueError(f"shape of {name!r} must be a pair (low, high) with low < high, not ({low:g}, {high:g})")
        yield Bounded(f"{name} from {low:g} to {high:g}", low, high)
        return
    signs = {
        "positive": Bounded(f"{name} positive", 0.0, open_low=True),
        "nonnegative": Bounded(f"{name} nonnegative", 0.0),
        "nonpositive": Bounded(f"{name} nonpositive", high=0.0),
        "negative": Bounded(f"{name} negative", high=0.0),
    }
    for word in _words(value):
        if word not in signs:
            raise ValueError(
                f"shape of {name!r} must be {', '.join(_OF_TARGET)} or a pair (low, high), not {word!r:.40}"
                f"{did_you_mean(word, _OF_TARGET)}"
            )
        yield signs[word]


def _condition(text: object, names: Sequence[str]) -> Requirement:
    """A condition on f, the law."""
    if not isinstance(text, str):
        raise ValueError(f"shape has {text!r:.60}; a condition is a text such as {_EXAMPLES}")
    said = " ".join(text.split())
    limit, point, symmetry = (pattern.fullmatch(said) for pattern in (_LIMIT, _POINT, _SYMMETRY))
    if limit is not None:
        _check_names(said, [limit["name"]], names)
        return Limit(said, limit["name"], float(limit["towards"]), float(limit["value"]))
    if point is not None and math.isfinite(float(point["value"])):
        return Point(said, _at(said, point["at"], names), float(point["value"]))
    if symmetry is not None:
        return _symmetry(said, symmetry, names)
    raise ValueError(f"shape has the condition {text!r:.80}, which cannot be read; write it as {_EXAMPLES}")


def _at(said: str, arguments: str, names: Sequence[str]) -> tuple[tuple[str, float], ...]:
    parts = [part.strip() for part in arguments.split(",") if part.strip()]
    pairs = [part.partition("=") for part in parts]
    if all(sign for _, sign, _ in pairs):
        found = [(name.strip(), number) for name, _, number in pairs]
    elif not any(sign for _, sign, _ in pairs) and len(parts) == len(names):
        found = list(zip(names, parts, strict=True))
    else:
        raise ValueError(
            f"shape has {said!r}: give a value for each of {', '.join(names)} in this order, or name those that have "
            f"one, as in 'f({names[0]}=0) = 0'"
        )
    _check_names(said, [name for name, _ in found], names)
    if not all(re.fullmatch(_NUMBER, number.strip()) and math.isfinite(float(number)) for _, number in found):
        raise ValueError(f"shape has {said!r}, in which a value is no number")
    return tuple((name, float(number)) for name, number in found)


def _symmetry(said: str, found: re.Match[str], names: Sequence[str]) -> Requirement:
    sides = []
    for side in ("left", "right"):
        parts = [part.strip() for part in found[side].split(",")]
        sides.append([(part.lstrip("-").strip(), part.startswith("-")) for part in parts])
    left, right = sides
    _check_names(said, [name for name, _ in (*left, *right)], names)
    if sorted(name for name, _ in left) != sorted(name for name, _ in right) or len(dict(left)) < len(left):
        raise ValueError(f"shape has {said!r}, whose sides do not hold the same variables, each once")
    swapped = [name for name, _ in left] != [name for name, _ in right]
    mirrored = tuple(name for name, minus in left if minus != dict(right)[name])
    sign = -1 if found["sign"] else 1
    if swapped and (mirrored or sign < 0):
        raise ValueError(f"shape has {said!r}, which exchanges variables and signs at once: write two conditions")
    if swapped:
        return Swapped(said, tuple((a, b) for (a, _), (b, _) in zip(left, right, strict=True) if a != b))
    if not mirrored:
        raise ValueError(f"shape has {said!r}, which says nothing: both sides are alike")
    return Mirrored(said, mirrored, sign)


def _check_names(said: str, used: Iterable[str], names: Sequence[str]) -> None:
    for name in used:
        if name not in names:
            raise ValueError(
                f"shape has {said!r}, and {name!r} is no variable{did_you_mean(name, list(names))}; there are "
                f"{', '.join(names[:20])}"
            )


def _box(box: object, names: Sequence[str], columns: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    if box is not None and not isinstance(box, Mapping):
        raise ValueError(f"shape_box must be a mapping such as {{'x1': (0, 10)}}, not {box!r:.60}")
    given = dict(box or {})
    for name, ends in given.items():
        if name not in names:
            raise ValueError(f"shape_box names {name!r}, which is no variable; there are {', '.join(names[:20])}")
        fine = isinstance(ends, (tuple, list)) and len(ends) == 2 and all(isinstance(end, Real) for end in ends)
        if not fine or not -math.inf < float(ends[0]) < float(ends[1]) < math.inf:
            raise ValueError(
                f"shape_box of {name!r} must be a pair (low, high) of numbers with low < high, not {ends!r:.60}"
            )
    found = {}
    for name in names:
        column = np.asarray(columns[name])
        low, high = given.get(name, (column.min(), column.max()))
        found[name] = float(low), float(high)
    return found
