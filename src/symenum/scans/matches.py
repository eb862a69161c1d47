"""Which pairs of rows equal which of many targets, up to scale and offset: a look-up for data without noise.

On four samples 0 … 3 a function f has two numbers that no scale or offset changes,

    p = (f_2 - f_0) / (f_1 - f_0),    q = (f_3 - f_0) / (f_1 - f_0).

An index holds those of all targets. For a pair p is computed and looked up in a table of bits; only where that says
yes, q is computed, and a second table asked; what passes both is compared with the targets themselves. So a million
targets cost a pair no more than one: all of them are met by all pairs in the time of the pairs alone.

Numbers are compared up to `TOLERANCE`. Functions whose samples 0 and 1 are equal have no p, and are not found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.threads import Job, available_cores, run_jobs

__all__ = ["KEY_SAMPLES", "TOLERANCE", "Forms", "Index", "Matches", "Quotients", "find_matches"]

KEY_SAMPLES = 4
"""Samples that p and q are made of: the first of each row."""
TOLERANCE = 5e-8
"""Relative error of p and q up to which they are equal: rounding, where four samples lie close together, is less."""
_CUT = 30  # last bits of a double that a key leaves out: it then changes with every 2.4e-7 of p, five times `TOLERANCE`
_MULTIPLIER = -0x61C8864680B583EB  # 2⁶⁴ over the golden ratio, as a signed number: spreads what it multiplies
_JOINED_CUT = 30  # last bits of a product of keys that are left out: the others depend on all bits of both
_FREE = 5  # bits of a table's size beyond the number of its keys: one in 2⁵ places is taken
_MIN_BITS, _MAX_BITS = 12, 27  # of the size of a table: 128 MiB at most
_TILE = 1 << 18  # pairs at a time: 2 MiB in each array; with fewer the look-ups' fixed cost counts
_MAX_OF_A_FUNCTION = 64  # targets of one p that a function is compared with: more are coincidences of few values
_MAX_OF_A_BLOCK = 4096  # matches of one block of rows that are kept, the first ones: coincidences of few values


@dataclass(frozen=True)
class Forms:
    """How pairs of rows are joined: f = outer(join(left, right)), elementwise.

    `symmetric`: join(a, b) and join(b, a) are the same up to scale and offset, so that pairs i ≤ j are enough.
    """

    join: Callable[[Tensor, Tensor], Tensor]
    symmetric: bool
    outer: Callable[[Tensor], Tensor] | None = None

    def of(self, left: Tensor, right: Tensor) -> Tensor:
        """f of two tables that broadcast against each other."""
        joined = self.join(left, right)
        return joined if self.outer is None else self.outer(joined)


@dataclass(frozen=True)
class Matches:
    """Pairs (i, j) that equal targets, all (m,) int64, ordered by i, j and target."""

    i: Tensor
    j: Tensor
    target: Tensor


@dataclass(frozen=True)
class Quotients:
    """p and q (…,) of functions; not finite where there are none."""

    p: Tensor
    q: Tensor

    @staticmethod
    def of(samples: Tensor) -> Quotients:
        """Of functions by their first samples (…, 4)."""
        first = samples[..., 1] - samples[..., 0]
        return Quotients((samples[..., 2] - samples[..., 0]) / first, (samples[..., 3] - samples[..., 0]) / first)


class Index:
    """Targets by their p and q, to be looked up."""

    def __init__(self, samples: Tensor) -> None:
        """`samples` (M, 4) float64: the first samples of the targets."""
        told = Quotients.of(samples)
        usable = torch.isfinite(told.p) & torch.isfinite(told.q)
        numbers = torch.nonzero(usable).flatten()
        p, q = told.p[numbers], told.q[numbers]
        order = torch.argsort(p, stable=True)
        self._p, self._q, self._number = p[order], q[order], numbers[order]
        self._bits = min(_MAX_BITS, max(_MIN_BITS, (2 * len(p) + 1).bit_length() + _FREE))
        self._first, self._second = (torch.zeros(1 << self._bits, dtype=torch.bool) for _ in range(2))
        for one in _both_sides(self._p):
            self._first[self._place(_key(one))] = True
            for other in _both_sides(self._q):
                self._second[self._place(_joined(_key(one), _key(other)))] = True

    def _place(self, key: Tensor) -> Tensor:
        """The places (…,) of keys in a table: their last bits, which are the digits of p without its size."""
        return key & ((1 << self._bits) - 1)

    def where_p_may_be(self, p: Tensor) -> Tensor:
        """The places (m,) in p, flattened, of numbers that a target may have; one in thirty others is among them.

        In NumPy, whose look-ups take a third of torch's time.
        """
        taken = self._first.numpy().take(self._place(_key(p)).numpy().ravel())
        return torch.from_numpy(np.flatnonzero(taken))

    def may_have(self, p: Tensor, q: Tensor) -> Tensor:
        """Whether a target may have that p and that q (…,)."""
        return self._second[self._place(_joined(_key(p), _key(q)))]

    def with_quotients(self, p: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
        """Which of the functions with these p and q (m,) have those of which target: both (h,) int64."""
        room = TOLERANCE * p.abs()
        low, high = torch.searchsorted(self._p, p - room), torch.searchsorted(self._p, p + room, right=True)
        count = torch.where(torch.isfinite(p) & torch.isfinite(q), high - low, 0).clamp_max(_MAX_OF_A_FUNCTION)
        function = torch.repeat_interleave(torch.arange(len(p)), count)
        within = torch.arange(len(function)) - torch.repeat_interleave(torch.cumsum(count, 0) - count, count)
        place = low[function] + within
        near = (self._q[place] - q[function]).abs() <= TOLERANCE * q[function].abs()
        return function[near], self._number[place[near]]


def _both_sides(values: Tensor) -> tuple[Tensor, Tensor]:
    """Values (m,) lessened and increased by the tolerance: a value in between has the key of one of them."""
    return values * (1 - TOLERANCE), values * (1 + TOLERANCE)


def _key(values: Tensor) -> Tensor:
    """The leading bits of doubles (…,) as int64."""
    return values.view(torch.int64) >> _CUT


def _joined(key: Tensor, other: Tensor) -> Tensor:
    return ((key * _MULTIPLIER ^ other) * _MULTIPLIER) >> _JOINED_CUT


def find_matches(
    index: Index,
    left: Tensor,
    right: Tensor,
    forms: Forms,
    equal: Callable[[Tensor, Tensor], Tensor],
    budget: Budget,
    *,
    rows: range | None = None,
) -> Matches:
    """The pairs of rows of left (N, n) and right (M, n), float64, that equal a target up to scale and offset.

    `equal` takes the values (m, n) of pairs and the numbers of targets (m,) of the same p and q, and says for which all
    samples agree. `rows`: of left, by default all. Over budget, the matches of the blocks that were done.
    """
    rows = rows or range(len(left))
    step = max(1, _TILE // max(1, len(right)))
    blocks = [range(first, min(first + step, rows.stop)) for first in range(rows.start, rows.stop, step)]
    found: list[Matches | None] = [None] * len(blocks)
    columns = right[:, :KEY_SAMPLES].T.contiguous()

    def work(at: int, _: Budget) -> int:
        found[at] = _of_block(index, left, right, columns, forms, equal, blocks[at])
        return 1

    jobs: list[Job] = [partial(work, at) for at in range(len(blocks))]
    run_jobs(jobs, budget, available_cores())
    none = torch.empty(0, dtype=torch.int64)
    done = [Matches(none, none, none), *(one for one in found if one is not None)]
    return Matches(*(torch.cat([getattr(one, name) for one in done]) for name in ("i", "j", "target")))


def _of_block(
    index: Index,
    left: Tensor,
    right: Tensor,
    columns: Tensor,
    forms: Forms,
    equal: Callable[[Tensor, Tensor], Tensor],
    block: range,
) -> Matches:
    """The matches of some rows of left with all of right, whose first samples are `columns` (4, M)."""
    low = block.start if forms.symmetric else 0
    some = left[block.start : block.stop, :KEY_SAMPLES]
    base, first, second = (forms.of(some[:, at, None], columns[at, low:]) for at in range(3))
    first -= base
    p = second.sub_(base).div_(first)
    at = index.where_p_may_be(p)
    width = p.shape[1]
    i, j = torch.div(at, width, rounding_mode="floor") + block.start, at % width + low
    p = p.take(at)
    q = (forms.of(left[i, 3], columns[3, j]) - base.take(at)) / first.take(at)
    passed = torch.nonzero(index.may_have(p, q)).flatten()
    function, target = index.with_quotients(p[passed], q[passed])
    function, target = function[:_MAX_OF_A_BLOCK], target[:_MAX_OF_A_BLOCK]
    i, j = i[passed][function], j[passed][function]
    agree = equal(forms.of(left[i], right[j]), target)
    if forms.symmetric:  # a block has pairs below the diagonal, too
        agree &= i <= j
    return Matches(i[agree], j[agree], target[agree])
