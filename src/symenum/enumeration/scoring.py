"""Exact losses of chosen candidates, and their way into the pool.

Whatever a scan could not exclude by its bounds comes here: the candidate's values are computed in double precision
from the bank, row part by row part, and a candidate leaves as soon as its partial sum exceeds what the pool accepts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from symenum.enumeration.bank import NONE, Bank
from symenum.enumeration.distinct import signature
from symenum.enumeration.forms import Form, ordered
from symenum.enumeration.layer import Block, SymbolLayer, apply_poisoned
from symenum.enumeration.shortlist import Finds, Pool
from symenum.enumeration.target import Target
from symenum.operators import Operator

__all__ = ["Scorer", "SignedColumns"]

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
