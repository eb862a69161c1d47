"""A pass whose parts have numbers, so that any machine can scan some of them: the whole is that of one machine.

Slots and target decide the bank, and the bank decides the parts: part 17 is the same rows of tiles everywhere. What a
part finds goes into a pool of its own, and all pools into one; a pool holds the same in the end, in whatever order the
candidates came. A limit that is known from elsewhere only leaves out what could not stay. So the shortlist is that of
`Pass.exact` or `Pass.screen`, bit for bit, however the parts were dealt out.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from symenum.core.budget import Budget
from symenum.core.threads import Job, run_jobs, single_threaded
from symenum.engine import cpu
from symenum.engine.shortlist import Finds, Pool, Scorer, Shortlist

if TYPE_CHECKING:
    from torch import Tensor

    from symenum.engine.network import Pass

__all__ = ["NumberedPass", "PartFound"]


@dataclass(frozen=True)
class PartFound:
    """What the scan of some parts has found: the best candidates, pairs scanned, and the limit that now holds.

    `finds`: None where no candidate is below the limit. `complete`: whether all of the parts were scanned; what was
    found before the time was over is right all the same.
    """

    finds: Finds | None
    done: int
    limit: float
    complete: bool


class NumberedPass:
    """The parts of one pass on the CPU, by numbers from 0 on; the bank is built when it is first needed.

    `best`: the number of candidates that the shortlist has in the end. `screened`: the scan sees a part of the rows.
    """

    def __init__(self, one: Pass, best: int, *, screened: bool) -> None:
        self._pass = one
        self._best = best
        self._screened = screened
        self._lock = threading.Lock()  # the parts of a pass share its pool
        self._limit = float("inf")  # the lowest limit that any part has told

    @cached_property
    def sizes(self) -> list[int]:
        """Of each part the number of pairs of columns: what it costs, but for a factor that all have in common."""
        return [size for size, _ in self._jobs]

    @cached_property
    def candidates(self) -> int:
        """Of the whole pass, duplicates included."""
        return self._pass.architecture.sizes[-1]

    def scan(self, parts: Iterable[int], limit: float, budget: Budget) -> PartFound:
        """Scan the parts of these numbers. `limit`: a loss that k distinct candidates are known not to exceed."""
        numbers = list(parts)
        with self._lock, single_threaded():
            self._limit = min(self._limit, limit)
            self._pool.begin(self._limit)
            done = run_jobs([self._jobs[number][1] for number in numbers], budget, self._pass.threads)
            finds = self._pool.best()
            self._limit = min(self._limit, self._pool.limit)
            complete = done == sum(self.sizes[number] for number in numbers)
            return PartFound(finds, done, self._limit, complete)

    def new_pool(self) -> Pool:
        """An empty pool for what the parts find."""
        return self._pass.scan_pool(self._best, screened=self._screened)

    def shortlist(self, pool: Pool, done: int) -> Shortlist:
        """The shortlist of a pool that holds what the parts have found; `done`: pairs of columns scanned."""
        whole = sum(self.sizes)
        scored = self.candidates * done // max(1, whole)
        with single_threaded():
            return self._pass.from_pool(
                pool, self._stand_in, scored, done == whole, self._best, screened=self._screened
            )

    @cached_property
    def _scorer(self) -> Scorer:
        with single_threaded():
            return self._pass.scorer(self.new_pool(), screened=self._screened)

    @property
    def _pool(self) -> Pool:
        return self._scorer.pool

    @property
    def _stand_in(self) -> Tensor:
        return self._scorer.bank.stand_in

    @cached_property
    def _jobs(self) -> list[tuple[int, Job]]:
        return cpu.numbered_jobs(self._scorer)
