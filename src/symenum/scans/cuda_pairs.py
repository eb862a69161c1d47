"""The best of all pairs on a GPU: bounds of all units on the tensor cores, exact losses of the units within a limit.

The ladder is that of `engine.cuda.scan`: TF32 bounds with proven margins, a limit from the best units, double precision
for the units within it, and the caller's exact losses for the pairs within it. So the result is that of a scan in exact
arithmetic, up to ties. `PairScan` is the ladder; a `DeviceTest` has the bounds of one kind of pairs, and launches the
kernels of `pair_kernels`.

A number is rounded to one TF32 number (a relative error of 2⁻¹¹), or split into two, of whose four products the three
largest are summed (2⁻²² each, three times the work). Products of features are bounded in the first way. Pairs of terms
and sums, many of which nearly cancel, need the second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.exactness import EXACTNESS
from symenum.engine.cuda.bank import TF32_PRODUCT_ERROR, load_kernels, summation_error
from symenum.scans.pair_tests import SQUARE_ERROR, AffineSumTest, of_size_one

__all__ = ["AffineProducts", "AffineSums", "DeviceTest", "PairScan", "Strip", "TwoTermPairs", "Written"]


# Relative rounding errors; see also `engine.cuda.bank`.
_SPLIT_ERROR = 3 * 2.0**-22  # of a product of two split numbers: the fourth product, and the rounding of the low halves
_FEW_OPERATIONS = 2.0**-18  # of the float32 operations of a bound outside the tensor core, 2⁻²⁴ each, with a margin
_PADDING = 1e30  # part of the loss of a padding row: above every limit
_MULTIPLE = 128  # rows and columns are padded to a multiple of this: of all blocks and tiles

# Bytes and counts. Chosen by trial: benchmarks/gpu.py times the kernels.
UNITS = 1 << 27  # units of a strip: 512 MiB of bounds, and as much for the list of those within the limit
CAPACITY = 1 << 20  # pairs that are written at a time: 16 MiB of losses and codes
_PROGRAMS = 2048  # programs of the evaluation in double precision, some 15 for each processor of an H200
_MIN_GROUPS = 4096  # groups of units of which the best gives the first limit, at least,
_GROUPS_PER_WIDTH = 4  # or so many for each of the `width` pairs that are wanted
_LISTED = 1024  # units in a program that lists those within the limit
_TILES = 16  # tiles of a program of the bounds
_WARPS = 4  # of a program of the bounds
_LEAST_LIMIT = 1e-30  # of the loss: below it 1 - R² is rounding
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
    """The bounds of one kind of pairs, and their losses in double precision, on a device."""

    @property
    def block(self) -> int:
        """The number of columns of a unit."""
        ...

    @property
    def tile_rows(self) -> int:
        """The number of rows of a tile; a strip has a multiple of it."""
        ...

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns, padded to whole tiles and blocks."""
        ...

    @property
    def device(self) -> torch.device:
        """The device of all tensors."""
        ...

    def bounds(self, strip: Strip, units: Tensor) -> None:
        """Write lower bounds of the losses of units into `units` (rows, blocks) float32; units without pairs stay."""
        ...

    def evaluate(
        self, found: Tensor, ends: Tensor, strip: Strip, limit: Tensor, into: Written, *, diagonal: bool, best: bool
    ) -> None:
        """Evaluate the units found[ends[0] : ends[1]] in double precision: the best of each, or all in the limit.

        The best pair of a unit is written to the unit's place in `found`; its loss is inf if the unit has no pair.
        """
        ...


class PairScan:
    """The scan of all pairs of a test, strip by strip; its buffers are used again."""

    def __init__(self, test: DeviceTest) -> None:
        self._test = test
        self._list = load_kernels().list_units
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
        """Indices (m,) int64 of the `width` pairs of smallest exact(i, j). Over budget, the best so far come back.

        Which pairs there are is up to the test; without the `diagonal`, only i ≠ j.
        """
        best = _Best(width, self.limit)
        for first in self.strips:
            if budget.over():
                break
            self.bounds(first)
            if not best.full:
                groups = min(len(self._units), max(_MIN_GROUPS, _GROUPS_PER_WIDTH * width))
                chosen = _lowest_of_groups(self._units, groups)
                self._evaluate(chosen, 0, len(chosen), first, diagonal, best=True)
                best.add(exact, self._out.code[: len(chosen)], self._out.loss[: len(chosen)], self._columns)
            self._count.zero_()
            self._list[(-(-len(self._units) // _LISTED),)](
                self._units, len(self._units), self.limit, self._one, self._found, self._count, SIZE=_LISTED
            )
            self._judge_found(first, best, exact, diagonal=diagonal)
        return best.codes // self._columns, best.codes % self._columns

    def bounds(self, first: int) -> Tensor:
        """Lower bounds (units,) float32 of the losses of the units of the strip that begins at row `first`."""
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
    """The codes and losses of the `width` best pairs so far; `limit` (1,) float64 on the device is the largest loss."""

    def __init__(self, width: int, limit: Tensor) -> None:
        self._width, self._limit = width, limit
        self.codes = torch.empty(0, dtype=torch.int64, device=limit.device)
        self._loss = torch.empty(0, dtype=torch.float64, device=limit.device)

    @property
    def full(self) -> bool:
        """Whether there are `width` pairs, so that `limit` is finite."""
        return len(self._loss) == self._width

    def add(self, exact: Exact, codes: Tensor, losses: Tensor, columns: int) -> None:
        """Judge pairs (codes, int64) exactly and keep the best; pairs whose `losses` are inf do not exist."""
        codes = codes[torch.isfinite(losses)]
        found = torch.cat([self._loss, exact(codes // columns, codes % columns)])
        codes, first = _unique(torch.cat([self.codes, codes]))
        loss, order = found[first].sort(stable=True)
        self._loss, self.codes = loss[: self._width], codes[order[: self._width]]
        if self.full:
            self._limit.copy_((self._loss[-1:] * (1 + EXACTNESS.tie)).clamp_min(_LEAST_LIMIT))


def _unique(codes: Tensor) -> tuple[Tensor, Tensor]:
    """The different codes, ascending, and an index of each in the argument."""
    codes, order = codes.sort()
    new = torch.nn.functional.pad(codes.diff() > 0, (1, 0), value=True)
    return codes[new], order[new]


def _lowest_of_groups(units: Tensor, groups: int) -> Tensor:
    """The numbers (int32) of the units of lowest bound in each of about `groups` equal groups."""
    size = -(-len(units) // groups)
    whole = torch.nn.functional.pad(units, (0, -len(units) % size), value=float("inf")).view(-1, size)
    lowest = whole.argmin(dim=1) + torch.arange(len(whole), device=units.device) * size
    return lowest.clamp_(max=len(units) - 1).int()


@dataclass(frozen=True)
class _TwoSets:
    """The rows of `left` (N, n), those of `right` (M, n), and the target t (n,): float64 on one GPU."""

    left: Tensor
    right: Tensor
    target: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        """See `DeviceTest`."""
        return _padded_count(len(self.left)), _padded_count(len(self.right))

    @property
    def device(self) -> torch.device:
        """See `DeviceTest`."""
        return self.left.device


@dataclass(frozen=True)
class AffineProducts(_TwoSets):
    """a·v_i·w_j + b, with rows v of `left` and w of `right`; t weighted, centred, of unit norm; root (n,) float64."""

    root: Tensor
    same: bool
    block: int = 64  # three accumulators of a tile must stay in registers
    tile_rows: int = 64

    @cached_property
    def _scaled(self) -> tuple[Tensor, Tensor]:
        return _padded(of_size_one(self.left)), _padded(of_size_one(self.right))

    @cached_property
    def _weights(self) -> tuple[Tensor, Tensor]:
        return self.root.square(), self.target * self.root

    @cached_property
    def _inner(self) -> tuple[int, int]:
        return _inner(len(self.target))

    @cached_property
    def _factors(self) -> list[Tensor]:
        (V, W), (weight, along) = self._scaled, self._weights
        parts = (V * weight, V * along, V.square() * weight, W, W.square())
        return [_to_width(_tf32(part), self._inner[0]) for part in parts]

    @cached_property
    def _transposed(self) -> tuple[Tensor, Tensor]:
        V, W = self._scaled
        return V.T.contiguous(), W.T.contiguous()

    def bounds(self, strip: Strip, units: Tensor) -> None:
        """See `DeviceTest`."""
        K, part = self._inner
        share = 7 * (TF32_PRODUCT_ERROR + summation_error(K)) + _FEW_OPERATIONS
        _kernels().affine_bounds[(strip.blocks, -(-strip.rows // (self.tile_rows * _TILES)))](
            *self._factors, units, *strip, *self.shape, share, SYMMETRIC=self.same, K=K, BK=part, ROWS=self.tile_rows,
            COLUMNS=self.block, STEP=_TILES, num_warps=_WARPS, num_stages=2,
        )  # fmt: skip

    def evaluate(
        self, found: Tensor, ends: Tensor, strip: Strip, limit: Tensor, into: Written, *, diagonal: bool, best: bool
    ) -> None:
        """See `DeviceTest`."""
        samples = len(self.target)
        _kernels().affine_units[(_PROGRAMS,)](
            found, ends[0], ends[1], *self._transposed, *self._weights, samples, strip.first, strip.blocks, *self.shape,
            limit, _slack(samples), *into, len(into.loss), COLUMNS=self.block, BEST=best, DIAGONAL=diagonal,
            SYMMETRIC=self.same,
        )  # fmt: skip


@dataclass(frozen=True)
class TwoTermPairs(_TwoSets):
    """a·c_i + b·d_j, with unit rows c of `left` = C and d of `right` = D, and a unit target t.

    With r = C·t, q = D·t, g = c_i·d_j and p = g - r_i q_j, 1 - R² = ((1 - r_i²)(1 - q_j²) - p²) / (1 - g²): one
    product. Unlike the terms of R², these do not cancel if both rows are near the target.
    """

    same: bool
    block: int = 128
    tile_rows: int = 64

    @cached_property
    def _padded(self) -> tuple[Tensor, Tensor]:
        C = _padded(self.left)
        return C, C if self.same else _padded(self.right)

    @cached_property
    def _along(self) -> tuple[Tensor, Tensor]:
        """r and q, float64."""
        C, D = self._padded
        return C @ self.target, D @ self.target

    @cached_property
    def _rest(self) -> tuple[Tensor, Tensor]:
        """1 - r² and 1 - q², float64, large for padding."""
        out = []
        for along, count in zip(self._along, (len(self.left), len(self.right)), strict=True):
            rest = (1 - along.square()).clamp_min_(0)
            rest[count:] = _PADDING
            out.append(rest)
        return out[0], out[1]

    @cached_property
    def _inner(self) -> _Split:
        return _Split.of(len(self.target))

    @cached_property
    def _factors(self) -> tuple[Tensor, ...]:
        # Reduced by 2⁻²⁰: more than the rounding error of the difference in single precision that they are part of.
        rest = [((part - SQUARE_ERROR).clamp_min(0) * (1 - 2.0**-20)).float() for part in self._rest]
        factors = self._inner.factors(*self._padded)
        return *factors, *(along.float() for along in self._along), *rest

    @cached_property
    def _transposed(self) -> tuple[Tensor, Tensor]:
        C, D = self._padded
        return C.T.contiguous(), D.T.contiguous()

    def bounds(self, strip: Strip, units: Tensor) -> None:
        """See `DeviceTest`."""
        K, part, halves = self._inner
        margin = self._inner.error + 2.0**-22  # the second term is for r and q in single precision
        _kernels().two_term_bounds[(strip.blocks, -(-strip.rows // (self.tile_rows * _TILES)))](
            *self._factors, units, *strip, len(self.left), len(self.right), margin, SYMMETRIC=self.same, K=K, BK=part,
            HALVES=halves, ROWS=self.tile_rows, COLUMNS=self.block, STEP=_TILES, num_warps=_WARPS,
            num_stages=self._inner.stages,
        )  # fmt: skip

    def evaluate(
        self, found: Tensor, ends: Tensor, strip: Strip, limit: Tensor, into: Written, *, diagonal: bool, best: bool
    ) -> None:
        """See `DeviceTest`; a row with itself is no pair of terms, so `diagonal` is ignored."""
        samples = len(self.target)
        _kernels().two_term_units[(_PROGRAMS,)](
            found, ends[0], ends[1], *self._transposed, *self._along, *self._rest, samples, strip.first, strip.blocks,
            len(self.left), len(self.right), *self.shape, limit, _slack(samples), *into, len(into.loss),
            COLUMNS=self.block, BEST=best, SYMMETRIC=self.same,
        )  # fmt: skip


@dataclass(frozen=True)
class AffineSums:
    """a·(v_i ± v_j) + b, i ≤ j; `test` is the CPU's test, which has the centred rows, with its tensors on one GPU."""

    test: AffineSumTest
    block: int = 128
    tile_rows: int = 64

    @property
    def shape(self) -> tuple[int, int]:
        """See `DeviceTest`."""
        rows = _padded_count(self.test.shape[0])
        return rows, rows

    @property
    def device(self) -> torch.device:
        """See `DeviceTest`."""
        return self.test.V.device

    @cached_property
    def _inner(self) -> _Split:
        return _Split.of(self.test.V.shape[1])

    @property
    def _margin(self) -> float:
        """Rounding error of the denominator relative to s_i + s_j, which 2g does not exceed; 2⁻²⁰ for the sums."""
        return self._inner.error + 2.0**-20

    @property
    def _unsure(self) -> tuple[float, float]:
        """A bound of the rounding error of (p_i ± p_j)²: a part of both sizes, and a constant.

        The error is 2⁻¹⁹·s, and that of centring, 8e-16·|v|·√s, which is at most 2⁻²⁰·s + 1.7e-25·|v|². Rows are
        scaled, so |v|² is at most the number of samples. The constant is six times that, because an s below 1e-25 may
        have lost digits to underflow. With half a million samples the sizes are far below s and do not bound it; then
        the constant alone does.
        """
        samples = self.test.V.shape[1]
        return 2.0**-18, samples * (1e-24 if self._margin < 0.25 else 2.0**-17)

    @cached_property
    def _rows(self) -> tuple[Tensor, Tensor, Tensor]:
        """p, s and the error that centring makes in s, (rows,) float64, padded with zeros."""
        s, p, centring = (_padded(part)[:, 0].contiguous() for part in self.test.centred[1:])
        return p, s, centring

    @cached_property
    def _factors(self) -> tuple[Tensor, ...]:
        p, s, centring = self._rows
        size = (s * (1 - self._margin) - centring).clamp_min(0)
        size[self.test.shape[0] :] = _PADDING
        C = _padded(self.test.centred[0])
        return *self._inner.factors(C, C), p.float(), size.float()

    @cached_property
    def _transposed(self) -> Tensor:
        return _padded(self.test.centred[0]).T.contiguous()

    def bounds(self, strip: Strip, units: Tensor) -> None:
        """See `DeviceTest`."""
        K, part, halves = self._inner
        _kernels().affine_sum_bounds[(strip.blocks, -(-strip.rows // (self.tile_rows * _TILES)))](
            *self._factors, units, *strip, self.test.shape[0], *self._unsure, SIGN=self.test.sign, K=K, BK=part,
            HALVES=halves, ROWS=self.tile_rows, COLUMNS=self.block, STEP=_TILES, num_warps=_WARPS,
            num_stages=self._inner.stages,
        )  # fmt: skip

    def evaluate(
        self, found: Tensor, ends: Tensor, strip: Strip, limit: Tensor, into: Written, *, diagonal: bool, best: bool
    ) -> None:
        """See `DeviceTest`."""
        samples = self.test.V.shape[1]
        _kernels().affine_sum_units[(_PROGRAMS,)](
            found, ends[0], ends[1], self._transposed, *self._rows, samples, strip.first, strip.blocks,
            self.test.shape[0], self.shape[0], limit, _slack(samples), *into, len(into.loss), SIGN=self.test.sign,
            COLUMNS=self.block, BEST=best, DIAGONAL=diagonal,
        )  # fmt: skip


class _Split(NamedTuple):
    """How split numbers are laid out for a product."""

    size: int  # the inner dimension, padded
    part: int  # of it that is multiplied at a time
    halves: bool  # all high halves before all low ones; else the halves that are multiplied are at the same place

    @classmethod
    def of(cls, samples: int) -> _Split:
        """The layout for so many samples: up to 21 of them, three products of halves fit into one of size 64."""
        if 3 * samples <= 64:
            return cls(*_inner(3 * samples), halves=False)
        return cls(-(-samples // 32) * 32, 32, halves=True)

    @property
    def stages(self) -> int:
        """Stages of the kernels' pipeline: the fastest on an H200."""
        return 2 if self.part < self.size <= 128 else 3

    @property
    def error(self) -> float:
        """Rounding error of an inner product of two rows, relative to the product of their norms."""
        return _SPLIT_ERROR + summation_error(3 * self.size if self.halves else self.size)

    def factors(self, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        """The operands of the kernels, which sum the three largest products of halves."""
        (high, low), (other_high, other_low) = _halves(left), _halves(right)
        if self.halves:
            sides = ((high, low), (other_high, other_low))
            ours, theirs = (torch.cat([_to_width(part, self.size) for part in side], dim=1) for side in sides)
            return ours, theirs
        return (
            _to_width(torch.cat([high, high, low], dim=1), self.size),
            _to_width(torch.cat([other_high, other_low, other_high], dim=1), self.size),
        )


def _kernels() -> ModuleType:
    """The module of the Triton kernels, which can be imported only where Triton is installed."""
    from symenum.scans import pair_kernels

    return pair_kernels


def _slack(samples: int) -> float:
    """A bound, with a factor of 8, of the relative rounding error of a sum over the samples in double precision."""
    return 8 * (samples + 12) * 2.0**-53


def _inner(samples: int) -> tuple[int, int]:
    """The inner dimension of a product, padded, and the part of it that is multiplied at a time."""
    if samples <= 64:
        size = 16 if samples <= 16 else 32 if samples <= 32 else 64
        return size, size
    part = 64 if samples > 96 else 32
    return -(-samples // part) * part, part


def _padded_count(count: int) -> int:
    return -(-count // _MULTIPLE) * _MULTIPLE


def _padded(rows: Tensor) -> Tensor:
    """Rows (N, n) with zero rows appended, up to `_padded_count(N)`."""
    return torch.nn.functional.pad(rows, (0, 0, 0, -len(rows) % _MULTIPLE)).contiguous()


def _to_width(rows: Tensor, size: int) -> Tensor:
    """Rows (N, n) with zero columns appended, (N, size)."""
    return torch.nn.functional.pad(rows, (0, size - rows.shape[1])).contiguous()


def _tf32(values: Tensor) -> Tensor:
    """Rounded to the nearest TF32 number, as float32."""
    return ((values.float().view(torch.int32) + 0x1000) & -0x2000).view(torch.float32)


def _halves(values: Tensor) -> tuple[Tensor, Tensor]:
    """Two TF32 numbers, as float32, whose sum differs from the value by at most 2⁻²² of it."""
    high = _tf32(values)
    return high, _tf32(values - high.double())
