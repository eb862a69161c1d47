"""The bank: the values of all distinct sub-expressions below the last layer, on the data at hand.

Columns that are not finite on every row are dropped, because every candidate that uses them fails. Columns that are
equal on the data, or equal up to sign, are merged. What the last layer does with the columns is not known here.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from symenum.engine.architecture import Architecture, complexity_rank
from symenum.engine.distinct import canonical_signs, representatives, signature

__all__ = ["Bank", "build_bank"]


NO_EXPRESSION = -1
"""The index that stands for "no such sub-expression": of a column with one sign, of a candidate with no number."""
NO_COMPLEXITY = torch.iinfo(torch.int64).max // 4
"""The complexity of a sub-expression that does not exist; the sum of two and an operator's stays in int64."""


@dataclass(frozen=True)
class Bank:
    """`values` (columns, rows) float64, and the sub-expressions whose values are +v and -v of each column v.

    `plus` and `minus` (columns,) int64 are classes of the architecture; `plus` always exists, `minus` may be NONE.
    Columns that have both signs come first; in each of the two groups they are ordered by norm. `stand_in` (classes,)
    int64 is the output that represents each class on these data.
    """

    values: Tensor
    plus: Tensor
    minus: Tensor
    plus_complexity: Tensor
    minus_complexity: Tensor
    stand_in: Tensor

    def __len__(self) -> int:
        return len(self.values)

    def at(self, which: Tensor) -> Bank:
        """The columns of these indices (int64, ascending)."""
        return Bank(
            self.values[which],
            self.plus[which],
            self.minus[which],
            self.plus_complexity[which],
            self.minus_complexity[which],
            self.stand_in,
        )

    @property
    def paired(self) -> int:
        """The number of columns that have both signs; they come first."""
        return int((self.minus != NO_EXPRESSION).sum())

    def signed(self, sign: int) -> tuple[Tensor, Tensor]:
        """Classes and complexities (columns,) int64 of +v or, for a negative sign, of -v."""
        return (self.plus, self.plus_complexity) if sign > 0 else (self.minus, self.minus_complexity)


def build_bank(architecture: Architecture, slots: Tensor, slot_complexity: Tensor) -> Bank:
    """The bank for slot values (inputs, rows), float64 and finite, and the slots' own complexities (inputs,) int64."""
    stand_in, alive = _stand_ins(architecture, slots, slot_complexity)
    classes = torch.nonzero(alive).flatten()
    # One column for a class and its negative: the first of the two that has a finite output.
    pairs, column = torch.unique(architecture.twin[classes], return_inverse=True)
    stored = torch.full((len(pairs),), len(alive)).scatter_reduce_(0, column, classes, reduce="amin")
    sign = torch.where(stored[column] == classes, 1.0, -1.0).double()
    values = architecture.values(slots, stand_in[stored])
    complexity = architecture.complexity(slot_complexity, stand_in[classes])
    return _merge(values, column, sign, classes, complexity, stand_in)


def _stand_ins(architecture: Architecture, slots: Tensor, slot_complexity: Tensor) -> tuple[Tensor, Tensor]:
    """For each class the simplest output that is finite on these data (int64), and whether there is one (bool).

    Outputs of a class are equal where they are defined; where x1 is zero, x1/x1 is not defined, but cos(x1 - x1) is.
    """
    stand_in = architecture.kept.clone()
    alive = architecture.finite(slots, stand_in)
    others = torch.nonzero((architecture.class_of >= 0) & ~alive[architecture.class_of]).flatten()
    others = others[architecture.finite(slots, others)]
    simplest, _ = _simplest(
        architecture.class_of[others], others, architecture.complexity(slot_complexity, others), len(stand_in)
    )
    found = simplest != NO_EXPRESSION
    return torch.where(found, simplest, stand_in), alive | found


def _merge(values: Tensor, column: Tensor, sign: Tensor, member: Tensor, complexity: Tensor, stand_in: Tensor) -> Bank:
    """Merge columns that are equal up to sign; the class member[m] has the value sign[m]·values[column[m]]."""
    signatures = signature(values)
    flip = canonical_signs(signatures)
    simplest = torch.full((len(values),), NO_COMPLEXITY).scatter_reduce_(0, column, complexity, reduce="amin")
    leader = representatives(signatures * flip[:, None], complexity_rank(simplest))
    groups, group = torch.unique(leader, return_inverse=True)
    group, sign = group[column], sign * flip[column]

    plus, plus_complexity = _simplest(group[sign > 0], member[sign > 0], complexity[sign > 0], len(groups))
    minus, minus_complexity = _simplest(group[sign < 0], member[sign < 0], complexity[sign < 0], len(groups))
    only_minus = plus == NO_EXPRESSION
    orientation = torch.where(only_minus, -flip[groups], flip[groups])
    plus, minus = torch.where(only_minus, minus, plus), torch.where(only_minus, plus, minus)
    plus_complexity, minus_complexity = (
        torch.where(only_minus, minus_complexity, plus_complexity),
        torch.where(only_minus, plus_complexity, minus_complexity),
    )
    order = torch.argsort(values.norm(dim=1)[groups], stable=True)
    order = order[torch.argsort((minus[order] == NO_EXPRESSION).long(), stable=True)]
    ordered = values[groups[order]].mul_(orientation[order, None])  # the one copy that `check_bank_fits` counts
    return Bank(ordered, plus[order], minus[order], plus_complexity[order], minus_complexity[order], stand_in)


def _simplest(group: Tensor, member: Tensor, complexity: Tensor, groups: int) -> tuple[Tensor, Tensor]:
    """For each group its simplest member, of equally simple ones the lowest, and its complexity; NONE if empty."""
    order = torch.argsort(member, descending=True)
    order = order[torch.argsort(complexity[order], descending=True, stable=True)]
    best = torch.full((groups,), NO_EXPRESSION)
    cost = torch.full((groups,), NO_COMPLEXITY)
    best[group[order]] = member[order]  # the simplest is written last, and stays
    cost[group[order]] = complexity[order]
    return best, cost
