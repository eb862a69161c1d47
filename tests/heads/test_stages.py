"""The stages and their slices: slice n is the same whatever ran before, the cheap come first, no slice is lost."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from heads.tasks import make_response
from hypothesis import given
from hypothesis import strategies as st

from symenum.core.budget import NO_LIMIT, Budget
from symenum.expressions import Constant
from symenum.expressions.candidate import Candidate
from symenum.heads import exponents, work
from symenum.heads.head import RegisteredHead
from symenum.heads.inner_constants import InnerConstants
from symenum.heads.operator_grammar import NO_PRIOR, OperatorGrammar
from symenum.heads.response import Data
from symenum.heads.stages import (
    EXTENDED,
    FEATURES,
    STAGE_NAMES,
    STAGES,
    TRANSFORMS,
    AllHeads,
    Scan,
    Stage,
    _Slices,
    in_turn,
    informative_columns,
)
from symenum.operators import get_operators
from symenum.scans import products

KOZA = get_operators("koza")


def noisy(slots: int, rows: int = 60) -> Data:
    """Rows of no law that a head finds, so that nothing ends early."""
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 3, (rows, slots))
    return make_response(X, X[:, 0] * np.sin(X[:, -1]) + 0.1 * rng.normal(size=rows)).data


def heads_on(slots: int, rows: int = 60, operators: str = "arithmetic", **changes: object) -> AllHeads:
    return AllHeads(noisy(slots, rows), get_operators(operators), 5, registered=(), **changes)  # type: ignore[arg-type]


def stage(name: str, work: float, slices: int) -> Stage:
    """A stage whose slice n finds the constant n."""
    data = noisy(1)

    def scan(number: int, budget: Budget) -> list[Candidate]:
        return [Candidate(Constant(number), 1.0)]

    scans: list[Scan] = [partial(scan, number) for number in range(slices)]
    return Stage(name, work, data, OperatorGrammar(KOZA), NO_PRIOR, _Slices(lambda: iter(scans)))


def texts(found: list[Candidate]) -> list[str]:
    return [str(candidate.expression) for candidate in found]


def test_every_row_of_the_table_has_a_name_of_its_own_that_an_ablation_may_leave_out() -> None:
    names = [row.name for row in STAGES]
    assert len(set(names)) == len(names)
    searching = {row.name for row in STAGES if row not in (FEATURES, EXTENDED)}
    assert searching < set(STAGE_NAMES)
    assert TRANSFORMS in STAGE_NAMES


def test_slices_are_asked_for_in_any_order_and_end_with_none() -> None:
    one = stage("one", 1.0, 3)
    assert [texts(one.run(number, NO_LIMIT)) for number in (2, 0, 1, 1)] == [["2"], ["0"], ["1"], ["1"]]
    assert one.scan(3) is None
    assert one.scan(7) is None
    assert one.run(3, NO_LIMIT) == []
    assert one.scan(0) is not None


def test_a_slice_that_is_over_budget_finds_nothing() -> None:
    over = Budget()
    over.end()
    assert stage("one", 1.0, 1).run(0, over) == []


def test_the_next_slice_is_the_one_that_ends_cheapest() -> None:
    stages = [stage("dear", 2.5, 1), stage("cheap", 1.0, 4), stage("as cheap", 1.0, 1)]
    order = [(one.name, number) for one, number in in_turn(stages)]
    assert order == [
        *[("cheap", 0), ("as cheap", 0), ("cheap", 1)],
        *[("dear", 0), ("cheap", 2), ("cheap", 3)],
    ]


@pytest.mark.parametrize("name", [row.name for row in STAGES])
def test_a_slice_is_the_same_whatever_ran_before_it(name: str) -> None:
    if name not in {one.name for one in heads_on(2).on_target()}:
        pytest.skip("it applies where units are known only")
    whole = {one.name: one for one in heads_on(2).on_target()}[name]
    found: list[list[str]] = []
    while whole.scan(len(found)) is not None and len(found) < 3:
        found.append(texts(whole.run(len(found), NO_LIMIT)))
    last = len(found) - 1
    resumed = {one.name: one for one in heads_on(2).on_target()}[name]  # nothing is in memory
    assert texts(resumed.run(last, NO_LIMIT)) == found[last]


@pytest.mark.parametrize(("slots", "rows"), [(1, 20), (2, 400), (5, 100), (13, 60)])
def test_work_is_told_from_sizes_before_anything_is_built(slots: int, rows: int) -> None:
    heads = heads_on(slots, rows, "koza")
    again = heads_on(slots, rows, "koza")
    stages = (*heads.on_target(), *heads.on_transforms(), *heads.on_slots(), heads.combined())
    assert all(one.work > 0 for one in stages)
    assert not heads._made
    heads.extended()
    other = (*again.on_target(), *again.on_transforms(), *again.on_slots(), again.combined())
    assert [one.work for one in other] == [one.work for one in stages]


def test_one_variable_has_nothing_to_reduce_and_no_sums_of_products() -> None:
    names = {one.name for one in heads_on(1).on_target()}
    assert not {"reductions", "sums of terms"} & names


def test_exponents_of_many_variables_are_not_fitted() -> None:
    names = {one.name for one in heads_on(13, 800).on_target()}
    assert not {"sums of powers", "powers of sums", "two terms on a polynomial"} & names
    assert {"sums of terms", "reductions"} <= names


def test_few_rows_show_no_reductions() -> None:
    assert "reductions" not in {one.name for one in heads_on(5, 60).on_target()}
    assert "reductions" in {one.name for one in heads_on(5, 200).on_target()}


def test_a_head_from_outside_is_a_stage_of_one_slice_and_a_late_one_costs_as_much_as_any() -> None:
    class Nothing:
        name = "nothing"

        def scan(self, features: object, response: object, k: int, budget: Budget) -> list[Candidate]:
            return []

    early, late = (
        AllHeads(noisy(2), KOZA, 5, registered=(RegisteredHead(Nothing(), "slots", is_late),)).on_target()
        for is_late in (False, True)
    )
    for stages in (early, late):
        assert stages[-1].name == "nothing"
        assert stages[-1].scan(0) is not None
        assert stages[-1].scan(1) is None
    assert late[-1].work == max(one.work for one in late)
    assert early[-1].work < late[-1].work


def test_a_stage_that_is_left_out_is_not_there() -> None:
    heads = heads_on(2, leave_out=("two terms", TRANSFORMS))
    assert "two terms" not in {one.name for one in (*heads.on_target(), *heads.on_slots(), *heads.on_reduced())}
    assert heads.on_transforms() == ()


def test_features_are_made_by_slices_of_their_own() -> None:
    heads = heads_on(2)
    (making,) = [one for one in heads.on_target() if one.name == FEATURES.name]
    assert making.run(0, NO_LIMIT) == []
    assert torch.equal(heads.features().values, heads_on(2).features().values)


@given(st.integers(1, 40), st.integers(1, 30), st.integers(1, 3), st.integers(0, 1000))
def test_informative_columns_are_those_that_differ_from_all_before(
    rows: int, slots: int, values: int, seed: int
) -> None:
    """Few different values and -0 make many columns equal, also in the rows that are compared first."""
    drawn = torch.from_numpy(np.random.default_rng(seed).integers(-values, values, (rows * 5, slots)).astype(float))
    columns = torch.where(drawn == 0, -drawn, drawn)
    columns[1:-1] = columns[1] if seed % 2 else columns[1:-1]
    expected = []
    for i in range(slots):
        constant = bool((columns[:, i] == columns[0, i]).all())
        if not constant and not any(torch.equal(columns[:, i], columns[:, j]) for j in expected):
            expected.append(i)
    assert informative_columns(columns) == (expected or [0])


def test_work_is_estimated_with_the_limits_of_the_heads() -> None:
    assert (work._MAX_COMPANIONS, work._ROWS_PER_UNKNOWN) == (exponents._MAX_COMPANIONS, exponents._ROWS_PER_UNKNOWN)
    assert work._MAX_FUNCTION_SLOTS == products._MAX_FUNCTION_SLOTS
    assert (InnerConstants.max_bases, InnerConstants.family_pairs) == (work._MAX_BASES, work._FAMILY_PAIRS)
