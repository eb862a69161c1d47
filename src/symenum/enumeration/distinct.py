"""Duplicate removal: which of many functions, given by their values at points, are the same, or the same but for sign.

Used twice: on random points in double precision to find, once per architecture, the distinct sub-expressions of a
layer (the paper's DR mask), and on the actual data, where slots such as x and x·x make new coincidences. Nothing is
decided by a hash alone: a sort key proposes pairs, and every pair is confirmed at every point.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor

__all__ = [
    "canonical_signs",
    "key_direction",
    "representatives",
    "representatives_by_domain",
    "signature",
    "signature_directions",
]

# Two functions are one if they differ by less than this, relative to their values at each random point, or to their
# norm on the data. Rounding errors of three operators are a few 1e-16. The data's is the stricter one: a candidate may
# be the difference of two nearly equal columns.
POINT_TOLERANCE = 1e-10
DATA_TOLERANCE = 2e-14

KEY_TOLERANCE = 1e-8  # on sort keys; generous, because they only propose
SIGNATURE = 32
_EVIDENCE = 4  # a function that is finite on fewer points than this is never merged into another


def representatives(values: Tensor, rank: Tensor, tolerance: float = DATA_TOLERANCE) -> Tensor:
    """For each row of `values` (N, points), finite float64, the index of the row of lowest rank that is equal to it.

    `rank` (N,) int64, all different. Equal: the difference is below `tolerance` times the norm. Returns int64 (N,).
    """
    scale = values.abs().amax(dim=1)
    size = values.shape[1] ** 0.5

    def equal(a: Tensor, b: Tensor) -> Tensor:
        largest = torch.maximum(scale[a], scale[b]).clamp_min_(torch.finfo(torch.float64).tiny)
        distance: Tensor = ((values[a] - values[b]) / largest[:, None]).norm(dim=1)
        return torch.le(distance, tolerance * size)

    return _peel(torch.zeros(len(values), dtype=torch.int64), _sort_key(values), rank, equal)


def representatives_by_domain(values: Tensor, rank: Tensor, *, wider: bool) -> Tensor:
    """For each row of `values` (N, points) the index of its representative; -1 where a row is finite nowhere.

    NaN marks points outside a function's domain. Functions of one domain are represented by the one of lowest rank.
    With `wider`, a function f may also be represented by a g of lower rank and wider domain that equals f on f's
    domain: exp(log x) by x, log x + log y by log(x·y). Whatever f fits, g fits too.
    """
    finite = torch.isfinite(values)
    domains, domain = torch.unique(finite, dim=0, return_inverse=True)
    evidence = finite.sum(dim=1)
    out = torch.arange(len(values))

    def equal(f: Tensor, g: Tensor) -> Tensor:
        # NaN compares false: where f is finite g must be, and equal; outside f's domain nothing is asked of g.
        near = (values[f] - values[g]).abs() <= POINT_TOLERANCE * torch.maximum(values[f].abs(), values[g].abs())
        return (near | ~finite[f]).all(dim=1)

    keys = _domain_keys(values, domains)
    judged = torch.nonzero(evidence >= _EVIDENCE).flatten()
    own_key = keys[judged, domain[judged]]
    merged = _peel(domain[judged], own_key, rank[judged], lambda a, b: equal(judged[a], judged[b]))
    out[judged] = judged[merged]

    # A smaller domain inside a larger one: domains are few (one per set of sign conditions), so one join for each.
    kept = judged[merged == torch.arange(len(judged))]
    points = domains.double()
    inside = points @ points.T >= points.sum(dim=1)[:, None]  # inside[a, b]: domain a lies within domain b
    for small in torch.unique(domain[kept]).tolist() if wider else ():
        around = kept[inside[small, domain[kept]] & (domain[kept] != small)]
        f, g = _near_pairs(kept[domain[kept] == small], around, keys[:, small])
        hit = (rank[g] < rank[f]) & equal(f, g)
        f, g = f[hit], g[hit]
        order = torch.argsort(rank[g], descending=True)  # the simplest is written last, and stays
        out[f[order]] = g[order]
    while not torch.equal(out, out[out]):
        out = out[out]
    out[evidence == 0] = -1
    return out


def signature(values: Tensor) -> Tensor:
    """What tells rows of `values` (N, points) apart, in at most 32 numbers each, float64.

    All values where they are few, else 32 random projections of all of them: rows that differ anywhere by d differ by
    about d in each projection, and not to see it 32 times over is out of the question.
    """
    count = values.shape[1]
    if count <= SIGNATURE:
        return values
    return torch.mm(values, signature_directions(count))


@lru_cache(maxsize=2)
def signature_directions(points: int) -> Tensor:
    """The projections (points, 32) float64 that make a signature of more than 32 values; not to be changed."""
    generator = torch.Generator().manual_seed(20_261_115)
    directions: Tensor = torch.randn(points, SIGNATURE, generator=generator, dtype=torch.float64)
    return directions / float(points**0.5)


def canonical_signs(values: Tensor) -> Tensor:
    """+1 or -1 for each row of `values` (N, points): opposite for a row and its negative; NaN counts as zero."""
    filled = torch.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
    largest = filled.abs().amax(dim=1).clamp_min_(torch.finfo(torch.float64).tiny)
    projection = (filled / largest[:, None]) @ key_direction(values.shape[1])
    return torch.where(projection < 0, -1.0, 1.0).to(torch.float64)


def _sort_key(values: Tensor) -> Tensor:
    """One number per row (N, points), finite, that is equal for equal rows and, but for chance, for no others.

    The log of the norm plus the projection of the unit vector on a fixed random direction: both are known to about
    1e-15 whatever the scale of the row, so one absolute tolerance serves all.
    """
    largest = values.abs().amax(dim=1).clamp_min(torch.finfo(torch.float64).tiny)
    scaled = values / largest[:, None]  # a norm of numbers near 1e300 would overflow
    norm: Tensor = scaled.norm(dim=1).clamp_min_(0.5)  # at least 1 but for the zero row
    return largest.log() + norm.log() + (scaled @ key_direction(values.shape[1])) / norm


def _domain_keys(values: Tensor, domains: Tensor) -> Tensor:
    """Sort keys (N, domains) of the functions restricted to each domain (domains, points), in one matrix product.

    The logarithm keeps numbers near 1e300 from drowning the rest; it is the identity near zero.
    """
    finite = torch.isfinite(values)
    squashed = torch.where(finite, values.sign() * values.abs().log1p(), torch.zeros_like(values))
    return squashed @ (domains.double() * key_direction(values.shape[1])).T


def _near_pairs(small: Tensor, large: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
    """All pairs (f in `small`, g in `large`) of rows whose keys agree."""
    large = large[torch.argsort(key[large])]
    low = torch.searchsorted(key[large], key[small] - KEY_TOLERANCE)
    count = torch.searchsorted(key[large], key[small] + KEY_TOLERANCE, right=True) - low
    f = torch.repeat_interleave(small, count)
    step = torch.arange(len(f)) - torch.repeat_interleave(count.cumsum(0) - count, count)
    return f, large[torch.repeat_interleave(low, count) + step]


def key_direction(points: int) -> Tensor:
    """The fixed random direction (points,) float64 that sort keys and signs are made with."""
    generator = torch.Generator().manual_seed(20_251_115)
    return torch.randn(points, generator=generator, dtype=torch.float64)


def _peel(group: Tensor, key: Tensor, rank: Tensor, equal: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Cluster by (group, key), then take from each cluster its first row and all that equal it, until none is left."""
    count = len(key)
    out = torch.arange(count)
    if count == 0:
        return out
    order = torch.argsort(key, stable=True)
    order = order[torch.argsort(group[order], stable=True)]
    new = (key[order].diff() > KEY_TOLERANCE) | (group[order].diff() != 0)
    cluster = torch.zeros(count, dtype=torch.int64)
    cluster[order[1:]] = new.long().cumsum(0)
    by_rank = torch.argsort(rank)
    place = torch.empty_like(by_rank)
    place[by_rank] = torch.arange(count)
    # A row alone in its cluster has nothing to be compared with.
    waiting = torch.nonzero(torch.bincount(cluster)[cluster] > 1).flatten()
    while waiting.numel():
        first = torch.full((count,), count, dtype=torch.int64)
        first.scatter_reduce_(0, cluster[waiting], place[waiting], reduce="amin")
        leader = by_rank[first[cluster[waiting]]]
        hit = equal(waiting, leader) | (waiting == leader)
        out[waiting[hit]] = leader[hit]
        waiting = waiting[~hit]
    return out
