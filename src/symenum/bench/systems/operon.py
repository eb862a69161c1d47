"""pyoperon: genetic programming in C++ with fitted constants.

It runs until its time is over, even after it has found the law. So that its time to the law can be compared, it runs in
turns of two seconds, each of which goes on from the last. When the error is one of rounding it gets one more turn, in
which the law may still become shorter, and then ends.
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
_SAME_SYMBOLS = ("sin", "cos", "exp", "log", "sqrt")  # whose names are ours
_DIGITS = 17  # with which a double is written exactly
_TURN_SECONDS = 2  # whole seconds, as it takes them; also the uncertainty of its time to a law
_SEED_STEP = 1000  # between the seeds of two turns of one run, so that the runs of seeds 0, 1, 2, … share no turn
_EXACT = 1e-15  # mean squared error over the mean square of y: wrong laws come down to 1e-14, right ones fall below


class Operon:
    """Two objectives, error and length, and constants fitted by Levenberg–Marquardt, as its authors run it."""

    def fit(self, X: Array, y: Array, *, operators: Sequence[str], seed: int, max_time: float, cores: int) -> Found:
        try:
            from pyoperon.sklearn import SymbolicRegressor
        except ImportError as error:
            raise NotInstalledError("pyoperon is not installed: pip install pyoperon") from error
        symbols = [_SYMBOLS[sign] for sign in operators if sign in _SYMBOLS] + [
            sign for sign in operators if sign in _SAME_SYMBOLS
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

        found: dict[Expression, None] = {}  # the laws of all turns: a law may leave the population again
        laws: tuple[Law, ...] = ()
        turn, ended = 0, "its time was over"
        while not turn or max_time - (time.monotonic() - begin) > 0:
            remaining = max_time - (time.monotonic() - begin)
            exact = bool(laws) and laws[-1].loss <= _EXACT * float((y * y).mean())
            model.set_params(
                max_time=max(1, min(_TURN_SECONDS, round(remaining))), random_state=seed + _SEED_STEP * turn
            )
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
    """The laws that no more accurate law equals or beats in complexity, and the chosen one; from simple to accurate."""
    front: list[Law] = []
    simplest = float("inf")
    for law in reversed(laws):  # the most accurate first
        if law.complexity < simplest or law.text == chosen:
            front.append(law)
            simplest = min(simplest, law.complexity)
    return tuple(reversed(front))
