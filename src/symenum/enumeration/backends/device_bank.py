"""The bank on a device: the same columns as `bank.build_bank` makes, by operations of fixed shape.

Nothing here waits for a number from the device, so that a whole pass can be recorded once and replayed (a CUDA graph).
What `build_bank` drops is therefore moved to the end instead, and two counts on the device say where the end begins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from symenum.enumeration.architecture import Architecture
from symenum.enumeration.backends.factors import OUT_OF_RANGE
from symenum.enumeration.bank import NONE, Bank
from symenum.enumeration.distinct import DATA_TOLERANCE, KEY_TOLERANCE, SIGNATURE, key_direction, signature_directions
from symenum.enumeration.forms import FORM_OPERATORS
from symenum.enumeration.layer import SymbolLayer, apply_poisoned, children
from symenum.operators import Kind, Operator

__all__ = ["BLOCK", "BankPlan", "DeviceBank", "padded", "strict_function"]

BLOCK = 128  # the columns of a bank are a multiple of this
_BIG = 1 << 62
_NEVER = torch.iinfo(torch.int64).max // 4  # the complexity of what does not exist, as in `bank`
_CHUNK = 1 << 25  # numbers of the layer below that are in memory at a time
_TINY = torch.finfo(torch.float64).tiny
_NAN = float("nan")
_HASH = 0x1E3779B97F4A7C15
# NaN in, NaN out: these need no poisoning of their own. (NaN**0 is 1.)
_STRICT = FORM_OPERATORS | {"identity", "neg", "inv", "sin", "cos", "tan", "exp", "log", "sqrt", "tanh", "sinh", "cosh"}


def padded(columns: int) -> int:
    """The next multiple of BLOCK."""
    return -(-columns // BLOCK) * BLOCK


class DeviceBank(NamedTuple):
    """As `bank.Bank`, with `columns` a multiple of BLOCK; of these only the first `counts[0]` are there.

    `values` (columns, rows) float64, zero beyond the end; `plus`, `minus` and their complexities (columns,) int64;
    `counts` (2,) int32: the columns, and the first of them, which have both signs; `stand_in` (classes,) int64.
    """

    values: Tensor
    plus: Tensor
    minus: Tensor
    plus_complexity: Tensor
    minus_complexity: Tensor
    counts: Tensor
    stand_in: Tensor

    @staticmethod
    def of(bank: Bank, device: torch.device) -> DeviceBank:
        """A bank of the CPU, moved."""
        more = padded(len(bank)) - len(bank)
        pad = torch.nn.functional.pad
        counts = torch.tensor([len(bank), bank.paired], dtype=torch.int32)
        parts = (
            pad(bank.values, (0, 0, 0, more)),
            pad(bank.plus, (0, more), value=NONE),
            pad(bank.minus, (0, more), value=NONE),
            pad(bank.plus_complexity, (0, more), value=_NEVER),
            pad(bank.minus_complexity, (0, more), value=_NEVER),
            counts,
            bank.stand_in,
        )
        return DeviceBank(*(part.to(device) for part in parts))

    def to_bank(self) -> Bank:
        """The same on the CPU."""
        end = int(self.counts[0])
        columns = (self.values, self.plus, self.minus, self.plus_complexity, self.minus_complexity)
        return Bank(*(part[:end].cpu() for part in columns), self.stand_in.cpu())


@dataclass(frozen=True)
class _BlockPlan:
    operator: Operator
    left: Tensor  # int64, for the triangled ones
    right: Tensor


class BankPlan:
    """What can be known before the values: the operands of every output, complexities, classes; on `device`."""

    def __init__(
        self, architecture: Architecture, slot_complexity: tuple[int, ...], rows: int, device: torch.device
    ) -> None:
        def moved(tensor: Tensor) -> Tensor:
            return tensor.to(device)

        self.columns = padded(architecture.columns)
        self.rows = rows
        self.device = device
        self._layers = [_plan_layer(layer, device) for layer in architecture.lower_layers]
        raw = architecture.raw_width
        complexity = architecture.complexity(torch.tensor(slot_complexity), torch.arange(raw))
        # The order in which the outputs of a class are asked to stand for it: the kept one, then the simplest.
        kept = torch.zeros(raw, dtype=torch.bool)
        kept[architecture.kept] = True
        order = torch.argsort(complexity, stable=True)
        order = order[torch.argsort((~kept[order]).long(), stable=True)]
        rank = torch.empty_like(order)
        rank[order] = torch.arange(raw)
        classes = len(architecture.kept)
        _, pair = torch.unique(architecture.twin, return_inverse=True)
        self._by_rank, self._rank, self._complexity = moved(order), moved(rank), moved(complexity)
        self._class_of = moved(torch.where(architecture.class_of < 0, classes, architecture.class_of))
        self._pair = moved(pair)
        self._pairs, self._classes = int(pair.max()) + 1, classes
        self._class = torch.arange(classes, device=device)
        self._self = torch.arange(self._pairs, device=device)
        self._buckets = 1 << (16 * self._pairs - 1).bit_length()
        self.directions = moved(signature_directions(rows)) if rows > SIGNATURE else None
        self._key_direction = moved(key_direction(min(rows, SIGNATURE)))

    def build(self, slots: Tensor, scale2: Tensor) -> DeviceBank:
        """The bank for slot values (inputs, rows) and the mean square of y (1,), float64 on the device."""
        step = max(1, _CHUNK // len(self._rank))
        parts = [slots[:, start : start + step] for start in range(0, self.rows, step)]
        outputs = self._outputs(parts[0])
        finite = torch.isfinite(outputs).all(dim=1)
        for part in parts[1:]:
            finite &= torch.isfinite(self._outputs(part)).all(dim=1)
        best = torch.full((self._classes + 1,), _BIG, device=self.device)
        best.scatter_reduce_(0, self._class_of, torch.where(finite, self._rank, _BIG), reduce="amin")
        best = best[:-1]
        alive = best < _BIG
        stand_in = self._by_rank[best.clamp(max=len(self._rank) - 1)]
        # One column for a class and its negative: the first of the two that is alive.
        stored = torch.full((self._pairs,), self._classes, device=self.device)
        stored.scatter_reduce_(0, self._pair, torch.where(alive, self._class, self._classes), reduce="amin")
        chosen = stand_in[stored.clamp(max=self._classes - 1)]
        pieces = [outputs[chosen]] + [self._outputs(part)[chosen] for part in parts[1:]]
        values = pieces[0] if len(pieces) == 1 else torch.cat(pieces, dim=1)
        dead = stored == self._classes
        values = torch.where(dead[:, None], 0.0, values)
        negative = stored[self._pair] != self._class
        key = torch.where(alive, self._complexity[stand_in] * self._classes + self._class, _BIG)
        return self._merge(values, dead, negative, key, stand_in, scale2.sqrt())

    def _outputs(self, slots: Tensor) -> Tensor:
        """All outputs (raw width, rows) of the layer below the last one, NaN where they fail."""
        for layer in self._layers:
            out = torch.cat([_apply(block, slots) for block in layer])
            slots = out.nan_to_num_(nan=_NAN, posinf=_NAN, neginf=_NAN)
        return slots

    def _merge(
        self, values: Tensor, dead: Tensor, negative: Tensor, key: Tensor, stand_in: Tensor, scale: Tensor
    ) -> DeviceBank:
        """Merge equal columns; class c has the value ∓values[pair], and key complexity·classes + c (int64)."""
        marks = values if self.directions is None else values @ self.directions
        largest = marks.abs().amax(dim=1).clamp_min(_TINY)
        scaled = marks / largest[:, None]
        norm = scaled.norm(dim=1).clamp_min(_TINY)
        along = scaled @ self._key_direction
        flipped = along < 0
        marks = torch.where(flipped[:, None], -marks, marks)
        simplest = torch.full((self._pairs,), _BIG, device=self.device)
        simplest.scatter_reduce_(0, self._pair, key, reduce="amin")
        leader = self._leaders(marks, largest, largest.log() + norm.log() + along.abs() / norm, simplest)

        # The simplest member of each sign, for each group.
        group = leader[self._pair]
        minus_side = negative ^ flipped[self._pair]
        best = torch.full((2 * self._pairs,), _BIG, device=self.device)
        best.scatter_reduce_(0, group + self._pairs * minus_side.long(), key, reduce="amin")
        plus, minus = best[: self._pairs], best[self._pairs :]
        only_minus = plus == _BIG
        plus, minus = torch.where(only_minus, minus, plus), torch.where(only_minus, plus, minus)
        # Those with both signs first, in each group those out of range of the bounds last, what is gone at the end.
        gone = dead | (leader != self._self)
        size = values.abs()
        high, low = size.amax(dim=1), size.amin(dim=1)
        far = (high > OUT_OF_RANGE * torch.minimum(scale, scale.sqrt())) | (
            (low > 0) & (low * scale.sqrt() * OUT_OF_RANGE < 1)
        )
        order = torch.argsort(torch.where(gone, 4, (minus == _BIG) * 2 + far).byte(), stable=True)
        gone = gone[order]
        turned = (flipped ^ only_minus)[order]
        ordered = values[order] * torch.where(gone, 0.0, torch.where(turned, -1.0, 1.0))[:, None]
        plus, minus = plus[order], torch.where(gone, _BIG, minus[order])
        counts = torch.stack([(~gone).sum(), (minus != _BIG).sum()]).int()
        members = torch.stack([plus, minus])
        more = self.columns - self._pairs
        pad = torch.nn.functional.pad
        classes = pad(torch.where(members == _BIG, NONE, members % self._classes), (0, more), value=NONE)
        costs = pad(torch.where(members == _BIG, _NEVER, members // self._classes), (0, more), value=_NEVER)
        return DeviceBank(pad(ordered, (0, 0, 0, more)), *classes, *costs, counts, stand_in)

    def _leaders(self, marks: Tensor, largest: Tensor, key: Tensor, simplest: Tensor) -> Tensor:
        """For each column the index of the simplest one that equals it, or its own; see `distinct.representatives`.

        Columns of nearly one key meet in one bucket, the simplest is its head, and those that equal it are merged. A
        second round with shifted buckets finds what stood on both sides of a border. What both miss costs time only.
        """
        leader = self._self
        for shift in (0.0, 0.5):
            own = (key / KEY_TOLERANCE + shift).floor().long() * _HASH
            bucket = (own >> 30) & (self._buckets - 1)
            lowest = torch.full((self._buckets,), _BIG, device=self.device)
            lowest.scatter_reduce_(0, bucket, torch.where(leader == self._self, simplest, _BIG), reduce="amin")
            head = self._pair[lowest[bucket] % self._classes]
            scale = torch.maximum(largest, largest[head])
            distance = ((marks - marks[head]) / scale[:, None]).norm(dim=1)
            equal = (distance <= DATA_TOLERANCE * marks.shape[1] ** 0.5) & (simplest < _BIG)
            leader = torch.where(equal & (leader == self._self), leader[head], leader)
        return leader


def _plan_layer(layer: SymbolLayer, device: torch.device) -> list[_BlockPlan]:
    plans = []
    for block in layer.blocks:
        offsets = torch.arange(block.size if block.operator.kind is Kind.TRIANGLED else 0)
        left, right = children(block.operator.kind, offsets, layer.width)
        plans.append(_BlockPlan(block.operator, left.to(device), (left if right is None else right).to(device)))
    return plans


def _apply(block: _BlockPlan, below: Tensor) -> Tensor:
    """The outputs (size, rows) of one operator on all its operands, which are finite or NaN; infinite where it fails."""
    apply = strict_function(block.operator)
    if block.operator.kind is Kind.UNARY:
        return apply(below, None)
    if block.operator.kind is Kind.SQUARED:
        return apply(below[:, None], below[None]).flatten(0, 1)
    return apply(below[block.left], below[block.right])


def strict_function(operator: Operator) -> Callable[[Tensor, Tensor | None], Tensor]:
    """The operator's values on operands that are finite or NaN; NaN where an operand is."""
    if operator.name not in _STRICT:
        return partial(apply_poisoned, operator)
    return lambda left, right: operator.function(left) if right is None else operator.function(left, right)
