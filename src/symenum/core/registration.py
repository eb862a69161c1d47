"""Checks that all registries of plug-ins share (a free name, attributes, methods), and the import of plug-in modules.

What a head, a loss or a system must have is said by `symenum.plugins` and by the registries of the benchmark.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

__all__ = ["PLUGINS_VARIABLE", "PluginError", "check_attributes", "check_methods", "check_name", "load_plugins"]


PLUGINS_VARIABLE = "SYMENUM_PLUGINS"
"""Environment variable: names of modules, with commas between, that the CLI and the bench's processes import first."""
# Names are typed on the command line, where commas and colons separate them, and become names of files.
_NAME = re.compile(r"[a-z][a-z0-9_ -]*")


class PluginError(ValueError):
    """A module that was named as a plug-in cannot be loaded; the message says why."""


def check_name(kind: str, name: object, taken: Collection[str]) -> str:
    """The name, if it is well formed and not in `taken`; else ValueError."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(
            f"name of a {kind} must be small letters, digits, spaces, - and _, a letter first, not {name!r:.80}"
        )
    if name in taken:
        raise ValueError(f"name {name!r} of a {kind} is taken: choose another; taken are {', '.join(sorted(taken))}")
    return name


def check_attributes(what: str, value: object, names: Iterable[str]) -> None:
    """Raise TypeError if the value lacks one of the attributes."""
    missing = [name for name in names if not hasattr(value, name)]
    if missing:
        raise TypeError(f"{what} ({type(value).__name__}) has no {', '.join(missing)}")


def check_methods(
    what: str, value: object, methods: Mapping[str, tuple[str, ...]], keywords: tuple[str, ...] = ()
) -> None:
    """Raise TypeError if a method is missing, or cannot be called with its arguments and all of `keywords`.

    `methods`: for each name of a method the names of its positional arguments.
    """
    for method, arguments in methods.items():
        function = getattr(value, method, None)
        call = f"{method}({', '.join((*arguments, *(f'{name}=' for name in keywords)))})"
        if isinstance(value, type):
            raise TypeError(f"{what} is the class {value.__name__}: give an object of it")
        if not callable(function):
            raise TypeError(f"{what} ({type(value).__name__}) has no method {call}")
        try:
            inspect.signature(function).bind(*arguments, **dict.fromkeys(keywords))
        except TypeError as error:
            raise TypeError(f"{what} is called as {call}, and its method does not take that: {error}") from error
        except ValueError:  # a function written in C has no signature: its first call will show
            continue


def load_plugins(modules: Iterable[str] | None = None) -> None:
    """Import the modules of $SYMENUM_PLUGINS and those named here; each registers what it has.

    The working folder is searched too. The modules named here are added to $SYMENUM_PLUGINS, so that processes started
    from this one load them as well. Importing runs their code: name only modules that you trust.
    """
    known = [name for name in os.environ.get(PLUGINS_VARIABLE, "").split(",") if name]
    wanted = list(dict.fromkeys([*known, *(modules or ())]))
    if not wanted:
        return
    if not {"", str(Path.cwd())} & set(sys.path):
        sys.path.insert(0, str(Path.cwd()))
    for name in wanted:
        _load(name)
    os.environ[PLUGINS_VARIABLE] = ",".join(wanted)


def _load(module: str) -> None:
    try:
        importlib.import_module(module)
    except Exception as error:  # a module may raise anything when it is imported
        raise PluginError(f"the plug-in {module!r} cannot be loaded: {type(error).__name__}: {error}") from error
