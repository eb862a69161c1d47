"""The benchmark problems as data, and the sets they come in with their protocols."""

from symenum.bench.problems.motion import MotionProblem
from symenum.bench.problems.problem import Case, Dataset, MissingDataError, Problem, with_noise
from symenum.bench.problems.sets import SETS, ProblemSet, Protocol, get_set, register_set
from symenum.bench.problems.tables import PROBLEM_SETS, get_problem, problem_set

__all__ = [
    "PROBLEM_SETS",
    "SETS",
    "Case",
    "Dataset",
    "MissingDataError",
    "MotionProblem",
    "Problem",
    "ProblemSet",
    "Protocol",
    "get_problem",
    "get_set",
    "problem_set",
    "register_set",
    "with_noise",
]
