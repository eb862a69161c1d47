"""What a network can build, before any data: its layers, its distinct sub-expressions, its candidates, its memory.

An architecture is `inputs` slots and `layers` symbol layers over one operator set. The distinct outputs of the last
layer but one feed the last layer, whose outputs are the candidates: they have numbers and are never stored. Of an
output and its negative only one is stored (a *column* of the bank); the other is the same column with a sign.

The mask of distinct outputs depends on the architecture only, so it is kept in the cache folder (`core.files`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from symenum.core.files import cached_numbers, key_of
from symenum.core.threads import torch_threads
from symenum.engine.distinct import canonical_signs, representatives_by_domain
from symenum.engine.layer import SymbolLayer, layer_sizes
from symenum.expressions import Expression, Variable, apply, evaluate, sample_points
from symenum.operators import OPERATORS, Operator

__all__ = ["Architecture", "check_bank_fits", "check_mask_fits", "complexity_rank", "fits_memory"]


_CPU = torch.device("cpu")
_MASK_VERSION = 2  # to be raised when duplicates are found in another way: older cache files are then ignored
_CHUNK = 1 << 22  # values in memory at a time where only their finiteness is asked for: 32 MiB of float64
# Copies of the values, each 8 bytes a number, that are in memory at the same time.
_MASK_COPIES = 6  # of the values at the random points while duplicates are found, temporaries included
_BANK_COPIES = 2  # of the bank: as computed, and in its final order
_WORKSPACE = 128 << 20  # bytes set aside for the tiles (4 MiB each in float64) and factors of a few threads
_MOST_LAYERS = 100  # far more than memory allows with a binary operator; candidates are rebuilt by recursion
_SLOT_BYTES = 64  # assumed for each slot before any layer, to refuse an absurd number of inputs at once


@dataclass(frozen=True)
class Architecture:
    """`layers` symbol layers of `operators` on `inputs` slots; `last`: the operators of the last one, if fewer."""

    inputs: int
    operators: tuple[Operator, ...]
    layers: int
    last: tuple[Operator, ...] | None = None

    @property
    def last_operators(self) -> tuple[Operator, ...]:
        """The operators of the last layer."""
        return self.operators if self.last is None else self.last

    @cached_property
    def raw_sizes(self) -> tuple[int, ...]:
        """The paper's layer sizes, before the removal of duplicates: 105, 33705, … for koza on 5 inputs."""
        lower = layer_sizes(self.operators, self.inputs, self.layers - 1)
        return (*lower, SymbolLayer(self.last_operators, lower[-1] if lower else self.inputs).size)

    @property
    def raw_width(self) -> int:
        """The number of outputs below the last layer, before the removal of duplicates."""
        return self.raw_sizes[-2] if self.layers > 1 else self.inputs

    @cached_property
    def lower_layers(self) -> tuple[SymbolLayer, ...]:
        """The layers below the last one, in order."""
        widths = (self.inputs, *self.raw_sizes)
        return tuple(SymbolLayer(self.operators, width) for width in widths[: self.layers - 1])

    @cached_property
    def last_layer(self) -> SymbolLayer:
        """The last layer, whose outputs are the candidates, on the distinct outputs below it."""
        return SymbolLayer(self.last_operators, len(self.kept))

    @property
    def kept(self) -> Tensor:
        """The numbers (ascending int64) of the distinct outputs of the last layer but one: the paper's DR mask.

        Distinct outputs are different functions of independent real inputs. Each represents its *class*: all outputs
        that equal it wherever they are defined. It is the simplest of them.
        """
        return self._mask.kept

    @property
    def twin(self) -> Tensor:
        """For each class the index (int64, into `kept`) of the class that is stored for it: itself, or its negative."""
        return self._mask.twin

    @property
    def class_of(self) -> Tensor:
        """For each output of the last layer but one the index (int64, into `kept`) of its class; -1: finite nowhere."""
        return self._mask.class_of

    @cached_property
    def columns(self) -> int:
        """The number of distinct outputs up to sign: the columns of a bank, before the data make more of them equal."""
        return len(torch.unique(self.twin))

    @property
    def sizes(self) -> tuple[int, ...]:
        """The layers' sizes; the last but one counts distinct outputs up to sign, the last one all candidates."""
        lower = (*self.raw_sizes[:-2], self.columns) if self.layers > 1 else ()
        return (*lower, self.last_layer.size)

    def values(self, slots: Tensor, numbers: Tensor) -> Tensor:
        """Values (len(numbers), rows) of outputs of the last layer but one, for slot values (inputs, rows), float64."""
        below = self._below(slots)
        return below[numbers] if self.layers == 1 else self.lower_layers[-1].forward(below, numbers)

    def finite(self, slots: Tensor, numbers: Tensor) -> Tensor:
        """Whether each of these outputs is finite on every row (bool); their values are in memory a part at a time."""
        below = self._below(slots)
        if self.layers == 1:
            return torch.ones(len(numbers), dtype=torch.bool)
        step = max(1, _CHUNK // max(1, slots.shape[1]))
        out = torch.empty(len(numbers), dtype=torch.bool)
        for start in range(0, len(numbers), step):
            part = slice(start, start + step)
            out[part] = torch.isfinite(self.lower_layers[-1].forward(below, numbers[part])).all(dim=1)
        return out

    def complexity(self, slots: Tensor, numbers: Tensor) -> Tensor:
        """Complexities (int64) of outputs of the last layer but one, from those of the slots (inputs,) int64."""
        for layer in self.lower_layers[:-1]:
            slots = layer.complexity(slots)
        return slots[numbers] if self.layers == 1 else self.lower_layers[-1].complexity(slots, numbers)

    def reconstruct(self, number: int, slots: Sequence[Expression], stand_in: Tensor | None = None) -> Expression:
        """The expression of the candidate of that number (Algorithm 1, step 4).

        `stand_in` (classes,) int64, if given, replaces `kept`: another output of the class, which is finite on the
        data.
        """
        outputs = self.kept if stand_in is None else stand_in
        if not 0 <= number < self.last_layer.size:
            raise ValueError(f"number must be from 0 to {self.last_layer.size - 1}, not {number}")
        layers = (*self.lower_layers, self.last_layer)

        def rebuild(index: int, level: int) -> Expression:
            if level == 0:
                return slots[index]
            operator, operands = layers[level - 1].structure(index)
            if level == self.layers:
                operands = tuple(int(outputs[operand]) for operand in operands)
            return apply(operator, *(rebuild(operand, level - 1) for operand in operands))

        return rebuild(number, self.layers)

    def valued(
        self, numbers: Sequence[int], slots: Sequence[Expression], values: Tensor, stand_in: Tensor
    ) -> list[tuple[Expression, Tensor]]:
        """Of each candidate what `reconstruct` gives, and its values (rows,) for slot values (inputs, rows) float64.

        The values are those that `evaluate` gives to the last bit. What candidates have in common is computed once.
        """
        layers = (*self.lower_layers, self.last_layer)
        known: dict[tuple[int, int], tuple[Expression, Tensor]] = {}

        def rebuild(index: int, level: int) -> tuple[Expression, Tensor]:
            if level == 0:
                return slots[index], values[index]
            if (level, index) not in known:
                operator, operands = layers[level - 1].structure(index)
                if level == self.layers:
                    operands = tuple(int(stand_in[operand]) for operand in operands)
                parts = [rebuild(operand, level - 1) for operand in operands]
                expression = apply(operator, *(part for part, _ in parts))
                known[level, index] = expression, _applied(operator, [value for _, value in parts])
            return known[level, index]

        return [rebuild(number, self.layers) for number in numbers]

    def _below(self, slots: Tensor) -> Tensor:
        for layer in self.lower_layers[:-1]:
            slots = layer.forward(slots)
        return slots

    def prepare(self, device: torch.device) -> None:
        """Find the duplicates on that device, unless they are known.

        If the device has too little memory, or without this call, they are found on the CPU when first asked for. The
        result is the same.
        """
        if "_mask" in vars(self):
            return
        try:
            vars(self)["_mask"] = self._make_mask(device)
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()

    @cached_property
    def _mask(self) -> _Mask:
        return self._make_mask(_CPU)

    def _make_mask(self, device: torch.device) -> _Mask:
        if self.layers == 1:
            itself = torch.arange(self.inputs)  # slots count as distinct; equal values are found on the data
            return _Mask(itself, itself, itself)
        if all(operator in OPERATORS.values() for operator in self.operators):
            names = [(operator.name, operator.complexity, operator.kind) for operator in self.operators]
            key = key_of("mask", _MASK_VERSION, self.inputs, self.layers, names)
            numbers = cached_numbers(key, partial(self._find_distinct, device), self._could_be_mask)
        else:
            numbers = self._find_distinct(device)  # the name of a user's function does not identify it
        return _Mask.unpack(numbers, self.raw_width)

    @torch_threads(1)
    def _find_distinct(self, device: torch.device = _CPU) -> npt.NDArray[np.int64]:
        values = sample_points(self.inputs).T.contiguous().to(device)
        complexity = torch.zeros(self.inputs, dtype=torch.int64, device=device)
        for layer in self.lower_layers:
            values, complexity = layer.forward(values), layer.complexity(complexity)
        found = representatives_by_domain(values, complexity_rank(complexity), wider=True)
        kept = torch.unique(found[found >= 0])
        class_of = torch.where(found >= 0, torch.searchsorted(kept, found), -1)
        values, complexity = values[kept], complexity[kept]
        signed = values.mul_(canonical_signs(values)[:, None])
        # Only of one domain: where an output fails on the data, its negative must fail too.
        twin = representatives_by_domain(signed, complexity_rank(complexity), wider=False)
        return _Mask(class_of, kept, twin).pack()

    def _could_be_mask(self, numbers: npt.NDArray[np.int64]) -> bool:
        if len(numbers) <= self.raw_width or (len(numbers) - self.raw_width) % 2:
            return False
        class_of, kept, twin = _Mask.unpack(numbers, self.raw_width)
        return bool(
            (class_of >= -1).all()
            and (class_of < len(kept)).all()
            and (kept >= 0).all()
            and (kept < self.raw_width).all()
            and (kept.diff() > 0).all()
            and torch.equal(class_of[kept], torch.arange(len(kept)))
            and (twin >= 0).all()
            and (twin < len(kept)).all()
            and torch.equal(twin[twin], twin)
        )


def _applied(operator: Operator, operands: Sequence[Tensor]) -> Tensor:
    """The operator on operands (rows,) float64, as `evaluate` computes it: a form is written out."""
    if operator.form is None:
        return operator.function(*operands)
    names = [f"x{i}" for i in range(len(operands))]
    return evaluate(apply(operator, *map(Variable, names)), dict(zip(names, operands, strict=True)))


class _Mask(NamedTuple):
    """The properties `class_of`, `kept` and `twin` of an architecture, int64, and their form in a cache file."""

    class_of: Tensor
    kept: Tensor
    twin: Tensor

    def pack(self) -> npt.NDArray[np.int64]:
        return np.asarray(torch.cat(self).cpu().numpy(), dtype=np.int64)

    @staticmethod
    def unpack(numbers: npt.NDArray[np.int64], raw_width: int) -> _Mask:
        everything = torch.from_numpy(numbers.copy())
        kept, twin = everything[raw_width:].reshape(2, -1)
        return _Mask(everything[:raw_width], kept, twin)


def complexity_rank(complexity: Tensor) -> Tensor:
    """The position (int64) of each when they are ordered by complexity, then by index."""
    order = torch.argsort(complexity, stable=True)
    rank = torch.empty_like(order)
    rank[order] = torch.arange(len(order), device=order.device)
    return rank


def fits_memory(inputs: int, operators: Sequence[Operator], layers: int, max_memory: int) -> bool:
    """Whether the sub-expressions of an architecture fit into `max_memory` bytes, before any data."""
    return all(_mask_memory(size) <= max_memory for size in _sizes_below(inputs, operators, layers))


def check_mask_fits(inputs: int, operators: Sequence[Operator], layers: int, max_memory: int) -> None:
    """Raise ValueError if the sub-expressions alone, before any data, do not fit into `max_memory` bytes."""
    if layers > _MOST_LAYERS:
        raise ValueError(f"layers must be at most {_MOST_LAYERS}, not {layers:,}")
    if _SLOT_BYTES * inputs > max_memory:
        raise ValueError(f"inputs = {inputs:,} slots alone need more than max_memory = {_gigabytes(max_memory)}")
    for depth, size in enumerate(_sizes_below(inputs, operators, layers), start=1):
        need = _mask_memory(size)
        if need > max_memory:
            raise ValueError(
                f"layer {depth} of {layers} would have {size:,} sub-expressions and need {_gigabytes(need)}, more than "
                f"max_memory = {_gigabytes(max_memory)}: use fewer layers, inputs (now {inputs}) or operators "
                f"(now {len(operators)}), or raise max_memory"
            )


def _sizes_below(inputs: int, operators: Sequence[Operator], layers: int) -> Iterator[int]:
    """The sizes of the layers below the last one, one by one: each is about the square of the one before.

    So a caller can stop at the first that is too large; the size of layer 50 would have more digits than memory holds.
    """
    for _ in range(1, layers):
        inputs = layer_sizes(operators, inputs, 1)[0]
        yield inputs


def check_bank_fits(columns: int, rows: int, max_memory: int) -> None:
    """Raise ValueError if the bank of so many columns and rows does not fit into `max_memory` bytes."""
    need = columns * rows * 8 * _BANK_COPIES + _WORKSPACE
    if need > max_memory:
        raise ValueError(
            f"the bank of {columns:,} sub-expressions on {rows:,} rows would need {_gigabytes(need)}, more than "
            f"max_memory = {_gigabytes(max_memory)}: use mode='screen' or fewer rows, inputs, layers or operators, "
            "or raise max_memory"
        )


def _mask_memory(size: int) -> int:
    """Bytes that are needed to find the duplicates among the outputs of a layer of that size."""
    points = sample_points(1).shape[0]
    return size * points * 8 * _MASK_COPIES + _WORKSPACE


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:.3g} GB"
