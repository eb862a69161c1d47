"""The Triton kernels of the scan on a GPU; imported only where Triton is there and a GPU is asked for.

A *unit* is one column v_i against a block of COLUMNS columns v_j, of one family (sums, products, quotients). Two
kernels find the lower bound of the losses of each unit on the tensor cores (TF32); nothing but that one number per unit
is written. A third one makes a list of the units that a limit does not exclude, and a fourth evaluates units in double
precision, pair by pair, and writes the pairs that do not exceed the limit.

A form has a number here: 0 to 3 are the sums with the signs (+,+), (+,-), (-,+), (-,-), 4 and 5 are ±v_i·v_j, 6 and 7
are ±v_i/v_j. A code is (form·columns + i)·columns + j.
"""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = [
    "exact_units",
    "list_losses",
    "list_units",
    "lowest_of_groups",
    "needed_tiles",
    "product_bounds",
    "product_tile",
    "sum_bounds",
]


@triton.jit
def product_tile(left, right, i, j, K: tl.constexpr, BK: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """A tile (ROWS, COLUMNS) float32 of left·rightᵀ, its rows i and columns j; both (…, K) float32 of TF32 numbers."""
    k = tl.arange(0, BK)
    tile = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, K, BK):
        a = tl.load(left + i[:, None] * K + (start + k)[None, :])
        b = tl.load(right + j[:, None] * K + (start + k)[None, :])
        tile = tl.dot(a, tl.trans(b), tile, input_precision="tf32")
    return tile


@triton.jit
def _all_signs(penalty, paired_i, paired_j, WAYS: tl.constexpr):
    """Whether every sign can be written (a scalar), for columns i, j that have both signs, or not."""
    at = penalty + (paired_i.to(tl.int32) * 2 + paired_j.to(tl.int32)) * WAYS
    missing = tl.load(at)
    for way in tl.static_range(1, WAYS):
        missing += tl.load(at + way)
    return missing == 0.0


@triton.jit
def needed_tiles(strip, strip_rows, rows, second, SYMMETRIC: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
                 STEP: tl.constexpr):  # fmt: skip
    """The tiles of a program: their start, the end of those with rows (SYMMETRIC: above the diagonal), and of all."""
    start = tl.program_id(1) * STEP
    last = tl.minimum(start + STEP, strip_rows // ROWS)
    end = rows
    if SYMMETRIC:
        end = tl.minimum(second + COLUMNS, rows)
    return start, tl.minimum(last, tl.cdiv(end - strip, ROWS)), last


@triton.jit
def _tiles(penalty, counts, strip, strip_rows, second, WAYS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
           STEP: tl.constexpr, SYMMETRIC: tl.constexpr):  # fmt: skip
    """The tiles of a program: their start, the end of those with all signs, of those that are needed, of all."""
    columns = tl.load(counts)
    paired = tl.load(counts + 1)
    start, stop, last = needed_tiles(strip, strip_rows, columns, second, SYMMETRIC, ROWS, COLUMNS, STEP)
    stop = tl.maximum(start, tl.where(second < columns, stop, start))
    with_both = tl.cdiv(tl.maximum(paired - strip, 0), ROWS)  # columns with both signs come first
    middle = tl.where(_all_signs(penalty, paired > 0, second < paired, WAYS), with_both, 0)
    middle = tl.where(_all_signs(penalty, paired < 0, second < paired, WAYS), stop, middle)
    return start, tl.maximum(start, tl.minimum(middle, stop)), stop, last


@triton.jit
def _leave_out(units, begin, end, strip_rows, ROWS: tl.constexpr):
    """An infinite bound for the units of the tiles that nobody needs."""
    for tile in range(begin, end):
        unit = tl.program_id(0) * strip_rows + tile * ROWS + tl.arange(0, ROWS)
        tl.store(units + unit, tl.full((ROWS,), float("inf"), tl.float32))


@triton.jit
def _gram(x, b, strip, row, second, K: tl.constexpr, BK: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = strip + row + tl.arange(0, ROWS)
    if K == BK:
        a = tl.load(x + i[:, None] * K + tl.arange(0, BK)[None, :])
        g = tl.dot(a, tl.trans(b), input_precision="tf32")
    else:
        g = product_tile(x, x, i, second + tl.arange(0, COLUMNS), K, BK, ROWS, COLUMNS)
    return g


@triton.jit
def sum_bounds(
    x, own, along, counts, penalty, units, strip, strip_rows,
    K: tl.constexpr, BK: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """Lower bounds of |±x_i ± x_j - z|² for the units of a strip of columns i; see `factors`.

    x (columns, K), own and along (columns,), units (blocks, strip rows) float32; counts int32: columns, and those with
    both signs; penalty (4, 4) float32: 0 where a sign pair (last axis) can be written when i, j have both signs.
    A program keeps one block of columns j and goes over STEP tiles of rows i: what depends on j stays in registers.
    Where all signs exist, the lowest of the four losses is s_i + s_j + 2·min(g - |a_i + a_j|, -g - |a_i - a_j|) with
    a half of `along`: 2·K flops and 7 instructions a pair, elsewhere 10. Units left out are inf: those beyond the last
    column or below the diagonal.
    """
    second = tl.program_id(0) * COLUMNS
    start, middle, stop, last = _tiles(penalty, counts, strip, strip_rows, second, 4, ROWS, COLUMNS, STEP, True)
    paired = tl.load(counts + 1)
    j = second + tl.arange(0, COLUMNS)
    own_j = 0.5 * tl.load(own + j)[None, :]
    along_j = 0.5 * tl.load(along + j)[None, :]
    minus_j = own_j - along_j
    plus_j = own_j + along_j
    b = tl.load(x + j[:, None] * K + tl.arange(0, BK)[None, :])
    first = strip + tl.arange(0, ROWS)
    into = units + tl.program_id(0) * strip_rows + tl.arange(0, ROWS)
    for tile in range(start, middle):
        row = tile * ROWS
        g = _gram(x, b, strip, row, second, K, BK, ROWS, COLUMNS)
        along_i = 0.5 * tl.load(along + first + row)[:, None]
        # The negative of the bound: a minus sign before g would be one more instruction.
        high = tl.maximum(tl.abs(along_i + along_j) - g, tl.abs(along_i - along_j) + g) - own_j
        tl.store(into + row, tl.load(own + first + row) - 2.0 * tl.max(high, axis=1))
    for tile in range(middle, stop):
        row = tile * ROWS
        g = _gram(x, b, strip, row, second, K, BK, ROWS, COLUMNS)
        at = penalty + ((strip + row < paired).to(tl.int32) * 2 + (second < paired).to(tl.int32)) * 4
        along_i = 0.5 * tl.load(along + first + row)
        same = tl.minimum((tl.load(at) - along_i)[:, None] + minus_j, (tl.load(at + 3) + along_i)[:, None] + plus_j)
        other = tl.minimum(
            (tl.load(at + 1) - along_i)[:, None] + plus_j, (tl.load(at + 2) + along_i)[:, None] + minus_j
        )
        low = tl.minimum(same + g, other - g)
        tl.store(into + row, 2.0 * tl.min(low, axis=1) + tl.load(own + first + row))
    _leave_out(units, stop, last, strip_rows, ROWS)


@triton.jit
def _cross_and_square(
    left, left2, right, right2, b, b2, strip, row, second,
    K: tl.constexpr, BK: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    i = strip + row + tl.arange(0, ROWS)
    if K == BK:
        k = tl.arange(0, BK)
        a = tl.load(left + i[:, None] * K + k[None, :])
        a2 = tl.load(left2 + i[:, None] * K + k[None, :])
        cross = tl.dot(a, tl.trans(b), input_precision="tf32")
        square = tl.dot(a2, tl.trans(b2), input_precision="tf32")
    else:
        j = second + tl.arange(0, COLUMNS)
        cross = product_tile(left, right, i, j, K, BK, ROWS, COLUMNS)
        square = product_tile(left2, right2, i, j, K, BK, ROWS, COLUMNS)
    return cross, square


@triton.jit
def product_bounds(
    left, left2, right, right2, counts, penalty, units, strip, strip_rows,
    K: tl.constexpr, BK: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, STEP: tl.constexpr,
    SYMMETRIC: tl.constexpr,
):  # fmt: skip
    """Lower bounds of Σ w (±v_i r_j - y)² for the units of a strip of columns i; r is v, or 1/v.

    left, right (columns, K) float32 hold 2 w y v_i and r_j, left2, right2 what makes the square and the constant;
    penalty (4, 2) for the signs +, -. 4·K flops and 2 instructions a pair where both signs exist, elsewhere 4.
    """
    second = tl.program_id(0) * COLUMNS
    start, middle, stop, last = _tiles(penalty, counts, strip, strip_rows, second, 2, ROWS, COLUMNS, STEP, SYMMETRIC)
    paired = tl.load(counts + 1)
    j = second + tl.arange(0, COLUMNS)
    k = tl.arange(0, BK)
    b = tl.load(right + j[:, None] * K + k[None, :])
    b2 = tl.load(right2 + j[:, None] * K + k[None, :])
    into = units + tl.program_id(0) * strip_rows + tl.arange(0, ROWS)
    for tile in range(start, middle):
        row = tile * ROWS
        cross, square = _cross_and_square(left, left2, right, right2, b, b2, strip, row, second, K, BK, ROWS, COLUMNS)
        tl.store(into + row, tl.min(square - tl.abs(cross), axis=1))
    for tile in range(middle, stop):
        row = tile * ROWS
        cross, square = _cross_and_square(left, left2, right, right2, b, b2, strip, row, second, K, BK, ROWS, COLUMNS)
        at = penalty + ((strip + row < paired).to(tl.int32) * 2 + (second < paired).to(tl.int32)) * 2
        lower = tl.maximum(cross, -tl.load(at + 1) - cross)
        tl.store(into + row, tl.min(square - lower, axis=1))
    _leave_out(units, stop, last, strip_rows, ROWS)


@triton.jit
def lowest_of_groups(units, total, size, chosen, SIZE: tl.constexpr):
    """chosen (programs,) int32: the unit of lowest bound of each group of `size` neighbours; NaN counts as lowest."""
    first = tl.program_id(0) * size
    size = tl.minimum(size, total - first)
    lane = tl.arange(0, SIZE)
    lowest = tl.full((SIZE,), float("inf"), tl.float32)
    where = tl.full((SIZE,), 0, tl.int32)
    for start in range(0, size, SIZE):
        bound = tl.load(units + first + start + lane, mask=start + lane < size, other=float("inf"))
        bound = tl.where(bound == bound, bound, -float("inf"))
        where = tl.where(bound < lowest, start, where)
        lowest = tl.minimum(lowest, bound)
    best = tl.argmin(lowest, axis=0)
    at = tl.sum(tl.where(lane == best, where, 0), axis=0)
    tl.store(chosen + tl.program_id(0), first + at + best)


@triton.jit
def _places(keep, kept, count, capacity):
    """Where to write the `kept` that are to be kept; `capacity`, and so nowhere, for the others and if it is full."""
    place = tl.atomic_add(count, kept) + tl.cumsum(keep.to(tl.int32), axis=0) - 1
    return tl.where(keep, place, capacity)


@triton.jit
def list_units(units, total, limit, scale2, found, count, SIZE: tl.constexpr):
    """The numbers (int32) of the units whose bound, in units of scale², the limit does not exclude; NaN is kept."""
    number = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    highest = (tl.load(limit) / tl.load(scale2)).to(tl.float32) * 1.000001 + 1e-37
    bound = tl.load(units + number, mask=number < total, other=float("inf"))
    keep = ((bound <= highest) | (bound != bound)) & (number < total)
    kept = tl.sum(keep.to(tl.int32), axis=0)
    if kept > 0:
        place = _places(keep, kept, count, total)
        tl.store(found + place, number, mask=place < total)


@triton.jit
def list_losses(losses, total, columns, limit, out_loss, out_code, out_count, capacity, SIZE: tl.constexpr):
    """Append the losses (operators, 2, columns) float64 of the unary operators on +v and -v that the limit lets in."""
    number = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    loss = tl.load(losses + number, mask=number < total, other=float("inf"))
    keep = (loss <= tl.load(limit)) & (number < total)
    kept = tl.sum(keep.to(tl.int32), axis=0)
    if kept > 0:
        place = _places(keep, kept, out_count, capacity)
        operator = 8 + number // (2 * columns)
        sign = number // columns % 2
        tl.store(out_loss + place, loss, mask=place < capacity)
        tl.store(out_code + place, (operator * columns + number % columns) * columns + sign, mask=place < capacity)


@triton.jit
def _judge(loss, form, i, j, alive, paired, reach, limit, out_loss, out_code, out_count, capacity, columns):
    """Append the pairs (i, j) of a form that exist and do not exceed the limit."""
    signs = (i < paired).to(tl.int32) * 2 + (j < paired).to(tl.int32)
    keep = alive & (loss <= limit) & (tl.load(reach + signs * 8 + form) > 0)
    kept = tl.sum(keep.to(tl.int32), axis=0)
    if kept > 0:
        place = _places(keep, kept, out_count, capacity)
        tl.store(out_loss + place, loss, mask=place < capacity)
        tl.store(out_code + place, (form.to(tl.int64) * columns + i) * columns + j, mask=place < capacity)


@triton.jit
def exact_units(
    found, begin, end, kinds, transposed, y, weight, rows, counts, reach, limit, strip, strip_rows, blocks, columns,
    out_loss, out_code, out_count, capacity,
    COLUMNS: tl.constexpr, BEST: tl.constexpr,
):  # fmt: skip
    """Losses (float64) of all pairs of the units found[begin:end], or of the best pair of each unit (BEST).

    transposed (rows, columns), y and weight (rows,) float64; kinds int32: the family of each part of the units;
    reach (4, 8) int32; `begin`, `end` and `out_count` int32 on the device, so that no number of them is ever waited
    for. About 12 float64 instructions a pair and row.
    """
    alive_columns = tl.load(counts)
    paired = tl.load(counts + 1)
    highest = tl.load(limit)
    stop = tl.load(end)
    for at in range(tl.load(begin) + tl.program_id(0), stop, tl.num_programs(0)):
        unit = tl.load(found + at).to(tl.int64)
        family = tl.load(kinds + unit // (strip_rows * blocks))
        unit = unit % (strip_rows * blocks)
        i = strip + unit % strip_rows
        j = (unit // strip_rows) * COLUMNS + tl.arange(0, COLUMNS)
        first = tl.zeros((COLUMNS,), tl.float64)
        second = tl.zeros((COLUMNS,), tl.float64)
        third = tl.zeros((COLUMNS,), tl.float64)
        fourth = tl.zeros((COLUMNS,), tl.float64)
        at_i = transposed + i
        at_j = transposed + j
        for row in range(0, rows):
            a = tl.load(at_i)
            b = tl.load(at_j)
            at_i += columns
            at_j += columns
            t = tl.load(y + row)
            w = tl.load(weight + row)
            if family == 0:
                total = a + b
                other = a - b
                first += w * (total - t) * (total - t)
                second += w * (other - t) * (other - t)
                third += w * (other + t) * (other + t)
                fourth += w * (total + t) * (total + t)
            else:
                value = a * b
                if family == 2:
                    value = a / b
                first += w * (value - t) * (value - t)
                second += w * (value + t) * (value + t)
        alive = (j < alive_columns) & (i < alive_columns)
        if family != 2:
            alive = alive & (i <= j)
        form = tl.where(family == 0, 0, 2 + 2 * family)
        if BEST:
            signs = (i < paired).to(tl.int32) * 2 + (j < paired).to(tl.int32)
            wide = reach + signs * 8 + form
            infinite = float("inf")
            first = tl.where(alive & (tl.load(wide) > 0) & (first == first), first, infinite)
            second = tl.where(alive & (tl.load(wide + 1) > 0) & (second == second), second, infinite)
            best = tl.minimum(first, second)
            which = tl.where(second < first, form + 1, form)
            if family == 0:
                third = tl.where(alive & (tl.load(wide + 2) > 0) & (third == third), third, infinite)
                fourth = tl.where(alive & (tl.load(wide + 3) > 0) & (fourth == fourth), fourth, infinite)
                which = tl.where(third < best, 2, which)
                best = tl.minimum(best, third)
                which = tl.where(fourth < best, 3, which)
                best = tl.minimum(best, fourth)
            code = (which.to(tl.int64) * columns + i) * columns + j
            lowest = tl.min(best, axis=0)
            tl.store(out_loss + at, lowest)
            tl.store(out_code + at, tl.max(tl.where(best == lowest, code, 0), axis=0))
        else:
            _judge(first, form, i, j, alive, paired, reach, highest, out_loss, out_code, out_count, capacity, columns)
            _judge(
                second, form + 1, i, j, alive, paired, reach, highest, out_loss, out_code, out_count, capacity, columns
            )
            if family == 0:
                _judge(
                    third, form + 2, i, j, alive, paired, reach, highest, out_loss, out_code, out_count, capacity,
                    columns,
                )  # fmt: skip
                _judge(
                    fourth, form + 3, i, j, alive, paired, reach, highest, out_loss, out_code, out_count, capacity,
                    columns,
                )  # fmt: skip
