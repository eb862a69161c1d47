"""One pass of a network over one data set: bank, scan, and the way back from numbers to expressions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.enumeration.architecture import Architecture
from symenum.enumeration.backends import cpu, cuda
from symenum.enumeration.bank import build_bank
from symenum.enumeration.distinct import signature
from symenum.enumeration.memory import check_bank_fits
from symenum.enumeration.rerank import losses_of
from symenum.enumeration.scoring import Scorer
from symenum.enumeration.screening import SCREEN_ROWS, screening_pool, select_rows, successive_halving
from symenum.enumeration.shortlist import Candidate, Finds, Pool, Shortlist
from symenum.enumeration.target import Target
from symenum.enumeration.threads import Job, run_jobs, torch_threads
from symenum.expressions import Expression, Variable, canonical, evaluate

__all__ = ["Pass"]

_DEVICE_POOL = 1024  # candidates of a scan on a few rows that are judged on all, and more
_VALUES = 1 << 22  # of candidates that are evaluated at a time: 32 MB
_ALONE = 1_000_000  # values; so few are computed before threads have started
_SMALL = 5_000_000  # numbers in a bank; below this, threads inside an operation cost more than they give


@dataclass(frozen=True)
class _Scanned:
    """Numbers (int64) of the best candidates, loss ascending, and what their classes stand for on the data."""

    numbers: Tensor
    stand_in: Tensor
    scored: int
    complete: bool


@dataclass(frozen=True)
class Pass:
    """Checked data for one search; rows are in no particular order."""

    architecture: Architecture
    slots: list[Expression]
    values: Tensor  # (inputs, rows) float64
    target: Target
    max_memory: int
    budget: Budget
    threads: int
    devices: tuple[torch.device, ...] = ()  # GPUs; the CPU if there are none

    def exact(self, k: int) -> Shortlist:
        """The best k, every candidate judged on all rows."""
        scanned = self._scan(self.values, self.target, Pool(k, self.target))
        return self._shortlist(scanned, scanned.numbers, k)

    def screen(self, k: int) -> Shortlist:
        """The best k of those that are near the best on some of the rows."""
        few, target = select_rows(self.target, SCREEN_ROWS)
        if self.devices:
            return self._screen_on_device(self.values[:, few], target, k)
        scanned = self._scan(self.values[:, few], target, screening_pool(k, target))

        def losses(numbers: Tensor, rows: Tensor, target: Target) -> Tensor:
            return losses_of(self.architecture, scanned.stand_in, numbers, self.values[:, rows], target)

        numbers = successive_halving(scanned.numbers, self.target, k, losses, self.budget.over)
        complete = scanned.complete and not self.budget.over()
        return self._shortlist(replace(scanned, complete=complete), numbers[: 2 * k], k)

    def _screen_on_device(self, few: Tensor, target: Target, k: int) -> Shortlist:
        """`screen` for slot values (inputs, few rows); exact where the device has no room to screen."""
        pool = Pool(2 * k, self.target)
        found = cuda.screen_network(
            self.architecture,
            few,
            target,
            (self.values, self.target),
            self._complexity,
            max(_DEVICE_POOL, 32 * k),
            pool,
            self.devices[0],
        )
        if found is None:
            return self.exact(k)
        numbers = _numbers(pool)
        return self._shortlist(_Scanned(numbers, found.stand_in, found.scored, found.complete), numbers, k)

    @property
    def _complexity(self) -> list[int]:
        return [slot.complexity for slot in self.slots]

    def _scan(self, values: Tensor, target: Target, pool: Pool) -> _Scanned:
        if self.devices:
            found = cuda.scan_network(
                self.architecture,
                values,
                self._complexity,
                target,
                pool.k,
                pool,
                self.budget,
                self.devices,
                self.threads,
            )
            return _Scanned(_numbers(pool), found.stand_in, found.scored, found.complete)
        check_bank_fits(self.architecture.columns, target.rows, self.max_memory)
        small = len(self.architecture.kept) * target.rows < _SMALL
        with torch_threads(1 if small else self.threads):
            bank = build_bank(self.architecture, values, torch.tensor(self._complexity))
        scored, complete = cpu.scan(Scorer(self.architecture.last_layer, bank, target, pool), self.budget, self.threads)
        return _Scanned(_numbers(pool), bank.stand_in, scored, complete)

    def _evaluate(self, scanned: _Scanned, numbers: list[int]) -> Tensor:
        """The values (numbers, rows) of candidates' expressions, as anyone would compute them."""
        slots = [Variable(f"x{i}") for i in range(len(self.slots))]
        columns = {f"x{i}": column for i, column in enumerate(self.values)}
        values = torch.empty(len(numbers), self.target.rows, dtype=torch.float64)

        def fill(at: int, _: Budget) -> int:
            values[at] = evaluate(self.architecture.reconstruct(numbers[at], slots, scanned.stand_in), columns)
            return 1

        jobs: list[Job] = [partial(fill, at) for at in range(len(numbers))]
        whole = Budget()  # what was found is judged, even if the time is over
        if values.numel() > _ALONE:
            run_jobs(jobs, whole, self.threads)
        else:
            for job in jobs:
                job(whole)
        return values

    def _shortlist(self, scanned: _Scanned, numbers: Tensor, k: int) -> Shortlist:
        """The best k as expressions, each with the loss of the expression itself on all rows."""
        pool = Pool(k, self.target)
        expressions: dict[int, Expression] = {}
        step = max(1, min(k, _VALUES // self.target.rows))
        for start in range(0, len(numbers), step):
            if pool.full and pool.limit > 2 * self.target.floor:
                break  # the rest lose more; at rounding a simpler one may be among them
            part = numbers[start : start + step]
            values = self._evaluate(scanned, part.tolist())
            loss = self.target.loss(values)
            fine = torch.nonzero(torch.isfinite(loss)).flatten()
            for number in part[fine].tolist():
                expressions[number] = canonical(self.architecture.reconstruct(number, self.slots, scanned.stand_in))
            complexity = torch.tensor([expressions[number].complexity for number in part[fine].tolist()])
            pool.add(Finds(loss[fine], complexity, part[fine], signature(values[fine])))
        best = pool.best()
        pairs = [] if best is None else zip(best.number.tolist(), best.loss.tolist(), strict=True)
        candidates = tuple(Candidate(expressions[number], loss) for number, loss in pairs)
        return Shortlist(candidates, scanned.complete, scanned.scored)


def _numbers(pool: Pool) -> Tensor:
    finds = pool.best()
    return torch.empty(0, dtype=torch.int64) if finds is None else finds.number
