"""One pass of a network over one data set: bank, scan, and the way back from numbers to expressions."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from symenum.enumeration.architecture import Architecture
from symenum.enumeration.backends import cpu, cuda
from symenum.enumeration.bank import build_bank
from symenum.enumeration.budget import Budget
from symenum.enumeration.distinct import signature
from symenum.enumeration.layer import apply_poisoned
from symenum.enumeration.memory import check_bank_fits
from symenum.enumeration.scoring import Scorer
from symenum.enumeration.screening import SCREEN_ROWS, screening_width, select_rows, successive_halving
from symenum.enumeration.shortlist import Candidate, Finds, Pool, Shortlist
from symenum.enumeration.target import Target
from symenum.enumeration.threads import torch_threads
from symenum.expressions import Expression, Variable, canonical, evaluate

__all__ = ["Pass"]

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
        scanned = self._scan(self.values, self.target, k)
        return self._shortlist(scanned, scanned.numbers, k)

    def screen(self, k: int) -> Shortlist:
        """The best k of those that are among the best on some of the rows."""
        few, target = select_rows(self.target, SCREEN_ROWS)
        scanned = self._scan(self.values[:, few], target, screening_width(k))

        def losses(numbers: Tensor, rows: Tensor, target: Target) -> Tensor:
            return self._losses(scanned, numbers, self.values[:, rows], target)

        return self._shortlist(scanned, successive_halving(scanned.numbers, self.target, k, losses)[: 2 * k], k)

    def _scan(self, values: Tensor, target: Target, k: int) -> _Scanned:
        complexity = torch.tensor([slot.complexity for slot in self.slots])
        pool = Pool(k, target)
        if self.devices:
            found = cuda.scan_network(
                self.architecture, values, complexity.tolist(), target, k, pool, self.budget, self.devices, self.threads
            )
            return _Scanned(_numbers(pool), found.stand_in, found.scored, found.complete)
        check_bank_fits(self.architecture.columns, target.rows, self.max_memory)
        small = len(self.architecture.kept) * target.rows < _SMALL
        with torch_threads(1 if small else self.threads):
            bank = build_bank(self.architecture, values, complexity)
        scored, complete = cpu.scan(Scorer(self.architecture.last_layer, bank, target, pool), self.budget, self.threads)
        return _Scanned(_numbers(pool), bank.stand_in, scored, complete)

    def _losses(self, scanned: _Scanned, numbers: Tensor, values: Tensor, target: Target) -> Tensor:
        """The losses (float64) of candidates on slot values (inputs, rows); not finite where a candidate fails."""
        out = torch.empty(len(numbers), dtype=torch.float64)
        step = max(1, _SMALL // target.rows)
        for block, where, left, right in self.architecture.last_layer.decode(numbers):
            for start in range(0, len(where), step):
                part = slice(start, start + step)
                a = self.architecture.values(values, scanned.stand_in[left[part]])
                b = None if right is None else self.architecture.values(values, scanned.stand_in[right[part]])
                out[where[part]] = target.loss(apply_poisoned(block.operator, a, b))
        return out

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
