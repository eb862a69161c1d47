"""How much memory a pass will take, and the refusal of one that does not fit."""

from __future__ import annotations

from collections.abc import Sequence

from symenum.enumeration.layer import layer_sizes
from symenum.expressions import sample_points
from symenum.operators import Operator

__all__ = ["DEFAULT_MEMORY", "check_bank_fits", "check_mask_fits", "fits_memory"]

DEFAULT_MEMORY = 4 << 30

_MASK_COPIES = 6  # values at the random points, and temporaries of the comparison
_BANK_COPIES = 2  # as computed, and as ordered
_WORKSPACE = 128 << 20  # tiles and factors of a few threads


def fits_memory(inputs: int, operators: Sequence[Operator], layers: int, max_memory: int) -> bool:
    """Whether the sub-expressions of an architecture fit, before any data."""
    return all(_mask_memory(inputs, operators, depth) <= max_memory for depth in range(1, layers))


def check_mask_fits(inputs: int, operators: Sequence[Operator], layers: int, max_memory: int) -> None:
    """Refuse an architecture whose sub-expressions alone, without any data, do not fit."""
    if 64 * inputs > max_memory:
        raise ValueError(f"inputs = {inputs:,} slots alone need more than max_memory = {_gigabytes(max_memory)}")
    for depth in range(1, layers):  # one layer at a time: sizes square with each, and must not be computed in vain
        need = _mask_memory(inputs, operators, depth)
        if need > max_memory:
            size = layer_sizes(operators, inputs, depth)[-1]
            raise ValueError(
                f"layer {depth} of {layers} would have {size:,} sub-expressions and need {_gigabytes(need)}, more than "
                f"max_memory = {_gigabytes(max_memory)}: use fewer layers, inputs (now {inputs}) or operators "
                f"(now {len(operators)}), or raise max_memory"
            )


def check_bank_fits(columns: int, rows: int, max_memory: int) -> None:
    """Refuse data on which the bank does not fit."""
    need = columns * rows * 8 * _BANK_COPIES + _WORKSPACE
    if need > max_memory:
        raise ValueError(
            f"the bank of {columns:,} sub-expressions on {rows:,} rows would need {_gigabytes(need)}, more than "
            f"max_memory = {_gigabytes(max_memory)}: use mode='screen' or fewer rows, inputs, layers or operators, "
            "or raise max_memory"
        )


def _mask_memory(inputs: int, operators: Sequence[Operator], depth: int) -> int:
    """Bytes to tell the outputs of that layer apart."""
    points = sample_points(1).shape[0]
    return layer_sizes(operators, inputs, depth)[-1] * points * 8 * _MASK_COPIES + _WORKSPACE


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:.3g} GB"
