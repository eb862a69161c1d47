"""Problems whose laws are written here: the paper's six sets, their variants in the reference's files, and `deep`.

The paper's sets are those of its supplement (Tables S.1 and S.2); `deep` is our own. Every line is a name, a law, the
range of its variables, the number of rows, and the number of variables where it is not one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from symenum.bench.problems.problem import Problem

__all__ = ["PROBLEM_SETS", "get_problem", "problem_set", "reference_problems"]


def _uniform(name: str, text: str, low: float, high: float, rows: int, inputs: int = 1) -> Problem:
    return Problem(name, text, tuple(f"x{i + 1}" for i in range(inputs)), low, high, rows)


def _equidistant(name: str, text: str, low: float, high: float, rows: int) -> Problem:
    return Problem(name, text, ("x1",), low, high, rows, "equidistant")


def _powers(top: int) -> str:
    """x1**top + … + x1**2 + x1."""
    return " + ".join(f"x1**{i}" for i in range(top, 1, -1)) + " + x1"


_R_LAWS = (
    "(x1 + 1)**3/(x1**2 - x1 + 1)",
    "(x1**5 - 3*x1**3 + 1)/(x1**2 + 1)",
    "(x1**6 + x1**5)/(x1**4 + x1**3 + x1**2 + x1 + 1)",
)

# Table S.1
_NGUYEN = (
    _uniform("Nguyen-1", _powers(3), -1, 1, 20),
    _uniform("Nguyen-2", _powers(4), -1, 1, 20),
    _uniform("Nguyen-3", _powers(5), -1, 1, 20),
    _uniform("Nguyen-4", _powers(6), -1, 1, 20),
    _uniform("Nguyen-5", "sin(x1**2)*cos(x1) - 1", -1, 1, 20),
    _uniform("Nguyen-6", "sin(x1) + sin(x1 + x1**2)", -1, 1, 20),
    _uniform("Nguyen-7", "log(x1 + 1) + log(x1**2 + 1)", 0, 2, 20),
    _uniform("Nguyen-8", "sqrt(x1)", 0, 4, 20),
    _uniform("Nguyen-9", "sin(x1) + sin(x2**2)", 0, 1, 20, 2),
    _uniform("Nguyen-10", "2*sin(x1)*cos(x2)", 0, 1, 20, 2),
    _uniform("Nguyen-11", "x1**x2", 0, 1, 20, 2),
    _uniform("Nguyen-12", "x1**4 - x1**2 + x2**2/2 - x2", 0, 1, 20, 2),
)

# Table S.1: Nguyen's laws with constants
_NGUYEN_C = (
    _uniform("Nguyen-1c", "3.39*x1**3 + 2.12*x1**2 + 1.78*x1", -1, 1, 20),
    _uniform("Nguyen-2c", "0.48*x1**4 + 3.39*x1**3 + 2.12*x1**2 + 1.78*x1", -1, 1, 20),
    _uniform("Nguyen-5c", "sin(x1**2)*cos(x1) - 0.75", 0, 2, 20),
    _uniform("Nguyen-8c", "sqrt(1.23*x1)", 0, 4, 20),
    _uniform("Nguyen-9c", "sin(1.5*x1) + sin(0.5*x2**2)", 0, 1, 20, 2),
    _uniform("Nguyen-10c", "sin(1.5*x1)*cos(0.5*x2)", 0, 1, 20, 2),
)

# Table S.1: the rational functions on [-1, 1]
_R = tuple(_equidistant(f"R-{i + 1}", law, -1, 1, 20) for i, law in enumerate(_R_LAWS))
# Table S.1: the same on [-10, 10]
_R_STAR = tuple(_equidistant(f"R-{i + 1}*", law, -10, 10, 20) for i, law in enumerate(_R_LAWS))

# Table S.2
_LIVERMORE = (
    _uniform("Livermore-1", "1/3 + x1 + sin(x1**2)", -10, 10, 1000),
    _uniform("Livermore-2", "sin(x1**2)*cos(x1) - 2", -1, 1, 20),
    _uniform("Livermore-3", "sin(x1**3)*cos(x1**2) - 1", -1, 1, 20),
    _uniform("Livermore-4", "log(x1 + 1) + log(x1**2 + 1) + log(x1)", 0, 2, 20),
    _uniform("Livermore-5", "x1**4 - x1**3 + x1**2 - x2", 0, 1, 20, 2),
    _uniform("Livermore-6", "4*x1**4 + 3*x1**3 + 2*x1**2 + x1", -1, 1, 20),
    _uniform("Livermore-7", "sinh(x1)", -1, 1, 20),
    _uniform("Livermore-8", "cosh(x1)", -1, 1, 20),
    _uniform("Livermore-9", _powers(9), -1, 1, 20),
    _uniform("Livermore-10", "6*sin(x1)*cos(x2)", 0, 1, 20, 2),
    _uniform("Livermore-11", "x1**4/(x1 + x2)", -1, 1, 50, 2),
    _uniform("Livermore-12", "x1**5/x2**3", -1, 1, 50, 2),
    _uniform("Livermore-13", "x1**(1/3)", 0, 4, 20),
    _uniform("Livermore-14", "x1**3 + x1**2 + x1 + sin(x1) + sin(x1**2)", -1, 1, 20),
    _uniform("Livermore-15", "x1**(1/5)", 0, 4, 20),
    _uniform("Livermore-16", "x1**(2/5)", 0, 4, 20),
    _uniform("Livermore-17", "4*sin(x1)*cos(x2)", 0, 1, 20, 2),
    _uniform("Livermore-18", "sin(x1**2)*cos(x1) - 5", -1, 1, 20),
    _uniform("Livermore-19", "x1**5 + x1**4 + x1**2 + x1", -1, 1, 20),
    _uniform("Livermore-20", "exp(-x1**2)", -1, 1, 20),
    _uniform("Livermore-21", _powers(8), -1, 1, 20),
    _uniform("Livermore-22", "exp(-x1**2/2)", -1, 1, 20),
)

# Table S.2: Feynman's equations with few points
_FEYNMAN = (
    _uniform("Feynman-1", "x1*x2", 1, 5, 20, 2),
    _uniform("Feynman-2", "x1/(2*(1 + x2))", 1, 5, 20, 2),
    _uniform("Feynman-3", "x1*x2**2", 1, 5, 20, 2),
    _uniform("Feynman-4", "1 + x1*x2/(1 - x1*x2/3)", 0, 1, 20, 2),
    _uniform("Feynman-5", "x1/x2", 1, 5, 20, 2),
    _uniform("Feynman-6", "x1*x2**2/2", 1, 5, 20, 2),
    _uniform("Feynman-7", "3*x1*x2/2", 1, 5, 20, 2),
    _uniform("Feynman-8", "x1/(exp(x4*x5/(x2*x3)) + exp(-x4*x5/(x2*x3)))", 1, 3, 50, 5),
    _uniform("Feynman-9", "x1*x2*x3*log(x5/x4)", 1, 5, 50, 5),
    _uniform("Feynman-10", "x1*(x3 - x2)*x4/x5", 1, 5, 50, 5),
    _uniform("Feynman-11", "x1*x2/(x5*(x3**2 - x4**2))", 1, 3, 50, 5),
    _uniform("Feynman-12", "x1*x2**2*x3/(3*x4*x5)", 1, 5, 50, 5),
    _uniform("Feynman-13", "x1*(exp(x2*x3/(x4*x5)) - 1)", 1, 5, 50, 5),
    _uniform("Feynman-14", "x5*x1*x2*(1/x4 - 1/x3)", 1, 5, 50, 5),
    _uniform("Feynman-15", "x1*(x2 + x3*x4*sin(x5))", 1, 5, 50, 5),
)


def _deep(number: int, inputs: int, text: str) -> Problem:
    return Problem(f"Deep-{number}", text, tuple(f"x{i + 1}" for i in range(inputs)), 0.5, 3.0, 100)


# Random laws that no pass from the raw variables finds, as a test of the tokens (`benchmarks/make_deep_problems.py`).
# They were drawn before any token generator was tried on them, and none was taken out.
_DEEP = (
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


PROBLEM_SETS: Mapping[str, tuple[Problem, ...]] = {
    "nguyen": _NGUYEN,
    "nguyen_c": _NGUYEN_C,
    "r": _R,
    "r_star": _R_STAR,
    "livermore": _LIVERMORE,
    "feynman": _FEYNMAN,
    "deep": _DEEP,
}
"""The sets by name; all but `deep` are the paper's."""


def problem_set(name: str) -> tuple[Problem, ...]:
    """The problems of a set; "paper" gives those of all the paper's sets, "all" those of every set."""
    if name in ("paper", "all"):
        sets = [one for one in PROBLEM_SETS if name == "all" or one != "deep"]
        return tuple(problem for one in sets for problem in PROBLEM_SETS[one])
    if name not in PROBLEM_SETS:
        raise ValueError(f"unknown problem set {name!r}; known: {', '.join(PROBLEM_SETS)}, paper, all")
    return PROBLEM_SETS[name]


def get_problem(name: str) -> Problem:
    """The problem of that name.

    >>> print(get_problem("Nguyen-9").expression)
    sin(x1) + sin(x2**2)
    """
    for problem in problem_set("all"):
        if problem.name.lower() == name.lower():
            return problem
    raise ValueError(f"unknown problem {name!r}; known: {', '.join(problem.name for problem in problem_set('all'))}")


_MAX_REFERENCE_ROWS = 1000  # no file of the reference has more
# Where the ranges or laws in the reference's files are not those of the paper's tables.
_REFERENCE_CHANGES = {
    "Nguyen-7": {"high": 4.0},
    "Nguyen-5c": {"low": -1.0, "high": 1.0},
    "Nguyen-12": {"text": "x1**4 - x1**3 + x2**2/2 - x2"},
}


def reference_problems(name: str) -> tuple[Problem, ...]:
    """The problems of one of the paper's sets with the rows, ranges and laws of the reference's files.

    Their names end with "-reference".
    """
    return tuple(_reference(problem) for problem in PROBLEM_SETS[name])


def _reference(problem: Problem) -> Problem:
    rows = min(problem.rows ** len(problem.variables), _MAX_REFERENCE_ROWS)
    changes = _REFERENCE_CHANGES.get(problem.name, {})
    return replace(problem, name=f"{problem.name}-reference", rows=rows, **changes)  # type: ignore[arg-type]
