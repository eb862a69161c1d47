"""The Triton kernels of a pass on a GPU; imported only if a GPU is used, because Triton is not always installed.

In the order of the file: operators by their code, the scan of the last layer, the kernels around the scan (factors,
limit, numbers and values of candidates), and the bank. What is launched when is decided in `bank` and `scan`.

A *unit* is one column v_i against a block of COLUMNS columns v_j, of one family (sums, products, quotients). A form has
a number here: 0 to 3 are the sums with the signs (+,+), (+,-), (-,+), (-,-), 4 and 5 are ±v_i·v_j, 6 and 7 are
±v_i/v_j; from 8 on follow the unary operators. The code of a candidate is (form·columns + i)·columns + j; for a unary
operator j is 0 for +v_i and 1 for -v_i.
"""

from __future__ import annotations

from collections.abc import Iterable

import triton
import triton.language as tl

from symenum.operators import Operator

__all__ = [
    "apply_code",
    "candidate_losses",
    "choose_outputs",
    "classify",
    "exact_units",
    "find_leaders",
    "find_members",
    "finite_or_nan",
    "group_columns",
    "has_codes",
    "judge_columns",
    "layer_outputs",
    "list_losses",
    "list_units",
    "lower_limit",
    "lowest_of_groups",
    "make_factors",
    "mean_square",
    "needed_tiles",
    "number_candidates",
    "pack_candidates",
    "place_columns",
    "product_bounds",
    "product_tile",
    "store_columns",
    "sum_bounds",
    "unary_losses",
]


# Operators. The code is `Operator.kernel`; an operator has one only if a kernel's value equals torch's on the same GPU
# to the last bit. All others are computed by torch, one by one.


def has_codes(operators: Iterable[Operator]) -> bool:
    """Whether kernels can compute all of these operators."""
    return all(operator.kernel is not None for operator in operators)


@triton.jit
def apply_code(code, a, b):
    """The values (float64) of the operator of that code on operands of one shape; a program has one code."""
    value = a
    if code == 1:
        value = a + b
    elif code == 2:
        value = a - b
    elif code == 3:
        value = a * b
    elif code == 4:
        value = a / b
    elif code == 5:
        value = -a
    elif code == 6:
        value = 1.0 / a
    elif code == 7:
        value = tl.sin(a)
    elif code == 8:
        value = tl.cos(a)
    elif code == 9:
        value = tl.exp(a)
    elif code == 10:
        value = tl.log(a)
    elif code == 11:
        value = tl.sqrt(a)
    elif code == 12:
        value = tl.abs(a)
    elif code == 13:
        value = a * a
    return value


@triton.jit
def finite_or_nan(value):
    """The value (float64), NaN if it is not finite; 1.797…e308 is the largest double."""
    return tl.where(tl.abs(value) <= 1.7976931348623157e308, value, float("nan"))


# The scan. Two kernels bound the losses of each unit on the tensor cores (TF32) and write that one number per unit. A
# third lists the units within a limit. A fourth evaluates units in double precision and writes the pairs within it.


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
    """Whether all signs of a form can be written (a scalar), given whether columns i and j have both signs."""
    at = penalty + (paired_i.to(tl.int32) * 2 + paired_j.to(tl.int32)) * WAYS
    missing = tl.load(at)
    for way in tl.static_range(1, WAYS):
        missing += tl.load(at + way)
    return missing == 0.0


@triton.jit
def needed_tiles(strip, strip_rows, rows, second, SYMMETRIC: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
                 STEP: tl.constexpr):  # fmt: skip
    """The tiles of a program: the first, the end of those with rows (SYMMETRIC: above the diagonal), the end of all."""
    start = tl.program_id(1) * STEP
    last = tl.minimum(start + STEP, strip_rows // ROWS)
    end = rows
    if SYMMETRIC:
        end = tl.minimum(second + COLUMNS, rows)
    return start, tl.minimum(last, tl.cdiv(end - strip, ROWS)), last


@triton.jit
def _tiles(penalty, counts, strip, strip_rows, second, WAYS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
           STEP: tl.constexpr, SYMMETRIC: tl.constexpr):  # fmt: skip
    """The tiles of a program: the first, the end of those with all signs, of those that are needed, of all."""
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
    """Write an infinite bound for the units of the tiles that are not needed."""
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
    """Lower bounds of |±x_i ± x_j - z|² for the units of a strip of columns i; see `bank`.

    x (columns, K), own and along (columns,), units (blocks, strip rows) float32; counts int32: columns, and those with
    both signs; penalty (4, 4) float32: 0 where a sign pair (last axis) can be written when i, j have both signs. A
    program keeps one block of columns j in registers and goes over STEP tiles of columns i. Where all signs exist, the
    lowest of the four losses is s_i + s_j + 2·min(g - |a_i + a_j|, -g - |a_i - a_j|), where a is half of `along`: 2·K
    flops and 7 instructions a pair, elsewhere 10. Units beyond the last column or below the diagonal are inf.
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
        # The negative of the bound: to negate g would be one more instruction.
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
    left, left2, right, right2, own_left, own_right, counts, penalty, units, strip, strip_rows,
    K: tl.constexpr, BK: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, STEP: tl.constexpr,
    SYMMETRIC: tl.constexpr, APART: tl.constexpr,
):  # fmt: skip
    """Lower bounds of Σ w (±v_i r_j - y)² for the units of a strip of columns i; r is v, or 1/v.

    left, right (columns, K) float32 hold 2 w y v_i and r_j; left2, right2 the factors of the square and of the own
    terms, which with APART are added from own_left, own_right (columns,) float32; penalty (4, 2) for the signs +, -.
    4·K flops and 2 instructions a pair where both signs exist, elsewhere 4; with APART one more.
    """
    second = tl.program_id(0) * COLUMNS
    start, middle, stop, last = _tiles(penalty, counts, strip, strip_rows, second, 2, ROWS, COLUMNS, STEP, SYMMETRIC)
    paired = tl.load(counts + 1)
    j = second + tl.arange(0, COLUMNS)
    k = tl.arange(0, BK)
    b = tl.load(right + j[:, None] * K + k[None, :])
    b2 = tl.load(right2 + j[:, None] * K + k[None, :])
    own_j = tl.load(own_right + j)[None, :]
    first = strip + tl.arange(0, ROWS)
    into = units + tl.program_id(0) * strip_rows + tl.arange(0, ROWS)
    for tile in range(start, middle):
        row = tile * ROWS
        cross, square = _cross_and_square(left, left2, right, right2, b, b2, strip, row, second, K, BK, ROWS, COLUMNS)
        if APART:
            low = tl.min(square - tl.abs(cross) + own_j, axis=1) + tl.load(own_left + first + row)
        else:
            low = tl.min(square - tl.abs(cross), axis=1)
        tl.store(into + row, low)
    for tile in range(middle, stop):
        row = tile * ROWS
        cross, square = _cross_and_square(left, left2, right, right2, b, b2, strip, row, second, K, BK, ROWS, COLUMNS)
        at = penalty + ((strip + row < paired).to(tl.int32) * 2 + (second < paired).to(tl.int32)) * 2
        lower = tl.maximum(cross, -tl.load(at + 1) - cross)
        if APART:
            low = tl.min(square - lower + own_j, axis=1) + tl.load(own_left + first + row)
        else:
            low = tl.min(square - lower, axis=1)
        tl.store(into + row, low)
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
    """The places of the `kept` elements that `keep` marks, after the `count` before them; `capacity` for the others."""
    place = tl.atomic_add(count, kept) + tl.cumsum(keep.to(tl.int32), axis=0) - 1
    return tl.where(keep, place, capacity)


@triton.jit
def list_units(units, total, limit, scale2, found, count, SIZE: tl.constexpr):
    """Append the numbers (int32) of the units whose bound, in units of scale², is within the limit, or NaN."""
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
    """Append the candidates within the limit, from losses (operators, 2, columns) float64 of unary operators on ±v."""
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
    """Append the pairs (i, j) of a form that can be written and are within the limit."""
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

    transposed (rows, columns), y and weight (rows,) float64; kinds int32: the family of each part of the units; reach
    (4, 8) int32: see `Writer.reachable`; `begin`, `end` and `out_count` int32 on the device, so that the host need not
    wait for them. About 12 float64 instructions a pair and row.
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


# Around the scan: factors of the bounds, the limit, numbers and values of candidates. Each kernel replaces dozens of
# small operations, whose launches would take longer than the work.


@triton.jit
def _tf32(value):
    """Float64 to the nearest TF32 number, as float32."""
    bits = value.to(tl.float32).to(tl.int32, bitcast=True)
    return ((bits + 0x1000) & -0x2000).to(tl.float32, bitcast=True)


@triton.jit
def _halves(value):
    """Two TF32 numbers, as float32, whose sum is the value but for 2⁻²² of it."""
    high = _tf32(value)
    return high, _tf32(value - high.to(tl.float64))


@triton.jit
def _measure(values, y, weight, c, rows, scale, K: tl.constexpr, BK: tl.constexpr, COLUMNS: tl.constexpr):
    """Of each column c: s and a (see `bank`), the largest and the smallest |v|; (COLUMNS,) float64."""
    norm = tl.zeros((COLUMNS,), tl.float64)
    dot = tl.zeros((COLUMNS,), tl.float64)
    high = tl.zeros((COLUMNS,), tl.float64)
    low = tl.full((COLUMNS,), float("inf"), tl.float64)
    for start in range(0, K, BK):
        r = start + tl.arange(0, BK)
        v = tl.load(values + c[:, None].to(tl.int64) * rows + r[None, :], mask=(r < rows)[None, :], other=0.0)
        w = tl.load(weight + r, mask=r < rows, other=0.0)
        t = tl.load(y + r, mask=r < rows, other=0.0)
        scaled = v * (tl.sqrt(w) / scale)[None, :]
        norm += tl.sum(scaled * scaled, axis=1)
        dot += tl.sum(scaled * (tl.sqrt(w) * t / scale)[None, :], axis=1)
        high = tl.maximum(high, tl.max(tl.abs(v), axis=1))
        low = tl.minimum(low, tl.min(tl.where((r < rows)[None, :], tl.abs(v), float("inf")), axis=1))
    return norm, dot, high, low


@triton.jit
def _with_own_term(square, high, low, at_high, at_low, at_one):
    """Squares (COLUMNS, BK) with the halves of the columns' own terms (COLUMNS,) and ones put at the places (1, BK)."""
    return tl.where(at_high, high[:, None], tl.where(at_low, low[:, None], tl.where(at_one, 1.0, square)))


@triton.jit
def make_factors(
    values, y, weight, scale2, counts, rows, columns,
    x, own, along, left, left2, right, right2, inverse, inverse2, own_factor, own_inverse, transposed,
    gamma, slack, largest, always, never,
    K: tl.constexpr, BK: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """All factors of COLUMNS columns from `values` (columns, rows) float64; see `bank`.

    x … inverse2 (columns, K), own, along, own_factor and own_inverse (columns,) float32, transposed (rows, columns)
    float64. It moves 15·K bytes for each column, which takes a few microseconds.
    """
    c = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    scale = tl.sqrt(tl.load(scale2))
    root = tl.sqrt(scale)
    norm, dot, high, low = _measure(values, y, weight, c, rows, scale, K, BK, COLUMNS)
    there = c < tl.load(counts)
    divides = low > 0.0
    sum_fits = high <= largest * scale
    fits = high <= largest * root
    inverse_fits = low * root >= 1.0 / largest
    own_sum = norm * (1.0 - gamma - slack) + (0.5 - slack)
    own_sum = tl.where(there, tl.where(sum_fits, own_sum, always), never)
    tl.store(own + c, own_sum.to(tl.float32))
    tl.store(along + c, tl.where(sum_fits, 2.0 * dot, 0.0).to(tl.float32))
    half = 0.5 - 0.5 * gamma - slack
    own_v = tl.where(there, tl.where(fits, half, always), never)
    own_r = tl.where(there & divides, tl.where(inverse_fits, half, always), never)
    tl.store(own_factor + c, own_v.to(tl.float32))
    tl.store(own_inverse + c, own_r.to(tl.float32))
    high_v, low_v = _halves(own_v)
    high_r, low_r = _halves(own_r)
    shrunk = 1.0 - 2.1 * gamma - 3.0 * slack
    for start in range(0, K, BK):
        r = start + tl.arange(0, BK)
        inside = (r < rows)[None, :]
        v = tl.load(values + c[:, None].to(tl.int64) * rows + r[None, :], mask=inside, other=0.0)
        w = tl.load(weight + r, mask=r < rows, other=0.0)[None, :]
        t = tl.load(y + r, mask=r < rows, other=0.0)[None, :]
        into = c[:, None] * K + r[None, :]
        tl.store(transposed + r[None, :].to(tl.int64) * columns + c[:, None], v, mask=inside)
        tl.store(x + into, _tf32(tl.where(sum_fits[:, None], v * (tl.sqrt(w) / scale), 0.0)))
        u = tl.where(fits[:, None], v / root, 0.0)
        q = tl.where((divides & inverse_fits)[:, None] & inside, 1.0 / (tl.where(v == 0.0, 1.0, v) * root), 0.0)
        tl.store(left + into, _tf32(u * (2.0 * w * t / scale)))
        tl.store(right + into, _tf32(u))
        tl.store(inverse + into, _tf32(q))
        # Four places behind the rows, if there are any, add the own terms of i and j to the square: their high and low
        # halves, times one.
        first = (r == rows)[None, :]
        second = (r == rows + 1)[None, :]
        one_j = first | second
        third = (r == rows + 2)[None, :]
        fourth = (r == rows + 3)[None, :]
        one_i = third | fourth
        square = _with_own_term(_tf32(u * u * w * shrunk), high_v, low_v, first, second, one_i)
        tl.store(left2 + into, square)
        square = _with_own_term(_tf32(u * u), high_v, low_v, third, fourth, one_j)
        tl.store(right2 + into, square)
        square = _with_own_term(_tf32(q * q), high_r, low_r, third, fourth, one_j)
        tl.store(inverse2 + into, square)


@triton.jit
def mean_square(y, weight, rows, least, out, BK: tl.constexpr):
    """out (1,): the weighted mean of y² (float64), at least `least`. One program."""
    total = tl.zeros((BK,), tl.float64)
    for start in range(0, rows, BK):
        r = start + tl.arange(0, BK)
        t = tl.load(y + r, mask=r < rows, other=0.0)
        total += tl.load(weight + r, mask=r < rows, other=0.0) * t * t
    tl.store(out, tl.maximum(tl.sum(total, axis=0), least))


@triton.jit
def unary_losses(
    values, rows, columns, y, weight, plus, minus, operators, losses, SIZE: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    """losses (operators, 2, columns) float64 of u(v) and u(-v) for each column; inf if it does not exist.

    values (columns, rows) float64; operators (operators, 3) int64: first number, complexity and code. The second axis
    of the grid is the operator.
    """
    code = tl.load(operators + 3 * tl.program_id(1) + 2)
    c = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    into = losses + 2 * tl.program_id(1).to(tl.int64) * columns + c
    for side in tl.static_range(2):
        exists = tl.load((plus if side == 0 else minus) + c) >= 0
        loss = tl.full((SIZE,), float("inf"), tl.float64)
        if tl.max(exists.to(tl.int32), axis=0) > 0:
            loss = tl.zeros((SIZE,), tl.float64)
            for start in range(0, rows, BK):
                r = start + tl.arange(0, BK)
                v = tl.load(values + c[:, None].to(tl.int64) * rows + r[None, :], mask=(r < rows)[None, :], other=1.0)
                v = v if side == 0 else -v
                error = apply_code(code, v, v) - tl.load(y + r, mask=r < rows, other=0.0)[None, :]
                w = tl.load(weight + r, mask=r < rows, other=0.0)[None, :]
                loss += tl.sum(tl.where((r < rows)[None, :], w * error * error, 0.0), axis=1)
        tl.store(into + side * columns, tl.where(exists & (loss == loss), loss, float("inf")))


@triton.jit
def _simplest(
    code, table, unary, plus, minus, plus_cost, minus_cost, columns, width, WAYS: tl.constexpr, SIZE: tl.constexpr
):  # fmt: skip
    """Of each code the form, columns i and j in its order, number and complexity of the simplest way to write it."""
    wide = columns.to(tl.int64) * columns
    form = code // wide
    i = code // columns % columns
    j = code % columns
    exchanged = form == 2
    first = tl.where(exchanged, j, i)
    second = tl.where(exchanged, i, j)
    is_unary = form >= 8
    big = tl.full((SIZE,), 1 << 62, tl.int64)
    number = big
    cost = big
    for way in range(WAYS):
        field = table + (tl.where(is_unary, 0, form) * WAYS + way) * 8
        sign_i = tl.load(field)
        sign_j = tl.load(field + 1)
        swapped = tl.load(field + 2)
        index_i = tl.where(sign_i > 0, tl.load(plus + first), tl.load(minus + first))
        index_j = tl.where(sign_j > 0, tl.load(plus + second), tl.load(minus + second))
        cost_i = tl.where(sign_i > 0, tl.load(plus_cost + first), tl.load(minus_cost + first))
        cost_j = tl.where(sign_j > 0, tl.load(plus_cost + second), tl.load(minus_cost + second))
        commutes = tl.load(field + 6)
        turned = (swapped > 0) | ((commutes > 0) & (index_j < index_i))
        a = tl.where(turned, index_j, index_i)
        b = tl.where(turned, index_i, index_j)
        squared = tl.load(field + 5) > 0
        exists = (tl.load(field + 7) > 0) & (index_i >= 0) & (index_j >= 0) & (squared | (a <= b))
        this = tl.load(field + 4) + tl.where(squared, a * width + b, a * width - a * (a - 1) // 2 + (b - a))
        this_cost = tl.load(field + 3) + cost_i + cost_j
        better = exists & ((this_cost < cost) | ((this_cost == cost) & (this < number)))
        number = tl.where(better, this, number)
        cost = tl.where(better, this_cost, cost)
    operator = unary + 3 * tl.where(is_unary, form - 8, 0)
    index = tl.where(j == 0, tl.load(plus + i), tl.load(minus + i))
    own_cost = tl.where(j == 0, tl.load(plus_cost + i), tl.load(minus_cost + i))
    number = tl.where(is_unary, tl.load(operator) + index, number)
    cost = tl.where(is_unary, tl.load(operator + 1) + own_cost, cost)
    return form, first, second, tl.where(cost < (1 << 60), number, -1), cost


@triton.jit
def number_candidates(
    codes, total, table, unary, plus, minus, plus_cost, minus_cost, columns, width, numbers,
    WAYS: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """numbers (codes,) int64 of the simplest way to write each code; -1 if there is no way.

    table (8, WAYS, 8) and unary (operators, 3) int64: see `scan.Writer`.
    """
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    code = tl.load(codes + at, mask=at < total, other=0)
    _, _, _, number, _ = _simplest(
        code, table, unary, plus, minus, plus_cost, minus_cost, columns, width, WAYS, SIZE
    )  # fmt: skip
    tl.store(numbers + at, number, mask=at < total)


@triton.jit
def pack_candidates(
    codes, losses, count, total, table, unary, plus, minus, plus_cost, minus_cost, values, rows, columns, width, packed,
    WAYS: tl.constexpr, UNARY: tl.constexpr, SIZE: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """packed (total + 1, 3 + rows) float64: first `count`, then loss, complexity, number and values of each code.

    Zero beyond `count` (int32 on the device). Numbers are below 2⁵³, so float64 holds them. values (columns, rows)
    float64. The kernel computes the first UNARY unary operators; for any other one it writes the operand's values.
    """
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    written = tl.load(count)
    stride = rows + 3
    if tl.program_id(0) == 0:
        tl.store(packed, written.to(tl.float64))
    inside = at < tl.minimum(written, total)
    code = tl.load(codes + at, mask=inside, other=0)
    form, first, second, number, cost = _simplest(
        code, table, unary, plus, minus, plus_cost, minus_cost, columns, width, WAYS, SIZE
    )
    into = packed + (at + 1).to(tl.int64) * stride
    tl.store(into, tl.load(losses + at, mask=inside, other=0.0), mask=at < total)
    tl.store(into + 1, tl.where(inside, cost, 0).to(tl.float64), mask=at < total)
    tl.store(into + 2, tl.where(inside, number, 0).to(tl.float64), mask=at < total)
    f = form[:, None]
    for start in range(0, rows, BK):
        r = start + tl.arange(0, BK)
        there = (inside.to(tl.int32)[:, None] * (r < rows).to(tl.int32)[None, :]) > 0
        u = tl.load(values + first[:, None] * rows + r[None, :], mask=there, other=0.0)
        v = tl.load(values + second[:, None] * rows + r[None, :], mask=there, other=0.0)
        value = tl.where((f == 1) | (f == 2), u - v, u + v)
        value = tl.where((f == 4) | (f == 5), u * v, value)
        value = tl.where((f == 6) | (f == 7), u / v, value)
        value = tl.where((f == 3) | (f == 5) | (f == 7), -value, value)
        operand = tl.where((second == 0)[:, None], u, -u)
        value = tl.where(f >= 8, operand, value)
        for operator in tl.static_range(UNARY):
            if tl.max((form == 8 + operator).to(tl.int32), axis=0) > 0:
                applied = finite_or_nan(apply_code(tl.load(unary + 3 * operator + 2), operand, operand))
                value = tl.where(f == 8 + operator, applied, value)
        value = tl.where(inside[:, None], value, 0.0)
        room = ((at < total).to(tl.int32)[:, None] * (r < rows).to(tl.int32)[None, :]) > 0
        tl.store(into[:, None] + (3 + r)[None, :], value, mask=room)


@triton.jit
def candidate_losses(
    codes, total, unary, plus, stand_in, outputs, rows, columns, y, weight, losses, BK: tl.constexpr
):  # fmt: skip
    """Add to losses (total,) float64 those of the codes on other rows; outputs (raw width, rows): see `scan.Writer`."""
    wide = columns.to(tl.int64) * columns
    for at in range(tl.program_id(0), total, tl.num_programs(0)):
        code = tl.load(codes + at)
        form = code // wide
        i = code // columns % columns
        j = code % columns
        is_unary = form >= 8
        at_i = outputs + tl.load(stand_in + tl.load(plus + i)) * rows
        at_j = outputs + tl.load(stand_in + tl.load(plus + tl.where(is_unary, i, j))) * rows
        # Form 2, (-,+), is v_j - v_i; the forms 3, 5 and 7 are negative.
        first = tl.where(form == 2, at_j, at_i)
        second = tl.where(form == 2, at_i, at_j)
        sign = tl.where((form == 3) | (form == 5) | (form == 7), -1.0, 1.0)
        operator = tl.where((form == 1) | (form == 2), 2, 1)
        operator = tl.where((form == 4) | (form == 5), 3, tl.where((form == 6) | (form == 7), 4, operator))
        kernel_code = tl.where(is_unary, tl.load(unary + 3 * tl.where(is_unary, form - 8, 0) + 2), operator)
        turned = tl.where(is_unary & (j > 0), -1.0, 1.0)
        loss = tl.zeros((BK,), tl.float64)
        for start in range(0, rows, BK):
            r = start + tl.arange(0, BK)
            u = tl.load(first + r, mask=r < rows, other=1.0) * turned
            v = tl.load(second + r, mask=r < rows, other=1.0)
            error = apply_code(kernel_code, u, v) * sign - tl.load(y + r, mask=r < rows, other=0.0)
            loss += tl.where(r < rows, tl.load(weight + r, mask=r < rows, other=0.0) * error * error, 0.0)
        tl.store(losses + at, tl.load(losses + at) + tl.sum(loss, axis=0))


@triton.jit
def lower_limit(
    losses, numbers, total, k, y, weight, rows, scale2, same, floor, tie, limit, SIZE: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    """Lower `limit` to the k-th distinct of the losses (total,) float64 whose numbers are not -1; for small k.

    Two losses belong to different functions if their roots differ by more than rounding allows for equal ones. One
    program; each of k rounds finds the smallest loss beyond the one before.
    """
    at = tl.arange(0, SIZE)
    loss = tl.load(losses + at, mask=at < total, other=float("inf"))
    loss = tl.where(tl.load(numbers + at, mask=at < total, other=-1) >= 0, loss, float("inf"))
    root = tl.sqrt(loss)
    high = tl.zeros((BK,), tl.float64)
    low = tl.full((BK,), float("inf"), tl.float64)
    for start in range(0, rows, BK):
        r = start + tl.arange(0, BK)
        high = tl.maximum(high, tl.abs(tl.load(y + r, mask=r < rows, other=0.0)))
        low = tl.minimum(low, tl.load(weight + r, mask=r < rows, other=float("inf")))
    largest = tl.max(high, axis=0)
    lightest = tl.sqrt(tl.min(low, axis=0))
    found = tl.min(loss, axis=0)
    for _ in range(1, k):
        last = tl.sqrt(found)
        beyond = last + same * (largest + last / lightest)
        found = tl.min(tl.where(root > beyond, loss, float("inf")), axis=0)
    found = tl.maximum(found, floor * tl.load(scale2)) * (1.0 + tie)
    tl.store(limit, tl.minimum(tl.load(limit), found))


# The bank: from the outputs of a layer to ordered, distinct columns. Eight launches and one for each layer replace a
# hundred small operations. A member's key is complexity·classes + class (int64), so that an atomic minimum finds the
# simplest member, and of equally simple ones the lowest class.
BIG = tl.constexpr(1 << 62)  # the key of "no member": above every key, and far from the end of int64
HASH = tl.constexpr(0x1E3779B97F4A7C15)  # 2⁶⁴ over the golden ratio, odd, without its top bit: spreads keys evenly


@triton.jit
def layer_outputs(below, rows, left, right, parts, out, SIZE: tl.constexpr, BK: tl.constexpr):
    """All outputs (width, rows) of a layer from those below (width, rows) float64, which are finite or NaN.

    left, right int32: the operands of each output; parts (programs, 3) int32: the code, the first output and the end of
    the outputs of a program. All outputs of a program have one operator.
    """
    part = parts + 3 * tl.program_id(0)
    code = tl.load(part)
    at = tl.load(part + 1) + tl.arange(0, SIZE)
    inside = at < tl.load(part + 2)
    i = tl.load(left + at, mask=inside, other=0).to(tl.int64)
    j = tl.load(right + at, mask=inside, other=0).to(tl.int64)
    for start in range(0, rows, BK):
        r = start + tl.arange(0, BK)
        there = (inside.to(tl.int32)[:, None] * (r < rows).to(tl.int32)[None, :]) > 0
        a = tl.load(below + i[:, None] * rows + r[None, :], mask=there, other=1.0)
        b = tl.load(below + j[:, None] * rows + r[None, :], mask=there, other=1.0)
        value = finite_or_nan(apply_code(code, a, b))
        tl.store(out + at[:, None].to(tl.int64) * rows + r[None, :], value, mask=there)


@triton.jit
def choose_outputs(outputs, width, rows, rank, class_of, best, SIZE: tl.constexpr, BK: tl.constexpr):
    """best (classes + 1,) int64: the lowest rank among the finite outputs (width, rows) of each class."""
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    fine = tl.zeros((SIZE,), tl.int32) + 1
    for start in range(0, rows, BK):
        r = start + tl.arange(0, BK)
        inside = ((at < width).to(tl.int32)[:, None] * (r < rows).to(tl.int32)[None, :]) > 0
        v = tl.load(outputs + at[:, None].to(tl.int64) * rows + r[None, :], mask=inside, other=0.0)
        fine = tl.minimum(fine, tl.min((v == v).to(tl.int32), axis=1))
    mine = tl.load(rank + at, mask=at < width, other=0)
    where = tl.load(class_of + at, mask=at < width, other=0)
    tl.atomic_min(best + where, tl.where(fine > 0, mine, BIG), mask=at < width)


@triton.jit
def classify(
    best, complexity, pair, stand_in, key, stored, simplest, classes, UNIT: tl.constexpr, SIZE: tl.constexpr
):  # fmt: skip
    """For each class its output (stand_in) and key; for each pair of a class and its negative the first finite one.

    best (classes,) int64: the rank of the class's output, which is the output's number modulo UNIT.
    """
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    inside = at < classes
    rank = tl.load(best + at, mask=inside, other=0)
    alive = rank < BIG
    output = tl.where(alive, rank % UNIT, 0)
    own = tl.where(alive, tl.load(complexity + output, mask=inside, other=0) * classes + at, BIG)
    where = tl.load(pair + at, mask=inside, other=0)
    tl.store(stand_in + at, output, mask=inside)
    tl.store(key + at, own, mask=inside)
    tl.atomic_min(stored + where, tl.where(alive, at.to(tl.int64), classes), mask=inside)
    tl.atomic_min(simplest + where, own, mask=inside)


@triton.jit
def judge_columns(
    outputs, rows, stand_in, stored, simplest, classes, pairs, direction, scale2, largest_allowed,
    largest_out, flipped, far, buckets, table, table2, TABLE: tl.constexpr, SIZE: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """For each pair its largest |v|, its sign, whether it is out of range of the bounds, and two buckets (pairs, 2).

    Columns that are equal up to sign share a bucket of `table` or of `table2`, which hold the key of the simplest one.
    """
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    inside = at < pairs
    first = tl.load(stored + at, mask=inside, other=0)
    alive = first < classes
    output = tl.load(stand_in + tl.where(alive, first, 0), mask=inside, other=0)
    high = tl.zeros((SIZE,), tl.float64)
    low = tl.full((SIZE,), float("inf"), tl.float64)
    for start in range(0, rows, BK):
        r = start + tl.arange(0, BK)
        there = (inside.to(tl.int32)[:, None] * (r < rows).to(tl.int32)[None, :]) > 0
        v = tl.abs(tl.load(outputs + output[:, None] * rows + r[None, :], mask=there, other=0.0))
        high = tl.maximum(high, tl.max(v, axis=1))
        low = tl.minimum(low, tl.min(tl.where(there, v, float("inf")), axis=1))
    unit = tl.where(high > 0.0, high, 1.0)
    norm2 = tl.zeros((SIZE,), tl.float64)
    along = tl.zeros((SIZE,), tl.float64)
    for start in range(0, rows, BK):
        r = start + tl.arange(0, BK)
        there = (inside.to(tl.int32)[:, None] * (r < rows).to(tl.int32)[None, :]) > 0
        v = tl.load(outputs + output[:, None] * rows + r[None, :], mask=there, other=0.0) / unit[:, None]
        norm2 += tl.sum(v * v, axis=1)
        along += tl.sum(v * tl.load(direction + r, mask=r < rows, other=0.0)[None, :], axis=1)
    norm = tl.sqrt(tl.where(norm2 > 0.0, norm2, 1.0))
    scale = tl.sqrt(tl.load(scale2))
    root = tl.sqrt(scale)
    out = (high > largest_allowed * tl.minimum(scale, root)) | ((low > 0.0) & (low * root * largest_allowed < 1.0))
    tl.store(largest_out + at, unit, mask=inside)
    tl.store(flipped + at, (along < 0.0).to(tl.int32), mask=inside)
    tl.store(far + at, out.to(tl.int32), mask=inside)
    # All terms have an error of about 1e-15 for a column of any scale, so buckets of width 1e-8 serve all. `table2` has
    # its buckets shifted by half a width: equal columns near the edge of one bucket share the other.
    place = (tl.log(unit) + tl.log(norm) + tl.abs(along) / norm) * 1e8
    own = tl.load(simplest + at, mask=inside, other=BIG)
    bucket = ((tl.floor(place).to(tl.int64) * HASH) >> 30) & (TABLE - 1)
    bucket2 = ((tl.floor(place + 0.5).to(tl.int64) * HASH) >> 30) & (TABLE - 1)
    tl.store(buckets + 2 * at, bucket, mask=inside)
    tl.store(buckets + 2 * at + 1, bucket2, mask=inside)
    tl.atomic_min(table + bucket, own, mask=inside)
    tl.atomic_min(table2 + bucket2, own, mask=inside)


@triton.jit
def _same(outputs, rows, output, other, sign, unit, tolerance, inside, SIZE: tl.constexpr, BK: tl.constexpr):
    distance = tl.zeros((SIZE,), tl.float64)
    for start in range(0, rows, BK):
        r = start + tl.arange(0, BK)
        there = (inside.to(tl.int32)[:, None] * (r < rows).to(tl.int32)[None, :]) > 0
        a = tl.load(outputs + output[:, None] * rows + r[None, :], mask=there, other=0.0)
        b = tl.load(outputs + other[:, None] * rows + r[None, :], mask=there, other=0.0)
        d = (a - sign[:, None] * b) / unit[:, None]
        distance += tl.sum(d * d, axis=1)
    return distance <= tolerance * tolerance * rows


@triton.jit
def find_leaders(
    outputs, rows, stand_in, stored, pair, classes, pairs, largest, flipped, buckets, table, table2, tolerance,
    leader, SIZE: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """leader (pairs,) int64: the simplest column of a column's buckets that equals it up to sign, or itself."""
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    inside = at < pairs
    first = tl.load(stored + at, mask=inside, other=0)
    alive = inside & (first < classes)
    output = tl.load(stand_in + tl.where(alive, first, 0))
    unit = tl.load(largest + at, mask=inside, other=1.0)
    flip = tl.load(flipped + at, mask=inside, other=0)
    found = at.to(tl.int64)
    for which in tl.static_range(2):
        place = tl.load(buckets + 2 * at + which, mask=inside, other=0)
        head = tl.load(table + place)
        if which == 1:
            head = tl.load(table2 + place)
        head = tl.load(pair + tl.where(alive, head % classes, 0))
        other = tl.load(stand_in + tl.where(alive, tl.load(stored + head), 0))
        sign = tl.where(tl.load(flipped + head) == flip, 1.0, -1.0).to(tl.float64)
        scale = tl.maximum(unit, tl.load(largest + head))
        equal = _same(outputs, rows, output, other, sign, scale, tolerance, inside, SIZE, BK)
        found = tl.where(alive & equal & (found == at), head, found)
    tl.store(leader + at, found, mask=inside)


@triton.jit
def find_members(key, pair, stored, leader, flipped, sides, classes, pairs, SIZE: tl.constexpr):
    """sides (2, pairs) int64: the lowest key of +v and of -v among the members of each group of equal columns."""
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    inside = at < classes
    where = tl.load(pair + at, mask=inside, other=0)
    head = tl.load(leader + tl.load(leader + where))
    minus = (tl.load(stored + where) != at) ^ (tl.load(flipped + where) > 0)
    tl.atomic_min(sides + head + tl.where(minus, pairs, 0), tl.load(key + at, mask=inside, other=BIG), mask=inside)


@triton.jit
def group_columns(stored, leader, sides, far, classes, pairs, group, histogram, SIZE: tl.constexpr):
    """group (pairs,) int32 of each column, and its count in each program: histogram (programs, 8) int32.

    0: both signs, 1: both signs and out of range of the bounds, 2 and 3: the same with one sign, 4: dropped.
    """
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    inside = at < pairs
    head = tl.load(leader + at, mask=inside, other=-1)
    gone = (tl.load(stored + at, mask=inside, other=0) == classes) | (head != at)
    plus = tl.load(sides + at, mask=inside, other=0)
    minus = tl.load(sides + pairs + at, mask=inside, other=0)
    one_sided = ((plus == BIG) | (minus == BIG)).to(tl.int32)
    kind = tl.where(gone, 4, 2 * one_sided + tl.load(far + at, mask=inside, other=0))
    tl.store(group + at, kind, mask=inside)
    for which in tl.static_range(5):
        count = tl.sum((inside & (kind == which)).to(tl.int32), axis=0)
        tl.store(histogram + 8 * tl.program_id(0) + which, count)


@triton.jit
def place_columns(
    group, histogram, programs, pairs, order, counts, PROGRAMS: tl.constexpr, SIZE: tl.constexpr
):  # fmt: skip
    """order (pairs,) int32: the pairs ordered by group, then by number; counts: see `DeviceBank`."""
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    inside = at < pairs
    kind = tl.load(group + at, mask=inside, other=5)
    program = tl.arange(0, PROGRAMS)
    place = tl.zeros((SIZE,), tl.int32)
    base = 0
    for which in tl.static_range(5):
        if tl.program_id(0) == 0:
            if which == 2:
                tl.store(counts + 1, base)
            if which == 4:
                tl.store(counts, base)
        each = tl.load(histogram + 8 * program + which, mask=program < programs, other=0)
        before = tl.sum(tl.where(program < tl.program_id(0), each, 0), axis=0)
        mine = kind == which
        place = tl.where(mine, base + before + tl.cumsum(mine.to(tl.int32), axis=0) - 1, place)
        base += tl.sum(each, axis=0)
    tl.store(order + place, at, mask=inside)


@triton.jit
def store_columns(
    outputs, rows, stand_in, stored, leader, flipped, sides, order, group, classes, pairs, never,
    values, plus, minus, plus_cost, minus_cost, SIZE: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """The columns in their final order: values (columns, rows) float64, classes and complexities of ±v (int64)."""
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    inside = at < pairs
    source = tl.load(order + at, mask=inside, other=0)
    kind = tl.load(group + source)
    alive = inside & (kind < 4)
    first = tl.load(sides + source)
    second = tl.load(sides + pairs + source)
    only_minus = first == BIG
    p = tl.where(only_minus, second, first)
    m = tl.where(only_minus, BIG, second)
    p = tl.where(alive, p, BIG)
    m = tl.where(alive, m, BIG)
    tl.store(plus + at, tl.where(p == BIG, -1, p % classes))
    tl.store(minus + at, tl.where(m == BIG, -1, m % classes))
    tl.store(plus_cost + at, tl.where(p == BIG, never, p // classes))
    tl.store(minus_cost + at, tl.where(m == BIG, never, m // classes))
    flip = (tl.load(flipped + source) > 0) ^ only_minus
    output = tl.load(stand_in + tl.where(alive, tl.load(stored + source), 0))
    sign = tl.where(alive, tl.where(flip, -1.0, 1.0), 0.0).to(tl.float64)
    for start in range(0, rows, BK):
        r = start + tl.arange(0, BK)
        there = (alive.to(tl.int32)[:, None] * (r < rows).to(tl.int32)[None, :]) > 0
        v = tl.load(outputs + output[:, None] * rows + r[None, :], mask=there, other=0.0)
        into = values + at[:, None].to(tl.int64) * rows + r[None, :]
        tl.store(
            into, tl.where(there, v * sign[:, None], 0.0), mask=tl.where((at >= 0)[:, None], r[None, :], rows) < rows
        )
