"""One order of operands for all trees that differ only by commuting and re-associating sums and products.

a + b and b + a become the same tree, and so do (a + b) + c and a + (c + b). Nothing is simplified, expanded or
computed: whether two trees of different shape are one function is the question of `fingerprint`. Re-association may
move the last digits of a value, and an overflow, but not the function.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

from symenum.expressions.tree import Apply, Constant, Expression, Variable, fold, natural_key
from symenum.operators import Operator, Role

__all__ = ["canonical", "sort_key"]

_ASSOCIATIVE = (Role.SUM, Role.PRODUCT)
_VARIABLE, _COMPOSITE, _CONSTANT = 0, 1, 2

SortKey: TypeAlias = tuple[object, ...]


@dataclass(frozen=True)
class _Chain:
    """The operands of a chain of one associative operator, in any order."""

    operator: Operator
    terms: tuple[Expression, ...]


def canonical(expression: Expression) -> Expression:
    """The tree with the operands of commutative operators in order, and sums and products associated to the left.

    Constants come last in sums and first in products, as people write them.

    >>> from symenum.expressions import parse
    >>> print(canonical(parse("1 + (x10*3 + (x2 + sin(x1)))")))
    x2 + sin(x1) + 3*x10 + 1
    """
    return _close(fold(expression, _visit))


def _visit(node: Expression, operands: tuple[Expression | _Chain, ...]) -> Expression | _Chain:
    if not isinstance(node, Apply):
        return node
    operator = node.operator
    if operator.role in _ASSOCIATIVE:
        terms: list[Expression] = []
        for operand in operands:
            if isinstance(operand, _Chain) and operand.operator == operator:
                terms.extend(operand.terms)
            else:
                terms.append(_close(operand))
        # Sorted only when the whole chain is known, or a sum of n terms would be sorted n times.
        return _Chain(operator, tuple(terms))
    closed = tuple(_close(operand) for operand in operands)
    return Apply(operator, tuple(sorted(closed, key=sort_key)) if operator.commutative else closed)


def _close(result: Expression | _Chain) -> Expression:
    if not isinstance(result, _Chain):
        return result
    terms = sorted(result.terms, key=sort_key)
    if result.operator.role is Role.PRODUCT:
        constants = [term for term in terms if isinstance(term, Constant)]
        terms = constants + [term for term in terms if not isinstance(term, Constant)]
    closed = terms[0]
    for term in terms[1:]:
        closed = Apply(result.operator, (closed, term))
    return closed


def sort_key(expression: Expression) -> SortKey:
    """A key that orders all trees: variables in natural order, then composites from small to large, then constants.

    Only equal trees have equal keys (two operators of the user's that share a name apart).
    """
    # The nodes from the root down, in a flat tuple: a nested one could be too deep to compare.
    nodes: list[SortKey] = []
    stack: list[Expression] = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, Variable):
            nodes.append((_VARIABLE, natural_key(node.name)))
        elif isinstance(node, Constant):
            sign = math.copysign(1.0, node.value)
            nodes.append((_CONSTANT, node.value, sign, isinstance(node.value, float), node.name or ""))
        else:
            nodes.append((_COMPOSITE, node.operator.name))
            stack.extend(reversed(node.operands))
    return (nodes[0][0], len(nodes), *nodes)
