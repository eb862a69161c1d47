"""Duplicate removal: which of many functions, given by their values at points, are the same, or the same but for sign.

Used twice: on random points in double precision to find, once per architecture, the distinct sub-expressions of a
layer (the paper's DR mask), and on the actual data, where slots such as x and x·x make new coincidences. Nothing is
decided by a hash alone: a sort key proposes pairs, and every pair is confirmed at every point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial

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
_CHUNK = 1 << 22  # numbers in a temporary: 32 MB
_AT_ONCE = 16  # domains whose keys are made together, at least
_BITS = 48  # so many flags are a whole number that float64 holds
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
    domain: exp(log x) by x, log x + log y by log(x·y). Whatever f fits, g fits too. On any device, in chunks: beside
    the values there is one copy of those that are distinct.
    """
    if not len(values):
        return rank.clone()
    evidence = _in_chunks(values, lambda rows: torch.isfinite(rows).sum(dim=1))
    domains, domain = _domains(values)
    out = torch.arange(len(values), device=values.device)

    def equal(f: Tensor, g: Tensor) -> Tensor:
        def on_domain(pair: Tensor) -> Tensor:
            # NaN compares false: where f is finite g must be, and equal; outside f's domain nothing is asked of g.
            a, b = values[pair[:, 0]], values[pair[:, 1]]
            near = (a - b).abs() <= POINT_TOLERANCE * torch.maximum(a.abs(), b.abs())
            return (near | ~torch.isfinite(a)).all(dim=1)

        return _in_chunks(torch.stack([f, g], dim=1), on_domain, values.shape[1])

    direction = key_direction(values.shape[1]).to(values.device)
    judged = torch.nonzero(evidence >= _EVIDENCE).flatten()
    own_key = _in_chunks(values, lambda rows: _squashed(rows) @ direction)[judged]
    merged = _peel(domain[judged], own_key, rank[judged], lambda a, b: equal(judged[a], judged[b]))
    out[judged] = judged[merged]
    if wider:
        kept = judged[merged == torch.arange(len(judged), device=values.device)]
        for f, g in _near_in_wider(_squashed(values[kept]), domains, domain[kept]):
            f, g = kept[f], kept[g]
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
    # Its own number, not the search's seed: what counts as one function must not depend on it.
    generator = torch.Generator().manual_seed(20_261_115)
    directions: Tensor = torch.randn(points, SIGNATURE, generator=generator, dtype=torch.float64)
    return directions / float(points**0.5)


def canonical_signs(values: Tensor) -> Tensor:
    """+1 or -1 for each row of `values` (N, points): opposite for a row and its negative; NaN counts as zero."""
    filled = torch.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
    largest = filled.abs().amax(dim=1).clamp_min_(torch.finfo(torch.float64).tiny)
    projection = (filled / largest[:, None]) @ key_direction(values.shape[1]).to(values.device)
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


def _squashed(values: Tensor) -> Tensor:
    """Rows (N, points) for sort keys: 0 where not finite, else logarithms, so that 1e300 does not drown the rest.

    The logarithm is the identity near zero.
    """
    return values.abs().log1p_().copysign_(values).nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)


def _domains(values: Tensor) -> tuple[Tensor, Tensor]:
    """The sets of points (domains, points) bool where rows of `values` are finite, and which of them is each row's."""
    points = values.shape[1]
    domain = torch.zeros(len(values), dtype=torch.int64, device=values.device)
    for start in range(0, points, _BITS):
        some = values[:, start : start + _BITS]
        bit = torch.pow(2.0, torch.arange(some.shape[1], dtype=torch.float64, device=values.device))
        _, number = torch.unique(_in_chunks(some, partial(_finite_bits, bit)), return_inverse=True)
        _, domain = torch.unique(domain * (number.max() + 1) + number, return_inverse=True)
    example = torch.zeros(int(domain.max()) + 1, dtype=torch.int64, device=values.device)
    example[domain] = torch.arange(len(values), device=values.device)
    return torch.isfinite(values[example]), domain


def _finite_bits(bit: Tensor, rows: Tensor) -> Tensor:
    return torch.isfinite(rows).double() @ bit


def _near_in_wider(squashed: Tensor, domains: Tensor, domain: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Pairs of rows (f, g) of `squashed` (N, points), f's domain inside g's, whose keys on f's domain agree.

    Domains are few (one for each set of sign conditions), so one join for each, a few of them at a time.
    """
    points = domains.double()
    inside = points @ points.T >= points.sum(dim=1)[:, None]  # inside[a, b]: domain a lies within domain b
    inside.fill_diagonal_(False)
    there = torch.unique(domain)
    small = there[inside[there][:, there].any(dim=1)]
    weights = points * key_direction(points.shape[1]).to(points)
    for some in torch.split(small, max(_AT_ONCE, _CHUNK // max(1, len(squashed)))):
        for which, key in zip(some, weights[some] @ squashed.T, strict=True):
            f, g = _near_pairs(torch.nonzero(domain == which).flatten(), key)
            within = inside[which, domain[g]]
            yield f[within], g[within]


def _near_pairs(small: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
    """All pairs (f in `small`, any g) of rows whose keys (N,) agree."""
    small = small[torch.argsort(key[small])]
    low = torch.searchsorted(key[small], key - KEY_TOLERANCE)
    count = torch.searchsorted(key[small], key + KEY_TOLERANCE, right=True) - low
    g = torch.nonzero(count).flatten()
    low, count = low[g], count[g]
    step = torch.arange(int(count.sum()), device=key.device) - torch.repeat_interleave(count.cumsum(0) - count, count)
    return small[torch.repeat_interleave(low, count) + step], torch.repeat_interleave(g, count)


def _in_chunks(rows: Tensor, work: Callable[[Tensor], Tensor], width: int | None = None) -> Tensor:
    """work(rows), a part of the rows at a time: its temporaries have about _CHUNK numbers, `width` for each row."""
    step = max(1, _CHUNK // max(1, width or rows.shape[1]))
    return torch.cat([work(part) for part in torch.split(rows, step)])


def key_direction(points: int) -> Tensor:
    """The fixed random direction (points,) float64 that sort keys and signs are made with."""
    # Its own number, not the search's seed: the mask made with it is kept in a file and serves all searches.
    generator = torch.Generator().manual_seed(20_251_115)
    return torch.randn(points, generator=generator, dtype=torch.float64)


def _peel(group: Tensor, key: Tensor, rank: Tensor, equal: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Cluster by (group, key), then take from each cluster its first row and all that equal it, until none is left."""
    count = len(key)
    out = torch.arange(count, device=key.device)
    if count == 0:
        return out
    order = torch.argsort(key, stable=True)
    order = order[torch.argsort(group[order], stable=True)]
    new = (key[order].diff() > KEY_TOLERANCE) | (group[order].diff() != 0)
    cluster = torch.zeros(count, dtype=torch.int64, device=key.device)
    cluster[order[1:]] = new.long().cumsum(0)
    by_rank = torch.argsort(rank)
    place = torch.empty_like(by_rank)
    place[by_rank] = torch.arange(count, device=key.device)
    # A row alone in its cluster has nothing to be compared with.
    waiting = torch.nonzero(torch.bincount(cluster)[cluster] > 1).flatten()
    while waiting.numel():
        first = torch.full((count,), count, dtype=torch.int64, device=key.device)
        first.scatter_reduce_(0, cluster[waiting], place[waiting], reduce="amin")
        leader = by_rank[first[cluster[waiting]]]
        hit = equal(waiting, leader) | (waiting == leader)
        out[waiting[hit]] = leader[hit]
        waiting = waiting[~hit]
    return out
