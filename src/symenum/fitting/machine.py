"""Values and derivatives of a batch of programs: equal operators of all members are one call on a block of memory.

Everything is laid out when the machine is made: a run is a list of calls from block to block. Each call writes a
contiguous block; what it reads was gathered into one before. In a tree each node has one parent, so a slope is fetched
from where that parent left it, and is never summed up.
"""

from __future__ import annotations

from enum import Enum
from itertools import pairwise
from typing import Any

import numpy as np

from symenum.fitting.blocks import HOST, Blocks
from symenum.fitting.kernels import Array, Call, hands_on
from symenum.fitting.program import CONSTANT, DATA, Program, Whole

__all__ = ["Machine", "Slopes"]

# Of nodes of which no, the first, the second, both operands move: those of each operand lie next to each other.
_ORDER = np.array([3, 0, 2, 1])


class Slopes(Enum):
    """The constants by which there are derivatives."""

    ALL = "all"
    LINEAR = "linear"
    NONE = "none"


class Machine:
    """The program of a batch, in which an expression may occur several times, for so many rows at once.

    `copies`: each member is computed for so many sets of constants, side by side with the rows; that is much faster
    than as many members. Derivatives that `slopes` leaves out are zero.

    The places of values: data columns, constants (member by member, and one more for each member), nodes. The places of
    slopes: a zero, the members' roots, then for each level from the last to the first its nodes, and what they pass on
    to their operands. `block` (members, width + 1, copies, rows) gets the derivatives; its last line is the caller's.
    """

    def __init__(
        self,
        program: Program,
        members: Whole,
        rows: int,
        copies: int = 1,
        slopes: Slopes = Slopes.ALL,
        blocks: Blocks = HOST,
    ) -> None:
        self._blocks = blocks
        self.members, self.width = members, int(program.count[members].max())
        size, k = len(members), self.width + 1
        self._copies, columns = copies, rows * copies
        self._inputs = inputs = len(program.data)
        begin = program.first[members]
        sizes = program.first[members + 1] - begin
        offsets = np.cumsum(sizes) - sizes
        nodes = np.arange(sizes.sum()) + np.repeat(begin - offsets, sizes)
        member = np.repeat(np.arange(size), sizes)
        moves = np.zeros_like(nodes)
        if slopes is not Slopes.NONE:
            moves = (program.moves if slopes is Slopes.ALL else program.linear_moves)[nodes]
        key = program.key[nodes] * 4 + _ORDER[moves]
        order = np.argsort(key, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        nodes, member, key = nodes[order], member[order], key[order]
        fixed = inputs + size * k

        def places(references: Whole, of: Whole) -> Whole:
            index, kind = references // 3, references % 3
            if not len(place):
                return np.where(kind == DATA, index, inputs + of * k + index)
            # Clipped: what is no node has an index that may lie beyond the nodes, and is not looked at.
            node = place[np.minimum(offsets[of] + index, len(place) - 1)] + fixed
            return np.where(kind == DATA, index, np.where(kind == CONSTANT, inputs + of * k + index, node))

        self._values = blocks.empty(fixed + len(nodes), columns)
        self._constants = self._values[inputs:fixed].reshape(size, k, copies, rows)
        self._constants[:, -1] = 0.0
        self._data = self._values[:inputs].reshape(inputs, copies, rows)
        self._roots = places(program.root[members], np.arange(size))
        operands = places(program.operands[nodes], member[:, None])
        self._forward: list[Call] = []
        self._backward: list[Call] = []
        self._lay_out(program, key, operands, fixed, columns)

    def _lay_out(self, program: Program, ordered: Whole, operands: Whole, fixed: int, rows: int) -> None:
        size, values, blocks = len(self.members), self._values, self._blocks
        key = ordered // 4
        edges = np.flatnonzero(np.diff(key, prepend=-1, append=-1)).tolist()
        # Where the nodes of each group end whose first operand only, first operand, any operand moves.
        ends = np.searchsorted(ordered, key[edges[:-1], None] * 4 + _ORDER[[3, 2, 0]]).tolist()
        spans = {a: ((a, first), (alone, last)) for a, (alone, first, last) in zip(edges, ends, strict=False)}
        count = len(program.operators)
        levels: list[list[tuple[int, int]]] = []
        for start, stop in pairwise(edges):
            if key[start] // count == len(levels):
                levels.append([])
            levels[-1].append((start, stop))
        arity = [operator.arity for operator in program.operators]
        gathered = [
            np.concatenate([operands[a:b, i] for a, b in level for i in range(arity[key[a] % count])])
            for level in levels
        ]
        fetched = blocks.empty(sum(map(len, gathered)), rows)
        slopes = self._slopes = blocks.empty(1 + size + len(ordered) + len(fetched), rows)
        slopes[:] = 0.0
        # (members, copies, rows): factors of the derivatives, for the caller to set
        self.seeds = slopes[1 : 1 + size].reshape(size, self._copies, -1)
        # Where the slope of each value is to be found: at first the zero, and for the roots their seeds.
        source = np.zeros(len(values), dtype=np.int64)
        source[self._roots] = 1 + np.arange(size)
        at, filled = len(fetched), 1 + size
        parts: list[list[Call]] = []
        for level, where in zip(reversed(levels), reversed(gathered), strict=True):
            first, last = level[0][0], level[-1][1]
            at -= len(where)
            calls = [blocks.gather(values[: fixed + first], where, fetched[at : at + len(where)])]
            own, filled = filled, filled + last - first
            mine = source[fixed + first : fixed + last].copy()
            self._backward.append(blocks.gather(slopes[:own], mine, slopes[own:filled]))
            used = at
            for a, b in level:
                operator = program.operators[key[a] % count]
                inside = [fetched[used + (b - a) * i : used + (b - a) * (i + 1)] for i in range(operator.arity)]
                used += (b - a) * operator.arity
                value, slope = values[fixed + a : fixed + b], slopes[own + a - first : own + b - first]
                calls.append(blocks.forward(operator, inside, value))
                for i in range(operator.arity):
                    start, stop = spans[a][i]
                    if start == stop:
                        continue
                    c, d = start - a, stop - a
                    if hands_on(operator, i):
                        source[operands[start:stop, i]] = np.arange(own + start - first, own + stop - first)
                        continue
                    cut = [part[c:d] for part in inside]
                    out = slopes[filled : filled + d - c]
                    self._backward += blocks.backward(operator, i, slope[c:d], value[c:d], cut, out)
                    source[operands[start:stop, i]] = np.arange(filled, filled + d - c)
                    filled += d - c
            parts.append(calls)
        self._forward = [call for calls in reversed(parts) for call in calls]
        sources = source[self._inputs : fixed].copy()
        flat = blocks.empty(len(sources), rows)
        self._backward.append(blocks.gather(slopes, sources, flat))
        self.block = flat.reshape(size, self.width + 1, self._copies, -1)
        self._out = blocks.empty(size, rows)
        self._forward.append(blocks.gather(values, self._roots, self._out))

    def load(self, data: Array) -> None:
        """Take over the data columns (columns, rows)."""
        self._data[:] = self._blocks.take_over(data)[:, None]

    def values(self, constants: Array) -> Any:
        """Values (members, copies, rows) for constants (members, width, copies), which `derivatives` will use too.

        The caller may change them; the next run overwrites them.
        """
        self._constants[:, :-1] = self._blocks.take_over(constants)[..., None]
        for call, arguments in self._forward:
            call(*arguments)
        return self._out.reshape(len(self._roots), self._copies, -1)

    def derivatives(self) -> Any:
        """Derivatives by the constants times the seeds, into the block (members, width, copies, rows)."""
        for call, arguments in self._backward:
            call(*arguments)
        return self.block[:, :-1]
