"""The Triton kernel of `cuda_many_targets`; imported only if a GPU is used, because Triton is not always installed."""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["unit_bounds"]


# Numbers of rows and targets that happen to be multiples of 16 are no reason to compile the kernel again.
@triton.jit(do_not_specialize=["first_row", "columns", "count", "blocks", "units"])
def unit_bounds(
    left, right, root, one, own, targets, out, first_row, columns, count, blocks, units, least_new, error, error_of_new,
    TERMS: tl.constexpr, SAME: tl.constexpr, K: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
    TARGETS: tl.constexpr,
):  # fmt: skip
    """Upper bounds (count, units) float32 of |u·t| over the pairs of each unit, 0 where there is none.

    left (N, K), right (columns, K), targets (count, K), own (N, K) and root, one (K,) float32: see `many_targets`;
    unused samples are zeros. A direction that is `new` as a part of its row, and its product with a target, are wrong
    by `error` + `error_of_new` / new at most. For a pair and a target: 2·K flops three times on the tensor cores, and
    three float32 instructions; a direction takes about 15·K, which TARGETS targets share.
    """
    unit = tl.program_id(0)
    i = first_row + unit // blocks
    block = unit % blocks
    k = tl.arange(0, K)
    place = tl.program_id(1) * TARGETS + tl.arange(0, TARGETS)
    t = tl.load(targets + place[None, :] * K + k[:, None], mask=place[None, :] < count, other=0.0)
    weight = tl.load(root + k)
    e = tl.load(one + k)[None, :]
    c = e
    if TERMS:
        c = tl.load(own + i * K + k)[None, :]
    else:
        weight *= tl.load(left + i * K + k)
    best = tl.zeros((TARGETS,), tl.float32)
    if not SAME or block * BLOCK + BLOCK > i:
        for tile in range(0, BLOCK // ROWS):
            j = block * BLOCK + tile * ROWS + tl.arange(0, ROWS)
            x = tl.load(right + j[:, None] * K + k[None, :], mask=j[:, None] < columns, other=0.0) * weight[None, :]
            square = tl.sum(x * x, axis=1)
            for _ in tl.static_range(2):  # once more: the rounding error is then relative to what is left
                x -= tl.sum(x * e, axis=1)[:, None] * e
                if TERMS:
                    x -= tl.sum(x * c, axis=1)[:, None] * c
            left_of_it = tl.sum(x * x, axis=1)
            alive = (left_of_it > least_new * least_new * square) & (j < columns)
            if SAME:
                alive = alive & (j >= i + TERMS)
            inverse = tl.where(alive, tl.rsqrt(tl.where(alive, left_of_it, 1.0)), 0.0)
            along = tl.dot(x * inverse[:, None], t, input_precision="tf32x3")
            unsure = tl.where(alive, error + error_of_new * tl.sqrt(square) * inverse, 0.0)
            best = tl.maximum(best, tl.max(tl.abs(along) + unsure[:, None], axis=0))
    tl.store(out + place.to(tl.int64) * units + unit, best, mask=place < count)
