"""Buckingham's theorem: groups have no unit, as many as there must be, and a law in them is a law for y."""

from __future__ import annotations

import torch

from symenum.core.dimensions import DIMENSIONLESS, Dimension
from symenum.core.target import Target
from symenum.expressions import Units, Variable, same_function
from symenum.expressions.candidate import Candidate
from symenum.heads.dimensionless_groups import groupings, groups_of, in_groups
from symenum.heads.features import build_features
from symenum.heads.response import Data, make_data
from symenum.operators import get_operators

M, S, KG = Dimension.of(m=1), Dimension.of(s=1), Dimension.of(kg=1)
PENDULUM = Units({"l": M, "g": M / S**2, "m": KG, "angle": DIMENSIONLESS}, S)
DRAG = Units({"F": KG * M / S**2, "rho": KG / M**3, "v": M / S, "d": M, "mu": KG / (M * S)}, DIMENSIONLESS)


def data_of(units: Units) -> Data:
    torch.manual_seed(0)
    values = 1 + torch.rand(len(units.variables), 40, dtype=torch.float64)
    y = values.prod(dim=0) + torch.rand(40, dtype=torch.float64)
    weight = torch.full((40,), 1 / 40, dtype=torch.float64)
    return make_data([Variable(name) for name in units.variables], values, Target(y, weight), 40, units=units)


def test_there_are_as_many_groups_as_variables_less_independent_dimensions() -> None:
    for units, groups in ((PENDULUM, 1), (DRAG, 2)):
        found = groupings(units.variables, units.target)
        assert found
        assert {len(grouping.groups) for grouping in found} == {groups}
        assert [grouping.cost for grouping in found] == sorted(grouping.cost for grouping in found)


def test_groups_have_no_unit() -> None:
    for units in (PENDULUM, DRAG):
        for group in groups_of(units.variables):
            assert units.of(group) == DIMENSIONLESS


def test_no_groups_where_the_target_is_out_of_reach() -> None:
    assert groupings({"l": M}, S) == []


def test_a_law_in_groups_is_a_law_of_the_targets_unit_with_the_same_values() -> None:
    for units in (PENDULUM, DRAG):
        data = data_of(units)
        problems = in_groups(data)
        assert problems
        for problem in problems:
            inner = problem.data()
            assert inner.units is not None
            assert inner.units.target == DIMENSIONLESS
            assert all(inner.units.of(slot) == DIMENSIONLESS for slot in inner.stand_ins)
            found = inner.candidate(inner.stand_ins[0])
            assert found is not None
            (whole, *spread) = problem.candidates(Candidate(found.expression, 0.0))
            assert units.allows(whole.expression)
            assert all(same_function(one.expression, whole.expression) for one in spread)


def test_features_with_units_are_all_consistent_and_none_is_lost() -> None:
    units = Units({"x1": M, "x2": M, "x3": S}, M)
    torch.manual_seed(0)
    slots = [Variable(name) for name in units.variables]
    values = 1 + torch.rand(3, 30, dtype=torch.float64)
    plain = build_features(slots, values, get_operators(["+", "*", "/", "sqrt", "sin"]), 2)
    known = build_features(slots, values, get_operators(["+", "*", "/", "sqrt", "sin"]), 2, units=units)
    assert known.dimension is not None
    for at in range(len(known)):
        own = units.of(known.expression(at))
        assert own is not None
        assert abs(own.number - float(known.dimension[at])) < 1e-9
    of_plain = {plain.expression(at) for at in range(len(plain)) if units.consistent(plain.expression(at))}
    assert of_plain <= {known.expression(at) for at in range(len(known))}
    lengths = known.of_dimension(M)
    assert len(lengths)
    assert all(units.of(lengths.expression(at)) == M for at in range(len(lengths)))
