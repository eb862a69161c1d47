"""How large a pass may be: layers, inputs, and what fills the slots, chosen from the problem and the memory limit.

Not from the cores of the machine: with a seed and an iteration limit a search does the same on any machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from symenum.enumeration.layer import layer_sizes
from symenum.enumeration.memory import fits_memory
from symenum.operators import Operator

__all__ = ["Plan", "make_plan"]

# Candidates by the paper's formula, duplicates included, that two cores score in about a second and a half.
_MOST_CANDIDATES = 4_000_000_000
_MOST_INPUTS = 100
_FEWEST_INPUTS = 3
_SPARE_SLOTS = 2  # for tokens, however many variables there are
_MOST_TOKENS = 4
_DEEP = 3


@dataclass(frozen=True)
class Plan:
    """`inputs` slots of a network of `layers` layers; up to `variables` of them are variables, the rest tokens."""

    layers: int
    inputs: int
    variables: int
    candidates: int  # by the paper's formula, duplicates included

    def __str__(self) -> str:
        tokens = self.inputs - self.variables
        return (
            f"{self.layers} layers on {self.inputs} inputs ({self.variables} variables, {tokens} tokens), "
            f"{Decimal(self.candidates):.2g} candidates a pass"  # a deep network has more than a float can count
        )


def make_plan(
    variables: int,
    operators: tuple[Operator, ...],
    *,
    layers: int | None,
    inputs: int | None,
    max_memory: int,
) -> Plan:
    """The plan for that many variables; what the caller has fixed stays.

    Three layers where half of the variables or more fit beside two tokens; two, with many more inputs, elsewhere.
    """
    most = min(_MOST_INPUTS, variables + _MOST_TOKENS)

    def widest(depth: int) -> int:
        found = _FEWEST_INPUTS
        while found < most and _fits(found + 1, operators, depth, max_memory):
            found += 1
        return found

    if layers is None:
        width = inputs or widest(_DEEP)
        deep = _fits(width, operators, _DEEP, max_memory) and 2 * (width - _SPARE_SLOTS) >= variables
        layers = _DEEP if deep else _DEEP - 1
    inputs = inputs or widest(layers)
    inside = max(1, min(variables, inputs - _SPARE_SLOTS))
    return Plan(layers, inputs, inside, layer_sizes(operators, inputs, layers)[-1])


def _fits(inputs: int, operators: tuple[Operator, ...], layers: int, max_memory: int) -> bool:
    return (
        fits_memory(inputs, operators, layers, max_memory)
        and layer_sizes(operators, inputs, layers)[-1] <= _MOST_CANDIDATES
    )
