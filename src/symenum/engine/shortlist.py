"""The best k distinct candidates: their exact losses, the pool that they fill, and the result that users see."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from symenum.core.exactness import EXACTNESS
from symenum.core.target import Target
from symenum.engine.bank import NONE, Bank
from symenum.engine.distinct import representatives, signature
from symenum.engine.layer import Block, Form, SymbolLayer, apply_poisoned, ordered
from symenum.expressions.candidate import Candidate
from symenum.operators import Operator

__all__ = ["Finds", "Pool", "Scorer", "Shortlist", "SignedColumns"]


# --------------------------------------------------------------------------------------------------------------------
# The best k distinct candidates: the result that users see, and the pool that is filled while scanning.


# Candidates whose values differ by less than this, relative to their norm, are one function on the data.
SAME_FUNCTION = 1e-10
_FEW = 64  # so many are compared with each other, all with all
_POOR = 0.9  # of the loss of the constant zero: while nothing is better, nearly all candidates are near the best


@dataclass(frozen=True)
class Shortlist(Sequence[Candidate]):
    """The best candidates, loss ascending.

    `complete` is False if a time limit or a stop flag ended the pass early: then these are the best of the part that
    was scanned. `scored` counts the candidates of that part, duplicates included.
    """

    candidates: tuple[Candidate, ...]
    complete: bool
    scored: int

    @overload
    def __getitem__(self, index: int) -> Candidate: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Candidate, ...]: ...
    def __getitem__(self, index: int | slice) -> Candidate | tuple[Candidate, ...]:
        return self.candidates[index]

    def __len__(self) -> int:
        return len(self.candidates)

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.candidates)

    def __str__(self) -> str:
        return "\n".join(map(str, self.candidates))


@dataclass(frozen=True)
class Finds:
    """Candidates with exact losses: tensors of one length, but for `signature` (see `distinct`)."""

    loss: Tensor  # float64
    complexity: Tensor  # int64, as is the number in the last layer
    number: Tensor
    signature: Tensor

    def __len__(self) -> int:
        return len(self.loss)

    def take(self, which: npt.NDArray[np.int64]) -> Finds:
        # Through NumPy: for a handful of candidates its operations cost a third of torch's.
        parts = (self.loss, self.complexity, self.number, self.signature)
        return Finds(*(torch.from_numpy(part.numpy()[which]) for part in parts))

    @staticmethod
    def join(parts: Sequence[Finds]) -> Finds:
        if len(parts) == 1:
            return parts[0]
        return Finds(
            torch.cat([part.loss for part in parts]),
            torch.cat([part.complexity for part in parts]),
            torch.cat([part.number for part in parts]),
            torch.cat([part.signature for part in parts]),
        )


class Pool:
    """The best k distinct finds so far, safe to be filled from several threads; the one mutable thing of a pass.

    With `slack` it also holds those whose loss is at most 1 + slack times the best one's, `most` in all. What it holds
    in the end does not depend on the order in which the candidates came.
    """

    def __init__(self, k: int, target: Target, *, most: int | None = None, slack: float = 0.0) -> None:
        self._k = k
        self._most = k if most is None else most
        self._slack = slack
        self._poor = target.mean_square * _POOR
        self._floor = target.floor
        self._lock = threading.Lock()
        self._merged: list[Finds] = []  # none or one: the best k, in order
        self._waiting: list[Finds] = []
        self.limit = float("inf")  # the loss above which a candidate cannot enter

    @property
    def k(self) -> int:
        """How many of the best it holds at least."""
        return self._k

    @property
    def full(self) -> bool:
        """Whether there are k candidates, so that the next one must beat the last."""
        return self.limit < float("inf")

    def add(self, finds: Finds) -> None:
        """Take candidates in; what is dropped is worse than k distinct others, or equals a simpler one."""
        if self.full:
            finds = finds.take(np.flatnonzero(finds.loss.numpy() <= self.limit))
        with self._lock:
            if self._merged:
                finds = finds.take(np.flatnonzero(~_known(finds, self._merged[0]).numpy()))
            if len(finds):
                self._waiting.append(finds)
            # A merge costs as much as the pool is large: let a part of it come together first.
            held = len(self._merged[0]) if self._merged else 0
            if not self.full or sum(map(len, self._waiting)) >= held // 4:
                self._merge()

    def best(self) -> Finds | None:
        """What was found, loss ascending; losses that differ by rounding only are ordered by complexity."""
        with self._lock:
            self._merge()
            return self._merged[0] if self._merged else None

    def _merge(self) -> None:
        if not self._waiting:
            return
        finds = Finds.join([*self._merged, *self._waiting])
        self._waiting.clear()
        loss, complexity, number = finds.loss.numpy(), finds.complexity.numpy(), finds.number.numpy()
        which = _distinct(finds, np.lexsort((number, complexity)))
        ties = np.maximum(loss[which], self._floor)
        order = np.lexsort((number[which], complexity[which], ties))[: self._most]
        ties = ties[order]
        if len(order) >= self._k:
            near = min(float(ties[0]) * (1 + self._slack), self._poor)
            limit = max(float(ties[self._k - 1]), near)
            order = order[: int(np.searchsorted(ties, limit, side="right"))]
            limit = limit if len(order) < self._most else float(ties[-1])
            # Losses this near to the last place are still looked at: a simpler twin may be among them.
            self.limit = limit * (1 + EXACTNESS.tie)
        self._merged = [finds.take(which[order])]


def _distinct(finds: Finds, order: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The indices of the finds that differ, of equal ones the first in `order`."""
    if len(order) <= _FEW and (first := _first_equals(finds.signature.numpy()[order])) is not None:
        return order[first]
    rank = torch.empty(len(order), dtype=torch.int64)
    rank[torch.from_numpy(order)] = torch.arange(len(order))
    leader = representatives(finds.signature, rank, tolerance=SAME_FUNCTION)
    return np.flatnonzero(leader.numpy() == np.arange(len(order)))


def _first_equals(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64] | None:
    """Of rows (N, points) the indices of those that no earlier one equals, ascending; None: it takes a closer look.

    `representatives` for a few rows: in the order of their first values, each is compared with the next. That tells all
    where two that are near in the first value are near in all, and far nearer than they need be to count as equal.
    """
    order = np.argsort(values[:, 0])
    ordered = values[order]
    scale = np.maximum(np.abs(ordered).max(axis=1), np.finfo(np.float64).tiny)
    step = (ordered[1:] - ordered[:-1]) / np.maximum(scale[1:], scale[:-1])[:, None]
    tolerance = SAME_FUNCTION * values.shape[1] ** 0.5
    near = np.abs(step[:, 0]) <= tolerance
    equal = np.einsum("ij,ij->i", step, step) <= (tolerance / len(values)) ** 2
    if (near != equal).any():
        return None
    starts = np.flatnonzero(np.concatenate([[True], ~equal]))
    return np.sort(np.minimum.reduceat(order, starts))


def _known(finds: Finds, pool: Finds) -> Tensor:
    """Which finds (bool) equal one of the pool that is no more complex, as far as a look at one neighbour tells.

    Most of what passes the limit is something found before, written in another way; this spares the pool a merge.
    """
    place = torch.searchsorted(pool.loss, finds.loss * (1 - 1e-12)).clamp_(max=len(pool) - 1)
    scale = finds.signature.abs().amax(dim=1)
    same = (finds.signature - pool.signature[place]).abs().amax(dim=1) <= SAME_FUNCTION * scale
    later = (finds.complexity == pool.complexity[place]) & (finds.number >= pool.number[place])
    return same & (later | (finds.complexity > pool.complexity[place]))


# --------------------------------------------------------------------------------------------------------------------
# Exact losses of chosen candidates, and their way into the pool.
#
# Whatever a scan could not exclude by its bounds comes here: the candidate's values are computed in double precision
# from the bank, row part by row part, and a candidate leaves as soon as its partial sum exceeds what the pool
# accepts.


_FIRST_ROWS = 256
_NEVER = torch.iinfo(torch.int64).max
Values = Callable[[Tensor, slice], Tensor]  # (which candidates, which rows) -> values (candidates, rows)


@dataclass(frozen=True)
class SignedColumns:
    """Every sub-expression of the bank once, as a column and a sign, ordered by its number in the layer below."""

    column: Tensor  # int64
    sign: Tensor  # float64
    index: Tensor  # int64, into the architecture's distinct outputs
    complexity: Tensor  # int64

    def __len__(self) -> int:
        return len(self.column)

    @staticmethod
    def of(bank: Bank) -> SignedColumns:
        column = torch.arange(len(bank)).repeat(2)
        sign = torch.ones(2 * len(bank), dtype=torch.float64)
        sign[len(bank) :] = -1.0
        index = torch.cat([bank.plus, bank.minus])
        complexity = torch.cat([bank.plus_complexity, bank.minus_complexity])
        order = torch.argsort(index)
        order = order[index[order] != NONE]
        return SignedColumns(column[order], sign[order], index[order], complexity[order])


@dataclass(frozen=True)
class Scorer:
    """The last layer on one bank and target, with the pool that collects the best."""

    layer: SymbolLayer
    bank: Bank
    target: Target
    pool: Pool

    @cached_property
    def signed(self) -> SignedColumns:
        return SignedColumns.of(self.bank)

    @cached_property
    def _blocks(self) -> dict[Operator, Block]:
        return {block.operator: block for block in self.layer.blocks}

    def signed_values(self, which: Tensor, rows: slice = slice(None)) -> Tensor:
        """Values (which, rows) of signed columns."""
        return self.bank.values[:, rows][self.signed.column[which]] * self.signed.sign[which, None]

    def form(self, form: Form, first: Tensor, second: Tensor) -> None:
        """Score the candidates form(v_first, v_second), int64 column indices of one length."""
        number, complexity = self._write(form, first, second)
        exists = torch.nonzero(number != NONE).flatten()

        def values(which: Tensor, rows: slice) -> Tensor:
            at = exists[which]
            return form.value(self.bank.values[:, rows][first[at]], self.bank.values[:, rows][second[at]])

        self._collect(values, number[exists], complexity[exists])

    def operator(self, block: Block, left: Tensor, right: Tensor | None) -> None:
        """Score the candidates operator(left, right), int64 indices of signed columns."""
        complexity = block.operator.complexity + self.signed.complexity[left]
        if right is not None:
            complexity = complexity + self.signed.complexity[right]
        number = self.layer.encode(block, self.signed.index[left], None if right is None else self.signed.index[right])

        def values(which: Tensor, rows: slice) -> Tensor:
            b = None if right is None else self.signed_values(right[which], rows)
            return apply_poisoned(block.operator, self.signed_values(left[which], rows), b)

        self._collect(values, number, complexity)

    def _write(self, form: Form, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
        """Number and complexity (int64) of the simplest way to write each candidate; NONE where there is none."""
        number = torch.full_like(first, NONE)
        complexity = torch.full_like(first, _NEVER)
        for way in form.ways:
            block = self._blocks[way.operator]
            index_i, cost_i = (kind[first] for kind in self.bank.signed(way.first_sign))
            index_j, cost_j = (kind[second] for kind in self.bank.signed(way.second_sign))
            left, right = (index_j, index_i) if way.exchanged else (index_i, index_j)
            left, right, exists = ordered(way.operator, left, right)
            exists = exists & (index_i != NONE) & (index_j != NONE)
            cost = way.operator.complexity + cost_i + cost_j
            this = self.layer.encode(block, left, right)
            better = exists & ((cost < complexity) | ((cost == complexity) & (this < number)))
            number = torch.where(better, this, number)
            complexity = torch.where(better, cost, complexity)
        return number, complexity

    def _collect(self, values: Values, number: Tensor, complexity: Tensor) -> None:
        which = torch.arange(len(number))
        loss = torch.zeros(len(number), dtype=torch.float64)
        start, size = 0, _FIRST_ROWS
        while start < self.target.rows and len(which):
            rows = slice(start, start + size)
            error = (values(which, rows) - self.target.y[rows]).square_()
            # Not by a matrix product: that rounds a row by its place among the others, and which candidates come
            # together depends on the threads. Sums of rows are the same wherever the row stands.
            loss += error.mul_(self.target.weight[rows]).sum(dim=1)
            fine = torch.nonzero(loss <= self.pool.limit).flatten()  # NaN compares false: what fails is out
            fine = fine[torch.isfinite(loss[fine])]
            which, loss = which[fine], loss[fine]
            start, size = start + size, 4 * size
        if len(which):
            self.pool.add(Finds(loss, complexity[which], number[which], signature(values(which, slice(None)))))
