"""A pass with units scores every candidate of the target's dimension, and no other: against a brute force."""

from __future__ import annotations

import itertools

import pytest
import torch

from symenum import PSRN
from symenum.core.dimensions import DIMENSIONLESS, Dimension
from symenum.engine.layer import SymbolLayer
from symenum.engine.layer_dimensions import SlotDimensions, admissible_parts, dimensions_of_outputs
from symenum.expressions import Constant, Expression, Units, Variable, apply, to_text
from symenum.operators import get_operators
from symenum.operators.traits import DimensionRule

M, S = Dimension.of(m=1), Dimension.of(s=1)
UNITS = Units({"x1": M, "x2": M, "x3": S}, M / S)
SLOTS: list[Expression] = [Variable("x1"), Variable("x2"), Variable("x3")]


def test_the_dimensions_of_a_layer_are_those_of_its_expressions() -> None:
    slots = [*SLOTS, Constant(2)]
    layer = SymbolLayer(get_operators(["+", "-", "*", "/", "**", "sin", "sqrt", "inv", "abs"]), len(slots))
    known = SlotDimensions.of(slots, UNITS)
    found = dimensions_of_outputs(layer, known.numbers, known.constant, torch.arange(layer.size))
    for number in range(layer.size):
        operator, operands = layer.structure(number)
        expression = apply(operator, *(slots[at] for at in operands))
        right = UNITS.consistent(expression)
        assert right == (not bool(torch.isnan(found[number]))), to_text(expression)
        if right:
            own = UNITS.of(expression)
            assert own is not None
            assert float(found[number]) == pytest.approx(own.number, abs=1e-12), to_text(expression)


@pytest.mark.parametrize("operators", ["arithmetic", "koza", "semikoza"])
@pytest.mark.parametrize("target", [M / S, M, DIMENSIONLESS])
def test_a_pass_finds_the_best_of_all_candidates_of_the_targets_dimension(operators: str, target: Dimension) -> None:
    units = Units(UNITS.variables, target)
    torch.manual_seed(0)
    values = 1 + torch.rand(12, 3, dtype=torch.float64)
    y = values[:, 0] * values[:, 1] / values[:, 2] + torch.rand(12, dtype=torch.float64)
    net = PSRN(3, operators, 2)
    everything = net.search(values, y, k=5000, slots=SLOTS, device="cpu")
    wanted = [one for one in everything if units.allows(one.expression)][:10]
    (found,) = net.search_many(
        [values], y, 10, slots=[SLOTS], device="cpu", dimensions=[SlotDimensions.of(SLOTS, units)]
    )
    assert all(units.allows(one.expression) for one in found)
    assert [one.loss for one in found][: len(wanted)] == pytest.approx([one.loss for one in wanted])
    assert found.scored < everything.scored


def test_sets_of_columns_hold_every_pair_that_gives_the_dimension() -> None:
    numbers = torch.tensor([0.0, 0.7, 0.7, 1.1, -0.4, 1.4, 0.0], dtype=torch.float64)
    for wanted, rule in itertools.product((0.0, 0.7, 1.8), (DimensionRule.PRODUCT, DimensionRule.QUOTIENT)):
        sign = 1 if rule is DimensionRule.PRODUCT else -1
        pairs = {
            (i, j) for i in range(7) for j in range(7) if abs(float(numbers[i] + sign * numbers[j]) - wanted) < 1e-9
        }
        parts = [set(part.tolist()) for part in admissible_parts(numbers, wanted, rule)]
        assert all(any({i, j} <= part for part in parts) for i, j in pairs)
    (alike,) = admissible_parts(numbers, 0.7, DimensionRule.HOMOGENEOUS)
    assert alike.tolist() == [1, 2]
