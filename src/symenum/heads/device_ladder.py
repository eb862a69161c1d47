"""The best of all pairs on a GPU: bounds of all units on the tensor cores, then exact losses of what is left.

The ladder is that of `enumeration.backends.device_scan`: TF32 bounds with certified margins, a limit from the best
units, double precision for the units below it, and the heads' own exact residuals for the pairs below it. So the result
is that of a scan in exact arithmetic, up to ties. What a head's bounds are stands in `device_pairs`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.exactness import EXACTNESS
from symenum.enumeration.backends.device_scan import load_kernels

__all__ = ["DeviceTest", "PairScan", "Strip", "Written"]

UNITS = 1 << 27  # at a time: 512 MB of bounds, and as much for the list of those that are left
CAPACITY = 1 << 20

Exact = Callable[[Tensor, Tensor], Tensor]  # indices i, j (m,) int64 -> losses (m,) float64


class Strip(NamedTuple):
    """Rows first … first + rows - 1 against all columns; a unit is one row and one of `blocks` blocks of columns."""

    first: int
    rows: int
    blocks: int


class Written(NamedTuple):
    """Pairs as codes i·columns + j (int64), their losses (float64), and how many were found (1,) int32."""

    loss: Tensor
    code: Tensor
    total: Tensor


class DeviceTest(Protocol):
    """The bounds of a head."""

    @property
    def block(self) -> int:
        """Columns of a unit."""
        ...

    @property
    def tile_rows(self) -> int:
        """A strip's rows are a multiple of this."""
        ...

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns, padded to whole tiles and blocks."""
        ...

    @property
    def device(self) -> torch.device:
        """Where the tensors lie."""
        ...

    def bounds(self, strip: Strip, units: Tensor) -> None:
        """Lower bounds of the losses of each unit into `units` (rows, blocks) float32; what is left out stays."""
        ...

    def evaluate(
        self, found: Tensor, ends: Tensor, strip: Strip, limit: Tensor, into: Written, *, diagonal: bool, best: bool
    ) -> None:
        """In double precision the pairs of the units found[ends[0] : ends[1]]: of each the best, or all in the limit.

        The best of a unit goes to the unit's place in `found`; its loss is inf if it has no pair.
        """
        ...


class PairScan:
    """All pairs of a test, strip by strip; buffers are made once."""

    def __init__(self, test: DeviceTest) -> None:
        self._test = test
        self._list = load_kernels()[0].list_units
        self._rows, self._columns = test.shape
        self._blocks = self._columns // test.block
        tiles = max(1, UNITS // (self._blocks * test.tile_rows))
        self._strip_rows = min(tiles * test.tile_rows, self._rows)
        self.strips = range(0, self._rows, self._strip_rows)
        device = test.device
        self._units = torch.empty(self._strip_rows * self._blocks, device=device)
        self._found = torch.empty(len(self._units), dtype=torch.int32, device=device)
        self._count, count = torch.zeros(2, 1, dtype=torch.int32, device=device)
        loss = torch.empty(CAPACITY, dtype=torch.float64, device=device)
        self._out = Written(loss, torch.empty(CAPACITY, dtype=torch.int64, device=device), count)
        self._one = torch.ones(1, dtype=torch.float64, device=device)
        self.limit = torch.full((1,), float("inf"), dtype=torch.float64, device=device)

    def best(self, exact: Exact, width: int, *, diagonal: bool, budget: Budget) -> tuple[Tensor, Tensor]:
        """Indices (m,) int64 of the `width` pairs of smallest exact(i, j); i ≤ j, or i < j without the diagonal."""
        best = _Best(width, self.limit)
        for first in self.strips:
            if budget.over():
                break
            self.bounds(first)
            if not best.full:
                chosen = _lowest_of_groups(self._units, min(len(self._units), max(4096, 4 * width)))
                self._evaluate(chosen, 0, len(chosen), first, diagonal, best=True)
                best.add(exact, self._out.code[: len(chosen)], self._out.loss[: len(chosen)], self._columns)
            self._count.zero_()
            size = 1024
            self._list[(-(-len(self._units) // size),)](
                self._units, len(self._units), self.limit, self._one, self._found, self._count, SIZE=size
            )
            self._judge_found(first, best, exact, diagonal=diagonal)
        return best.codes // self._columns, best.codes % self._columns

    def bounds(self, first: int) -> Tensor:
        """Lower bounds of the losses of the units of a strip, (units,) float32."""
        self._units.fill_(float("inf"))
        self._test.bounds(self._strip(first), self._units)
        return self._units

    def _judge_found(self, first: int, best: _Best, exact: Exact, *, diagonal: bool) -> None:
        pieces = [(0, int(self._count))]
        while pieces:
            begin, end = pieces.pop()
            self._out.total.zero_()
            self._evaluate(self._found, begin, end, first, diagonal, best=False)
            count = int(self._out.total)
            written = min(count, CAPACITY)
            best.add(exact, self._out.code[:written], self._out.loss[:written], self._columns)
            if count > CAPACITY:
                middle = (begin + end) // 2
                pieces += [(begin, middle), (middle, end)]

    def _strip(self, first: int) -> Strip:
        return Strip(first, min(self._strip_rows, self._rows - first), self._blocks)

    def _evaluate(self, found: Tensor, begin: int, end: int, first: int, diagonal: bool, *, best: bool) -> None:
        ends = torch.tensor([[begin], [end]], dtype=torch.int32, device=found.device)
        self._test.evaluate(found, ends, self._strip(first), self.limit, self._out, diagonal=diagonal, best=best)


class _Best:
    """The codes of the `width` pairs of smallest loss; `limit` (1,) on the device falls with them."""

    def __init__(self, width: int, limit: Tensor) -> None:
        self._width, self._limit = width, limit
        self.codes = torch.empty(0, dtype=torch.int64, device=limit.device)
        self._loss = torch.empty(0, dtype=torch.float64, device=limit.device)

    @property
    def full(self) -> bool:
        """Whether there are `width` pairs, so that there is a limit."""
        return len(self._loss) == self._width

    def add(self, exact: Exact, codes: Tensor, losses: Tensor, columns: int) -> None:
        """Judge pairs exactly; `losses` say which of them do not exist (inf), and no more."""
        codes = codes[torch.isfinite(losses)]
        found = torch.cat([self._loss, exact(codes // columns, codes % columns)])
        codes, first = _unique(torch.cat([self.codes, codes]))
        loss, order = found[first].sort(stable=True)
        self._loss, self.codes = loss[: self._width], codes[order[: self._width]]
        if self.full:
            self._limit.copy_((self._loss[-1:] * (1 + EXACTNESS.tie)).clamp_min(1e-30))


def _unique(codes: Tensor) -> tuple[Tensor, Tensor]:
    """The codes once each, and where."""
    codes, order = codes.sort()
    new = torch.nn.functional.pad(codes.diff() > 0, (1, 0), value=True)
    return codes[new], order[new]


def _lowest_of_groups(units: Tensor, groups: int) -> Tensor:
    """The number (int32) of the unit of lowest bound in each of some equal groups."""
    size = -(-len(units) // groups)
    whole = torch.nn.functional.pad(units, (0, -len(units) % size), value=float("inf")).view(-1, size)
    lowest = whole.argmin(dim=1) + torch.arange(len(whole), device=units.device) * size
    return lowest.clamp_(max=len(units) - 1).int()
