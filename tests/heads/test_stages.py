"""The order of the stages: every one has its place, none comes twice, the cheap ones first."""

from __future__ import annotations

import pytest

from symenum.heads.stages import MANY_SLOTS, STAGE_NAMES, STAGES, TRANSFORMS, stage_order

SHAPES = [(slots, rows) for slots in (1, 2, 5, MANY_SLOTS, MANY_SLOTS + 1) for rows in (20, 400)]


@pytest.mark.parametrize(("slots", "rows"), SHAPES)
def test_no_stage_comes_twice_and_powers_come_first(slots: int, rows: int) -> None:
    order = stage_order(slots, rows)
    assert len(set(order)) == len(order)
    assert order[:2] == ("products of powers", "polynomials")


def test_deep_features_on_many_rows_wait_for_what_is_cheaper_there() -> None:
    few, many = stage_order(5, 20), stage_order(5, 400)
    assert set(few) == set(many)
    assert few.index("one feature") < few.index("reductions")
    assert many.index("reductions") < many.index("one feature")
    assert many.index("sums of terms") < many.index("one feature")


def test_one_variable_has_nothing_to_reduce_and_no_sums_of_products() -> None:
    assert not {"reductions", "sums of terms", "powers of sums"} & set(stage_order(1, 400))


def test_every_row_of_the_table_has_a_name_of_its_own_that_an_ablation_may_leave_out() -> None:
    names = [row.name for row in STAGES]
    assert len(set(names)) == len(names)
    assert (*names, TRANSFORMS) == STAGE_NAMES


def test_every_stage_comes_on_some_data_but_for_those_of_reduced_problems() -> None:
    ordered = {name for shape in SHAPES for name in stage_order(*shape)}
    assert ordered == {row.name for row in STAGES if row.group != "reduced problems"}
