"""Duplicate removal: which functions, given by their values at points, are equal, or equal up to sign.

Used twice: once per architecture, on random points, to find the distinct sub-expressions of a layer (the paper's DR
mask); and on the data, where slots such as x and x·x make more functions equal. No decision rests on a hash alone: a
sort key proposes pairs, and every pair is compared at every point. Values are float64.
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


# Two functions are equal if they differ by less than this part of their values at each random point, or of their norm
# on the data. Three operators make rounding errors of a few 1e-16. The tolerance on the data is stricter, because a
# candidate may be the difference of two nearly equal columns.
POINT_TOLERANCE = 1e-10  # of values
DATA_TOLERANCE = 2e-14  # of the norm: 90 epsilons
# Absolute difference of two sort keys. Keys of equal functions differ by 1e-15 or so; a large tolerance loses no pair,
# and pairs of unequal functions only cost a comparison.
KEY_TOLERANCE = 1e-8
SIGNATURE = 32  # numbers in a signature; 32 random projections do not all miss a difference, and 256 bytes are little
_CHUNK = 1 << 22  # numbers in a temporary: 32 MiB of float64
_MIN_DOMAINS = 16  # domains whose sort keys are computed in one matrix product, if _CHUNK allows no more
_BITS = 48  # flags in one number: a sum of 48 powers of 2 is exact in float64, which has 53 bits
_MIN_FINITE = 4  # points at which a function must be finite to be compared with others; fewer are no evidence


def representatives(values: Tensor, rank: Tensor, tolerance: float = DATA_TOLERANCE) -> Tensor:
    """For each row of `values` (N, points), float64 and finite, the index (N,) int64 of the equal row of lowest rank.

    `rank` (N,) int64, all different. Two rows are equal if the root mean square of their difference is at most
    `tolerance` times their largest absolute value.
    """
    scale = values.abs().amax(dim=1)
    size = values.shape[1] ** 0.5

    def equal(a: Tensor, b: Tensor) -> Tensor:
        largest = torch.maximum(scale[a], scale[b]).clamp_min_(torch.finfo(torch.float64).tiny)
        distance: Tensor = ((values[a] - values[b]) / largest[:, None]).norm(dim=1)
        return torch.le(distance, tolerance * size)

    return _peel(torch.zeros(len(values), dtype=torch.int64), _sort_key(values), rank, equal)


def representatives_by_domain(values: Tensor, rank: Tensor, *, wider: bool) -> Tensor:
    """For each row of `values` (N, points) the index (N,) int64 of its representative; -1 if a row is finite nowhere.

    NaN marks points outside a function's domain. Equal functions of one domain are represented by the one of lowest
    rank. With `wider`, a function f may also be represented by a g of lower rank and wider domain that equals f on f's
    domain: exp(log x) by x, log x + log y by log(x·y). Data that f fits, g fits too. Works on any device; beside
    `values` it needs memory for one copy of the distinct rows.
    """
    if not len(values):
        return rank.clone()
    finite_points = _in_chunks(values, lambda rows: torch.isfinite(rows).sum(dim=1))
    domains, domain = _domains(values)
    out = torch.arange(len(values), device=values.device)

    def equal(f: Tensor, g: Tensor) -> Tensor:
        def on_domain(pair: Tensor) -> Tensor:
            # NaN compares false: where f is finite, g must be finite and equal; outside f's domain g may be anything.
            a, b = values[pair[:, 0]], values[pair[:, 1]]
            near = (a - b).abs() <= POINT_TOLERANCE * torch.maximum(a.abs(), b.abs())
            return (near | ~torch.isfinite(a)).all(dim=1)

        return _in_chunks(torch.stack([f, g], dim=1), on_domain, values.shape[1])

    direction = key_direction(values.shape[1]).to(values.device)
    judged = torch.nonzero(finite_points >= _MIN_FINITE).flatten()
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
    out[finite_points == 0] = -1
    return out


def signature(values: Tensor) -> Tensor:
    """At most 32 numbers for each row of `values` (N, points), float64, that differ for rows that differ.

    Up to 32 points these are the values, beyond that 32 random projections of them. Rows that differ by d (root mean
    square) differ by about d in each projection; that all 32 miss a difference is out of the question.
    """
    count = values.shape[1]
    if count <= SIGNATURE:
        return values
    return torch.mm(values, signature_directions(count))


@lru_cache(maxsize=2)
def signature_directions(points: int) -> Tensor:
    """The projections (points, 32) float64 of `signature`; the tensor is shared and must not be changed."""
    # A fixed seed, not the search's: which functions are equal must not depend on it.
    generator = torch.Generator().manual_seed(20_261_115)
    directions: Tensor = torch.randn(points, SIGNATURE, generator=generator, dtype=torch.float64)
    return directions / float(points**0.5)


def canonical_signs(values: Tensor) -> Tensor:
    """+1 or -1 (N,) float64 for rows of `values` (N, points): opposite for a row and its negative. NaN counts as 0."""
    filled = torch.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
    largest = filled.abs().amax(dim=1).clamp_min_(torch.finfo(torch.float64).tiny)
    projection = (filled / largest[:, None]) @ key_direction(values.shape[1]).to(values.device)
    return torch.where(projection < 0, -1.0, 1.0).to(torch.float64)


def _sort_key(values: Tensor) -> Tensor:
    """One number per finite row (N, points) that is equal for equal rows, and for others only by chance.

    The log of the norm plus the projection of the unit vector on a fixed random direction: both have an error of about
    1e-15 for a row of any scale, so one absolute tolerance serves all.
    """
    largest = values.abs().amax(dim=1).clamp_min(torch.finfo(torch.float64).tiny)
    scaled = values / largest[:, None]  # the norm of numbers near 1e300 would overflow
    norm: Tensor = scaled.norm(dim=1).clamp_min_(0.5)  # the norm is at least 1, but for the zero row
    return largest.log() + norm.log() + (scaled @ key_direction(values.shape[1])) / norm


def _squashed(values: Tensor) -> Tensor:
    """sign(v)·log(1 + |v|) of rows (N, points), 0 where v is not finite.

    For sort keys, in which 1e300 must not dominate; near zero it is the identity.
    """
    return values.abs().log1p_().copysign_(values).nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)


def _domains(values: Tensor) -> tuple[Tensor, Tensor]:
    """The different sets of points where rows are finite (domains, points) bool, and the index (N,) of each row's."""
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
    """Pairs of rows (f, g) of `squashed` (N, points) whose keys on f's domain agree, with f's domain inside g's.

    There are few domains, one for each set of sign conditions, so there is one join for each.
    """
    points = domains.double()
    inside = points @ points.T >= points.sum(dim=1)[:, None]  # inside[a, b]: domain a lies within domain b
    inside.fill_diagonal_(False)
    there = torch.unique(domain)
    small = there[inside[there][:, there].any(dim=1)]
    weights = points * key_direction(points.shape[1]).to(points)
    for some in torch.split(small, max(_MIN_DOMAINS, _CHUNK // max(1, len(squashed)))):
        for which, key in zip(some, weights[some] @ squashed.T, strict=True):
            f, g = _near_pairs(torch.nonzero(domain == which).flatten(), key)
            within = inside[which, domain[g]]
            yield f[within], g[within]


def _near_pairs(small: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
    """All pairs of a row f of `small` (int64) and any row g whose keys (N,) agree within KEY_TOLERANCE."""
    small = small[torch.argsort(key[small])]
    low = torch.searchsorted(key[small], key - KEY_TOLERANCE)
    count = torch.searchsorted(key[small], key + KEY_TOLERANCE, right=True) - low
    g = torch.nonzero(count).flatten()
    low, count = low[g], count[g]
    step = torch.arange(int(count.sum()), device=key.device) - torch.repeat_interleave(count.cumsum(0) - count, count)
    return small[torch.repeat_interleave(low, count) + step], torch.repeat_interleave(g, count)


def _in_chunks(rows: Tensor, work: Callable[[Tensor], Tensor], width: int | None = None) -> Tensor:
    """work(rows) in parts of the rows, so that a temporary of `width` numbers per row has at most _CHUNK numbers."""
    step = max(1, _CHUNK // max(1, width or rows.shape[1]))
    return torch.cat([work(part) for part in torch.split(rows, step)])


def key_direction(points: int) -> Tensor:
    """The fixed random direction (points,) float64 on which sort keys and signs are projections."""
    # A fixed seed, not the search's: the mask that depends on it is kept in a file for all searches.
    generator = torch.Generator().manual_seed(20_251_115)
    return torch.randn(points, generator=generator, dtype=torch.float64)


def _peel(group: Tensor, key: Tensor, rank: Tensor, equal: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """For each row the index (N,) int64 of the equal row of lowest rank.

    Rows are clustered by (group, key). From each cluster the row of lowest rank and all rows equal to it are removed,
    until none is left. `equal` compares rows by their indices.
    """
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
    # A row that is alone in its cluster represents itself.
    waiting = torch.nonzero(torch.bincount(cluster)[cluster] > 1).flatten()
    while waiting.numel():
        first = torch.full((count,), count, dtype=torch.int64, device=key.device)
        first.scatter_reduce_(0, cluster[waiting], place[waiting], reduce="amin")
        leader = by_rank[first[cluster[waiting]]]
        hit = equal(waiting, leader) | (waiting == leader)
        out[waiting[hit]] = leader[hit]
        waiting = waiting[~hit]
    return out
