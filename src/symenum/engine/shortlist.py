"""The best k distinct candidates: the result that users see, the pool that a scan fills, and exact losses.

A scan hands every candidate that its bounds do not exclude to the `Scorer`, which computes its values in double
precision from the bank, a part of the rows at a time. A candidate is dropped as soon as its partial sum of squares
exceeds the limit of the `Pool`; the others enter it. The `Shortlist` is what `PSRN.search` returns.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import overload

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from symenum.core.dimensions import SAME_NUMBER
from symenum.core.exactness import EXACTNESS
from symenum.core.target import Target
from symenum.engine.bank import NO_EXPRESSION, Bank
from symenum.engine.distinct import representatives, signature
from symenum.engine.layer import Block, Family, Form, SymbolLayer, apply_poisoned, ordered
from symenum.expressions.candidate import Candidate
from symenum.operators import Operator

__all__ = ["Finds", "Pool", "Scorer", "Shortlist", "SignedColumns"]


# Candidates whose values differ by less than this part of their norm are one function on the data: three operators make
# errors of a few 1e-16, cancellation may cost six digits.
SAME_FUNCTION = 1e-10
_LOSS_ROUNDING = 1e-12  # more than the relative rounding error of a loss, of candidates with equal values
_NO_COMPLEXITY = torch.iinfo(torch.int64).max  # of a form that cannot be written: any other complexity is smaller
# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_MAX_PAIRWISE = 64  # finds up to which neighbours are compared directly, not by `representatives`
_POOR = 0.9  # part of the loss of the constant 0 that a candidate must beat to be kept for being near the best
_MERGE_SHARE = 4  # finds wait until they are 1/4 of the pool: a merge costs as much as the pool is large
_FIRST_ROWS = 256  # rows of the first partial sum of squares,
_ROW_GROWTH = 4  # and the factor from each part to the next
Values = Callable[[Tensor, slice], Tensor]  # (indices of candidates, rows) -> values (candidates, rows) float64


@dataclass(frozen=True)
class Shortlist(Sequence[Candidate]):
    """The best candidates, loss ascending; a sequence of `Candidate`.

    `complete` is False if a time limit or a stop flag ended the pass early; then these are the best of the candidates
    that were scanned. `scored` is the number of those, duplicates included.
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
    """N candidates with exact losses, on the CPU."""

    loss: Tensor  # (N,) float64
    complexity: Tensor  # (N,) int64
    number: Tensor  # (N,) int64, in the last layer
    signature: Tensor  # (N, at most 32) float64, see `distinct.signature`

    def __len__(self) -> int:
        return len(self.loss)

    def take(self, which: npt.NDArray[np.int64]) -> Finds:
        """The finds of these indices."""
        # Through NumPy, whose operations on a handful of candidates cost a third of torch's.
        parts = (self.loss, self.complexity, self.number, self.signature)
        return Finds(*(torch.from_numpy(part.numpy()[which]) for part in parts))

    @staticmethod
    def join(parts: Sequence[Finds]) -> Finds:
        """All finds of the parts, in their order."""
        if len(parts) == 1:
            return parts[0]
        return Finds(
            torch.cat([part.loss for part in parts]),
            torch.cat([part.complexity for part in parts]),
            torch.cat([part.number for part in parts]),
            torch.cat([part.signature for part in parts]),
        )


class Pool:
    """The best k distinct finds so far; several threads may fill it.

    With `slack` it also holds the finds whose loss is at most 1 + slack times the best one, up to `most` finds in all.
    What it holds in the end does not depend on the order in which the candidates came.
    """

    def __init__(self, k: int, target: Target, *, most: int | None = None, slack: float = 0.0) -> None:
        self._k = k
        self._most = k if most is None else most
        self._slack = slack
        self._poor = target.mean_square * _POOR
        self._floor = target.floor
        self._lock = threading.Lock()
        self._merged: list[Finds] = []  # empty, or one element: the best, in order
        self._waiting: list[Finds] = []
        self.limit = float("inf")  # the largest loss that can still enter
        self._known_limit = float("inf")  # what others know of it, see `begin`

    @property
    def k(self) -> int:
        """The number of finds that it holds at least, once there are so many."""
        return self._k

    @property
    def full(self) -> bool:
        """Whether it holds k finds, so that there is a limit."""
        return self.limit < float("inf")

    def begin(self, limit: float = float("inf")) -> None:
        """Make it empty again. `limit`: a loss that k distinct candidates, found elsewhere, are known not to exceed."""
        with self._lock:
            self._merged, self._waiting = [], []
            self.limit = self._known_limit = limit

    def add(self, finds: Finds) -> None:
        """Add finds; one is dropped if k distinct others are better, or if it equals a simpler one."""
        if self.full:
            finds = finds.take(np.flatnonzero(finds.loss.numpy() <= self.limit))
        with self._lock:
            if self._merged:
                finds = finds.take(np.flatnonzero(~_known(finds, self._merged[0]).numpy()))
            if len(finds):
                self._waiting.append(finds)
            held = len(self._merged[0]) if self._merged else 0
            if not self.full or sum(map(len, self._waiting)) >= held // _MERGE_SHARE:
                self._merge()

    def best(self) -> Finds | None:
        """What it holds, loss ascending; None if it is empty. Losses that are zero up to rounding count as equal.

        Finds of equal loss are ordered by complexity, then by number.
        """
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
            # A loss that exceeds the last one by rounding may belong to a simpler way to write the same function.
            self.limit = min(limit * (1 + EXACTNESS.tie), self._known_limit)
        self._merged = [finds.take(which[order])]


def _distinct(finds: Finds, order: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The indices of the distinct finds; of equal ones the first in `order`."""
    if len(order) <= _MAX_PAIRWISE and (first := _first_equals(finds.signature.numpy()[order])) is not None:
        return order[first]
    rank = torch.empty(len(order), dtype=torch.int64)
    rank[torch.from_numpy(order)] = torch.arange(len(order))
    leader = representatives(finds.signature, rank, tolerance=SAME_FUNCTION)
    return np.flatnonzero(leader.numpy() == np.arange(len(order)))


def _first_equals(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64] | None:
    """The indices, ascending, of the rows (N, points) that equal no earlier row; None: use `representatives`.

    Rows are ordered by their first value, and each is compared with the next one only. That decides all pairs if rows
    that are near in the first value are near in all values, by N times less than the tolerance; otherwise None.
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
    """Whether each find (bool) equals a find of the pool that is no more complex; only the nearest loss is compared.

    Most finds within the limit are known functions, written in another way; without them the pool merges less often.
    """
    place = torch.searchsorted(pool.loss, finds.loss * (1 - _LOSS_ROUNDING)).clamp_(max=len(pool) - 1)
    scale = finds.signature.abs().amax(dim=1)
    same = (finds.signature - pool.signature[place]).abs().amax(dim=1) <= SAME_FUNCTION * scale
    later = (finds.complexity == pool.complexity[place]) & (finds.number >= pool.number[place])
    return same & (later | (finds.complexity > pool.complexity[place]))


@dataclass(frozen=True)
class SignedColumns:
    """Every sub-expression of the bank, as a column and a sign, ordered by its class."""

    column: Tensor  # int64
    sign: Tensor  # float64
    index: Tensor  # int64, the class: its index among the architecture's distinct outputs
    complexity: Tensor  # int64

    def __len__(self) -> int:
        return len(self.column)

    @staticmethod
    def of(bank: Bank) -> SignedColumns:
        """The signed columns of a bank."""
        column = torch.arange(len(bank)).repeat(2)
        sign = torch.ones(2 * len(bank), dtype=torch.float64)
        sign[len(bank) :] = -1.0
        index = torch.cat([bank.plus, bank.minus])
        complexity = torch.cat([bank.plus_complexity, bank.minus_complexity])
        order = torch.argsort(index)
        order = order[index[order] != NO_EXPRESSION]
        return SignedColumns(column[order], sign[order], index[order], complexity[order])


@dataclass(frozen=True)
class Scorer:
    """Exact losses of candidates of the last layer, on one bank and target; the best go into the pool.

    `dimension` (columns,) float64 and `wanted`: the numbers of the physical dimensions of columns and target, where
    they are known; a form of another dimension is no candidate.
    """

    layer: SymbolLayer
    bank: Bank
    target: Target
    pool: Pool
    dimension: Tensor | None = None
    wanted: float = 0.0

    def at(self, which: Tensor) -> Scorer:
        """The same on the columns of these indices (int64, ascending); the finds go into the same pool."""
        dimension = None if self.dimension is None else self.dimension[which]
        return replace(self, bank=self.bank.at(which), dimension=dimension)

    @cached_property
    def signed(self) -> SignedColumns:
        """The signed columns of the bank."""
        return SignedColumns.of(self.bank)

    @cached_property
    def _blocks(self) -> dict[Operator, Block]:
        return {block.operator: block for block in self.layer.blocks}

    def signed_values(self, which: Tensor, rows: slice = slice(None)) -> Tensor:
        """Values (len(which), rows) float64 of signed columns, by their indices (int64)."""
        return self.bank.values[:, rows][self.signed.column[which]] * self.signed.sign[which, None]

    def form(self, form: Form, first: Tensor, second: Tensor) -> None:
        """Score the candidates form(v_first, v_second); columns by their indices, int64 of one length."""
        number, complexity = self._write(form, first, second)
        if self.dimension is not None and form.family is not Family.SUM:  # columns of a sum are alike before the scan
            a, b = self.dimension[first], self.dimension[second]
            found = a + b if form.family is Family.PRODUCT else a - b
            number = number.masked_fill((found - self.wanted).abs() >= SAME_NUMBER, NO_EXPRESSION)
        exists = torch.nonzero(number != NO_EXPRESSION).flatten()

        def values(which: Tensor, rows: slice) -> Tensor:
            at = exists[which]
            return form.value(self.bank.values[:, rows][first[at]], self.bank.values[:, rows][second[at]])

        self._collect(values, number[exists], complexity[exists])

    def operator(self, block: Block, left: Tensor, right: Tensor | None) -> None:
        """Score the candidates operator(left, right); signed columns by their indices, int64 of one length."""
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
        number = torch.full_like(first, NO_EXPRESSION)
        complexity = torch.full_like(first, _NO_COMPLEXITY)
        for way in form.ways:
            block = self._blocks[way.operator]
            index_i, cost_i = (kind[first] for kind in self.bank.signed(way.first_sign))
            index_j, cost_j = (kind[second] for kind in self.bank.signed(way.second_sign))
            left, right = (index_j, index_i) if way.exchanged else (index_i, index_j)
            left, right, exists = ordered(way.operator, left, right)
            exists = exists & (index_i != NO_EXPRESSION) & (index_j != NO_EXPRESSION)
            cost = way.operator.complexity + cost_i + cost_j
            this = self.layer.encode(block, left, right)
            better = exists & ((cost < complexity) | ((cost == complexity) & (this < number)))
            number = torch.where(better, this, number)
            complexity = torch.where(better, cost, complexity)
        return number, complexity

    def _collect(self, values: Values, number: Tensor, complexity: Tensor) -> None:
        """Add to the pool the candidates whose loss on all rows is within its limit."""
        which = torch.arange(len(number))
        loss = torch.zeros(len(number), dtype=torch.float64)
        start, size = 0, _FIRST_ROWS
        while start < self.target.rows and len(which):
            rows = slice(start, start + size)
            error = (values(which, rows) - self.target.y[rows]).square_()
            # Not by a matrix product: how that rounds a row depends on the row's place, and which candidates come
            # together depends on the threads. A sum along a row does not.
            loss += error.mul_(self.target.weight[rows]).sum(dim=1)
            fine = torch.nonzero(loss <= self.pool.limit).flatten()  # NaN compares false: what fails is dropped
            fine = fine[torch.isfinite(loss[fine])]
            which, loss = which[fine], loss[fine]
            start, size = start + size, _ROW_GROWTH * size
        if len(which):
            self.pool.add(Finds(loss, complexity[which], number[which], signature(values(which, slice(None)))))
