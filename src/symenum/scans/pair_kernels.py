"""The Triton kernels of `cuda_pairs`; imported only if a GPU is used, because Triton is not always installed.

As in `engine.cuda.kernels`, a unit is one row v_i against a block of COLUMNS rows w_j. For each kind of pairs one
kernel finds lower bounds of the losses 1 - R² of units on the tensor cores, and one evaluates units in double
precision. The formulas of R² are those of `scans.r_squared`, written once more because Triton cannot call torch. The
code of a pair is i·columns + j.
"""

from __future__ import annotations

import triton
import triton.language as tl

from symenum.engine.cuda.kernels import needed_tiles, product_tile

__all__ = [
    "affine_bounds",
    "affine_sum_bounds",
    "affine_sum_units",
    "affine_units",
    "two_term_bounds",
    "two_term_units",
]


@triton.jit
def _tiles(strip, strip_rows, rows, columns, second, SYMMETRIC: tl.constexpr, ROWS: tl.constexpr,
           COLUMNS: tl.constexpr, STEP: tl.constexpr):  # fmt: skip
    """The tiles of a program: the first, and the end of those that are needed."""
    start, stop, _ = needed_tiles(strip, strip_rows, rows, second, SYMMETRIC, ROWS, COLUMNS, STEP)
    return start, tl.where(second < columns, stop, 0)


@triton.jit
def _pairs_of_unit(unit, strip, blocks, COLUMNS: tl.constexpr):
    """Row i, a scalar, and the rows j (COLUMNS,) of a unit, int64."""
    return strip + unit // blocks, (unit % blocks) * COLUMNS + tl.arange(0, COLUMNS)


@triton.jit
def _inner_products(left, right, i, j, samples, rows, columns, COLUMNS: tl.constexpr):
    """(COLUMNS,) float64 of row i with the rows j; left (samples, rows) and right (samples, columns) float64."""
    g = tl.zeros((COLUMNS,), tl.float64)
    at_i = left + i
    at_j = right + j
    for _ in range(0, samples):
        g += tl.load(at_i) * tl.load(at_j)
        at_i += rows
        at_j += columns
    return g


@triton.jit
def _write_best(loss, i, j, columns, at, out_loss, out_code):
    """Write the lowest loss of a unit, and the code of a pair that has it, into place `at`."""
    lowest = tl.min(loss, axis=0)
    tl.store(out_loss + at, lowest)
    tl.store(out_code + at, tl.max(tl.where(loss == lowest, i * columns + j, 0), axis=0))


@triton.jit
def _append(keep, loss, code, out_loss, out_code, out_count, capacity):
    """Append the pairs that `keep` marks, as far as there is room, and count all of them."""
    kept = tl.sum(keep.to(tl.int32), axis=0)
    if kept > 0:
        place = tl.atomic_add(out_count, kept) + tl.cumsum(keep.to(tl.int32), axis=0) - 1
        place = tl.where(keep, place, capacity)
        tl.store(out_loss + place, loss, mask=place < capacity)
        tl.store(out_code + place, code, mask=place < capacity)


@triton.jit
def affine_bounds(
    mean, along, square, right, right2, units, strip, strip_rows, blocks, rows, columns, share, SYMMETRIC: tl.constexpr,
    K: tl.constexpr, BK: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """Lower bounds (strip rows, blocks) float32 of the smallest 1 - R² of each unit.

    mean, along, square (rows, K) and right, right2 (columns, K) float32 hold TF32 numbers: √w-weighted factors of S1,
    Sy and S2. R² = Sy² / (S2 - S1²). `share`·S2 is more than rounding can change Sy² and τ (S2 - S1²) by.
    6·K flops, about 10 float32 instructions and one root a pair.
    """
    second = tl.program_id(0) * COLUMNS
    j = second + tl.arange(0, COLUMNS)
    k = tl.arange(0, BK)
    b = tl.load(right + j[:, None] * K + k[None, :])
    b2 = tl.load(right2 + j[:, None] * K + k[None, :])
    start, stop = _tiles(strip, strip_rows, rows, columns, second, SYMMETRIC, ROWS, COLUMNS, STEP)
    for tile in range(start, stop):
        row = tile * ROWS
        i = strip + row + tl.arange(0, ROWS)
        if K == BK:
            s1 = tl.dot(tl.load(mean + i[:, None] * K + k[None, :]), tl.trans(b), input_precision="tf32")
            sy = tl.dot(tl.load(along + i[:, None] * K + k[None, :]), tl.trans(b), input_precision="tf32")
            s2 = tl.dot(tl.load(square + i[:, None] * K + k[None, :]), tl.trans(b2), input_precision="tf32")
        else:
            s1 = product_tile(mean, right, i, j, K, BK, ROWS, COLUMNS)
            sy = product_tile(along, right, i, j, K, BK, ROWS, COLUMNS)
            s2 = product_tile(square, right2, i, j, K, BK, ROWS, COLUMNS)
        explained = sy * sy + share * s2
        root = tl.rsqrt(tl.maximum(s2 - s1 * s1, 1e-30))
        # Squares below 1e-25 have lost terms to underflow: R² = 4 excludes none of them. Zero rows are padding.
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
        i, j = _pairs_of_unit(tl.load(found + at).to(tl.int64), strip, blocks, COLUMNS)
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
            _write_best(loss, i, j, columns, at, out_loss, out_code)
        else:
            keep = alive & (explained + slack * s2 >= (1.0 - highest) * rest)
            # No loss is written: where the variance is all rounding, only the exact evaluation can tell.
            none = tl.zeros((COLUMNS,), tl.float64)
            _append(keep, none, i * columns + j, out_loss, out_code, out_count, capacity)


@triton.jit
def _split_columns(right, j, K: tl.constexpr, BK: tl.constexpr, HALVES: tl.constexpr):
    """The rows j of `right` that `_split_product` keeps in registers from tile to tile: high and low halves."""
    at = right + j[:, None] * (2 * K if HALVES else K) + tl.arange(0, BK)[None, :]
    high = tl.load(at)
    return high, tl.load(at + K) if HALVES else high


@triton.jit
def _split_product(
    left, right, high, low, i, j,
    K: tl.constexpr, BK: tl.constexpr, HALVES: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """A tile (ROWS, COLUMNS) float32 of left·rightᵀ, both of split numbers; high, low are from `_split_columns`.

    With HALVES both are (…, 2·K), the high halves before the low ones; each half is read once and used twice, and the
    largest product is added last. Otherwise they are (…, K), with the halves that are multiplied at the same place.
    """
    at_i = left + i[:, None] * (2 * K if HALVES else K) + tl.arange(0, BK)[None, :]
    a = tl.load(at_i)
    if not HALVES:
        g = tl.dot(a, tl.trans(high), input_precision="tf32")
    elif K == BK:
        g = tl.dot(tl.load(at_i + K), tl.trans(high), input_precision="tf32")
        g = tl.dot(a, tl.trans(low), g, input_precision="tf32")
        g = tl.dot(a, tl.trans(high), g, input_precision="tf32")
    else:
        at_j = right + j[:, None] * (2 * K) + tl.arange(0, BK)[None, :]
        g = tl.zeros((ROWS, COLUMNS), tl.float32)
        for start in range(0, K, BK):
            a = tl.load(at_i + start)
            b = tl.load(at_j + start)
            g = tl.dot(tl.load(at_i + (K + start)), tl.trans(b), g, input_precision="tf32")
            g = tl.dot(a, tl.trans(tl.load(at_j + (K + start))), g, input_precision="tf32")
            g = tl.dot(a, tl.trans(b), g, input_precision="tf32")
    return g


@triton.jit
def _two_term_loss(
    left, right, high, low, near_j, rest_j, near, rest, i, j, margin,
    K: tl.constexpr, BK: tl.constexpr, HALVES: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    g = _split_product(left, right, high, low, i, j, K, BK, HALVES, ROWS, COLUMNS)
    p = tl.abs(g - tl.load(near + i)[:, None] * near_j) + margin
    # A negative numerator excludes nothing, whatever the denominator.
    above = tl.load(rest + i)[:, None] * rest_j - p * p
    root = tl.rsqrt(1.0 + 4.0 * margin - g * g)  # root² takes fewer instructions than a division
    return above * root * root


@triton.jit
def two_term_bounds(
    left, right, near_i, near_j, rest_i, rest_j, units, strip, strip_rows, blocks, rows, columns, margin,
    SYMMETRIC: tl.constexpr, K: tl.constexpr, BK: tl.constexpr, HALVES: tl.constexpr, ROWS: tl.constexpr,
    COLUMNS: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """Lower bounds (strip rows, blocks) float32 of the smallest 1 - R² of each unit; without the diagonal.

    left, right float32 hold TF32 halves of unit rows (see `_split_product`); near and rest (…,) float32 hold r and
    1 - r² of each row, the latter large for padding. `margin` is more than the rounding error of an inner product.
    Three products of halves, 8 float32 instructions and one root a pair.
    """
    second = tl.program_id(0) * COLUMNS
    j = second + tl.arange(0, COLUMNS)
    high, low = _split_columns(right, j, K, BK, HALVES)
    q = tl.load(near_j + j)[None, :]
    rest = tl.load(rest_j + j)[None, :]
    start, stop = _tiles(strip, strip_rows, rows, columns, second, SYMMETRIC, ROWS, COLUMNS, STEP)
    middle = stop
    if SYMMETRIC:
        middle = tl.maximum(start, tl.minimum(stop, (second - strip) // ROWS))
    into = units + tl.program_id(0)
    for tile in range(start, middle):
        row = tile * ROWS + tl.arange(0, ROWS)
        loss = _two_term_loss(
            left, right, high, low, q, rest, near_i, rest_i, strip + row, j, margin, K, BK, HALVES, ROWS, COLUMNS
        )  # fmt: skip
        tl.store(into + row * blocks, tl.min(loss, axis=1))
    for tile in range(middle, stop):
        row = tile * ROWS + tl.arange(0, ROWS)
        loss = _two_term_loss(
            left, right, high, low, q, rest, near_i, rest_i, strip + row, j, margin, K, BK, HALVES, ROWS, COLUMNS
        )  # fmt: skip
        loss = tl.where((strip + row)[:, None] < j[None, :], loss, float("inf"))
        tl.store(into + row * blocks, tl.min(loss, axis=1))


@triton.jit
def two_term_units(
    found, begin, end, left, right, near_i, near_j, rest_i, rest_j, samples, strip, blocks, true_rows, true_columns,
    rows, columns, limit, slack, out_loss, out_code, out_count, capacity,
    COLUMNS: tl.constexpr, BEST: tl.constexpr, SYMMETRIC: tl.constexpr,
):  # fmt: skip
    """1 - R² in float64 of the pairs of the units found[begin:end]: of each unit the best (BEST), or all up to a limit.

    left (samples, rows) and right (samples, columns) float64, transposed; near and rest float64.
    """
    highest = tl.load(limit)
    stop = tl.load(end)
    for at in range(tl.load(begin) + tl.program_id(0), stop, tl.num_programs(0)):
        i, j = _pairs_of_unit(tl.load(found + at).to(tl.int64), strip, blocks, COLUMNS)
        g = _inner_products(left, right, i, j, samples, rows, columns, COLUMNS)
        p = g - tl.load(near_i + i) * tl.load(near_j + j)
        above = tl.load(rest_i + i) * tl.load(rest_j + j) - p * p
        below = tl.maximum(1.0 - g * g, 1e-300)  # a limit may be infinite
        alive = (i < true_rows) & (j < true_columns)
        if SYMMETRIC:
            alive = alive & (i < j)
        if BEST:
            # Nearly parallel rows have no correct digits here; a first limit does not need them.
            loss = tl.where(alive & (below > 1e-6), above / below, float("inf"))
            _write_best(loss, i, j, columns, at, out_loss, out_code)
        else:
            keep = alive & (above - slack <= highest * below)
            none = tl.zeros((COLUMNS,), tl.float64)
            _append(keep, none, i * columns + j, out_loss, out_code, out_count, capacity)


@triton.jit
def affine_sum_bounds(
    left, right, near, size, units, strip, strip_rows, blocks, rows, share, floor,
    SIGN: tl.constexpr, K: tl.constexpr, BK: tl.constexpr, HALVES: tl.constexpr, ROWS: tl.constexpr,
    COLUMNS: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """Lower bounds (strip rows, blocks) float32 of the smallest 1 - R² of each unit, i ≤ j.

    R² = (p_i ± p_j)² / (s_i + s_j ± 2g), where g is the inner product of two centred rows, s the square of one and p
    its product with the target. left, right float32 hold TF32 halves of the rows (see `_split_product`); near (rows,)
    holds p; size holds s, reduced by more than the rounding error of the denominator. `share` of both sizes plus
    `floor`, which is positive, is more than the rounding error of the numerator. Three products of halves, 8 float32
    instructions and one root a pair.
    """
    second = tl.program_id(0) * COLUMNS
    j = second + tl.arange(0, COLUMNS)
    high, low = _split_columns(right, j, K, BK, HALVES)
    size_j = tl.load(size + j)[None, :]  # kept in registers: a load in each tile would cost more than the root
    near_j = SIGN * tl.load(near + j)[None, :]
    start, stop = _tiles(strip, strip_rows, rows, rows, second, True, ROWS, COLUMNS, STEP)
    for tile in range(start, stop):
        row = tile * ROWS + tl.arange(0, ROWS)
        i = strip + row
        g = _split_product(left, right, high, low, i, j, K, BK, HALVES, ROWS, COLUMNS)
        both = tl.load(size + i)[:, None] + size_j
        p = tl.load(near + i)[:, None] + near_j
        explained = p * p + (share * both + floor)
        # Sums that cancel are not excluded: `floor` is far above the smallest denominator, 1e-30.
        root = tl.rsqrt(tl.maximum(both + 2.0 * SIGN * g, 1e-30))
        tl.store(units + row * blocks + tl.program_id(0), 1.0 - tl.max(explained * root * root, axis=1))


@triton.jit
def affine_sum_units(
    found, begin, end, transposed, near, size, centring, samples, strip, blocks, true_rows, rows, limit, slack,
    out_loss, out_code, out_count, capacity,
    SIGN: tl.constexpr, COLUMNS: tl.constexpr, BEST: tl.constexpr, DIAGONAL: tl.constexpr,
):  # fmt: skip
    """1 - R² in float64 of the pairs of the units found[begin:end]: of each unit the best (BEST), or all up to a limit.

    transposed (samples, rows), near, size and centring (rows,) float64: centred rows, p, s and the error of s.
    """
    highest = tl.load(limit)
    stop = tl.load(end)
    for at in range(tl.load(begin) + tl.program_id(0), stop, tl.num_programs(0)):
        i, j = _pairs_of_unit(tl.load(found + at).to(tl.int64), strip, blocks, COLUMNS)
        g = _inner_products(transposed, transposed, i, j, samples, rows, rows, COLUMNS)
        both = tl.load(size + i) + tl.load(size + j)
        rest = tl.maximum(both + 2.0 * SIGN * g, 1e-300)  # a limit may be infinite
        p = tl.load(near + i) + SIGN * tl.load(near + j)
        alive = (i <= j) & (j < true_rows) & (both > 0.0)
        if not DIAGONAL:
            alive = alive & (i != j)
        if BEST:
            loss = tl.where(alive & (rest > 1e-6 * both), 1.0 - p * p / rest, float("inf"))
            _write_best(loss, i, j, rows, at, out_loss, out_code)
        else:
            unsure = slack * both + tl.load(centring + i) + tl.load(centring + j)
            keep = alive & (p * p + unsure >= (1.0 - highest) * rest)
            none = tl.zeros((COLUMNS,), tl.float64)
            _append(keep, none, i * rows + j, out_loss, out_code, out_count, capacity)
