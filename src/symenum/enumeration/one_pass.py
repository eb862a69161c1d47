"""One pass of a network over one data set: bank, scan, and the way back from numbers to expressions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from symenum.enumeration.architecture import Architecture
from symenum.enumeration.backends import cpu, cuda
from symenum.enumeration.bank import build_bank
from symenum.enumeration.budget import Budget
from symenum.enumeration.distinct import signature
from symenum.enumeration.memory import check_bank_fits
from symenum.enumeration.rerank import losses_of
from symenum.enumeration.scoring import Scorer
from symenum.enumeration.screening import SCREEN_ROWS, screening_pool, select_rows, successive_halving
from symenum.enumeration.shortlist import Candidate, Finds, Pool, Shortlist
from symenum.enumeration.target import Target
from symenum.enumeration.threads import torch_threads
from symenum.expressions import Expression, Variable, canonical, evaluate

__all__ = ["Pass"]

_DEVICE_POOL = 4096
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
        # A GPU takes its limit from the k-th best alone, and so needs a pool that is wide from the start.
        pool = Pool(max(_DEVICE_POOL, 64 * k), target) if self.devices else screening_pool(k, target)
        scanned = self._scan(self.values[:, few], target, pool)

        def losses(numbers: Tensor, rows: Tensor, target: Target) -> Tensor:
            return losses_of(self.architecture, scanned.stand_in, numbers, self.values[:, rows], target)

        numbers = successive_halving(scanned.numbers, self.target, k, losses, self.budget.over)
        complete = scanned.complete and not self.budget.over()
        return self._shortlist(replace(scanned, complete=complete), numbers[: 2 * k], k)

    def _scan(self, values: Tensor, target: Target, pool: Pool) -> _Scanned:
        complexity = torch.tensor([slot.complexity for slot in self.slots])
        if self.devices:
            found = cuda.scan_network(
                self.architecture,
                values,
                complexity.tolist(),
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
            bank = build_bank(self.architecture, values, complexity)
        scored, complete = cpu.scan(Scorer(self.architecture.last_layer, bank, target, pool), self.budget, self.threads)
        return _Scanned(_numbers(pool), bank.stand_in, scored, complete)

    def _evaluate(self, scanned: _Scanned, number: int) -> Tensor:
        """The values (1, rows) of a candidate's expression, as anyone would compute them."""
        slots = [Variable(f"x{i}") for i in range(len(self.slots))]
        columns = {f"x{i}": column for i, column in enumerate(self.values)}
        result: Tensor = evaluate(self.architecture.reconstruct(number, slots, scanned.stand_in), columns)
        return result[None]

    def _shortlist(self, scanned: _Scanned, numbers: Tensor, k: int) -> Shortlist:
        """The best k as expressions, each with the loss of the expression itself on all rows."""
        pool = Pool(k, self.target)
        expressions: dict[int, Expression] = {}
        for number in numbers.tolist():
            expression = canonical(self.architecture.reconstruct(number, self.slots, scanned.stand_in))
            values = self._evaluate(scanned, number)
            loss = self.target.loss(values)
            if bool(torch.isfinite(loss).all()):
                expressions[number] = expression
                pool.add(Finds(loss, torch.tensor([expression.complexity]), torch.tensor([number]), signature(values)))
        best = pool.best()
        pairs = [] if best is None else zip(best.number.tolist(), best.loss.tolist(), strict=True)
        candidates = tuple(Candidate(expressions[number], loss) for number, loss in pairs)
        return Shortlist(candidates, scanned.complete, scanned.scored)


def _numbers(pool: Pool) -> Tensor:
    finds = pool.best()
    return torch.empty(0, dtype=torch.int64) if finds is None else finds.number
