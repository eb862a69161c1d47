"""The systems that a benchmark can run, ours and its rivals, each behind a small adapter in a file of its own.

Systems have names. A name may carry options, as in symenum:generator=mcts,range=-1..1.
"""

from __future__ import annotations

import difflib
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from symenum.bench.systems.base import Found, Law, NotInstalledError, System
from symenum.bench.systems.gplearn import Gplearn
from symenum.bench.systems.operon import Operon
from symenum.bench.systems.ours import Symenum
from symenum.bench.systems.psrn import Psrn
from symenum.core.registration import check_methods, check_name

__all__ = [
    "SYSTEMS",
    "Entry",
    "Found",
    "Law",
    "NotInstalledError",
    "System",
    "check_found",
    "check_system",
    "make_system",
    "register_system",
]


@dataclass(frozen=True)
class Entry:
    """`package` is what must be installed ("": nothing); `make` takes the options."""

    package: str
    make: Callable[[Mapping[str, str]], System]


def _plain(name: str, kind: Callable[[], System]) -> Callable[[Mapping[str, str]], System]:
    def make(options: Mapping[str, str]) -> System:
        if options:
            raise ValueError(f"the system {name} takes no options, but got {', '.join(options)}")
        return kind()

    return make


SYSTEMS: dict[str, Entry] = {
    "symenum": Entry("symenum", Symenum.of),
    "pyoperon": Entry("pyoperon", _plain("pyoperon", Operon)),
    "gplearn": Entry("gplearn", _plain("gplearn", Gplearn)),
    "psrn": Entry("psrn", _plain("psrn", Psrn)),
}


def register_system(name: str, factory: Callable[[], System], *, package: str = "") -> None:
    """Add a rival to `symenum bench run --systems NAME`: `factory()` gives an object with the method of `System`.

    `package`: what must be installed for it to run; without, the bench skips it and says so.
    """
    check_name("system", name, SYSTEMS)
    if not callable(factory):
        raise TypeError(f"factory of the system {name!r} must be callable, such as a class, not {factory!r:.80}")
    keywords = ("operators", "seed", "max_time", "cores")
    check_methods(f"what the factory of the system {name!r} makes", factory(), {"fit": ("X", "y")}, keywords)
    SYSTEMS[name] = Entry(package, _plain(name, factory))


def check_found(spec: str, found: object) -> Found:
    """What a system has handed back, if it is what the bench can judge."""
    laws = found.laws if isinstance(found, Found) else ()
    if not isinstance(found, Found) or not all(isinstance(law, Law) for law in laws):
        raise TypeError(f"fit of the system {spec!r} must return Found(laws, selected), laws of Law, not {found!r:.80}")
    if laws and not 0 <= found.selected < len(laws):
        raise ValueError(f"fit of the system {spec!r} selected law {found.selected} of {len(laws)}")
    return found


def make_system(spec: str) -> System:
    """The system of a name with options; ValueError where there is none."""
    name, _, rest = spec.partition(":")
    entry = SYSTEMS.get(name.strip().lower())
    if entry is None:
        close = difflib.get_close_matches(name.lower(), list(SYSTEMS), n=1, cutoff=0.5)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise ValueError(f"unknown system {name!r}{hint}; known: {', '.join(SYSTEMS)}")
    options: dict[str, str] = {}
    for part in filter(None, rest.split(",")):
        key, sign, value = part.partition("=")
        if not sign:
            raise ValueError(f"an option of a system is written name=value, not {part!r}")
        options[key.strip()] = value.strip()
    return entry.make(options)


def check_system(spec: str) -> str | None:
    """Why a system cannot run here, or None; ValueError where there is no such system."""
    make_system(spec)
    package = SYSTEMS[spec.partition(":")[0].strip().lower()].package
    if package and importlib.util.find_spec(package) is None:
        return f"{package} is not installed (pip install {package})"
    return None
