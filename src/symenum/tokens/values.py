"""Values of many trees that share sub-trees on the material's rows, and the choice of those that may be tokens.

Trees come from other trees by small changes, so each sub-tree is computed once and looked up afterwards: a tree costs
its new nodes only. Not for the pass itself, which has its own, batched way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from symenum.core.exactness import is_flat
from symenum.expressions import Apply, Constant, Expression, Variable, walk
from symenum.tokens.generator import Material

__all__ = ["Evaluator", "composite_parts", "pick_distinct"]

_LARGEST = 1e150  # of the sum of squares: a product of two tokens must not overflow
_SAME = 1e-9  # columns nearer than this, relative to their norm, are one


class Evaluator:
    """Values (rows,) float64 of expressions, kept for the next question; used within one call and then dropped."""

    def __init__(self, material: Material) -> None:
        self._rows = material.rows
        self._known: dict[Expression, Tensor | None] = {
            Variable(name): column for name, column in material.columns.items()
        }
        self._usable: dict[Expression, bool] = {}

    def values(self, expression: Expression) -> Tensor | None:
        """The values; None where the expression or a part of it is not finite, or too large, on some row."""
        known = self._known
        if expression in known:
            return known[expression]
        stack: list[Expression] = [expression]
        while stack:
            node = stack[-1]
            if node in known:
                stack.pop()
            elif isinstance(node, Apply):
                missing = [operand for operand in node.operands if operand not in known]
                if missing:
                    stack.extend(missing)
                else:
                    known[node] = self._apply(node)
            elif isinstance(node, Constant):
                known[node] = torch.full((self._rows,), float(node.value), dtype=torch.float64)
            else:
                known[node] = None  # a variable without a column
        return known[expression]

    def _apply(self, node: Apply) -> Tensor | None:
        operands = []
        for operand in node.operands:
            value = self._known[operand]
            if value is None:
                return None
            operands.append(value)
        result = node.operator.function(*operands)
        # One number tells all: NaN and infinities survive in a sum of squares.
        return result if float(torch.dot(result, result)) < _LARGEST else None

    def usable(self, expression: Expression) -> bool:
        """Whether it may be a token: composite, finite and not constant on the rows."""
        known = self._usable.get(expression)
        if known is None:
            values = self.values(expression) if isinstance(expression, Apply) else None
            known = values is not None and _varies(values)
            self._usable[expression] = known
        return known

    def matrix(self, expressions: Sequence[Expression]) -> Tensor:
        """Values (expressions, rows), float64; a row of NaN where there are none."""
        if not expressions:
            return torch.empty(0, self._rows, dtype=torch.float64)
        nothing = torch.full((self._rows,), float("nan"), dtype=torch.float64)
        rows = (self.values(expression) for expression in expressions)
        return torch.stack([nothing if row is None else row for row in rows])


def pick_distinct(
    evaluator: Evaluator, material: Material, stream: Iterable[Expression], count: int, start: Sequence[Expression] = ()
) -> list[Expression]:
    """The tokens `start` and the first of the stream that may join them, `count` in all if the stream has so many.

    An expression and its negative count as one: the pass has both signs of everything.
    """
    chosen = list(start)
    if len(chosen) >= count:
        return chosen[:count]
    taken = _unit(evaluator.matrix([*material.variables, *chosen]))
    for expression in stream:
        if not evaluator.usable(expression):
            continue
        unit = _unit(evaluator.matrix([expression]))
        # 1 - |cos| is half the squared distance, too small to be told from rounding: the distance itself is compared.
        near = torch.minimum((taken - unit).norm(dim=1), (taken + unit).norm(dim=1)) <= _SAME
        if bool(near.any()) and _same_size(evaluator, expression, material, chosen, near):
            continue
        chosen.append(expression)
        taken = torch.cat([taken, unit])
        if len(chosen) == count:
            break
    return chosen


def composite_parts(expression: Expression) -> list[Expression]:
    """All sub-trees that are neither variables nor constants, each once, the smaller ones first."""
    return list(dict.fromkeys(node for node in walk(expression) if isinstance(node, Apply)))


def _varies(values: Tensor) -> bool:
    return not bool(is_flat(values))


def _unit(rows: Tensor) -> Tensor:
    norm: Tensor = rows.norm(dim=1, keepdim=True)
    return rows / norm.clamp_min(1e-300)


def _same_size(
    evaluator: Evaluator, expression: Expression, material: Material, chosen: list[Expression], near: Tensor
) -> bool:
    """Whether one of those that have the direction of `expression` has its size too: 2·x is not x."""
    everything = [*material.variables, *chosen]
    size = float(evaluator.matrix([expression]).norm())
    others = [everything[i] for i in torch.nonzero(near).flatten().tolist()]
    sizes = evaluator.matrix(others).norm(dim=1)
    return bool(((sizes - size).abs() <= _SAME * size).any())
