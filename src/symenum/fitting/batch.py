"""Compiled expressions as problems of `levenberg_marquardt`: what the derivatives of a batch of programs are.

Only JᵀJ leaves the machine, so that rows go through it in parts that fit into the caches, or on a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from symenum.fitting.blocks import HOST, Blocks, DeviceBlocks
from symenum.fitting.levenberg_marquardt import Elimination, held, part_of_size
from symenum.fitting.machine import Machine, Slopes
from symenum.fitting.program import Array, Flags, Program, Whole

__all__ = ["Batch", "Problem"]

_LARGE = 20_000_000  # numbers from which a device is worth it
_PLACES = 5  # numbers for each node and row, about
_LEAST_ROWS = 16
_VALUES_ONLY = 3  # parts are so many times smaller without slopes: few calls, and the inner cache is the faster one


@dataclass(frozen=True)
class Problem:
    """The program on some rows; for each expression its target times the roots of the weights (expressions, rows),
    those roots (expressions, rows), and the loss that is rounding (expressions,)."""

    program: Program
    data: Array  # (columns, rows)
    target: Array
    root: Array
    floor: Array
    device: torch.device | None = None  # for large batches; None: the CPU for all


class Batch:
    """The members at work, and what stays the same for them: so many starts of each of some expressions.

    `groups` (B,): the expression of each. `slopes`: by which constants derivatives are taken. Those by the linear ones
    are enough to project these out.
    """

    def __init__(self, problem: Problem, expressions: Whole, copies: int = 1, slopes: Slopes = Slopes.ALL) -> None:
        self._expressions, self._copies, self._slopes = expressions, copies, slopes
        self.groups = np.repeat(expressions, copies)
        self.floor = problem.floor[self.groups]
        self.problem = problem
        rows, first = problem.data.shape[1], problem.program.first
        # All rows at once, or in parts of one size: the last one begins earlier, and what it repeats weighs nothing.
        places = copies * _PLACES * (len(expressions) + int((first[expressions + 1] - first[expressions]).sum()))
        on_device = problem.device is not None and places * rows >= _LARGE
        self._blocks: Blocks = DeviceBlocks(problem.device) if problem.device and on_device else HOST
        room = self._blocks.room // (_VALUES_ONLY if slopes is Slopes.NONE else 1)
        part = min(rows, max(_LEAST_ROWS, room // places))
        self._parts = [(min(at, rows - part), at) for at in range(0, rows, part)]
        self._size = part
        self.machine = Machine(problem.program, expressions, part, copies, slopes, self._blocks)
        self.width = self.machine.width
        self.elimination = Elimination(problem.program.linear[self.groups, : self.width].T)
        self._load(*self._parts[0])

    def without_idle(self, working: Flags) -> tuple[Batch, Whole]:
        """A batch of fewer members, among them all that work (B,), and where these stood in this one."""
        flags = working.reshape(-1, self._copies)
        kept = np.flatnonzero(flags.any(axis=1))
        most = int(flags.sum(axis=1).max())
        places = kept[:, None] * self._copies + np.argsort(~flags[kept], axis=1, kind="stable")[:, :most]
        return Batch(self.problem, self._expressions[kept], most), places.ravel()

    def _load(self, at: int, fresh: int) -> None:
        rows = slice(at, at + self._size)
        self.machine.load(self.problem.data[:, rows])
        root, target = (part[self._expressions, rows] for part in (self.problem.root, self.problem.target))
        root[:, : fresh - at] = 0.0
        target[:, : fresh - at] = 0.0
        self._root, self._target = self._blocks.take_over(root)[:, None], self._blocks.take_over(target)[:, None]
        if self._slopes is not Slopes.NONE:
            self.machine.seeds[:] = self._root

    def _values(self, constants: Array) -> Any:
        return self.machine.values(constants.reshape(self.width, -1, self._copies).transpose(1, 0, 2))

    def losses(self, constants: Array) -> Array:
        """The losses (B,) at constants (k, B) as they are."""
        loss = np.zeros(constants.shape[1])
        with np.errstate(all="ignore"):
            for part in self._parts:
                if len(self._parts) > 1:
                    self._load(*part)
                residual = self._target - self._values(constants) * self._root
                loss += self._blocks.square_sums(residual).ravel()
        loss[np.isnan(loss)] = np.inf
        return loss

    def longest_step(self, constants: Array) -> Array:
        """See `Problems`."""
        return part_of_size(constants)

    def products(self, constants: Array) -> tuple[Array, Array]:
        """See `Problems`."""
        total: Array | float = 0.0
        block = self.machine.block
        with np.errstate(all="ignore"):
            for part in self._parts:
                if len(self._parts) > 1:
                    self._load(*part)
                values = self._values(constants)
                self.machine.derivatives()
                values *= self._root
                block[:, -1] = self._target
                block[:, -1] -= values
                total = total + self._blocks.gram(block)
        products = np.asarray(total).reshape(-1, self.width + 1, self.width + 1).transpose(1, 2, 0)
        return held(products.copy()), constants
