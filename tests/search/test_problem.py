"""Plans fit the memory and keep what the caller has fixed; tasks refuse variables that they leave out."""

from __future__ import annotations

import pytest
import torch

from symenum.core.memory import DEFAULT_MEMORY
from symenum.core.target import Target
from symenum.engine.architecture import fits_memory
from symenum.engine.layer import layer_sizes
from symenum.expressions import parse
from symenum.heads.operator_grammar import Prior
from symenum.operators import OPERATOR_SETS, get_operators
from symenum.search import Plan, Settings, make_plan, make_task


def plan(variables: int, operators: str = "koza", layers=None, inputs=None, max_memory=DEFAULT_MEMORY) -> Plan:
    records = get_operators(operators)
    return make_plan(variables, records, layers=layers, inputs=inputs, max_memory=max_memory)


def test_koza_with_a_few_variables_gets_the_papers_network() -> None:
    for variables in (1, 2, 3, 5):
        assert (plan(variables).layers, plan(variables).inputs) == (3, 5)


@pytest.mark.parametrize("operators", list(OPERATOR_SETS))
@pytest.mark.parametrize("variables", [1, 3, 8, 20, 50, 200])
def test_a_plan_fits_memory_and_has_room_for_tokens(operators: str, variables: int) -> None:
    made = plan(variables, operators)
    assert fits_memory(made.inputs, get_operators(operators), made.layers, DEFAULT_MEMORY)
    assert 1 <= made.variables <= min(variables, made.inputs - 2)
    assert made.candidates == layer_sizes(get_operators(operators), made.inputs, made.layers)[-1]


def test_many_variables_get_two_layers_that_hold_them_all() -> None:
    made = plan(50)
    assert made.layers == 2
    assert made.variables == 50


def test_less_memory_changes_the_width() -> None:
    assert plan(8, "basic_koza", max_memory=1 << 28).inputs < plan(8, "basic_koza").inputs


def test_what_the_caller_fixes_stays() -> None:
    assert (plan(2, layers=2, inputs=7).layers, plan(2, layers=2, inputs=7).inputs) == (2, 7)
    assert plan(2, layers=2).layers == 2
    assert plan(2, inputs=4).inputs == 4
    assert plan(2, inputs=40).layers == 2  # three would not fit


def test_a_plan_says_what_was_chosen() -> None:
    assert str(plan(2)) == "3 layers on 5 inputs (2 variables, 3 tokens), 3.4e+9 candidates a pass, 2 passes at once"


@pytest.mark.parametrize(
    ("operators", "layers", "inputs"),
    [("koza", 50, 50), ("koza", 50, None), ("koza", 9, None), ("koza", 10**9, 5), ("koza", None, 10**7)],
)
def test_a_network_that_no_memory_holds_is_refused_at_once(operators: str, layers: int | None, inputs) -> None:
    """The sizes of its layers have more digits than can be computed."""
    with pytest.raises(ValueError, match=r"max_memory|at most 100"):
        plan(2, operators, layers=layers, inputs=inputs)


def test_layers_without_a_binary_operator_are_limited_too() -> None:
    records = get_operators(["sin"])
    assert make_plan(2, records, layers=100, inputs=None, max_memory=DEFAULT_MEMORY).layers == 100
    with pytest.raises(ValueError, match="layers must be at most 100, not 1,000,000"):
        make_plan(2, records, layers=10**6, inputs=None, max_memory=DEFAULT_MEMORY)


@pytest.mark.parametrize(
    ("asked", "parameter"),
    [({"prior": Prior(required=("x2",))}, "required_variables"), ({"guesses": (parse("x1*x2"),)}, "guesses")],
)
def test_variables_that_are_left_out_cannot_be_asked_for(asked, parameter: str) -> None:
    X = torch.stack([torch.linspace(1, 2, 30, dtype=torch.float64), torch.full((30,), 7.0, dtype=torch.float64)], dim=1)
    target = Target(X[:, 0], torch.full((30,), 1 / 30, dtype=torch.float64))
    with pytest.raises(ValueError, match=f"{parameter} has x2"):
        make_task(("x1", "x2"), X, target, Settings(**asked))


@pytest.mark.parametrize("equal", [False, True])
def test_a_table_whose_columns_are_contiguous_is_copied_only_where_columns_are_left_out(equal: bool) -> None:
    columns = torch.rand(3, 50, dtype=torch.float64)
    if equal:
        columns[2] = columns[1]
    target = Target(columns[0] * columns[1], torch.full((50,), 1 / 50, dtype=torch.float64))
    task = make_task(("x1", "x2", "x3"), columns.T, target, Settings())
    used = ["x1", "x2"] if equal else ["x1", "x2", "x3"]
    assert list(task.data.columns) == used
    for name, column in zip(used, columns, strict=False):
        assert torch.equal(task.data.columns[name], column)
        assert torch.equal(task.columns[name], column)
        assert (task.data.columns[name].data_ptr() == column.data_ptr()) is not equal
