"""pyoperon: genetic programming in C++ with fitted constants. It has no stop at a law: it uses all of its time."""

from __future__ import annotations

from symenum.bench.systems.base import Found, NotInstalledError
from symenum.bench.systems.laws import as_laws
from symenum.expressions import parse
from symenum.operators import OPERATOR_SETS
from symenum.problems.names import rename
from symenum.problems.problem import Array

__all__ = ["Operon"]

_SYMBOLS = {"+": "add", "-": "sub", "*": "mul", "/": "div", "tanh": "tanh", "cosh": "cosh", "abs": "abs"}
_SAME = ("sin", "cos", "exp", "log", "sqrt")
_DIGITS = 17


class Operon:
    """Two objectives, error and length, and constants fitted by Levenberg–Marquardt, as its authors run it."""

    def fit(self, X: Array, y: Array, *, operators: str, seed: int, max_time: float, cores: int) -> Found:
        try:
            from pyoperon.sklearn import SymbolicRegressor
        except ImportError as error:
            raise NotInstalledError("pyoperon is not installed: pip install pyoperon") from error
        signs = OPERATOR_SETS[operators]
        symbols = [_SYMBOLS[sign] for sign in signs if sign in _SYMBOLS] + [sign for sign in signs if sign in _SAME]
        model = SymbolicRegressor(
            allowed_symbols=",".join([*symbols, "constant", "variable"]),
            objectives=["mse", "length"],
            optimizer_iterations=10,
            max_time=max(1, round(max_time)),
            max_evaluations=2**62,
            generations=2**31 - 1,
            n_threads=cores,
            random_state=seed,
        )
        model.fit(X, y)
        names = {f"X{i + 1}": f"x{i + 1}" for i in range(X.shape[1])}
        trees = [entry["tree"] for entry in model.pareto_front_]
        texts = [rename(model.get_model_string(tree, _DIGITS), names) for tree in trees]
        chosen = parse(rename(model.get_model_string(model.model_, _DIGITS), names))
        laws = as_laws([*(parse(text) for text in texts), chosen], X, y)
        selected = next(i for i, law in enumerate(laws) if law.text == str(chosen))
        return Found(laws, selected, "its time was over")
