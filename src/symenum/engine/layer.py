"""One symbol layer: every operator on the outputs of the layer below (paper, "Symbol layer"), and its bilinear forms.

The offset tensor Θ of the paper is index arithmetic here: operator and children of an output follow from its number,
and nothing is stored. Outputs are numbered as in the paper: all unary blocks, then the squared, then the triangled
ones, each in the order of the operator list.

Values are float64 tensors (outputs, rows). A value that is not finite, or was computed from one that is not, is NaN: a
sub-expression that fails excludes exactly the expressions that use it, on exactly the rows where it fails.

On a bank that is stored up to sign, every sum, difference, product and quotient of two columns is one of five *forms*:
v_i + v_j, v_i - v_j, -(v_i + v_j), ±v_i·v_j, ±v_i/v_j. The scans score each form once, however many ways the operators
have to write it: a - b, a + (-b) and (-b) + a are one candidate. Other operators (pow, a user's own) have no form.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import torch
from torch import Tensor

from symenum.operators import Kind, Operator
from symenum.operators.traits import ADDITIVE, ARITHMETIC, Role

__all__ = [
    "Block",
    "Family",
    "Form",
    "SymbolLayer",
    "Way",
    "apply_poisoned",
    "children",
    "forms_of",
    "layer_sizes",
    "ordered",
]


_KIND_ORDER = (Kind.UNARY, Kind.SQUARED, Kind.TRIANGLED)  # the paper's order of the blocks
# Chosen by trial: benchmarks/constants.py shows what half and twice of it do.
_CHUNK_BYTES = 1 << 25  # bytes of a temporary in `forward`: 32 MiB, about the last cache of a CPU


@dataclass(frozen=True)
class Block:
    """One operator on all its operands: the outputs start … start + size - 1 of a layer."""

    operator: Operator
    start: int
    size: int


@dataclass(frozen=True)
class SymbolLayer:
    """All one-operator combinations of `width` outputs of the layer below."""

    operators: tuple[Operator, ...]
    width: int

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks in the order of their outputs' numbers."""
        blocks: list[Block] = []
        start = 0
        for kind in _KIND_ORDER:
            for operator in self.operators:
                if operator.kind is kind:
                    blocks.append(Block(operator, start, _block_size(kind, self.width)))
                    start += blocks[-1].size
        return tuple(blocks)

    @property
    def size(self) -> int:
        """The number of outputs, N_u·ω + N_bS·ω² + N_bT·ω(ω+1)/2 for ω = width."""
        return sum(block.size for block in self.blocks)

    @property
    def blocks_without_form(self) -> list[Block]:
        """The binary operators that are no bilinear form (pow, a user's own), which are evaluated pair by pair."""
        return [b for b in self.blocks if b.operator.arity == 2 and b.operator.role not in ARITHMETIC]

    def decode(self, numbers: Tensor) -> Iterator[tuple[Block, Tensor, Tensor, Tensor | None]]:
        """Operators and children of the outputs `numbers` (int64, any order), block by block.

        Yields (block, positions in `numbers`, left children, right children or None), int64.
        """
        for block in self.blocks:
            where = torch.nonzero((numbers >= block.start) & (numbers < block.start + block.size)).flatten()
            if where.numel():
                yield block, where, *children(block.operator.kind, numbers[where] - block.start, self.width)

    def structure(self, number: int) -> tuple[Operator, tuple[int, ...]]:
        """Operator and children of one output: `decode` without tensors."""
        block = next(block for block in self.blocks if number < block.start + block.size)
        offset = number - block.start
        if block.operator.kind is Kind.UNARY:
            return block.operator, (offset,)
        if block.operator.kind is Kind.SQUARED:
            return block.operator, divmod(offset, self.width)
        # Counted from the end, the rows of the triangle start at 0, 1, 3, 6, …: r(r+1)/2.
        rest = block.size - 1 - offset
        row = (math.isqrt(8 * rest + 1) - 1) // 2
        return block.operator, (self.width - 1 - row, self.width - 1 - (rest - row * (row + 1) // 2))

    def encode(self, block: Block, left: Tensor, right: Tensor | None) -> Tensor:
        """The numbers of the outputs of `block` with these children (int64); the inverse of `decode`."""
        if right is None:
            return block.start + left
        if block.operator.kind is Kind.SQUARED:
            return block.start + left * self.width + right
        return block.start + left * self.width - left * (left - 1) // 2 + (right - left)

    def forward(self, below: Tensor, numbers: Tensor | None = None) -> Tensor:
        """Values (len(numbers), rows) float64 of the outputs `numbers` (None: all), from those below (width, rows)."""
        if numbers is None:
            numbers = torch.arange(self.size, device=below.device)
        out = torch.empty(len(numbers), below.shape[1], dtype=below.dtype, device=below.device)
        step = max(1, _CHUNK_BYTES // (below.element_size() * max(1, below.shape[1])))
        for block, where, left, right in self.decode(numbers):
            for part in range(0, len(where), step):
                a = below[left[part : part + step]]
                b = None if right is None else below[right[part : part + step]]
                out[where[part : part + step]] = apply_poisoned(block.operator, a, b)
        return out

    def complexity(self, below: Tensor, numbers: Tensor | None = None) -> Tensor:
        """The complexities (int64) of the outputs `numbers` (None: all), from those below (width,)."""
        if numbers is None:
            numbers = torch.arange(self.size, device=below.device)
        out = torch.empty(len(numbers), dtype=torch.int64, device=below.device)
        for block, where, left, right in self.decode(numbers):
            out[where] = block.operator.complexity + below[left] + (0 if right is None else below[right])
        return out


def apply_poisoned(operator: Operator, left: Tensor, right: Tensor | None) -> Tensor:
    """The operator's values (float64), NaN wherever an operand or the result is not finite; shapes broadcast."""
    operands = (left,) if right is None else (left, right)
    value = operator.function(*operands)
    # IEEE arithmetic alone would not do: NaN**0 and tanh(inf) are finite. 0·x is NaN if x is not finite, else 0.
    for operand in operands:
        value = torch.add(value, operand, alpha=0)
    nan = float("nan")
    return value.nan_to_num_(nan=nan, posinf=nan, neginf=nan)


def children(kind: Kind, offsets: Tensor, width: int) -> tuple[Tensor, Tensor | None]:
    """The children (left, right), int64, of the outputs at `offsets` (int64) in a block; right is None for a unary."""
    if kind is Kind.UNARY:
        return offsets, None
    if kind is Kind.SQUARED:
        return offsets // width, offsets % width
    # Row i of the upper triangle starts at s(i) = i·ω - i(i-1)/2. The row from a rounded root is wrong by at most one.
    side = 2 * width + 1
    row = ((side - torch.sqrt((side * side - 8 * offsets).double())) / 2).long().clamp_(0, width - 1)
    row -= (_row_start(row, width) > offsets).long()
    row += (_row_start(row + 1, width) <= offsets).long()
    return row, offsets - _row_start(row, width) + row


def layer_sizes(operators: Sequence[Operator], inputs: int, layers: int) -> tuple[int, ...]:
    """The paper's sizes of all layers, before the removal of duplicates."""
    sizes: list[int] = []
    for _ in range(layers):
        sizes.append(SymbolLayer(tuple(operators), sizes[-1] if sizes else inputs).size)
    return tuple(sizes)


def _row_start(row: Tensor, width: int) -> Tensor:
    return row * width - row * (row - 1) // 2


def _block_size(kind: Kind, width: int) -> int:
    if kind is Kind.UNARY:
        return width
    return width * width if kind is Kind.SQUARED else width * (width + 1) // 2


class Family(Enum):
    """The three kinds of forms; the value holds the roles of the operators that can write them."""

    SUM = ADDITIVE
    PRODUCT = (Role.PRODUCT,)
    QUOTIENT = (Role.QUOTIENT,)


@dataclass(frozen=True)
class Way:
    """One way to write a form: `operator` on ±v_i and ±v_j, in this order or exchanged."""

    operator: Operator
    first_sign: int  # of v_i
    second_sign: int  # of v_j
    exchanged: bool = False  # v_j is the left operand


@dataclass(frozen=True)
class Form:
    """first·v_i + second·v_j, first·v_i·v_j or first·v_i / v_j; `first` and `second` are +1 or -1."""

    family: Family
    first: int
    second: int
    ways: tuple[Way, ...]

    @property
    def symmetric(self) -> bool:
        """Whether (i, j) and (j, i) are the same candidate, so that only i ≤ j is scanned."""
        return self.family is Family.PRODUCT or (self.family is Family.SUM and self.first == self.second)

    def value(self, left: Tensor, right: Tensor) -> Tensor:
        """The form's values on v_i and v_j (float64); shapes broadcast."""
        if self.family is Family.SUM:
            total = left + right if self.first == self.second else left - right
        else:
            total = left * right if self.family is Family.PRODUCT else left / right
        return total if self.first > 0 else -total

    def reachable(self, first_has_minus: bool, second_has_minus: bool) -> bool:
        """Whether the form can be written on columns of which +v exists, and -v only as stated."""
        return any(
            (way.first_sign > 0 or first_has_minus) and (way.second_sign > 0 or second_has_minus) for way in self.ways
        )


def forms_of(operators: Sequence[Operator]) -> tuple[Form, ...]:
    """The forms that the operators can write on columns of both signs."""
    signs = {
        Family.SUM: ((1, 1), (1, -1), (-1, -1)),  # (-1, 1) is (1, -1) with i and j exchanged
        Family.PRODUCT: ((1, 1), (-1, 1)),
        Family.QUOTIENT: ((1, 1), (-1, 1)),
    }
    forms = (
        Form(family, first, second, tuple(_ways(family, first, second, operators)))
        for family, pairs in signs.items()
        for first, second in pairs
    )
    return tuple(form for form in forms if form.ways)


def _ways(family: Family, first: int, second: int, operators: Sequence[Operator]) -> list[Way]:
    ways: list[Way] = []
    for operator in operators:
        if operator.role not in family.value:
            continue
        if operator.role is Role.SUM:
            ways.append(Way(operator, first, second))
        elif operator.role is Role.DIFFERENCE:
            ways += [Way(operator, first, -second), Way(operator, -first, second, exchanged=True)]
        else:  # of a product or a quotient the two operands may share the sign in two ways
            ways += [Way(operator, sign, first * sign) for sign in (1, -1)]
    return ways


def ordered(operator: Operator, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Left and right operands (int64) in the layer's order, and whether the layer has the pair (bool).

    A triangled operator has only pairs with left ≤ right. Operands of a commutative one are exchanged to fit; semisub
    and semidiv lack the other half.
    """
    if operator.kind is Kind.SQUARED:
        return left, right, torch.ones_like(left, dtype=torch.bool)
    if operator.commutative:
        return torch.minimum(left, right), torch.maximum(left, right), torch.ones_like(left, dtype=torch.bool)
    return left, right, left <= right
