"""The best pairs of rows for each of many targets: one scan that makes every pair once and judges it for all targets.

A pair (i, j) explains a target by what it adds to a background. For a product v_i·w_j with scale and offset, the
background is 1; for two terms a·v_i + b·w_j + c, it is 1 and v_i. The *direction* u of a pair is v_i·w_j, or w_j, off
its background and of norm 1. Targets t_m are off 1 and of norm 1 too, so that

    R²(m, i, j) = base(m, i) + (u·t_m)²,    base = 0 for products, (c_i·t_m)² for two terms (c_i: v_i off 1)

and the second term is one matrix product of directions and targets. Targets with the same row weights make a group,
for which directions are made once.

A *unit* is one row i against a block of rows j. The scan gives an upper bound of R² for each unit and target: on the
CPU the best R² in double precision and its rounding error, on a GPU (`cuda_many_targets`) one by the tensor cores. The
best units of a target are evaluated pair by pair in double precision, and then all others whose bound is not below the
k-th best pair found there. So the result is that of a brute force. Two limits: a pair whose direction is mostly
rounding is none, and of one target at most `_MAX_UNITS` units are evaluated, those of the highest bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from symenum.core.budget import NO_LIMIT, Budget
from symenum.core.threads import Job, available_cores, run_jobs
from symenum.scans.projection import unit_orthogonal_part_of_one, unit_rows

__all__ = [
    "BLOCK",
    "LEAST_NEW",
    "FoundPairs",
    "Group",
    "PairBank",
    "UnitTargets",
    "best_pairs_of_targets",
    "own_directions",
]

_MARGIN = 1e-12  # of R² in double precision, above the rounding error of a product of some hundred rows
LEAST_NEW = 1e-6
"""Part of a row off its background below which its direction is rounding, so that there is no pair."""
BLOCK = 512
"""Rows j of a unit."""
_MAX_UNITS = 64  # of one target that are evaluated: with thousands of nearly exact pairs any of them will do
_EVALUATED = 1 << 16  # numbers in a part of the units that are evaluated: 512 KiB, so that copies stay in the cache,
_EVALUATED_GPU = 1 << 26  # and on a GPU 512 MiB


@dataclass(frozen=True)
class PairBank:
    """`left` (N, n) and `right` (M, n), float64 and finite: rows that are joined in pairs.

    `terms`: pairs are two terms with coefficients of their own; else products. If left and right are the `same`, only
    pairs i < j count, and of products also i = j.
    """

    left: Tensor
    right: Tensor
    terms: bool
    same: bool

    @property
    def pairs(self) -> int:
        """The number of pairs."""
        N, M = len(self.left), len(self.right)
        return (N * (N - 1) // 2 + N * (not self.terms)) if self.same else N * M

    def to(self, device: torch.device) -> PairBank:
        """The bank on a device."""
        right = self.right.to(device)
        return PairBank(right if self.right is self.left else self.left.to(device), right, self.terms, self.same)


@dataclass(frozen=True)
class Group:
    """Targets (m, n), float64, and the square roots of the weights (n,) that the rows have for all of them."""

    values: Tensor
    root: Tensor

    def to(self, device: torch.device) -> Group:
        """The group on a device."""
        return Group(self.values.to(device), self.root.to(device))


@dataclass(frozen=True)
class FoundPairs:
    """Pairs (i, j) of targets by their numbers, all (m,) int64, and R² (m,) float64; by target, then the best first."""

    target: Tensor
    i: Tensor
    j: Tensor
    r_squared: Tensor

    def cpu(self) -> FoundPairs:
        """The same on the CPU."""
        return FoundPairs(self.target.cpu(), self.i.cpu(), self.j.cpu(), self.r_squared.cpu())

    def numbered_from(self, first: int) -> FoundPairs:
        """The same where the targets count from `first`."""
        return replace(self, target=self.target + first)

    @staticmethod
    def joined(several: Sequence[FoundPairs]) -> FoundPairs:
        """The pairs of all, in their order."""
        names = ("target", "i", "j", "r_squared")
        return FoundPairs(*(torch.cat([getattr(one, name) for one in several]) for name in names))


@dataclass(frozen=True)
class UnitTargets:
    """The targets of a group off 1 and of norm 1, (m, n), and the unit row (n,) that stands for 1 under its weights."""

    unit: Tensor
    one: Tensor
    root: Tensor

    @staticmethod
    def of(group: Group) -> UnitTargets:
        """A target that is constant becomes zero, which no pair explains."""
        one = unit_rows(group.root[None])[0]
        empty = UnitTargets(group.values, one, group.root)
        return replace(empty, unit=own_directions(group.values, empty))


def best_pairs_of_targets(bank: PairBank, groups: Sequence[Group], k: int, budget: Budget) -> FoundPairs:
    """The k pairs of largest R² of each target; targets are numbered through the groups.

    A pair whose direction is rounding is none. A target may have fewer than k. Over budget, the pairs of units that
    were scanned.
    """
    sides = [UnitTargets.of(group) for group in groups]
    bounds = _bounds_on_gpu(bank, sides, budget) if bank.left.is_cuda else _bounds(bank, sides, budget)
    found: list[FoundPairs] = []
    first = 0
    for side, units in zip(sides, bounds, strict=True):
        found.append(_best_in_bounds(bank, side, units, k).numbered_from(first))
        first += len(side.unit)
    return FoundPairs.joined(found)


def _blocks(bank: PairBank) -> int:
    return -(-len(bank.right) // BLOCK)


def _bounds(bank: PairBank, sides: Sequence[UnitTargets], budget: Budget) -> list[Tensor]:
    """For each group upper bounds (m, units) of R² in each unit, 0 where it was not scanned or has no pair.

    Unit i·blocks + b is row i against block b of the rows j.
    """
    blocks = _blocks(bank)
    bounds = [torch.zeros(len(side.unit), len(bank.left) * blocks, dtype=torch.float64) for side in sides]

    def work(i: int, side: UnitTargets, own: Tensor, out: Tensor, _: Budget) -> int:
        background = torch.stack([side.one, own[i]]) if bank.terms else side.one[None]
        base = (side.unit @ own[i]).square() if bank.terms else 0.0
        for block in range(i // BLOCK if bank.same else 0, blocks):
            first = block * BLOCK
            low = max(first, i + bank.terms) if bank.same else first
            rows = bank.right[low : first + BLOCK]
            if len(rows):
                along = _directions(bank, side, background, bank.left[i], rows) @ side.unit.T
                out[:, i * blocks + block] = along.abs_().amax(dim=0).square_().add_(base + _MARGIN)
        return 1

    jobs: list[Job] = [
        partial(work, i, side, own, out)
        for side, out in zip(sides, bounds, strict=True)
        for own in [own_directions(bank.left, side) if bank.terms else bank.left]
        for i in range(len(bank.left))
    ]
    run_jobs(jobs, budget, available_cores())
    return bounds


def _bounds_on_gpu(bank: PairBank, sides: Sequence[UnitTargets], budget: Budget) -> list[Tensor]:
    from symenum.scans import cuda_many_targets  # Triton is not always installed

    return cuda_many_targets.bounds(bank, sides, budget)


def own_directions(rows: Tensor, side: UnitTargets) -> Tensor:
    """Rows (N, n) with the group's weights, off 1 and of norm 1; zero where a row is constant."""
    unit, left = unit_orthogonal_part_of_one(rows * side.root, side.one)
    return unit * (left > LEAST_NEW)[:, None]


def _directions(bank: PairBank, side: UnitTargets, background: Tensor, row: Tensor, rows: Tensor) -> Tensor:
    """The directions (m, n) of the pairs of a row (n,) with `rows` (m, n); zero where there is none."""
    made = (rows if bank.terms else rows * row) * side.root
    size = made.norm(dim=-1, keepdim=True)
    for _ in range(2):  # once more: the rounding error is then relative to what is left
        made = made - (made @ background.T) @ background
    return _scaled(made, size)


def _scaled(made: Tensor, size: Tensor) -> Tensor:
    """Rows (…, n) of norm 1; zero where less than a small part of `size` (…, 1) is left, or where it is no number."""
    left = made.norm(dim=-1, keepdim=True)
    usable = (left > LEAST_NEW * size) & torch.isfinite(size)
    return torch.where(usable, made / torch.where(usable, left, 1.0), 0.0)


def _best_in_bounds(bank: PairBank, side: UnitTargets, bounds: Tensor, k: int) -> FoundPairs:
    """The k best pairs of each target of a group, from the units whose bounds (m, units) let them be there."""
    top = bounds.topk(min(_MAX_UNITS, bounds.shape[1]), dim=1)
    first = torch.zeros_like(top.values, dtype=torch.bool)
    first[:, :k] = top.values[:, :k] > 0
    found = _in_units(bank, side, top.indices, first, k)
    kth = torch.full((len(bounds),), -1.0, dtype=torch.float64, device=bounds.device)
    counts = torch.bincount(found.target, minlength=len(bounds))
    last = torch.cumsum(counts, 0) - 1
    full = counts == k
    kth[full] = found.r_squared[last[full]]
    further = (top.values >= kth[:, None]) & (top.values > 0) & ~first
    if not bool(further.any()):
        return found
    return _best_of_each(FoundPairs.joined([found, _in_units(bank, side, top.indices, further, k)]), k)


def _in_units(bank: PairBank, side: UnitTargets, units: Tensor, chosen: Tensor, k: int) -> FoundPairs:
    """The k best pairs of each target in those of its `units` (m, u) int64 that are `chosen` (m, u)."""
    target, place = torch.nonzero(chosen, as_tuple=True)
    return _best_of_each(_pairs_of_units(bank, side, units[target, place], target, k), k)


def _pairs_of_units(bank: PairBank, side: UnitTargets, unit: Tensor, target: Tensor, k: int) -> FoundPairs:
    """The k best pairs in each of these units, each for one target; both (m,) int64."""
    width = min(BLOCK, len(bank.right))
    step = max(1, (_EVALUATED_GPU if bank.left.is_cuda else _EVALUATED) // (width * bank.left.shape[1]))
    parts = list(zip(torch.split(unit, step), torch.split(target, step), strict=True))
    found: list[FoundPairs | None] = [None] * len(parts)

    def work(at: int, _: Budget) -> int:
        found[at] = _evaluated_part(bank, side, *parts[at], min(k, width))
        return 1

    jobs: list[Job] = [partial(work, at) for at in range(len(parts))]
    run_jobs(jobs, NO_LIMIT, 1 if bank.left.is_cuda else available_cores())
    none = unit.new_empty(0)
    empty = FoundPairs(none, none, none, side.unit.new_empty(0))
    return FoundPairs.joined([empty, *(one for one in found if one is not None)])


def _evaluated_part(bank: PairBank, side: UnitTargets, unit: Tensor, target: Tensor, k: int) -> FoundPairs:
    blocks, width = _blocks(bank), min(BLOCK, len(bank.right))
    i = unit // blocks
    j = (unit % blocks)[:, None] * BLOCK + torch.arange(width, device=unit.device)
    r_squared = _r_squared(bank, side, i, j.clamp_max(len(bank.right) - 1), target)
    least = (i + bank.terms)[:, None] if bank.same else torch.zeros_like(i)[:, None]
    top = torch.where((j < len(bank.right)) & (j >= least), r_squared, -1.0).topk(k, dim=1)
    one, other = (side[:, None].expand(-1, k).flatten() for side in (target, i))
    return FoundPairs(one, other, j.gather(1, top.indices).flatten(), top.values.flatten())


def _best_of_each(pairs: FoundPairs, k: int) -> FoundPairs:
    """The k best of each target; equals in the order of i and j."""
    by = torch.arange(len(pairs.i), device=pairs.i.device)
    for key, descending in ((pairs.j, False), (pairs.i, False), (pairs.r_squared, True), (pairs.target, False)):
        by = by[torch.argsort(key[by], descending=descending, stable=True)]
    target, r_squared = pairs.target[by], pairs.r_squared[by]
    place = torch.arange(len(by), device=by.device) - torch.searchsorted(target, target)
    kept = (place < k) & (r_squared > 0)
    by = by[kept]
    return FoundPairs(target[kept], pairs.i[by], pairs.j[by], r_squared[kept])


def _r_squared(bank: PairBank, side: UnitTargets, i: Tensor, j: Tensor, target: Tensor) -> Tensor:
    """R² (m, width) of rows i (m,) with rows j (m, width) for one target (m,) each."""
    left, t = bank.left[i], side.unit[target]
    made = (bank.right[j] if bank.terms else bank.right[j] * left[:, None]) * side.root
    size = made.norm(dim=-1, keepdim=True)
    background, base = [side.one.expand_as(t)], torch.zeros_like(t[:, 0])
    if bank.terms:
        background.append(own_directions(left, side))
        base = (background[1] * t).sum(dim=1).square()
    for _ in range(2):
        for one in background:
            made = made - (made @ one[:, :, None]) * one[:, None]
    along: Tensor = (_scaled(made, size) @ t[:, :, None])[:, :, 0]
    return base[:, None] + along.square()
