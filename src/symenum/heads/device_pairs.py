"""How pairs are bounded on a GPU, for each head, and judged there in double precision; see `device_ladder`.

A number is at first rounded to one TF32 number (a relative error of 2⁻¹¹), or split into two of them, whose three
largest products are added up (2⁻²² each, three times the work). Products of features are judged by the first way;
pairs of terms, and sums, of which many nearly cancel, need the second.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import NamedTuple

import torch
from torch import Tensor

from symenum.heads.device_ladder import Strip, Written
from symenum.heads.pair_tests import AffineSumTest

__all__ = ["AffineProducts", "AffineSums", "TwoTermPairs"]

_PROGRAMS = 2048
_WHOLE = 128  # rows and columns are padded to a multiple of this
_ADDITION = 2.0**-23  # of the accumulators
_ROUNDING = 2.0**-10 * 1.01  # of a product of two rounded numbers
_SPLIT = 3 * 2.0**-22  # of a product of two split ones
_PADDING = 1e30  # a part of the loss that no limit lets in
_SQUARE = 4e-15  # the error of r² itself


@dataclass(frozen=True)
class _TwoSets:
    """Rows of `left` (N, n) against rows of `right` (M, n), and the target t (n,): float64 on one GPU."""

    left: Tensor
    right: Tensor
    target: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        """See `DeviceTest`."""
        return _whole(len(self.left)), _whole(len(self.right))

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
        # R² does not see the scale of a row; with a largest value of 1 no square leaves the range.
        tiny = torch.finfo(torch.float64).tiny
        sides = (self.left, self.right)
        V, W = (_padded(rows / rows.abs().amax(dim=1, keepdim=True).clamp_min(tiny)) for rows in sides)
        return V, W

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
        step = 16
        share = 7 * (_ROUNDING + _summing(K)) + 2.0**-18
        _kernels().affine_bounds[(strip.blocks, -(-strip.rows // (self.tile_rows * step)))](
            *self._factors, units, *strip, *self.shape, share, SYMMETRIC=self.same, K=K, BK=part, ROWS=self.tile_rows,
            COLUMNS=self.block, STEP=step, num_warps=4, num_stages=2,
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
    product. Its terms do not cancel where both rows lie near the target, as those of R² do.
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
        # Smaller by more than rounding in single precision can do to the difference that they are part of.
        rest = [((part - _SQUARE).clamp_min(0) * (1 - 2.0**-20)).float() for part in self._rest]
        factors = self._inner.factors(*self._padded)
        return *factors, *(along.float() for along in self._along), *rest

    @cached_property
    def _transposed(self) -> tuple[Tensor, Tensor]:
        C, D = self._padded
        return C.T.contiguous(), D.T.contiguous()

    def bounds(self, strip: Strip, units: Tensor) -> None:
        """See `DeviceTest`."""
        K, part, halves = self._inner
        step = 16
        margin = self._inner.error + 2.0**-22  # and r, q in single precision
        _kernels().two_term_bounds[(strip.blocks, -(-strip.rows // (self.tile_rows * step)))](
            *self._factors, units, *strip, len(self.left), len(self.right), margin, SYMMETRIC=self.same, K=K, BK=part,
            HALVES=halves, ROWS=self.tile_rows, COLUMNS=self.block, STEP=step, num_warps=4,
            num_stages=self._inner.stages,
        )  # fmt: skip

    def evaluate(
        self, found: Tensor, ends: Tensor, strip: Strip, limit: Tensor, into: Written, *, diagonal: bool, best: bool
    ) -> None:
        """See `DeviceTest`; the diagonal has no pairs of two terms, whatever `diagonal` says."""
        samples = len(self.target)
        _kernels().two_term_units[(_PROGRAMS,)](
            found, ends[0], ends[1], *self._transposed, *self._along, *self._rest, samples, strip.first, strip.blocks,
            len(self.left), len(self.right), *self.shape, limit, _slack(samples), *into, len(into.loss),
            COLUMNS=self.block, BEST=best, SYMMETRIC=self.same,
        )  # fmt: skip


@dataclass(frozen=True)
class AffineSums:
    """a·(v_i ± v_j) + b, i ≤ j; the tensors of the CPU's test, which knows the centred rows, lie on one GPU."""

    test: AffineSumTest
    block: int = 128
    tile_rows: int = 64

    @property
    def shape(self) -> tuple[int, int]:
        """See `DeviceTest`."""
        rows = _whole(self.test.shape[0])
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
        """Of the denominator, relative to s + s: 2g is at most that; and sums in single precision."""
        return self._inner.error + 2.0**-20

    @property
    def _unsure(self) -> tuple[float, float]:
        """How much of both sizes, and what beside that, is more than rounding can do to (p ± p)².

        That is 2⁻¹⁹ of s, and what centring did: 8e-16·|v|·√s, at most 2⁻²⁰·s + 1.7e-25·|v|². The rows were scaled, so
        |v|² is at most the number of samples. Some times that much for what lost digits to the end of the range, which
        an s below 1e-25 may have. Sizes far below s, as half a million samples make them, do not stand for s.
        """
        samples = self.test.V.shape[1]
        return 2.0**-18, samples * (1e-24 if self._margin < 0.25 else 2.0**-17)

    @cached_property
    def _rows(self) -> tuple[Tensor, Tensor, Tensor]:
        """p, s and the error of s, padded with zeros."""
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
        step = 16
        _kernels().affine_sum_bounds[(strip.blocks, -(-strip.rows // (self.tile_rows * step)))](
            *self._factors, units, *strip, self.test.shape[0], *self._unsure, SIGN=self.test.sign, K=K, BK=part,
            HALVES=halves, ROWS=self.tile_rows, COLUMNS=self.block, STEP=step, num_warps=4,
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
    """The inner size of a product of split numbers, padded, the part in which it is added up, and how they lie."""

    size: int
    part: int
    halves: bool  # the high halves before the low ones; else those that are multiplied side by side

    @classmethod
    def of(cls, samples: int) -> _Split:
        """Few samples leave room for the three products in one of the smallest sizes that there are."""
        if 3 * samples <= 64:
            return cls(*_inner(3 * samples), halves=False)
        return cls(-(-samples // 32) * 32, 32, halves=True)

    @property
    def stages(self) -> int:
        """Tiles, or parts of them, on their way at a time: what was fastest on an H200."""
        return 2 if self.part < self.size <= 128 else 3

    @property
    def error(self) -> float:
        """Of an inner product of two rows, relative to the product of their norms."""
        return _SPLIT + _summing(3 * self.size if self.halves else self.size)

    def factors(self, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        """The operands of the kernels, which add up the three large products of halves."""
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
    from symenum.heads import pair_kernels  # Triton is not everywhere

    return pair_kernels


def _summing(terms: int) -> float:
    """The relative error of so many additions on the tensor cores."""
    return (1.25 * terms + 16) * _ADDITION


def _slack(samples: int) -> float:
    """More than rounding in double precision makes of a sum over the samples."""
    return 8 * (samples + 12) * 2.0**-53


def _inner(samples: int) -> tuple[int, int]:
    """The inner size of a product, padded, and of the parts in which it is added up."""
    if samples <= 64:
        size = 16 if samples <= 16 else 32 if samples <= 32 else 64
        return size, size
    part = 64 if samples > 96 else 32
    return -(-samples // part) * part, part


def _whole(count: int) -> int:
    return -(-count // _WHOLE) * _WHOLE


def _padded(rows: Tensor) -> Tensor:
    return torch.nn.functional.pad(rows, (0, 0, 0, -len(rows) % _WHOLE)).contiguous()


def _to_width(rows: Tensor, size: int) -> Tensor:
    return torch.nn.functional.pad(rows, (0, size - rows.shape[1])).contiguous()


def _tf32(values: Tensor) -> Tensor:
    """Rounded to the nearest TF32 number, as float32."""
    return ((values.float().view(torch.int32) + 0x1000) & -0x2000).view(torch.float32)


def _halves(values: Tensor) -> tuple[Tensor, Tensor]:
    """Two TF32 numbers, as float32, whose sum is the value but for 2⁻²² of it."""
    high = _tf32(values)
    return high, _tf32(values - high.double())
