"""The Triton kernels around the scan: factors of the bounds before it, the limit, numbers and values of the survivors.

Each replaces some dozens of small operations, of which a launch alone takes longer than the work.
"""

from __future__ import annotations

import triton
import triton.language as tl

from symenum.enumeration.backends.operator_kernels import apply_code, finite_or_nan

__all__ = [
    "candidate_losses",
    "lower_limit",
    "make_factors",
    "mean_square",
    "number_candidates",
    "pack_candidates",
    "unary_losses",
]


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
    """Of each column c: s and a, see `factors`, the largest and the smallest |v|; (COLUMNS,) float64."""
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
    """Squares (COLUMNS, BK) with the halves of the columns' own terms (COLUMNS,), and ones, at their places (1, BK)."""
    return tl.where(at_high, high[:, None], tl.where(at_low, low[:, None], tl.where(at_one, 1.0, square)))


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
        # Behind the rows four places that add the own terms of i and j to the square: high and low part, times one.
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
    """losses (operators, 2, columns) float64 of u(v) and u(-v) for each column, inf where there is none.

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
    """Form, columns i and j in the order of the form, number and complexity of the simplest way to write each code."""
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
    """numbers (codes,) int64 of the simplest way to write each code, -1 where there is none.

    table (8, WAYS, 8) and unary (operators, 3) int64, see `survivors`.
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

    Zero beyond `count` (int32 on the device), whatever lies there. Numbers are below 2⁵³. values (columns, rows)
    float64. Of the unary operators kernels compute the first UNARY; of any further one come the operand's values.
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
    """Add to losses (total,) float64 those of the codes on other rows; outputs (raw width, rows): see `survivors`."""
    wide = columns.to(tl.int64) * columns
    for at in range(tl.program_id(0), total, tl.num_programs(0)):
        code = tl.load(codes + at)
        form = code // wide
        i = code // columns % columns
        j = code % columns
        is_unary = form >= 8
        at_i = outputs + tl.load(stand_in + tl.load(plus + i)) * rows
        at_j = outputs + tl.load(stand_in + tl.load(plus + tl.where(is_unary, i, j))) * rows
        # (-,+) is j - i; the forms 3, 5 and 7 are negative.
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
