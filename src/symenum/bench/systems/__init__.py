"""The systems that a benchmark can run, symenum and its rivals, each behind a small adapter in a file of its own.

A system has a name, and a name may carry options, as in symenum:generator=mcts,range=-1..1. What an adapter must do is
in `base`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from symenum.bench.systems.base import Found, Law, MotionSystem, NotInstalledError, Predictor, Sighting, System
from symenum.bench.systems.gplearn import Gplearn
from symenum.bench.systems.operon import Operon
from symenum.bench.systems.other_tree import SymenumAt
from symenum.bench.systems.ours import Symenum
from symenum.bench.systems.psrn import Psrn
from symenum.bench.systems.regressors import Linear, boosting, forest
from symenum.core.registration import check_methods, check_name
from symenum.core.words import did_you_mean

__all__ = [
    "SYSTEMS",
    "Entry",
    "Found",
    "Law",
    "MotionSystem",
    "NotInstalledError",
    "Predictor",
    "Sighting",
    "System",
    "check_found",
    "check_system",
    "make_system",
    "packages_of",
    "register_system",
]


@dataclass(frozen=True)
class Entry:
    """How a system is made: the package that must be installed ("" for none), and a function of the options."""

    package: str
    make: Callable[[Mapping[str, str]], System]


def _without_options(name: str, factory: Callable[[], System]) -> Callable[[Mapping[str, str]], System]:
    def make(options: Mapping[str, str]) -> System:
        if options:
            raise ValueError(f"the system {name} takes no options, but got {', '.join(options)}")
        return factory()

    return make


SYSTEMS: dict[str, Entry] = {
    "symenum": Entry("symenum", Symenum.of),
    "symenum_at": Entry("symenum", SymenumAt.of),
    "pyoperon": Entry("pyoperon", _without_options("pyoperon", Operon)),
    "gplearn": Entry("gplearn", _without_options("gplearn", Gplearn)),
    "psrn": Entry("psrn", _without_options("psrn", Psrn)),
    "linear": Entry("", _without_options("linear", Linear)),
    "forest": Entry("", _without_options("forest", forest)),
    "boosting": Entry("", _without_options("boosting", boosting)),
}
"""The systems by name."""


def register_system(name: str, factory: Callable[[], System], *, package: str = "") -> None:
    """Add a rival to `symenum bench run --systems NAME`: `factory()` makes an object with the method of `System`.

    `package` is the package that it needs; where that is not installed, the bench skips the system and says so.
    """
    check_name("system", name, SYSTEMS)
    if not callable(factory):
        raise TypeError(f"factory of the system {name!r} must be callable, such as a class, not {factory!r:.80}")
    keywords = ("operators", "seed", "max_time", "cores")
    check_methods(f"what the factory of the system {name!r} makes", factory(), {"fit": ("X", "y")}, keywords)
    SYSTEMS[name] = Entry(package, _without_options(name, factory))


def check_found(spec: str, found: object) -> Found:
    """What a system's `fit` has returned; an error that names the system where the bench cannot judge it."""
    laws = found.laws if isinstance(found, Found) else ()
    if not isinstance(found, Found) or not all(isinstance(law, Law) for law in laws):
        raise TypeError(f"fit of the system {spec!r} must return Found(laws, selected), laws of Law, not {found!r:.80}")
    if laws and not 0 <= found.selected < len(laws):
        raise ValueError(f"fit of the system {spec!r} selected law {found.selected} of {len(laws)}")
    return found


def make_system(spec: str) -> System:
    """The system of a name with options; ValueError where there is no such system or option."""
    _, _, rest = spec.partition(":")
    entry = _entry(spec)
    options: dict[str, str] = {}
    for part in filter(None, rest.split(",")):
        key, sign, value = part.partition("=")
        if not sign:
            raise ValueError(f"an option of a system is written name=value, not {part!r}")
        options[key.strip()] = value.strip()
    return entry.make(options)


def check_system(spec: str) -> str | None:
    """Why a system cannot run here; None where it can. ValueError where there is no such system."""
    make_system(spec)
    package = _entry(spec).package
    if package and importlib.util.find_spec(package) is None:
        return f"{package} is not installed (pip install {package})"
    return None


def packages_of(specs: Iterable[str]) -> list[str]:
    """The packages that the systems of these names with options need."""
    return [package for package in (_entry(spec).package for spec in specs) if package]


def _entry(spec: str) -> Entry:
    name = spec.partition(":")[0]
    entry = SYSTEMS.get(name.strip().lower())
    if entry is None:
        raise ValueError(f"unknown system {name!r}{did_you_mean(name, SYSTEMS)}; known: {', '.join(SYSTEMS)}")
    return entry
