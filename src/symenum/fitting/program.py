"""Many expressions of different structure as one program: equal operators of all of them are one tensor operation.

A `Program` holds the expressions as flat arrays. A `Machine` is the program of a batch, in which an expression may
occur several times (once for each start): it computes the values of all members and their derivatives by all constants,
forwards and backwards through levels of operators. What does not depend on a free constant is computed once, as data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from types import BuiltinFunctionType

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from symenum.expressions import Apply, Constant, Expression, Variable, evaluate
from symenum.fitting.parameters import postfix
from symenum.operators import Operator

__all__ = ["Machine", "Program", "compile_program"]

Whole = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# What a reference points at; a reference is 3·index + kind. Constants and nodes are numbered within their expression.
_DATA, _CONSTANT, _NODE = range(3)
# Above so many numbers it pays to treat apart the nodes of which one operand only depends on a constant.
_SPLIT = 200_000


@dataclass(frozen=True)
class Program:
    """Expressions as flat arrays, node after node; `first` says where the nodes of each expression begin."""

    operators: tuple[Operator, ...]
    data: Tensor  # (columns, rows) float64
    code: Whole  # (nodes,) number of the operator
    level: Whole  # (nodes,) 0 for those on leaves only
    operands: Whole  # (nodes, 2) references
    moves: Whole  # (nodes,) which operands depend on a constant: bit 0 and bit 1
    first: Whole  # (expressions + 1,)
    root: Whole  # (expressions,) references
    starts: npt.NDArray[np.float64]  # (expressions, most constants), the constants as they stand; 0 beyond their number
    count: Whole  # (expressions,) number of constants
    linear: npt.NDArray[np.bool_]  # (expressions, most constants): values are affine in these jointly, the others held

    def at(self, rows: Tensor) -> Program:
        """The same on some of the rows (int64)."""
        return replace(self, data=self.data[:, rows].contiguous())

    def machine(self, members: Whole, root: Tensor | None = None) -> Machine:
        """The program of a batch: the numbers of its expressions (members,), and a factor for each row (rows,) by
        which derivatives are multiplied."""
        return Machine(self, members, root)


@dataclass
class _Piece:
    """The part of an expression that was read so far, on the stack of the compiler."""

    reference: int  # -1: does not depend on a constant
    level: int
    linear: tuple[int, ...]
    node: Expression


class _Compiler:
    def __init__(self) -> None:
        self.operators: dict[Operator, int] = {}
        self.data: dict[Expression, int] = {}
        self.code: list[int] = []
        self.level: list[int] = []
        self.operands: list[tuple[int, int]] = []
        self.moves: list[int] = []

    def read(self, expression: Expression, integers: bool) -> tuple[int, list[float], tuple[int, ...]]:
        """Appends the nodes; gives the root's reference, the constants, and which of them are linear."""
        first = len(self.code)
        constants: list[float] = []
        stack: list[_Piece] = []
        for node, free in postfix(expression, integers=integers):
            if isinstance(node, Apply):
                at = len(stack) - len(node.operands)
                pieces = stack[at:]
                del stack[at:]
                stack.append(self._apply(node, pieces, first))
            elif free and isinstance(node, Constant):
                number = len(constants)
                constants.append(float(node.value))
                stack.append(_Piece(3 * number + _CONSTANT, -1, (number,), node))
            else:
                stack.append(_Piece(-1, -1, (), node))
        (root,) = stack
        return self._reference(root), constants, root.linear

    def _apply(self, node: Apply, pieces: list[_Piece], first: int) -> _Piece:
        moves = sum(1 << i for i, piece in enumerate(pieces) if piece.reference >= 0)
        if not moves:
            return _Piece(-1, -1, (), node)
        level = 1 + max(piece.level for piece in pieces)
        references = [self._reference(piece) for piece in pieces]
        self.code.append(self.operators.setdefault(node.operator, len(self.operators)))
        self.level.append(level)
        self.operands.append((references[0], references[-1]))
        self.moves.append(moves)
        return _Piece(3 * (len(self.code) - 1 - first) + _NODE, level, _linear(node.operator.name, pieces), node)

    def _reference(self, piece: _Piece) -> int:
        if piece.reference >= 0:
            return piece.reference
        return 3 * self.data.setdefault(piece.node, len(self.data)) + _DATA


def _linear(operator: str, pieces: list[_Piece]) -> tuple[int, ...]:
    """The constants in which the node is affine, as many as can be had at once."""
    if operator in ("add", "sub"):
        return pieces[0].linear + pieces[1].linear
    if operator in ("neg", "div"):
        return pieces[0].linear
    if operator == "mul":
        return max(pieces[0].linear, pieces[1].linear, key=len)
    return ()


def compile_program(expressions: Sequence[Expression], columns: Mapping[str, Tensor], *, integers: bool) -> Program:
    """The program of the expressions on columns (rows,) float64; each expression must have a free constant."""
    compiler = _Compiler()
    first, roots, constants, linear = [0], [], [], []
    for expression in expressions:
        root, values, affine = compiler.read(expression, integers)
        first.append(len(compiler.code))
        roots.append(root)
        constants.append(values)
        linear.append(affine)
    most = max(len(values) for values in constants)
    starts = np.zeros((len(expressions), most))
    outer = np.zeros((len(expressions), most), dtype=bool)
    for i, values in enumerate(constants):
        starts[i, : len(values)] = values
        outer[i, list(linear[i])] = True
    return Program(
        tuple(compiler.operators),
        _data(list(compiler.data), columns),
        np.array(compiler.code, dtype=np.int64),
        np.array(compiler.level, dtype=np.int64),
        np.array(compiler.operands, dtype=np.int64).reshape(-1, 2),
        np.array(compiler.moves, dtype=np.int64),
        np.array(first, dtype=np.int64),
        np.array(roots, dtype=np.int64),
        starts,
        np.array([len(values) for values in constants], dtype=np.int64),
        outer,
    )


def _data(leaves: Sequence[Expression], columns: Mapping[str, Tensor]) -> Tensor:
    rows = len(next(iter(columns.values())))
    data = torch.empty((len(leaves), rows), dtype=torch.float64)
    for row, leaf in zip(data, leaves, strict=True):
        if isinstance(leaf, Variable):
            row.copy_(columns[leaf.name])
        elif isinstance(leaf, Constant):
            row.fill_(float(leaf.value))
        else:
            row.copy_(evaluate(leaf, columns))
    return data


@dataclass(frozen=True)
class _Group:
    """Nodes of one level and operator, and the memory that they work in; all of it (nodes, rows) float64."""

    operator: Operator
    operands: tuple[Tensor, ...]
    value: Tensor
    slope: Tensor
    passed: tuple[tuple[int, Tensor], ...]  # operands that depend on a constant, and the memory of their slopes
    in_place: bool  # the operator's function is torch's own, and can write where it is told

    def forward(self) -> None:
        if self.in_place:
            self.operator.function(*self.operands, out=self.value)
        else:
            self.value.copy_(self.operator.function(*self.operands))

    def backward(self) -> None:
        for i, memory in self.passed:
            torch.mul(self.slope, self.operator.partial(i, self.value, *self.operands), out=memory)


@dataclass(frozen=True)
class _Level:
    """The groups of one level. Their operands are fetched at once and their slopes are handed on at once: at these
    sizes a call costs more than the copying."""

    groups: list[_Group]
    operands: Floats  # (all operands of all groups, rows)
    passed: Floats  # the same for slopes
    values_at: Whole
    slopes_at: Whole


class Machine:
    """Values and derivatives of a batch; what it hands out is overwritten by its next call.

    The places of values: data columns, then constants (member by member, and one more for each member), then nodes. The
    places of slopes: one for all the slopes that nobody asks for, then constants, then nodes. `block` (members,
    width + 1, rows) holds the derivatives; the last line of each member is left to the caller.
    """

    def __init__(self, program: Program, members: Whole, root: Tensor | None = None) -> None:
        self.members = members
        self.width = int(program.count[members].max())
        rows = program.data.shape[1]
        inputs, constants = len(program.data), len(members) * (self.width + 1)
        begin = program.first[members]
        sizes = program.first[members + 1] - begin
        offsets = np.cumsum(sizes) - sizes
        nodes = np.arange(sizes.sum()) + np.repeat(begin - offsets, sizes)
        member = np.repeat(np.arange(len(members)), sizes)
        key = program.level[nodes] * len(program.operators) + program.code[nodes]
        if len(nodes) * rows > _SPLIT:
            key = key * 4 + program.moves[nodes]
        order = np.argsort(key, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))

        def places(references: Whole, of: Whole) -> Whole:
            index, kind = references // 3, references % 3
            constant = inputs + of * (self.width + 1) + index
            # Clipped: what is no node has an index that may lie beyond the nodes, and is not looked at.
            node = place[np.minimum(offsets[of] + index, len(place) - 1)] + inputs + constants if len(place) else index
            return np.where(kind == _DATA, index, np.where(kind == _CONSTANT, constant, node))

        self._values = torch.empty((inputs + constants + len(nodes), rows), dtype=torch.float64)
        self._values[:inputs] = program.data
        self._constants = self._values[inputs : inputs + constants].view(len(members), self.width + 1, rows)
        self._constants[:, self.width] = 0.0
        self._slopes = torch.zeros((1 + constants + len(nodes), rows), dtype=torch.float64)
        self.block = self._slopes[1 : 1 + constants].view(len(members), self.width + 1, rows)
        self._root = places(program.root[members], np.arange(len(members)))
        self._slopes[torch.from_numpy(self._root - inputs + 1)] = 1.0 if root is None else root
        self._fetched, self._handed = self._values.numpy(), self._slopes.numpy()
        operands = places(program.operands[nodes[order]], member[order, None])
        self._levels: list[_Level] = []
        nodes = nodes[order]
        edges = np.flatnonzero(np.diff(key[order], prepend=-1, append=-1)).tolist()
        groups: list[list[tuple[int, int]]] = []
        for start, stop in pairwise(edges):
            if program.level[nodes[start]] == len(groups):
                groups.append([])
            groups[-1].append((start, stop))
        for level in groups:
            self._levels.append(self._level(program, nodes, operands, level, inputs, constants))

    def _level(
        self, program: Program, nodes: Whole, operands: Whole, edges: list[tuple[int, int]], inputs: int, constants: int
    ) -> _Level:
        operators = [program.operators[program.code[nodes[start]]] for start, _ in edges]
        parts = [
            operands[start:stop, i]
            for (start, stop), operator in zip(edges, operators, strict=True)
            for i in range(operator.arity)
        ]
        at = np.concatenate(parts)
        memory = torch.empty((2, len(at), self._values.shape[1]), dtype=torch.float64)
        groups, done = [], 0
        for (start, stop), operator in zip(edges, operators, strict=True):
            moving = int(np.bitwise_or.reduce(program.moves[nodes[start:stop]]))
            ends = [done + (stop - start) * i for i in range(operator.arity + 1)]
            done = ends[-1]
            groups.append(
                _Group(
                    operator,
                    tuple(memory[0, a:b] for a, b in pairwise(ends)),
                    self._values[inputs + constants + start : inputs + constants + stop],
                    self._slopes[1 + constants + start : 1 + constants + stop],
                    tuple((i, memory[1, ends[i] : ends[i + 1]]) for i in range(operator.arity) if moving >> i & 1),
                    isinstance(operator.function, BuiltinFunctionType) and operator.form is None,
                )
            )
        both = memory.numpy()
        return _Level(groups, both[0], both[1], at, np.maximum(at - inputs + 1, 0))

    def values(self, constants: Tensor) -> Tensor:
        """Values (members, rows) for constants (members, width)."""
        self._constants[:, : self.width] = constants[:, :, None]
        for level in self._levels:
            np.take(self._fetched, level.values_at, axis=0, out=level.operands, mode="clip")
            for group in level.groups:
                group.forward()
        return torch.from_numpy(self._fetched[self._root])

    def linearise(self, constants: Tensor) -> tuple[Tensor, Tensor]:
        """Values (members, rows), and derivatives by the constants times the root (members, width, rows)."""
        values = self.values(constants)
        for level in reversed(self._levels):
            for group in level.groups:
                group.backward()
            # In a tree each node has one parent: a slope is written once, never summed up.
            self._handed[level.slopes_at] = level.passed
        return values, self.block[:, : self.width]
