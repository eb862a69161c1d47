"""The search on reduced problems: the furthest reduction first, what is found there judged on y itself."""

from __future__ import annotations

from collections.abc import Callable

from symenum.core.budget import Budget
from symenum.enumeration.shortlist import Candidate
from symenum.heads.goal import Data
from symenum.heads.reductions.find import reductions

__all__ = ["Solve", "search_reduced"]

Solve = Callable[[Data, Budget], list[Candidate]]

_LEVELS = 2  # the last reduction may be a false one: then the problem before it is worth a look


def search_reduced(data: Data, solve: Solve, budget: Budget) -> list[Candidate]:
    """Candidates for y from laws that `solve` finds on the problems with the fewest slots."""
    found: list[Candidate] = []
    for problem in list(reductions(data, budget))[: -_LEVELS - 1 : -1]:
        for candidate in solve(problem.data(), budget):
            whole = problem.candidate(candidate)
            found += [] if whole is None else [whole]
        if budget.over() or any(data.is_law(candidate) for candidate in found):
            break
    return found
