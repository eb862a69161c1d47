"""Many expressions of different structure as one program: flat arrays of nodes, ordered by levels of operators.

What does not depend on a free constant is computed once, as data. How a program is run is the work of `Machine`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from symenum.expressions import Apply, Constant, Expression, Variable
from symenum.operators import Operator
from symenum.operators.traits import ADDITIVE, Role

__all__ = ["Array", "Flags", "Integers", "Program", "compile_program"]

# The arrays of this room.
Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]

# What a reference points at; a reference is 3·index + kind. Constants and nodes are numbered within their expression.
DATA, CONSTANT, NODE = range(3)


@dataclass(frozen=True)
class Program:
    """Expressions as flat arrays, node after node; `first` says where the nodes of each expression begin."""

    operators: tuple[Operator, ...]
    data: Array  # (columns, rows)
    key: Integers  # (nodes,) level · number of operators + number of the operator; level 0 is on leaves only
    operands: Integers  # (nodes, 2) references
    moves: Integers  # (nodes,) which operands depend on a constant: bit 0 and bit 1
    linear_moves: Integers  # (nodes,) which operands depend on a linear constant, linearly, in the same way
    first: Integers  # (expressions + 1,)
    root: Integers  # (expressions,) references
    starts: Array  # (expressions, k) the constants as they stand, then zeros; k is the largest number of constants
    count: Integers  # (expressions,) number of constants
    linear: Flags  # (expressions, k): values are affine in these jointly, the others held


# A sub-expression that was read: [0] its reference (-1: it does not depend on a constant), [1] its level, [2] the
# constants in which it is affine, [3] its node, [4] its values where no constant occurs in it (None for a leaf).
# A plain tuple: thousands are made in each call of `refine`.
_Piece = tuple[int, int, tuple[int, ...], Expression, Tensor | None]


class _Compiler:
    """Expressions read one after another; data columns and operators that several share are stored once."""

    def __init__(self, columns: Mapping[str, Tensor]) -> None:
        self.columns = columns
        self.rows = len(next(iter(columns.values())))
        self.operators: dict[Operator, int] = {}
        self.data: dict[Expression, int] = {}
        self.values: list[Tensor] = []  # of the data
        # operator, level, operands, moves, and a constant in which each operand is affine (-1: there is none)
        self.nodes: list[tuple[int, int, int, int, int, int, int]] = []

    def read(self, nodes: Iterable[tuple[Expression, bool]]) -> tuple[int, list[float], tuple[int, ...]]:
        """Append the nodes of an expression; its root's reference, its constants, and which of them are linear."""
        first = len(self.nodes)
        constants: list[float] = []
        stack: list[_Piece] = []
        for node, free in nodes:
            if isinstance(node, Apply):
                right = stack.pop()
                left = stack.pop() if len(node.operands) == 2 else right
                stack.append(self._apply(node, left, right, first))
            elif free and isinstance(node, Constant):
                number = len(constants)
                constants.append(float(node.value))
                stack.append((3 * number + CONSTANT, -1, (number,), node, None))
            else:
                stack.append((-1, -1, (), node, None))
        (root,) = stack
        return self._reference(root), constants, root[2]

    def _apply(self, node: Apply, left: _Piece, right: _Piece, first: int) -> _Piece:
        binary = len(node.operands) == 2
        moves = (left[0] >= 0) + 2 * (binary and right[0] >= 0)
        if not moves:
            operands = (self._values(left), self._values(right)) if binary else (self._values(left),)
            return -1, -1, (), node, node.operator.function(*operands)
        level = 1 + (left[1] if left[1] > right[1] else right[1])
        code = self.operators.setdefault(node.operator, len(self.operators))
        a = left[0] if left[0] >= 0 else self._reference(left)
        b = right[0] if right[0] >= 0 else self._reference(right)
        affine = left[2][0] if left[2] else -1
        self.nodes.append((code, level, a, b, moves, affine, right[2][0] if binary and right[2] else -1))
        return (
            3 * (len(self.nodes) - 1 - first) + NODE,
            level,
            _linear(node.operator.role, left[2], right[2]),
            node,
            None,
        )

    def _values(self, piece: _Piece) -> Tensor:
        node, values = piece[3:]
        if values is not None:
            return values
        if isinstance(node, Variable):
            return self.columns[node.name]
        assert isinstance(node, Constant)
        return torch.full((self.rows,), float(node.value), dtype=torch.float64)

    def _reference(self, piece: _Piece) -> int:
        if piece[0] >= 0:
            return piece[0]
        place = self.data.setdefault(piece[3], len(self.data))
        if place == len(self.values):
            self.values.append(self._values(piece))
        return 3 * place + DATA


def _linear(role: Role, left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    """The constants in which the node is affine jointly; of a product those of the operand that has more."""
    if role in ADDITIVE:
        return left + right
    if role is Role.NEGATION or role is Role.QUOTIENT:
        return left
    if role is Role.PRODUCT:
        return max(left, right, key=len)
    return ()


def compile_program(expressions: Iterable[Iterable[tuple[Expression, bool]]], columns: Mapping[str, Tensor]) -> Program:
    """The program of expressions, each as `postfix` gives it, on columns (rows,) float64."""
    compiler = _Compiler(columns)
    first, roots, constants, linear = [0], [], [], []
    for nodes in expressions:
        root, values, affine = compiler.read(nodes)
        first.append(len(compiler.nodes))
        roots.append(root)
        constants.append(values)
        linear.append(affine)
    max_constants = max(map(len, constants), default=0)
    starts = np.zeros((len(roots), max_constants))
    outer = np.zeros((len(roots), max_constants), dtype=bool)
    for i, (values, affine) in enumerate(zip(constants, linear, strict=True)):
        starts[i, : len(values)] = values
        outer[i, affine] = True
    nodes = np.array(compiler.nodes, dtype=np.int64).reshape(-1, 7)
    # The constants in which an operand is affine are linear in the whole all together, or none of them is.
    owner = np.repeat(np.arange(len(roots)), np.diff(first))
    bits = (nodes[:, 5:] >= 0) & (outer[owner[:, None], nodes[:, 5:]] if max_constants else False)
    return Program(
        tuple(compiler.operators),
        torch.stack(compiler.values).numpy() if compiler.values else np.empty((0, compiler.rows)),
        nodes[:, 1] * len(compiler.operators) + nodes[:, 0],
        nodes[:, 2:4],
        nodes[:, 4],
        bits @ np.array([1, 2]),
        np.array(first, dtype=np.int64),
        np.array(roots, dtype=np.int64),
        starts,
        np.array([len(values) for values in constants], dtype=np.int64),
        outer,
    )
