"""The token pool: what front members are made of, simple joins of variables, and how each token has done so far.

A token is judged by what it did: by the passes that it took part in, and by the front members that it occurs in. The
memory of that is a frozen value of expressions and numbers, as every state is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from symenum.core.exactness import EXACTNESS
from symenum.expressions import Apply, Constant, Expression, apply, fold
from symenum.operators.traits import ARITHMETIC, Role
from symenum.tokens.credit import PartsOfLaws, form
from symenum.tokens.generator import ScoredExpression, TokenContext
from symenum.tokens.trees import composite_parts, random_constant

__all__ = ["FRONT_PARTNERS", "MAX_COMPLEXITY", "Memory", "Record", "cross_variable", "front_parts", "stripped"]

# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
MAX_COMPLEXITY = 14
"""Largest complexity of a token; the pass builds what is more complex."""
FRONT_PARTNERS = 8
"""Members of the front that tokens are joined with when they are judged."""
_MAX_RECORDS = 600  # tokens with a record; those of the fewest successes and passes are forgotten first
_PASS_VALUE = 0.1  # successes that a pass counts for when it is decided which records are forgotten
_SUCCESS_VALUE = 2.0  # weight of a success against a pass in a token's merit
_OCCURRENCE = 0.5  # successes for a token in a new law whose reward is not the best so far
_MAX_LAWS = 80  # front members and runners-up that are remembered, those of the highest rewards first
_MAX_JOINED_TERMS = 6  # sums and products of up to so many terms give all pairs of their terms
_CONSTANT_SHARE = 0.25  # part of `cross_variable` whose second operand is a constant, where constants are wanted


@dataclass(frozen=True)
class Record:
    """A token, the passes that it took part in, and its share in those that were successful.

    Tokens of one form (`credit`), which differ by their constants only, share a record.
    """

    token: Expression
    passes: int
    successes: float


@dataclass(frozen=True)
class Memory:
    """What a generator remembers: records, the tokens proposed last, good laws, and the best reward.

    `front`: the laws that `learn` was told last, front members and runners-up, those of the highest rewards first.
    """

    records: tuple[Record, ...] = ()
    proposed: tuple[Expression, ...] = ()
    front: tuple[ScoredExpression, ...] = ()
    best_reward: float = float("-inf")
    steps: int = 0
    stale: int = 0  # passes since the last that improved the reward

    @cached_property
    def by_form(self) -> Mapping[str, Record]:
        """The records by the keys of their tokens' forms."""
        return {form(record.token).key: record for record in self.records}

    def merit(self, token: Expression) -> float:
        """(1 + 2·successes)/(1 + passes): above 1 for a token of successful passes, 1 for one that was never tried."""
        record = self.by_form.get(form(token).key) if self.records else None
        return 1.0 if record is None else (1.0 + _SUCCESS_VALUE * record.successes) / (1.0 + record.passes)

    def best_members(self) -> list[Expression]:
        """The laws of the highest rewards, at most FRONT_PARTNERS, best first."""
        return [member.expression for member in self.front[:FRONT_PARTNERS]]

    def with_proposal(self, tokens: Sequence[Expression]) -> Memory:
        """The memory that waits for the outcome of a pass, or a batch of passes, on these tokens."""
        return replace(self, proposed=tuple(tokens))

    def after_pass(self, reward: float, front: Sequence[ScoredExpression]) -> Memory:
        """The memory with the outcome of the passes on the tokens proposed last.

        A token of a new law gains: a whole success if the law has a better reward than all before, half of one if not.
        Where the reward is better and no new law holds a token, since rewriting may hide it, all tokens share one
        success equally.
        """
        improved = reward > self.best_reward + EXACTNESS.tie
        known = {member.expression for member in self.front}
        new = [member for member in front if member.expression not in known]
        gains = self._gains(new)
        share = 1.0 / max(1, len(self.proposed)) if improved and not gains else 0.0
        records = dict(self.by_form)
        for token in self.proposed:
            key = form(token).key
            before = records.get(key, Record(token, 0, 0.0))
            records[key] = Record(before.token, before.passes + 1, before.successes + gains.get(key, share))
        ranked = sorted(records.values(), key=lambda record: -(record.successes + _PASS_VALUE * record.passes))
        return Memory(
            tuple(ranked[:_MAX_RECORDS]),
            (),
            tuple(sorted(front, key=lambda member: -member.reward)[:_MAX_LAWS]),
            max(reward, self.best_reward),
            self.steps + 1,
            0 if improved else self.stale + 1,
        )

    def _gains(self, new: Sequence[ScoredExpression]) -> dict[str, float]:
        """What the tokens proposed last gain by new laws, by the keys of their forms; only those that gain."""
        limit = self.best_reward + EXACTNESS.tie
        better = PartsOfLaws(member.expression for member in new if member.reward > limit)
        others = PartsOfLaws(member.expression for member in new if member.reward <= limit)
        gains: dict[str, float] = {}
        for token in self.proposed:
            if better.hold(token):
                gains[form(token).key] = 1.0
            elif others.hold(token):
                gains[form(token).key] = _OCCURRENCE
        return gains


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
        for law in (member.expression, stripped(member.expression)):
            for part in composite_parts(law):
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
