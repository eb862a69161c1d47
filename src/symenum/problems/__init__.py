"""The benchmark problems as data, and the sets they come in with their protocols."""

from symenum.problems.external import MissingDataError
from symenum.problems.noise import with_noise
from symenum.problems.problem import Case, Problem, recovered
from symenum.problems.registry import SETS, ProblemSet, Protocol, get_set, register_set
from symenum.problems.tables import PROBLEM_SETS, get_problem, problem_set

__all__ = [
    "PROBLEM_SETS",
    "SETS",
    "Case",
    "MissingDataError",
    "Problem",
    "ProblemSet",
    "Protocol",
    "get_problem",
    "get_set",
    "problem_set",
    "recovered",
    "register_set",
    "with_noise",
]
