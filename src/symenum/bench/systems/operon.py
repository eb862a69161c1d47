"""pyoperon: genetic programming in C++ with fitted constants, in turns of a few seconds, each going on from the last.

It has no stop at a law of its own: between two turns we look whether its best error is one of rounding. Then it gets
one more turn, in which a law may still become shorter, and its time to the law is not all of its time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from symenum.bench.problems.problem import Array, rename
from symenum.bench.systems.base import Found, Law, NotInstalledError, as_laws
from symenum.expressions import Expression, parse

__all__ = ["Operon"]

_SYMBOLS = {"+": "add", "-": "sub", "*": "mul", "/": "div", "tanh": "tanh", "cosh": "cosh", "abs": "abs"}
_SAME = ("sin", "cos", "exp", "log", "sqrt")
_DIGITS = 17  # with which a double is written exactly
_TURN = 2  # seconds
_SEEDS = 1000  # between the turns of one run, so that seeds 0, 1, 2 … have turns of their own
_EXACT = 1e-15  # relative to the mean square of y; wrong forms come down to 1e-14, right ones in single precision below


class Operon:
    """Two objectives, error and length, and constants fitted by Levenberg–Marquardt, as its authors run it."""

    def fit(self, X: Array, y: Array, *, operators: Sequence[str], seed: int, max_time: float, cores: int) -> Found:
        try:
            from pyoperon.sklearn import SymbolicRegressor
        except ImportError as error:
            raise NotInstalledError("pyoperon is not installed: pip install pyoperon") from error
        symbols = [_SYMBOLS[sign] for sign in operators if sign in _SYMBOLS] + [
            sign for sign in operators if sign in _SAME
        ]
        begin = time.monotonic()
        model = SymbolicRegressor(
            allowed_symbols=",".join([*symbols, "constant", "variable"]),
            objectives=["mse", "length"],
            optimizer_iterations=10,
            warm_start=True,
            max_evaluations=2**62,
            generations=2**31 - 1,
            n_threads=cores,
        )
        names = {f"X{i + 1}": f"x{i + 1}" for i in range(X.shape[1])}

        def law(tree: Any) -> Expression:
            return parse(rename(model.get_model_string(tree, _DIGITS), names))

        found: dict[Expression, None] = {}  # of all turns: a law may leave its population again
        laws: tuple[Law, ...] = ()
        turn, ended = 0, "its time was over"
        while not turn or max_time - (time.monotonic() - begin) > 0:
            left = max_time - (time.monotonic() - begin)
            exact = bool(laws) and laws[-1].loss <= _EXACT * float((y * y).mean())
            model.set_params(max_time=max(1, min(_TURN, round(left))), random_state=seed + _SEEDS * turn)
            model.fit(X, y)
            turn += 1
            found |= dict.fromkeys(law(entry["tree"]) for entry in model.pareto_front_)
            chosen = law(model.model_)
            laws = as_laws([*found, chosen], X, y)
            if exact:
                ended = "its error was one of rounding"
                break
        laws = _front(laws, str(chosen))
        selected = next(i for i, each in enumerate(laws) if each.text == str(chosen))
        return Found(laws, selected, ended)


def _front(laws: tuple[Law, ...], chosen: str) -> tuple[Law, ...]:
    """Those that none at most as complex beats, and the chosen one; from simple to accurate, as they come."""
    kept: list[Law] = []
    simplest = float("inf")
    for law in reversed(laws):  # the most accurate first
        if law.complexity < simplest or law.text == chosen:
            kept.append(law)
            simplest = min(simplest, law.complexity)
    return tuple(reversed(kept))
