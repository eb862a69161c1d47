"""Random laws that no pass from the raw variables reaches: a test of the tokens (`benchmarks/make_deep_problems.py`).

They were drawn before any token generator was tried on them, and none was taken out.
"""

from __future__ import annotations

from symenum.problems.problem import Problem

__all__ = ["DEEP"]


def _deep(number: int, inputs: int, text: str) -> Problem:
    return Problem(f"Deep-{number}", text, tuple(f"x{i + 1}" for i in range(inputs)), 0.5, 3.0, 100)


DEEP = (
    _deep(1, 1, "exp(x1 + x1) + (x1 - log(x1 - log(x1 + x1)))"),
    _deep(2, 2, "sin(x2 - exp(x2 - sin(x2/x1)))"),
    _deep(3, 3, "exp(x1 - x3)*sin(x3 + cos(x3*(x2 - x1)))"),
    _deep(4, 1, "x1*x1/log(x1*x1 + log(exp(x1) - x1))"),
    _deep(5, 2, "x1/exp(x1 + sin(x1*x2))"),
    _deep(6, 3, "x1/x3 - sin(cos(x1/x2) + x3*x3)"),
    _deep(7, 1, "(x1 - log(x1)/(cos(x1*x1) - x1))/x1"),
    _deep(8, 2, "sin((exp(sin(x2) + cos(x1)) - x2)/x2)"),
    _deep(9, 3, "sin(x1*x1/cos(cos(x2) - cos(x3)))"),
    _deep(10, 1, "cos(cos(log(x1 + x1)*x1) - cos(x1))"),
    _deep(11, 2, "x2*(cos(x2 - cos(x1)) + x2)"),
    _deep(12, 3, "cos(x2*(x2 - (x3 + x1) + log(sin(x1) + x2)))"),
    _deep(13, 1, "cos(log(x1*(x1 + exp(x1)))*x1)"),
    _deep(14, 2, "sin(x2/(sin(x2)*log(x1*x2)))"),
    _deep(15, 3, "exp(sin(x3) - x1 + (x3/x1 - x2))/x1"),
    _deep(16, 1, "(x1 + (cos(x1) - x1/log(x1)))*exp(x1)"),
)
