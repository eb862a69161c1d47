"""The benchmark problems as data."""

from symenum.problems.problem import Problem, recovered
from symenum.problems.tables import PROBLEM_SETS, get_problem, problem_set

__all__ = ["PROBLEM_SETS", "Problem", "get_problem", "problem_set", "recovered"]
