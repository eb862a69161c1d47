"""The protocol of a token generator, and the values that travel through it.

A generator proposes the composite tokens of the next pass and learns from what the pass found. It is a value without
memory of its own: what it knows stands in a state, a frozen dataclass of expressions and numbers, and every random
number comes from the caller's generator. The same calls with the same seed give the same tokens.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from symenum.core.budget import NO_LIMIT, Budget
from symenum.expressions import Expression, Variable, variables
from symenum.operators import Operator
from symenum.operators.traits import Role

__all__ = ["ScoredExpression", "TokenContext", "TokenGenerator", "check_count", "check_front", "deal"]

S = TypeVar("S")
_DEALING_TRIES = 20  # draws of a set that differs from those before; then there is one set less


@dataclass(frozen=True, eq=False)
class TokenContext:
    """What every generator works with, fixed for a search: the operators, the data, and the range of constants.

    `columns` (variable's name -> (rows,)), `y` and `weight` (rows,) are float64, finite and on the CPU; the weights sum
    to 1. They are a selection of a few hundred rows: generators only propose tokens, the pass judges them on all rows.
    `constant_range` None: tokens hold no constants but those of front members. `material`: the variables that new
    tokens are made of, where these are not all.
    """

    operators: tuple[Operator, ...]
    columns: Mapping[str, Tensor]
    y: Tensor
    weight: Tensor
    constant_range: tuple[float, float] | None = None
    material: tuple[Expression, ...] = ()

    def __post_init__(self) -> None:
        if not self.operators:
            raise ValueError("operators is empty: tokens are built with at least one operator")
        if not self.columns:
            raise ValueError("columns is empty: tokens are built on at least one variable")
        for name, column in {"y": self.y, "weight": self.weight, **self.columns}.items():
            if not isinstance(column, Tensor) or column.dtype != torch.float64 or column.ndim != 1:
                raise TypeError(f"{name} must be a float64 tensor of shape (rows,)")
            if len(column) != len(self.y) or not len(column):
                raise ValueError(f"{name} has {len(column)} rows and y has {len(self.y)}: all need the same, and one")
            if not bool(torch.isfinite(column).all()):
                raise ValueError(f"{name} is not finite on every row: select the rows that are")
        if bool((self.weight < 0).any()) or not math.isclose(float(self.weight.sum()), 1.0, rel_tol=1e-6):
            raise ValueError("weight must hold weights of at least 0 that sum to 1")
        if self.constant_range is not None:
            low, high = self.constant_range
            if not (math.isfinite(low) and math.isfinite(high) and low <= high):
                raise ValueError(f"constant_range must be (low, high) with low <= high, not {self.constant_range!r}")

    @cached_property
    def variables(self) -> tuple[Expression, ...]:
        """The variables that tokens are made of, in the order of the columns where these are all."""
        return self.material or tuple(Variable(name) for name in self.columns)

    @cached_property
    def working(self) -> tuple[Operator, ...]:
        """The operators without the identity, which makes nothing new."""
        return tuple(operator for operator in self.operators if operator.role is not Role.IDENTITY)

    @property
    def rows(self) -> int:
        return len(self.y)


@dataclass(frozen=True)
class ScoredExpression:
    """A member of the front with its reward."""

    expression: Expression
    reward: float


class TokenGenerator(Protocol[S]):
    """One way to choose the composite tokens of a pass; S is its state."""

    @property
    def name(self) -> str: ...

    def start(self, context: TokenContext) -> S:
        """The state before the first pass."""
        ...

    def propose(
        self,
        context: TokenContext,
        state: S,
        count: int,
        rng: np.random.Generator,
        budget: Budget = NO_LIMIT,
    ) -> tuple[tuple[Expression, ...], S]:
        """`count` tokens for the next pass, or for a batch of passes, and the state that remembers them.

        The best tokens come first; tokens that should meet in one pass stand side by side (`deal`). A token has an
        operator. On the rows of the context it is finite, not constant, and differs from the variables and from the
        other tokens. Fewer than `count` come back only where the operators cannot build so many. Raises CutShortError
        (`budget.check()`) where the budget is over before the tokens are chosen.
        """
        ...

    def learn(self, context: TokenContext, state: S, reward: float, front: Sequence[ScoredExpression]) -> S:
        """The state after the passes with the tokens proposed last: their best reward, and the front as it now is.

        `front` may hold further laws that nearly stand on the front, wherever they come from: parts of all of them may
        be tokens at once.
        """
        ...


def deal(
    tokens: Sequence[Expression], sets: int, size: int, rng: np.random.Generator
) -> tuple[tuple[Expression, ...], ...]:
    """`sets` sets of `size` tokens each, for the passes of a batch; `tokens`, all distinct, come from `propose`.

    The first set takes the first tokens, the next set those that follow: neighbours stay together. Where the tokens do
    not fill all places, the other places are filled by draws in which a token of rank r has a chance proportional to
    1/(r + 1); no set holds a token twice, and no two sets are equal where that is possible. Fewer tokens than `size`
    make one set.
    """
    check_count(sets)
    check_count(size)
    if len(tokens) <= size:
        return (tuple(tokens),) * min(sets, 1)
    dealt: dict[frozenset[Expression], tuple[Expression, ...]] = {}
    chances = 1.0 / (np.arange(len(tokens)) + 1.0)
    for number in range(sets):
        chosen = tuple(tokens[number * size : (number + 1) * size])
        for _ in range(_DEALING_TRIES):
            whole = chosen
            if len(chosen) < size:
                free = np.array(
                    [0.0 if token in chosen else chance for token, chance in zip(tokens, chances, strict=True)]
                )
                drawn = rng.choice(len(tokens), size=size - len(chosen), replace=False, p=free / free.sum())
                whole += tuple(tokens[int(i)] for i in drawn)
            if frozenset(whole) not in dealt:
                dealt[frozenset(whole)] = whole
                break
    return tuple(dealt.values())


def check_count(count: int) -> None:
    """Refuse a `count` that is not a whole number of at least 0."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise ValueError(f"count must be a whole number of at least 0, not {count!r}")


def check_front(reward: float, front: Sequence[ScoredExpression], context: TokenContext) -> None:
    """Refuse a reward that is NaN, and front members in variables that the context does not have."""
    if math.isnan(reward):
        raise ValueError("reward must be a number, not NaN: a pass that found nothing has reward 0")
    for member in front:
        unknown = [name for name in variables(member.expression) if name not in context.columns]
        if unknown:
            raise ValueError(f"front holds {member.expression}, and there is no column for {', '.join(unknown)}")
