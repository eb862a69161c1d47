"""The Triton kernels of the bank: from the outputs of the layer below to ordered, distinct columns; see `device_bank`.

Eight launches and one for each layer, instead of a hundred small operations. A member's key is complexity·classes +
class (int64), so that the simplest of several, ties to the lowest class, is an atomic minimum; BIG stands for none.
"""

from __future__ import annotations

import triton
import triton.language as tl

from symenum.enumeration.backends.operator_kernels import apply_code, finite_or_nan

__all__ = [
    "choose_outputs",
    "classify",
    "find_leaders",
    "find_members",
    "group_columns",
    "judge_columns",
    "layer_outputs",
    "place_columns",
    "store_columns",
]

BIG = tl.constexpr(1 << 62)
HASH = tl.constexpr(0x1E3779B97F4A7C15)


@triton.jit
def layer_outputs(below, rows, left, right, parts, out, SIZE: tl.constexpr, BK: tl.constexpr):
    """All outputs (width, rows) of a layer from those below (width, rows) float64, which are finite or NaN.

    left, right int32: the operands of each output; parts (programs, 3) int32: a code, and from where to where the
    outputs of a program go. Those of one program are of one operator.
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
    """best (classes + 1,) int64: the lowest rank among the outputs (width, rows) of a class that are finite."""
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
def classify(best, by_rank, complexity, pair, stand_in, key, stored, simplest, classes, SIZE: tl.constexpr):
    """For each class its output (stand_in) and key, for each pair of a class and its negative the first class alive."""
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    inside = at < classes
    rank = tl.load(best + at, mask=inside, other=0)
    alive = rank < BIG
    output = tl.load(by_rank + tl.where(alive, rank, 0), mask=inside, other=0)
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
    """For each pair its largest value, sign, whether it is out of range of the bounds, and two buckets (pairs, 2).

    Columns that are equal up to sign meet in a bucket of `table` or `table2`, which keep the key of the simplest one.
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
    # Both terms are known to about 1e-15 whatever the scale of the column, so one bucket of 1e-8 serves all.
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
    """leader (pairs,) int64: the simplest column that meets a column in a bucket and equals it, or itself."""
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
    """sides (2, pairs) int64: the lowest key of +v and of -v among the members of each group of columns."""
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    inside = at < classes
    where = tl.load(pair + at, mask=inside, other=0)
    head = tl.load(leader + tl.load(leader + where))
    minus = (tl.load(stored + where) != at) ^ (tl.load(flipped + where) > 0)
    tl.atomic_min(sides + head + tl.where(minus, pairs, 0), tl.load(key + at, mask=inside, other=BIG), mask=inside)


@triton.jit
def group_columns(stored, leader, sides, far, classes, pairs, group, histogram, SIZE: tl.constexpr):
    """group (pairs,) int32, and how many of each a program has: histogram (programs, 8) int32.

    0: both signs, 1: both signs and out of range of the bounds, 2 and 3: one sign, likewise, 4: gone.
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
    """order (pairs,) int32: the pairs by their group, and within it by their number; counts: see `DeviceBank`."""
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
    """The columns in their order: values (columns, rows) float64, and class and complexity of +v and -v (int64)."""
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
