"""The best k distinct candidates: the result that users see, and the pool that is filled while scanning."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from symenum.core.exactness import EXACTNESS
from symenum.enumeration.distinct import representatives
from symenum.enumeration.target import Target
from symenum.expressions import Expression

__all__ = ["Candidate", "Finds", "Pool", "Shortlist"]

# Candidates whose values differ by less than this, relative to their norm, are one function on the data.
SAME_FUNCTION = 1e-10
_FEW = 64  # so many are compared with each other, all with all
_POOR = 0.9  # of the loss of the constant zero: while nothing is better, nearly all candidates are near the best


@dataclass(frozen=True)
class Candidate:
    """An expression and its loss (weighted mean square error) on the rows that it was asked for."""

    expression: Expression
    loss: float

    @property
    def complexity(self) -> int:
        return self.expression.complexity

    def __str__(self) -> str:
        return f"{self.loss:.6g}  {self.expression}"


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
