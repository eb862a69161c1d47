"""Meeting in the middle: y = g(a + α·f(v, w) + β), with the operators of g undone on y and f made of pairs of features.

Inverse steps take y to targets (`targets`), pairs of small features make functions from below, and a scan says which
target is which function, up to a scale α and an offset β. So a law of eight operators is found from two sides, each of
four. There are two scans. *Exact* meetings look up all pairs in an index of all targets: only data without noise have
them, and a hundred thousand targets cost no more than one. *Near* meetings judge each pair for each target by least
squares: they bear noise, and constants inside that a later fit finds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor

from symenum.core.budget import NO_LIMIT, Budget
from symenum.core.devices import ANY_WORK, choose_devices
from symenum.expressions import Constant, Expression, apply
from symenum.expressions.candidate import Candidate
from symenum.heads.features import Features
from symenum.heads.head import Priced
from symenum.heads.response import ONE, Data, Response
from symenum.heads.small_features import build_small_features
from symenum.heads.targets import Targets, build_targets, inverse_steps
from symenum.heads.transforms import LARGEST_RESPONSE, weights_after
from symenum.operators import Operator
from symenum.operators.traits import ARITHMETIC, Role
from symenum.scans.best_pairs import run_on_best_device
from symenum.scans.many_targets import FoundPairs, Group, PairBank, best_pairs_of_targets
from symenum.scans.matches import KEY_SAMPLES, Forms, Index, find_matches

__all__ = ["WORK_OF_A_MEETING", "ExactMeetings", "Join", "Meetings", "NearMeetings", "joins_of"]

WORK_OF_A_MEETING = 0.7
"""Work units of the longest slices."""
_MIN_ROWS = 12  # below which too many functions meet by chance; as many are compared in exact meetings
_MAX_SLOTS = 10  # with more the smallest targets and features are too few to meet
_NEAR_ROWS = 32  # rows of near meetings, as in a pass of the network
_SAME = 1e-6  # relative residual up to which a target is a function: more than p and q are compared to
_FITTED = 30  # meetings of a slice that are fitted: the smallest, or the best
_CONFIRMED = 12  # matches of a block that are looked at on all rows, those of the smallest targets
_MAX_SLOPE = 1e4  # largest weight of a row in units of the median, as in `transforms`
_PARTS = 1  # operators of a part that a step joins with a target, at most: each part makes six steps
# What two busy cores do in a second, and what a GPU does; rounded from trials and benchmarks/many_targets.py.
_MADE = 3e5  # targets and features made, beyond the `_MAKING` that few of them take, too,
_MATCHED = 5e7  # pairs looked up,
_MATCHED_INSIDE = 2e7  # those with a function around them, or joined by a power,
_JUDGED = 1.2e8  # pairs judged for one target,
_JUDGED_ON_GPU = 4e11
_MAKING = 0.4  # seconds: hundreds of steps are taken one by one, from targets of each size
_STEM, _ROW = 1e-3, 8.5e-5  # seconds of a CPU for each stem, and for each feature that it is judged with, beyond pairs


@dataclass(frozen=True)
class Sides:
    """How many targets there are, how many features, and of how many operators two of them have together at most.

    `inside`: the same of pairs that are arguments of a function. `parts`: features that are taken from each target, in
    near meetings.
    """

    targets: int
    features: int
    pair: int = 0
    inside: int = 0
    parts: int = 0

    @property
    def work(self) -> float:
        """Work units of making both."""
        return _MAKING + (self.targets + self.features) / _MADE


# So that a round of exact meetings takes about 1, 5 and 30 s; what half and twice of each find was not measured.
_EXACT = (Sides(10_000, 4_000, 3, 1), Sides(100_000, 60_000, 4, 3), Sides(300_000, 250_000, 5, 4))
_NEAR = Sides(3_000, 300, parts=127)
_NEAR_ON_GPU = Sides(30_000, 3_000, parts=255)


@dataclass(frozen=True)
class Join:
    """f(v, w) = outer(binary(v, w)), or without an outer function."""

    binary: Operator
    outer: Operator | None = None

    def expression(self, left: Expression, right: Expression) -> Expression:
        """The function of two features."""
        inner = apply(self.binary, left, right)
        return inner if self.outer is None else apply(self.outer, inner)

    @property
    def mirrored(self) -> bool:
        """Whether f(v, w) and f(w, v) are one up to scale and offset, as those of a difference."""
        return self.binary.commutative or (self.binary.role is Role.DIFFERENCE and self.outer is None)

    @property
    def rate(self) -> float:
        """Pairs that two cores look up in a second."""
        return _MATCHED if self.outer is None and self.binary.role in ARITHMETIC else _MATCHED_INSIDE


def joins_of(operators: Sequence[Operator], *, inside: bool) -> tuple[Join, ...]:
    """Pairs joined by each binary operator; or those `inside` each function that no step undoes."""
    binary = [one for one in operators if one.arity == 2 and one.form is None]
    if not inside:
        return tuple(Join(one) for one in binary)
    undone = {Role.IDENTITY, Role.NEGATION, Role.RECIPROCAL, Role.EXPONENTIAL, Role.LOGARITHM, Role.ROOT}
    outer = [one for one in operators if one.arity == 1 and one.role not in undone and not one.traits.monotone]
    return tuple(Join(one, function) for function in outer for one in binary)


@dataclass(frozen=True)
class Block:
    """Pairs (i, j), joined, of features of `low` and `high` operators, i in `rows` of the first; and their work."""

    join: Join
    low: int
    high: int
    rows: range
    work: float


def _packed(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Neighbours together, as many as fit into a slice."""
    some: list[Block] = []
    for block in blocks:
        if some and sum(one.work for one in some) + block.work > WORK_OF_A_MEETING:
            yield some
            some = []
        some.append(block)
    if some:
        yield some


@dataclass(frozen=True)
class Meetings:
    """Both kinds of meetings on the slots of `data`, in slices of less than a second, from small to large."""

    data: Data
    operators: tuple[Operator, ...]
    device: str
    _made: dict[str, tuple[Sides, object]] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def possible(self) -> bool:
        """Whether there are few slots, and rows enough to tell functions apart."""
        return len(self.data.stand_ins) <= _MAX_SLOTS and len(self.data.scan_rows) >= _MIN_ROWS

    def exact(self) -> Iterator[Priced]:
        """Pairs of ever more operators, joined by each operator and inside functions, with ever more targets."""
        for sides in _EXACT:
            yield Priced(partial(self._making, self._exact, sides), sides.work)
            meetings = self._exact(sides, NO_LIMIT)
            plain, inside = (joins_of(self.operators, inside=one) for one in (False, True))
            blocks = [
                block
                for total in range(max(sides.pair, sides.inside) + 1)
                for joins, most in ((plain, sides.pair), (inside, sides.inside))
                for low in range(total + 1 if total <= most else 0)
                for block in meetings.blocks(joins, low, total - low)
            ]
            for packed in _packed(blocks):
                yield Priced(partial(meetings.scan, packed), sum(block.work for block in packed))

    def near(self) -> Iterator[Priced]:
        """Targets one after another, the smallest first, each less a part or none, with the pairs of few features."""
        gpu = bool(choose_devices(self.device, work=ANY_WORK))
        sides, rate = (_NEAR_ON_GPU, _JUDGED_ON_GPU) if gpu else (_NEAR, _JUDGED)
        yield Priced(partial(self._making, self._near, sides), sides.work)
        meetings = self._near(sides, NO_LIMIT)
        features = len(meetings.products)
        judged = 2 * features**2 * (len(meetings.parts) + 1)  # products, quotients both ways, and two terms
        work = judged / rate + (0.0 if gpu else _STEM + _ROW * features)
        count = max(1, int(WORK_OF_A_MEETING / work))
        for first in range(0, len(meetings.stems), count):
            some = meetings.stems[first : first + count]
            yield Priced(partial(meetings.scan, some), len(some) * work)

    def _making(self, make: Callable[[Sides, Budget], object], sides: Sides, budget: Budget) -> list[Candidate]:
        """A slice that makes what others use, and finds nothing."""
        make(sides, budget)
        return []

    def _exact(self, sides: Sides, budget: Budget) -> ExactMeetings:
        """Kept until others are asked for."""
        known = self._made.get("exact")
        if known is None or known[0] != sides or not isinstance(known[1], ExactMeetings):
            self._made.pop("exact", None)
            made = ExactMeetings(self.data, *self._sides(sides, _MIN_ROWS, budget))
            self._made["exact"] = sides, made
            return made
        return known[1]

    def _near(self, sides: Sides, budget: Budget) -> NearMeetings:
        known = self._made.get("near")
        if known is None or not isinstance(known[1], NearMeetings):
            made = NearMeetings.of(self.data, *self._sides(sides, _NEAR_ROWS, budget), sides.parts, self.device, budget)
            self._made["near"] = sides, made
            return made
        return known[1]

    def _sides(self, sides: Sides, count: int, budget: Budget) -> tuple[Targets, Features, Tensor]:
        """Targets and features, and the rows that they are compared on, spread evenly over those that are scanned."""
        scanned = self.data.scan_rows
        at = torch.linspace(0, len(scanned) - 1, min(len(scanned), count), dtype=torch.float64).round().long()
        rows = scanned[at]
        slots = self.data.stand_ins
        values = torch.stack([self.data.evaluate(slot)[rows] for slot in slots])
        parts = build_small_features(slots, values, self.operators, sides.targets, _PARTS, budget)
        targets = build_targets(self.data.target.y[rows], inverse_steps(self.operators, parts), sides.targets, budget)
        with_one = torch.cat([values, torch.ones_like(values[:1])])
        features = build_small_features(
            [*slots, Constant(1)], with_one, self.operators, sides.features, max(sides.pair, _PARTS), budget
        )
        return targets, features, rows


def _fit(data: Data, targets: Targets, target: int, terms: Sequence[Expression]) -> Candidate | None:
    """The law in which a target is a sum of these terms, coefficients fitted; None where a step is not defined."""
    t, slope = targets.on(target, data.target.y, data.evaluate)
    if not float(t.abs().max()) < LARGEST_RESPONSE:  # false for NaN
        return None
    weight = weights_after(data.target.weight, slope)
    return Response(data, "a target", t, weight, partial(targets.back, target)).fit(terms)


def _fitted(
    data: Data, targets: Targets, meetings: Sequence[tuple[int, tuple[Expression, ...]]], budget: Budget
) -> list[Candidate]:
    """The laws of targets and the terms that meet them, up to the first exact one; one of them in any case."""
    found: list[Candidate] = []
    for place, (target, terms) in enumerate(meetings):
        if place and budget.over():
            break
        law = _fit(data, targets, target, [ONE, *terms])
        if law is not None:
            found.append(law)
            if data.is_law(law):
                break
    return found


class ExactMeetings:
    """The pairs of features that equal a target up to scale and offset, and the laws that follow from them."""

    def __init__(self, data: Data, targets: Targets, features: Features, rows: Tensor) -> None:
        self._data, self._targets, self._features = data, targets, features
        self._index = Index(targets.values[:, :KEY_SAMPLES])
        self._sizes = features.sizes
        self._levels = [torch.nonzero(self._sizes == size).flatten() for size in range(int(self._sizes.max()) + 1)]

    def blocks(self, joins: Sequence[Join], low: int, high: int) -> Iterator[Block]:
        """All pairs of a feature of `low` operators and one of `high`, in blocks that fit into a slice."""
        if max(low, high) >= len(self._levels):
            return
        left, right = len(self._levels[low]), len(self._levels[high])
        for join in joins:
            if join.mirrored and low > high:
                continue
            work = left * right / (2 if join.mirrored and low == high else 1) / join.rate
            parts = max(1, round(work / WORK_OF_A_MEETING))
            for number in range(parts):
                rows = range(left * number // parts, left * (number + 1) // parts)
                yield Block(join, low, high, rows, work / parts)

    def scan(self, blocks: Sequence[Block], budget: Budget) -> list[Candidate]:
        """The laws of all matches in these blocks; the smallest are fitted."""
        found: list[tuple[int, int, Expression]] = []
        for block in blocks:
            if not budget.over():
                found += self._matches(block, budget)
        meetings = [(target, (f,)) for _, target, f in sorted(found, key=lambda one: one[0])]
        return _fitted(self._data, self._targets, meetings[:_FITTED], budget)

    def _matches(self, block: Block, budget: Budget) -> list[tuple[int, int, Expression]]:
        """The size of the law around the target, the target, and the function that it is, also on all other rows."""
        join, left, right = block.join, self._levels[block.low], self._levels[block.high]
        outer = None if join.outer is None else join.outer.function
        forms = Forms(join.binary.function, join.mirrored and block.low == block.high, outer)
        V = self._features.values
        found = find_matches(self._index, V[left], V[right], forms, self._equal, budget, rows=block.rows)
        size = self._targets.size[found.target]
        out: list[tuple[int, int, Expression]] = []
        for at in torch.argsort(size, stable=True)[:_CONFIRMED].tolist():
            pair = (self._features.expression(int(side[at])) for side in (left[found.i], right[found.j]))
            f, target = join.expression(*pair), int(found.target[at])
            if self._agree(target, f):
                out.append((int(size[at]), target, f))
        return out

    def _agree(self, target: int, f: Expression) -> bool:
        """Whether a target is a function on all rows."""
        t = self._targets.on(target, self._data.target.y, self._data.evaluate)[0]
        return bool(_alike(self._data.evaluate(f)[None], t[None]))

    def _equal(self, functions: Tensor, target: Tensor) -> Tensor:
        """Whether functions (m, rows) equal targets (m,) up to scale and offset."""
        return _alike(functions, self._targets.values[target])


def _alike(functions: Tensor, targets: Tensor) -> Tensor:
    """Whether rows (m, n) are equal up to scale and offset, (m,)."""
    ours, theirs = _centred(functions), _centred(targets)
    along = (ours * theirs).sum(dim=1, keepdim=True)
    left: Tensor = torch.linalg.vector_norm(theirs - along * ours, dim=1)
    return left <= _SAME  # false for NaN


def _centred(values: Tensor) -> Tensor:
    """Rows (m, n) less their mean, of norm 1."""
    rows = values - values.mean(dim=1, keepdim=True)
    size: Tensor = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    return rows / size


@dataclass(frozen=True)
class NearMeetings:
    """The pairs of features that explain each target best, and the laws of those that leave least of y.

    `stems`: targets whose last step is no subtraction; a scan takes each of them less each of the `parts`, which all
    have the row weights of the stem. `products`: features up to scale; `terms`: features up to scale and offset.
    """

    data: Data
    targets: Targets
    stems: tuple[int, ...]
    parts: Features
    products: Features
    terms: Features
    rows: Tensor
    device: str

    @staticmethod
    def of(
        data: Data, targets: Targets, features: Features, rows: Tensor, parts: int, device: str, budget: Budget
    ) -> NearMeetings:
        """Of all targets, and the first features as parts."""
        stems = tuple(
            number
            for number in range(len(targets))
            if (step := targets.last_step(number)) is None or not step.subtracts
        )
        varying = features.up_to_affine(budget)
        some = varying.take(torch.arange(min(parts, len(varying))))
        return NearMeetings(data, targets, stems, some, features.up_to_scale(budget), varying, rows, device)

    def scan(self, stems: Sequence[int], budget: Budget) -> list[Candidate]:
        """The laws of the targets of some stems."""
        groups = [self._group(stem) for stem in stems]
        found: list[_Near] = []
        for features, role, bank in self._banks():
            found += self._meetings(self._best(bank, groups, budget), groups, stems, features, role)
            if budget.over():
                break
        meetings = [(one.stem, self._terms(one)) for one in _worth_fitting(found)]
        return _fitted(self.data, self.targets, meetings, budget)

    def _group(self, stem: int) -> Group:
        """A stem, and it less each part, with its row weights."""
        none = torch.zeros_like(self.targets.values[:1])
        weight = self.data.target.weight[self.rows]
        root = weights_after(weight / weight.sum(), self.targets.slope[stem]).sqrt()
        return Group(self.targets.values[stem] - torch.cat([none, self.parts.values]), root)

    def _banks(self) -> Iterator[tuple[Features, Role, PairBank]]:
        V, C = self.products.values, self.terms.values
        roles = {operator.role for operator in self.products.table.operators}
        if Role.PRODUCT in roles:
            yield self.products, Role.PRODUCT, PairBank(V, V, terms=False, same=True)
        if Role.QUOTIENT in roles:
            divides = self.products.take(torch.nonzero((V != 0).all(dim=1)).flatten())
            yield divides, Role.QUOTIENT, PairBank(divides.values, 1 / divides.values, terms=False, same=False)
        yield self.terms, Role.SUM, PairBank(C, C, terms=True, same=True)

    def _best(self, bank: PairBank, groups: Sequence[Group], budget: Budget) -> FoundPairs:
        def run(device: torch.device) -> FoundPairs:
            there = [group.to(device) for group in groups]
            return best_pairs_of_targets(bank.to(device), there, 1, budget).cpu()

        count = sum(len(group.values) for group in groups)
        work = bank.pairs * count * bank.left.shape[1]
        return run_on_best_device(run, work=work, device=self.device, head="near meetings")

    def _meetings(
        self, pairs: FoundPairs, groups: Sequence[Group], stems: Sequence[int], features: Features, role: Role
    ) -> list[_Near]:
        spread = torch.cat(
            [_spread(group, self.targets.slope[stem]) for group, stem in zip(groups, stems, strict=True)]
        )
        width = len(groups[0].values)
        stem = torch.tensor(stems)[pairs.target // width]
        part = pairs.target % width - 1  # -1: less nothing
        loss = spread[pairs.target] * (1 - pairs.r_squared).clamp_min(0)
        size = self.targets.size[stem] + features.sizes[pairs.i] + features.sizes[pairs.j]
        size += torch.where(part >= 0, 1 + self.parts.sizes[part.clamp_min(0)], 0)
        columns = [column.tolist() for column in (loss, size, stem, part, pairs.i, pairs.j)]
        return [_Near(features, role, *row) for row in zip(*columns, strict=True)]

    def _terms(self, near: _Near) -> tuple[Expression, ...]:
        """What the law has coefficients for."""
        pair = near.features.expression(near.i), near.features.expression(near.j)
        terms = pair if near.role is Role.SUM else (apply("mul" if near.role is Role.PRODUCT else "div", *pair),)
        return terms if near.part < 0 else (*terms, self.parts.expression(near.part))


@dataclass(frozen=True)
class _Near:
    """A pair of features for a stem less a part (-1: less none), with the loss on y to first order and its size."""

    features: Features
    role: Role
    loss: float
    size: int
    stem: int
    part: int
    i: int
    j: int


def _spread(group: Group, slope: Tensor) -> Tensor:
    """(m,): the mean square of what a constant leaves of each target, in units of y to first order."""
    centred = group.values - (group.values @ group.root.square())[:, None]
    square = slope.square()
    return (centred.square() * square.clamp_max(_MAX_SLOPE * square.median())).mean(dim=1)


def _worth_fitting(found: Sequence[_Near]) -> list[_Near]:
    """Those of the lowest loss, and for each size those that beat all smaller ones; the best first."""
    by_loss = sorted(found, key=lambda one: (one.loss, one.size))
    chosen = by_loss[: _FITTED // 2]
    best = chosen[-1].loss if chosen else 0.0
    lowest = float("inf")
    for one in sorted(found, key=lambda one: (one.size, one.loss)):
        if one.loss < lowest:
            lowest = one.loss
            if lowest > best:  # else it is among them already
                chosen.append(one)
    return sorted(chosen, key=lambda one: (one.loss, one.size))[:_FITTED]
