"""The Triton kernels around the scan: factors of the bounds before it, the limit, numbers and values of the survivors.

Each replaces some dozens of small operations, of which a launch alone takes longer than the work.
"""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["lower_limit", "make_factors", "write_candidates"]


@triton.jit
def _tf32(value):
    """Float64 to the nearest TF32 number, as float32."""
    bits = value.to(tl.float32).to(tl.int32, bitcast=True)
    return ((bits + 0x1000) & -0x2000).to(tl.float32, bitcast=True)


@triton.jit
def make_factors(
    values, y, weight, scale2, counts, rows, columns,
    x, own, along, left, left2, right, right2, inverse, inverse2, transposed,
    gamma, slack, largest, always, never,
    K: tl.constexpr, BK: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """All factors of COLUMNS columns from `values` (columns, rows) float64; see `factors` for what they are.

    x … inverse2 (columns, K), own and along (columns,) float32, transposed (rows, columns) float64. 15·K bytes times
    columns in and out, so a few microseconds.
    """
    c = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    scale = tl.sqrt(tl.load(scale2))
    root = tl.sqrt(scale)
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
    high_v = _tf32(own_v)
    low_v = _tf32(own_v - high_v.to(tl.float64))
    high_r = _tf32(own_r)
    low_r = _tf32(own_r - high_r.to(tl.float64))
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
        # Behind the rows four places that add the own terms of i and j to the square: high and low part, times one.
        first = (r == rows)[None, :]
        second = (r == rows + 1)[None, :]
        one_j = ((r == rows) | (r == rows + 1))[None, :]
        third = (r == rows + 2)[None, :]
        fourth = (r == rows + 3)[None, :]
        one_i = ((r == rows + 2) | (r == rows + 3))[None, :]
        square = _tf32(u * u * w * shrunk)
        square = tl.where(first, high_v[:, None], tl.where(second, low_v[:, None], tl.where(one_i, 1.0, square)))
        tl.store(left2 + into, square)
        square = _tf32(u * u)
        square = tl.where(third, high_v[:, None], tl.where(fourth, low_v[:, None], tl.where(one_j, 1.0, square)))
        tl.store(right2 + into, square)
        square = _tf32(q * q)
        square = tl.where(third, high_r[:, None], tl.where(fourth, low_r[:, None], tl.where(one_j, 1.0, square)))
        tl.store(inverse2 + into, square)


@triton.jit
def write_candidates(
    codes, total, table, unary, plus, minus, plus_cost, minus_cost, values, rows, columns, width,
    number_out, cost_out, values_out, forms,
    WAYS: tl.constexpr, SIZE: tl.constexpr, VALUES: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Number and complexity (int64) of the simplest way to write each code, -1 where there is none, and the values.

    table (8, WAYS, 8) and unary (operators, 2) int64, see `survivors`; values (columns, rows) and values_out
    (codes, rows) float64: of a unary operator only its operand. `forms` int32: the form of each code.
    """
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    code = tl.load(codes + at, mask=at < total, other=0)
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
    operator = tl.where(is_unary, form - 8, 0)
    index = tl.where(j == 0, tl.load(plus + i), tl.load(minus + i))
    own_cost = tl.where(j == 0, tl.load(plus_cost + i), tl.load(minus_cost + i))
    number = tl.where(is_unary, tl.load(unary + 2 * operator) + index, number)
    cost = tl.where(is_unary, tl.load(unary + 2 * operator + 1) + own_cost, cost)
    tl.store(number_out + at, tl.where(cost < (1 << 60), number, -1), mask=at < total)
    tl.store(cost_out + at, cost, mask=at < total)
    if VALUES:
        tl.store(forms + at, form.to(tl.int32), mask=at < total)
        for start in range(0, rows, BK):
            r = start + tl.arange(0, BK)
            inside = ((at < total).to(tl.int32)[:, None] * (r < rows).to(tl.int32)[None, :]) > 0
            u = tl.load(values + first[:, None] * rows + r[None, :], mask=inside, other=0.0)
            v = tl.load(values + second[:, None] * rows + r[None, :], mask=inside, other=0.0)
            f = form[:, None]
            value = tl.where((f == 1) | (f == 2), u - v, u + v)
            value = tl.where((f == 4) | (f == 5), u * v, value)
            value = tl.where((f == 6) | (f == 7), u / v, value)
            value = tl.where((f == 3) | (f == 5) | (f == 7), -value, value)
            value = tl.where(f >= 8, tl.where((second == 0)[:, None], u, -u), value)
            tl.store(values_out + at[:, None].to(tl.int64) * rows + r[None, :], value, mask=inside)


@triton.jit
def lower_limit(
    losses, numbers, total, k, y, weight, rows, scale2, same, floor, tie, limit, SIZE: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    """Lower `limit` to the k-th distinct of the losses (total,) float64 whose numbers are not -1; for small k.

    Losses whose roots differ by more than two equal functions could make them differ are of different functions. One
    program; k rounds, each the smallest loss beyond the one before.
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
