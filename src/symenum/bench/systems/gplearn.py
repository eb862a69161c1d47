"""gplearn: genetic programming in Python. Its log, sqrt and division are protected; its laws are judged as printed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from symenum.bench.problems.problem import Array
from symenum.bench.systems.base import Found, NotInstalledError, as_laws
from symenum.expressions import Constant, Expression, Variable, apply

__all__ = ["Gplearn"]

_FUNCTIONS = {"+": "add", "-": "sub", "*": "mul", "/": "div", "sin": "sin", "cos": "cos", "log": "log", "abs": "abs"}
_EXACT = 1e-13  # mean squared error relative to the mean square of y at which it stops: the law is exact up to rounding


class Gplearn:
    """Its defaults, one generation after another until the time is over or the best individual is exact."""

    def fit(self, X: Array, y: Array, *, operators: Sequence[str], seed: int, max_time: float, cores: int) -> Found:
        try:
            import numpy
            from gplearn.functions import make_function
            from gplearn.genetic import SymbolicRegressor
        except ImportError as error:
            raise NotInstalledError("gplearn is not installed: pip install gplearn") from error

        def bounded_exp(x: Any) -> Any:  # gplearn refuses a function that overflows
            return numpy.exp(numpy.clip(x, -100.0, 100.0))

        functions: list[Any] = [_FUNCTIONS[sign] for sign in operators if sign in _FUNCTIONS]
        if "exp" in operators:
            functions.append(make_function(function=bounded_exp, name="exp", arity=1))
        begin = time.monotonic()
        model = SymbolicRegressor(
            function_set=functions,
            generations=1,
            warm_start=True,
            metric="mse",
            stopping_criteria=_EXACT * float((y * y).mean()),
            n_jobs=1,  # it starts new processes for each generation, which takes longer than they save
            random_state=seed,
        )
        best: dict[Expression, None] = {}
        ended = "its time was over"
        while time.monotonic() - begin < max_time:
            model.fit(X, y)
            best[_tree(model._program.program)] = None
            if model.run_details_["best_fitness"][-1] <= model.stopping_criteria:
                ended = "an exact law was found"
                break
            model.set_params(generations=model.generations + 1)
        laws = as_laws(best, X, y)
        return Found(laws, len(laws) - 1, ended)


def _tree(program: list[Any]) -> Expression:
    """The tree of a program in prefix order: functions, indices of variables (int) and constants (float)."""
    stack: list[Expression] = []
    for node in reversed(program):
        if isinstance(node, int):
            stack.append(Variable(f"x{node + 1}"))
        elif isinstance(node, float):
            stack.append(Constant(float(node)))
        else:
            operands = [stack.pop() for _ in range(node.arity)]
            stack.append(apply(node.name, *operands))
    return stack[0]
