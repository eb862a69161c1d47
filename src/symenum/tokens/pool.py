"""The token pool: what front members are made of, simple joins of variables, and how each token has done so far.

A token is judged by what it did: by the passes that it took part in, and by the front members that it occurs in. The
memory of that is a frozen value of expressions and numbers, as every state is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from symenum.core.exactness import EXACTNESS
from symenum.expressions import Apply, Constant, Expression, apply, canonical, fold
from symenum.operators.traits import ARITHMETIC, Role
from symenum.tokens.generator import ScoredExpression, TokenContext
from symenum.tokens.trees import composite_parts, random_constant

__all__ = ["FRONT_PARTNERS", "MAX_COMPLEXITY", "Memory", "Record", "cross_variable", "front_parts", "stripped"]

# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
MAX_COMPLEXITY = 14
"""Largest complexity of a token; the pass builds what is more complex."""
FRONT_PARTNERS = 8
"""Members of the front that tokens are joined with when they are judged."""
_MAX_RECORDS = 400  # tokens with a record; those of the fewest successes and passes are forgotten first
_PASS_VALUE = 0.1  # successes that a pass counts for when it is decided which records are forgotten
_SUCCESS_VALUE = 2.0  # weight of a success against a pass in a token's merit
_OCCURRENCE = 0.5  # successes for a token in a new front member when the reward did not improve
_MAX_JOINED_TERMS = 6  # sums and products of up to so many terms give all pairs of their terms
_CONSTANT_SHARE = 0.25  # part of `cross_variable` whose second operand is a constant, where constants are wanted


@dataclass(frozen=True)
class Record:
    """A token in its canonical form, the passes that it took part in, and its share in those that were successful."""

    token: Expression
    passes: int
    successes: float


@dataclass(frozen=True)
class Memory:
    """What a generator remembers of all passes: records, the tokens proposed last, the front, and the best reward."""

    records: tuple[Record, ...] = ()
    proposed: tuple[Expression, ...] = ()
    front: tuple[ScoredExpression, ...] = ()
    best_reward: float = float("-inf")
    steps: int = 0
    stale: int = 0  # passes since the last that improved the reward

    @cached_property
    def by_token(self) -> Mapping[Expression, Record]:
        return {record.token: record for record in self.records}

    def merit(self, token: Expression) -> float:
        """(1 + 2·successes)/(1 + passes): above 1 for a token of successful passes, 1 for one that was never tried."""
        record = self.by_token.get(canonical(token)) if self.records else None
        return 1.0 if record is None else (1.0 + _SUCCESS_VALUE * record.successes) / (1.0 + record.passes)

    def best_members(self) -> list[Expression]:
        """The front members of the highest rewards, at most FRONT_PARTNERS, best first."""
        best = sorted(self.front, key=lambda member: -member.reward)[:FRONT_PARTNERS]
        return [member.expression for member in best]

    def with_proposal(self, tokens: Sequence[Expression]) -> Memory:
        """The memory that waits for the outcome of a pass on these tokens."""
        return Memory(self.records, tuple(tokens), self.front, self.best_reward, self.steps, self.stale)

    def after_pass(self, reward: float, front: Sequence[ScoredExpression]) -> Memory:
        """The memory with the outcome of the pass on the tokens proposed last.

        A better reward is a success of the tokens that occur in new front members. Where none does, since the rewriting
        of laws may hide a token, all tokens share one success equally.
        """
        improved = reward > self.best_reward + EXACTNESS.tie
        known = {member.expression for member in self.front}
        new_parts: set[Expression] = set()
        for member in front:
            if member.expression not in known:
                new_parts.update(map(canonical, composite_parts(member.expression)))
                new_parts.update(map(canonical, composite_parts(stripped(member.expression))))
        proposed = [canonical(token) for token in self.proposed]
        used = [token for token in proposed if token in new_parts]
        share = dict.fromkeys(used, 1.0) or {token: 1.0 / len(proposed) for token in proposed}
        records = dict(self.by_token)
        for token in proposed:
            before = records.get(token, Record(token, 0, 0.0))
            gain = share.get(token, 0.0) if improved else _OCCURRENCE if token in new_parts else 0.0
            records[token] = Record(token, before.passes + 1, before.successes + gain)
        ranked = sorted(records.values(), key=lambda record: -(record.successes + _PASS_VALUE * record.passes))
        return Memory(
            tuple(ranked[:_MAX_RECORDS]),
            (),
            tuple(front),
            max(reward, self.best_reward),
            self.steps + 1,
            0 if improved else self.stale + 1,
        )


def stripped(expression: Expression) -> Expression:
    """The expression without the constants that scale or shift its parts: 2.3*x*y + 1 becomes x*y.

    Exponents and constants under other operators stay: x**2 without its 2 would be another function.
    """

    def visit(node: Expression, operands: tuple[Expression, ...]) -> Expression:
        if not isinstance(node, Apply):
            return node
        role = node.operator.role
        if role is Role.NEGATION:
            return operands[0]
        if role in ARITHMETIC:
            left, right = operands
            if isinstance(right, Constant):
                return left
            if isinstance(left, Constant) and role is not Role.QUOTIENT:
                return right
            if isinstance(left, Constant):
                return apply("div", Constant(1), right)
        return Apply(node.operator, operands)

    return fold(expression, visit)


def front_parts(front: Sequence[ScoredExpression], max_complexity: int = MAX_COMPLEXITY) -> dict[Expression, float]:
    """Composite parts of the front members, with and without constants, and their weights.

    The weight of a part is the sum of the rewards of the members that it occurs in, in units of the highest reward.
    """
    best = max((member.reward for member in front), default=0.0)
    weights: dict[Expression, float] = {}
    for member in front:
        share = member.reward / best if best > 0 else 1.0
        parts: dict[Expression, None] = {}
        for form in (member.expression, stripped(member.expression)):
            for part in composite_parts(form):
                parts[part] = None
                parts.update(dict.fromkeys(_joins(part)))
        for part in parts:
            if isinstance(part, Apply) and part.complexity <= max_complexity:
                weights[part] = weights.get(part, 0.0) + max(share, 0.0)
    return weights


def cross_variable(context: TokenContext, rng: np.random.Generator) -> Expression | None:
    """A sum, difference, product or quotient of two variables, or of a variable and a constant, at random."""
    binary = [operator for operator in context.working if operator.arity == 2]
    if not binary:
        return None
    operator = binary[int(rng.integers(len(binary)))]
    variables = context.variables
    left, right = (variables[int(i)] for i in rng.integers(len(variables), size=2))
    if context.constant_range is not None and rng.random() < _CONSTANT_SHARE:
        constant = random_constant(context, rng)
        return apply(operator, left, constant) if rng.random() < 0.5 else apply(operator, constant, left)
    return apply(operator, left, right)


def _joins(part: Expression) -> Iterator[Expression]:
    """All pairs of the terms of a sum, or of the factors of a product; the tree itself holds only some of them."""
    if not isinstance(part, Apply) or part.operator.role not in (Role.SUM, Role.PRODUCT):
        return
    terms: list[Expression] = []
    stack: list[Expression] = [part]
    while stack:
        node = stack.pop()
        if isinstance(node, Apply) and node.operator == part.operator:
            stack.extend(reversed(node.operands))
        else:
            terms.append(node)
    if 2 < len(terms) <= _MAX_JOINED_TERMS:
        for i, left in enumerate(terms):
            for right in terms[i + 1 :]:
                yield Apply(part.operator, (left, right))
