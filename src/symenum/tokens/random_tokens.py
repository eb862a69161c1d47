"""Random tokens (the paper's Algorithm 5): trees of depth 1 to 3 over variables and constants; learns nothing.

The others are measured against it. On data that mislead them it stays unbiased.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from symenum.core.budget import NO_LIMIT, Budget
from symenum.expressions import Expression
from symenum.tokens.generator import ScoredExpression, TokenContext, check_count, check_front
from symenum.tokens.trees import RANDOM_DEPTH, Evaluator, pick_distinct, random_trees

__all__ = ["RandomState", "RandomTokens"]


@dataclass(frozen=True)
class RandomState:
    """Empty: random tokens remember nothing."""


@dataclass(frozen=True)
class RandomTokens:
    """See `TokenGenerator`. `depth`: the largest number of operators from root to leaf."""

    depth: int = RANDOM_DEPTH
    name: str = "random"

    def start(self, context: TokenContext) -> RandomState:
        return RandomState()

    def propose(
        self,
        context: TokenContext,
        state: RandomState,
        count: int,
        rng: np.random.Generator,
        budget: Budget = NO_LIMIT,
    ) -> tuple[tuple[Expression, ...], RandomState]:
        check_count(count)
        budget.check()
        trees = random_trees(context, rng, count, self.depth)
        return tuple(pick_distinct(Evaluator(context), context, trees, count)), state

    def learn(
        self, context: TokenContext, state: RandomState, reward: float, front: Sequence[ScoredExpression]
    ) -> RandomState:
        check_front(reward, front, context)
        return state
