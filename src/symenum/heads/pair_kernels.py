"""The Triton kernels of the affine head on a GPU: a·v_i·w_j + b for all pairs; imported only where a GPU is asked for.

As in `enumeration.backends.kernels`, a unit is one row v_i against a block of COLUMNS rows w_j.
"""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["affine_bounds", "affine_units"]


@triton.jit
def _product(left, right, i, j, K: tl.constexpr, BK: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    k = tl.arange(0, BK)
    tile = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, K, BK):
        a = tl.load(left + i[:, None] * K + (start + k)[None, :])
        b = tl.load(right + j[:, None] * K + (start + k)[None, :])
        tile = tl.dot(a, tl.trans(b), tile, input_precision="tf32")
    return tile


@triton.jit
def affine_bounds(
    mean, along, square, right, right2, units, strip, strip_rows, blocks, rows, columns, share, SYMMETRIC: tl.constexpr,
    K: tl.constexpr, BK: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """Lower bounds (strip rows, blocks) float32 of the smallest 1 - R² of each unit.

    mean, along, square (rows, K) and right, right2 (columns, K) float32 hold TF32 numbers: √w-weighted factors of S1,
    Sy and S2. R² = Sy² / (S2 - S1²), and `share`·S2 is more than rounding can add to Sy² or take off τ (S2 - S1²).
    6·K flops, about 10 float32 instructions and one root a pair.
    """
    second = tl.program_id(0) * COLUMNS
    j = second + tl.arange(0, COLUMNS)
    k = tl.arange(0, BK)
    b = tl.load(right + j[:, None] * K + k[None, :])
    b2 = tl.load(right2 + j[:, None] * K + k[None, :])
    start = tl.program_id(1) * STEP
    stop = tl.minimum(start + STEP, strip_rows // ROWS)
    end = rows
    if SYMMETRIC:
        end = tl.minimum(second + COLUMNS, rows)
    stop = tl.minimum(stop, tl.cdiv(end - strip, ROWS))
    stop = tl.where(second < columns, stop, 0)
    for tile in range(start, stop):
        row = tile * ROWS
        i = strip + row + tl.arange(0, ROWS)
        if K == BK:
            s1 = tl.dot(tl.load(mean + i[:, None] * K + k[None, :]), tl.trans(b), input_precision="tf32")
            sy = tl.dot(tl.load(along + i[:, None] * K + k[None, :]), tl.trans(b), input_precision="tf32")
            s2 = tl.dot(tl.load(square + i[:, None] * K + k[None, :]), tl.trans(b2), input_precision="tf32")
        else:
            s1 = _product(mean, right, i, j, K, BK, ROWS, COLUMNS)
            sy = _product(along, right, i, j, K, BK, ROWS, COLUMNS)
            s2 = _product(square, right2, i, j, K, BK, ROWS, COLUMNS)
        explained = sy * sy + share * s2
        root = tl.rsqrt(tl.maximum(s2 - s1 * s1, 1e-30))
        # Squares below 1e-25 have lost terms to the end of the range; zero rows, which are padding, explain nothing.
        best = tl.where(s2 > 1e-25, explained * root * root, tl.where(s2 > 0.0, 4.0, 0.0))
        unit = (row + tl.arange(0, ROWS)) * blocks + tl.program_id(0)
        tl.store(units + unit, 1.0 - tl.max(best, axis=1))


@triton.jit
def affine_units(
    found, begin, end, left, right, weight, target, samples, strip, blocks, rows, columns, limit, slack,
    out_loss, out_code, out_count, capacity,
    COLUMNS: tl.constexpr, BEST: tl.constexpr, DIAGONAL: tl.constexpr, SYMMETRIC: tl.constexpr,
):  # fmt: skip
    """1 - R² in float64 of the pairs of the units found[begin:end]: of each unit the best (BEST), or all up to a limit.

    left (samples, rows) and right (samples, columns) float64, transposed; target: t times the root of the weight.
    """
    highest = tl.load(limit)
    stop = tl.load(end)
    for at in range(tl.load(begin) + tl.program_id(0), stop, tl.num_programs(0)):
        unit = tl.load(found + at).to(tl.int64)
        i = strip + unit // blocks
        j = (unit % blocks) * COLUMNS + tl.arange(0, COLUMNS)
        s1 = tl.zeros((COLUMNS,), tl.float64)
        s2 = tl.zeros((COLUMNS,), tl.float64)
        sy = tl.zeros((COLUMNS,), tl.float64)
        at_i = left + i
        at_j = right + j
        for sample in range(0, samples):
            f = tl.load(at_i) * tl.load(at_j)
            weighted = tl.load(weight + sample) * f
            s1 += weighted
            s2 += weighted * f
            sy += tl.load(target + sample) * f
            at_i += rows
            at_j += columns
        rest = s2 - s1 * s1
        explained = sy * sy
        alive = s2 > 0.0
        if SYMMETRIC:
            alive = alive & (i <= j)
            if not DIAGONAL:
                alive = alive & (i != j)
        loss = tl.where(alive & (rest > slack * s2), 1.0 - explained / rest, float("inf"))
        if BEST:
            lowest = tl.min(loss, axis=0)
            tl.store(out_loss + at, lowest)
            tl.store(out_code + at, tl.max(tl.where(loss == lowest, i * columns + j, 0), axis=0))
        else:
            keep = alive & (explained + slack * s2 >= (1.0 - highest) * rest)
            kept = tl.sum(keep.to(tl.int32), axis=0)
            if kept > 0:
                place = tl.atomic_add(out_count, kept) + tl.cumsum(keep.to(tl.int32), axis=0) - 1
                place = tl.where(keep, place, capacity)
                # A pair whose variance drowns in rounding has no loss here: the exact judge decides.
                tl.store(out_loss + place, tl.zeros((COLUMNS,), tl.float64), mask=place < capacity)
                tl.store(out_code + place, i * columns + j, mask=place < capacity)
