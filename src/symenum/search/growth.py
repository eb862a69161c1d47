"""Growth: laws are often sums or products of unlike parts, so what a law leaves of y is searched for one more part.

For a law f of the front the heads look for one more term, beside the terms of f with coefficients of their own, and for
one more factor in y/f = g. Then all constants are fitted together, the inner ones of f too: the first part was chosen
without the second, and its constants with it.
"""

from __future__ import annotations

from collections.abc import Iterator

from symenum.core.budget import Budget, CutShortError
from symenum.expressions import Apply, Constant, Expression, apply
from symenum.expressions.candidate import Candidate
from symenum.fitting import free_constants, with_constants
from symenum.heads.response import best_first
from symenum.heads.stages import Scan
from symenum.heads.transforms import Transform, allowed_responses
from symenum.operators import Abilities
from symenum.operators.traits import ADDITIVE, MULTIPLICATIVE, Role
from symenum.search.polish import fitted
from symenum.search.problem import Task

__all__ = ["form_of", "grown", "parts_of_growth"]

# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_FITTED = 30  # candidates of all heads, the best first, whose constants are fitted together
_PAIR_FEATURES = 2000  # features of two more terms


def form_of(law: Expression) -> Expression:
    """The law with 1 for each of its fitted constants: laws that differ in these only have the same form."""
    return with_constants(law, [1.0] * len(free_constants(law, integers=False)), integers=False)


def parts_of_growth(task: Task) -> int:
    """The turns that a law takes: one for a further term, one for a further factor, as the operators allow."""
    able = Abilities(task.settings.operators)
    return able.sums + able.products


def grown(task: Task, law: Expression, part: int, budget: Budget) -> list[Candidate]:
    """Laws that are the law with one more part of kind number `part`, with losses on the working rows."""
    heads = task.heads
    found: list[Candidate] = []
    try:
        for scan in list(_scans(task, law))[part]:
            found += scan(budget)
    except CutShortError:
        return found
    allowed = [candidate for candidate in found if heads.allows(candidate.expression)]
    best = [candidate.expression for candidate in best_first(allowed, task.data.target)[:_FITTED]]
    return allowed + fitted(task, best, budget)


def _scans(task: Task, law: Expression) -> Iterator[Iterator[Scan]]:
    """The scans for a further term, and those for a further factor, as far as the operators allow them."""
    able = Abilities(task.settings.operators)
    if able.sums:
        yield task.heads.beside(_terms(law), _PAIR_FEATURES)
    if able.products:
        y, values = task.data.target.y, task.data.evaluate(law)
        quotient = Transform("y/law", y / values, values.abs(), lambda factor: apply("mul", law, factor))
        responses = allowed_responses(task.data, [quotient])
        yield (scan for response in responses for scan in task.heads.on_response(response, _PAIR_FEATURES))


def _terms(law: Expression) -> tuple[Expression, ...]:
    """1 and the terms of the law without their coefficients, each once."""
    terms: dict[Expression, None] = {Constant(1): None}
    stack = [law]
    while stack:
        node = stack.pop()
        if isinstance(node, Apply) and node.operator.role in (*ADDITIVE, Role.NEGATION):
            stack += reversed(node.operands)
        elif (term := _without_coefficient(node)) is not None:
            terms[term] = None
    return tuple(terms)


def _without_coefficient(term: Expression) -> Expression | None:
    """The term without a number that multiplies or divides it; None for a number."""
    while isinstance(term, Apply) and term.operator.role in MULTIPLICATIVE:
        left, right = term.operands
        if isinstance(left, Constant) and term.operator.role is Role.PRODUCT:
            term = right
        elif isinstance(right, Constant):
            term = left
        else:
            break
    return None if isinstance(term, Constant) else term
