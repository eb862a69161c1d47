"""Units as people write them: "kg*m/s^2", "m s-2", "µm", "kWh", "1/s"; each becomes a dimension and a factor to the SI.

Products are written with *, ·, × or a space, quotients with / (a/b c is (a/b)*c, as in Python), powers with **, ^, a
number right behind the unit, or superscripts. An angle, a percentage and "1" are plain numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from symenum.core.dimensions import DIMENSIONLESS, Dimension
from symenum.core.words import did_you_mean

__all__ = ["FROM_NAMES", "Unit", "read_unit", "unit_in_name", "without_unit"]

FROM_NAMES = "names"
"""The value of the parameter `units` for tables whose columns are called "speed [m/s]"."""


@dataclass(frozen=True)
class Unit:
    """A dimension, and how many units of the SI it is."""

    dimension: Dimension
    factor: float = 1.0

    def __mul__(self, other: Unit) -> Unit:
        return Unit(self.dimension * other.dimension, self.factor * other.factor)

    def __truediv__(self, other: Unit) -> Unit:
        return Unit(self.dimension / other.dimension, self.factor / other.factor)

    def __pow__(self, power: Fraction) -> Unit:
        return Unit(self.dimension**power, self.factor ** float(power))


def _si(factor: float = 1.0, **powers: int) -> Unit:
    return Unit(Dimension.of(**powers), factor)


_NUMBER = Unit(DIMENSIONLESS)
_JOULE = {"kg": 1, "m": 2, "s": -2}
# Those that take prefixes; the gram, not the kilogram, is among them.
_PREFIXED: Mapping[str, Unit] = {
    "m": _si(m=1), "g": _si(1e-3, kg=1), "s": _si(s=1), "A": _si(A=1), "K": _si(K=1), "mol": _si(mol=1),
    "cd": _si(cd=1), "Hz": _si(s=-1), "N": _si(kg=1, m=1, s=-2), "Pa": _si(kg=1, m=-1, s=-2), "J": _si(**_JOULE),
    "W": _si(kg=1, m=2, s=-3), "C": _si(A=1, s=1), "V": _si(kg=1, m=2, s=-3, A=-1),
    "F": _si(kg=-1, m=-2, s=4, A=2), "ohm": _si(kg=1, m=2, s=-3, A=-2), "S": _si(kg=-1, m=-2, s=3, A=2),
    "Wb": _si(kg=1, m=2, s=-2, A=-1), "T": _si(kg=1, s=-2, A=-1), "H": _si(kg=1, m=2, s=-2, A=-2),
    "lm": _si(cd=1), "lx": _si(cd=1, m=-2), "Bq": _si(s=-1), "Gy": _si(m=2, s=-2), "Sv": _si(m=2, s=-2),
    "kat": _si(mol=1, s=-1), "rad": _NUMBER, "sr": _NUMBER, "L": _si(1e-3, m=3), "l": _si(1e-3, m=3),
    "bar": _si(1e5, kg=1, m=-1, s=-2), "eV": _si(1.602176634e-19, **_JOULE), "cal": _si(4.184, **_JOULE),
    "Wh": _si(3600.0, **_JOULE), "t": _si(1e3, kg=1), "pc": _si(3.0856775814913673e16, m=1),
}  # fmt: skip
_WITHOUT_PREFIX: Mapping[str, Unit] = {
    "min": _si(60.0, s=1), "h": _si(3600.0, s=1), "d": _si(86400.0, s=1), "day": _si(86400.0, s=1),
    "yr": _si(31557600.0, s=1), "atm": _si(101325.0, kg=1, m=-1, s=-2), "au": _si(149597870700.0, m=1),
    "AU": _si(149597870700.0, m=1), "ly": _si(9460730472580800.0, m=1), "in": _si(0.0254, m=1),
    "ft": _si(0.3048, m=1), "mi": _si(1609.344, m=1), "lb": _si(0.45359237, kg=1), "Da": _si(1.66053906892e-27, kg=1),
    "deg": Unit(DIMENSIONLESS, 0.017453292519943295), "°": Unit(DIMENSIONLESS, 0.017453292519943295),
    "%": Unit(DIMENSIONLESS, 0.01), "ha": _si(1e4, m=2), "sec": _si(s=1), "hr": _si(3600.0, s=1),
}  # fmt: skip
_PREFIXES = {
    "Q": 30, "R": 27, "Y": 24, "Z": 21, "E": 18, "P": 15, "T": 12, "G": 9, "M": 6, "k": 3, "h": 2, "da": 1, "d": -1,
    "c": -2, "m": -3, "µ": -6, "μ": -6, "u": -6, "n": -9, "p": -12, "f": -15, "a": -18, "z": -21, "y": -24, "r": -27,
    "q": -30,
}  # fmt: skip
_SYNONYMS = {
    "\u03a9": "ohm",
    "\u2126": "ohm",
    "meter": "m",
    "metre": "m",
    "second": "s",
    "kilogram": "kg",
    "kelvin": "K",
}
_WITH_OWN_ZERO = ("°C", "degC", "°F", "degF")  # temperatures that are no multiples of a unit
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)|(?P<power>\*\*|\^)|(?P<sign>[*·×/⋅()])|(?P<minus>[-+])"
    r"|(?P<name>[°%]?[^\W\d_]+|[°%])|(?P<super>[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+))"
)
_IN_NAME = re.compile(r"^(?P<name>.*?\S)\s*[\[(](?P<unit>[^\[\]]*)[\])]\s*$")
_MAX_DENOMINATOR = 1000  # of a power that is written as a decimal number
_MAX_LENGTH = 200  # characters of a unit: no unit is longer, and a table's header may be anything


def read_unit(text: object) -> Unit:
    """The unit that a text says; ValueError with what is wrong with it.

    >>> print(read_unit("kg m/s^2").dimension, read_unit("m s-2").dimension, read_unit("µm").factor)
    kg*m/s**2 m/s**2 1e-06
    """
    if not isinstance(text, str):
        raise ValueError(f"a unit is a text such as 'm/s', and '1' for a plain number, not {text!r:.60}")
    if len(text) > _MAX_LENGTH:
        raise ValueError(f"a unit has at most {_MAX_LENGTH} characters, not {len(text)}")
    if not text.strip():
        return _NUMBER
    return _Reader(text).whole()


def unit_in_name(column: str) -> tuple[str, str] | None:
    """The name and the unit of a column such as "speed [m/s]" or "mass (kg)"; None where it has no unit.

    >>> unit_in_name("speed [m/s]"), unit_in_name("speed")
    (('speed', 'm/s'), None)
    """
    found = _IN_NAME.match(column)
    return None if found is None else (found["name"], found["unit"])


def without_unit(column: str) -> str:
    """The name of a column without the unit that it may hold.

    >>> without_unit("speed [m/s]"), without_unit("speed")
    ('speed', 'speed')
    """
    split = unit_in_name(column)
    return column if split is None else split[0]


class _Reader:
    """Reads a unit from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, str, int]] = []
        at = 0
        while text[at:].strip():
            found = _TOKEN.match(text, at)
            if found is None:
                raise self._wrong(f"there is no meaning for {text[at:].strip()[:1]!r}")
            kind = str(found.lastgroup)
            self._tokens.append((kind, found[kind], found.start(kind)))
            at = found.end()
        self._at = 0

    def whole(self) -> Unit:
        unit = self._product()
        if self._at < len(self._tokens):
            raise self._wrong(f"{self._tokens[self._at][1]!r} stands where a unit should")
        return unit

    def _product(self) -> Unit:
        unit = self._factor()
        while self._at < len(self._tokens):
            kind, text, _ = self._tokens[self._at]
            if text == ")" or kind in ("power", "minus", "super"):
                break
            if text in ("*", "·", "×", "⋅"):
                self._at += 1
                unit = unit * self._factor()
            elif text == "/":
                self._at += 1
                unit = unit / self._factor()
            else:
                unit = unit * self._factor()
        return unit

    def _factor(self) -> Unit:
        kind, text, start = self._next()
        if text == "(":
            unit = self._product()
            if self._next()[1] != ")":
                raise self._wrong("a bracket is not closed")
        elif kind == "number":
            unit = Unit(DIMENSIONLESS, float(text))
            if not 0 < unit.factor < float("inf"):
                raise self._wrong(f"{text} is no factor of a unit")
        elif kind == "name":
            unit = _named(text, self._text)
        else:
            raise self._wrong(f"{text!r} stands where a unit should")
        power = self._power(start + len(text), adjoining=kind == "name")
        return unit if power is None else unit**power

    def _power(self, end: int, *, adjoining: bool) -> Fraction | None:
        """The power behind a unit that ends there, if there is one; `adjoining`: it may stand right behind."""
        if self._at >= len(self._tokens):
            return None
        kind, text, start = self._tokens[self._at]
        if kind == "super":
            self._at += 1
            return Fraction(int(text.translate(_SUPERSCRIPTS)))
        if kind == "power":
            self._at += 1
            return self._exponent()
        if adjoining and start == end and kind in ("number", "minus"):
            return self._signed()
        return None

    def _exponent(self) -> Fraction:
        if self._at < len(self._tokens) and self._tokens[self._at][1] == "(":
            self._at += 1
            power = self._signed()
            if self._at < len(self._tokens) and self._tokens[self._at][1] == "/":
                self._at += 1
                below = self._signed()
                if not below:
                    raise self._wrong("a power is divided by 0")
                power /= below
            if self._next()[1] != ")":
                raise self._wrong("a bracket is not closed")
            return power
        return self._signed()

    def _signed(self) -> Fraction:
        kind, text, _ = self._next()
        sign = -1 if text == "-" else 1
        if kind == "minus":
            kind, text, _ = self._next()
        if kind != "number":
            raise self._wrong("a power is a number")
        return sign * Fraction(text).limit_denominator(_MAX_DENOMINATOR)

    def _next(self) -> tuple[str, str, int]:
        if self._at >= len(self._tokens):
            raise self._wrong("something is missing at the end")
        self._at += 1
        return self._tokens[self._at - 1]

    def _wrong(self, why: str) -> ValueError:
        return ValueError(f"{self._text.strip()!r} is no unit: {why}; write it as in 'kg*m/s^2', and '1' for a number")


def _named(name: str, text: str) -> Unit:
    name = _SYNONYMS.get(name, name)
    if name in _WITH_OWN_ZERO:
        raise ValueError(f"{text!r} counts from a zero of its own: convert the column to K")
    if name in _PREFIXED:
        return _PREFIXED[name]
    if name in _WITHOUT_PREFIX:
        return _WITHOUT_PREFIX[name]
    for size in (2, 1):
        prefix, rest = name[:size], _SYNONYMS.get(name[size:], name[size:])
        if prefix in _PREFIXES and rest in _PREFIXED:
            return Unit(_PREFIXED[rest].dimension, _PREFIXED[rest].factor * 10.0 ** _PREFIXES[prefix])
    known = [*_PREFIXED, *_WITHOUT_PREFIX, "kg"]
    hint = did_you_mean(name, known) or "; units are written as in 'kg*m/s^2', and '1' is for a number without one"
    raise ValueError(f"{text.strip()!r} is no unit: {name!r} is not known{hint}")
