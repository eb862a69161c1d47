"""A part of a nearly right law is searched as a table of its own."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from symenum.bench.problems.random_laws import DEVELOPMENT, random_law
from symenum.core.budget import NO_LIMIT
from symenum.core.target import check_target
from symenum.expressions import evaluate, parse, variables
from symenum.expressions.candidate import Candidate
from symenum.operators import get_operators
from symenum.search.checkpoint import Checkpoint, document_of, restored
from symenum.search.moves import Parts
from symenum.search.part_search import (
    LawPart,
    can_be_searched,
    is_nearly_right,
    part_table,
    parts_of,
    parts_to_search,
    searched_part,
)
from symenum.search.problem import Settings, Task, make_task
from symenum.search.state import State
from symenum.search.step import start

OPERATORS = ["+", "-", "*", "/", "**", "sin", "cos", "exp", "log", "sqrt", "sinh", "cosh", "tanh", "abs", "inv", "neg"]


def task_of(law: str, ranges: dict[str, tuple[float, float]], noise: float = 0.0, rows: int = 200) -> Task:
    rng = np.random.default_rng(3)
    columns = {name: rng.uniform(low, high, rows) for name, (low, high) in ranges.items()}
    y = evaluate(parse(law), columns) + noise * rng.normal(size=rows)
    target, _ = check_target(y, None, rows)
    X = torch.from_numpy(np.stack(list(columns.values()), axis=1))
    return make_task(list(columns), X, target, Settings(get_operators(OPERATORS), device="cpu"))


def approximated(law: str, part: str, degree: int, low: float, high: float) -> str:
    """The law with `part`, an expression in x4, replaced by a polynomial that follows it."""
    x = np.linspace(low, high, 400)
    powers = np.polynomial.polynomial.polyfit(x, evaluate(parse(part), {"x4": x}), degree)
    terms = " + ".join(f"({power:.9g})*x4**{at}" if at else f"({power:.9g})" for at, power in enumerate(powers))
    return law.replace("PART", f"({terms})")


@pytest.mark.parametrize("number", range(1, 60))
def test_a_law_is_its_rest_with_the_part_in_its_place(number: int) -> None:
    problem = random_law(DEVELOPMENT, number)
    X, y = problem.sample(0)
    columns = {name: X[:, at] for at, name in enumerate(problem.variables)}
    for one in parts_of(problem.expression):
        whole = evaluate(one.law(one.part), columns)
        assert np.abs(whole - y).max() <= 1e-9 * np.abs(y).max(), (one.part, one.rest)
        assert 1 <= len(variables(one.part)) <= 2
        assert set(variables(one.rest)) <= {*problem.variables, "_part"}


@pytest.mark.parametrize(
    "text", ["sin(x1*x2 + x3**2)**2*x4", "x4/(sin(x1*x2)*sin(x1*x2)*x3)", "f*f*x4", "x4/(f*f) + x2"]
)
def test_a_factor_that_stands_twice_is_not_lost(text: str) -> None:
    law = parse(text.replace("f", "sin(x1*x2 + x3*x3 + x1)"))
    columns = {f"x{i}": np.random.default_rng(i).uniform(0.5, 2.0, 50) for i in range(1, 5)}
    for one in parts_of(law):
        assert np.allclose(evaluate(one.law(one.part), columns), evaluate(law, columns), rtol=1e-10), one


def test_a_fraction_in_the_rest_stays_one() -> None:
    rests = [str(one.rest) for one in parts_of(parse("sin(x2)*x2**2 + x1/3 + x3"))]
    assert any("x1/3" in rest for rest in rests), rests


@pytest.mark.parametrize(
    ("columns", "rows", "may"),
    [(("a", "b"), 200, True), (("a",), 200, False), (("a", "b"), 20, False), (("a", "_part"), 200, False)],
)
def test_few_rows_one_variable_and_names_that_are_taken_leave_laws_whole(columns, rows: int, may: bool) -> None:
    assert can_be_searched(columns, rows) is may


@pytest.mark.parametrize("factor", [1.0, 1e9, 1e-9])
def test_the_table_of_a_part_is_the_same_in_any_unit(factor: float) -> None:
    part = "0.6**sinh(x4) + x4"
    ranges = {"x1": (-1.0, 3.0), "x3": (1.0, 5.0), "x4": (-2.0, 2.0)}
    task = task_of(f"{factor}*x3*({part} - x1)", ranges)
    wrong = approximated(f"{factor}*x3*(PART - x1)", part, 8, -2.0, 2.0)
    one = next(one for one in parts_of(parse(wrong)) if variables(one.part) == ("x4",))
    table = part_table(task, one)
    assert table is not None
    found = table.target.y.numpy()
    expected = evaluate(parse(part), {"x4": task.data.columns["x4"].numpy()})
    scale = float(found @ expected / (expected @ expected))
    assert np.abs(found - scale * expected).max() < 1e-6 * abs(scale)


def test_the_simplest_of_exact_finds_takes_the_place_of_a_part() -> None:
    task, state = nearly_right()
    one = next(iter(parts_to_search(state.front, ())))
    table = part_table(task, one)
    assert table is not None
    found = [Candidate(parse(text), loss) for text, loss in (("sin(x2 + 0*x2*x2)", 1e-31), ("sin(x2)", 3e-31))]
    laws = table.laws(task, found, NO_LIMIT)
    assert min(laws, key=lambda law: law.complexity).complexity <= parse("x1*sin(x2) + x3").complexity


def test_a_record_without_its_part_begins_a_new_one() -> None:
    task, state = nearly_right()
    record = replace(state.record(Parts.name), part=3)
    _, after = Parts().run(task, state.with_record(record), np.random.default_rng(0), NO_LIMIT)
    assert after.parting or after.parted


def test_terms_with_one_factor_in_other_variables_are_one_part() -> None:
    found = parts_of(parse("3*x1*sin(x2) + x1*x2**2 - x3 + 2"))
    assert any(
        set(variables(one.part)) == {"x2"} and "sin(x2)" in str(one.part) and "x2**2" in str(one.part) for one in found
    )


def test_a_number_in_front_of_a_sum_is_multiplied_into_it() -> None:
    (one, *_) = [
        one for one in parts_of(parse("0.5*(4*sin(x2)*x2 + exp(x2) - 2*x1)*x3")) if variables(one.part) == ("x2",)
    ]
    assert str(one.rest) == "(_part - x1)*x3"


def test_the_table_of_a_part_is_what_it_would_have_to_be() -> None:
    law, part = "x3*(PART - 1.06*x1 + x2)", "0.6**sinh(x4) + x4"
    ranges = {"x1": (-1.0, 3.0), "x2": (0.5, 3.0), "x3": (1.0, 5.0), "x4": (-2.0, 2.0)}
    task = task_of(law.replace("PART", f"({part})"), ranges)
    wrong = approximated("x3*(PART - 1.0601*x1 + 0.9999*x2)", part, 10, -2.0, 2.0)
    one = next(one for one in parts_of(parse(wrong)) if variables(one.part) == ("x4",))
    table = part_table(task, one)
    assert table is not None
    x4 = task.data.columns["x4"].numpy()
    needed = task.data.target.y.numpy() / task.data.columns["x3"].numpy()
    needed = needed + 1.06 * task.data.columns["x1"].numpy() - task.data.columns["x2"].numpy()
    assert np.abs(needed - evaluate(parse(part), {"x4": x4})).max() < 1e-12  # the test's own algebra
    place = table.slice(0)
    assert place is not None
    assert np.abs(place[0].data.target.y.numpy() - needed).max() < 1e-9
    assert str(table.part.rest) == "(_part - 1.06*x1 + x2)*x3"


def test_the_law_is_found_where_a_polynomial_followed_a_part() -> None:
    law, part = "x3*(PART - x1 + x2)", "0.6**sinh(x4) + x4"
    ranges = {"x1": (-1.0, 3.0), "x2": (0.5, 3.0), "x3": (1.0, 5.0), "x4": (-2.0, 2.0)}
    task = task_of(law.replace("PART", f"({part})"), ranges)
    one = next(one for one in parts_of(parse(approximated(law, part, 11, -2.0, 2.0))) if variables(one.part) == ("x4",))
    found: list[Candidate] = []
    number: int | None = 0
    while number is not None and not any(map(task.data.is_law, found)):
        new, number = searched_part(task, one, number, NO_LIMIT)
        found += new
    assert any(map(task.data.is_law, found))


def test_a_part_that_the_rest_does_not_determine_has_no_table() -> None:
    task = task_of("x1 + x2", {"x1": (0.5, 3.0), "x2": (0.5, 3.0)})
    assert part_table(task, LawPart(parse("x1 + x2 + 0*_part"), parse("sin(x2)*x2"))) is None


def test_laws_of_noisy_data_are_not_taken_apart() -> None:
    task = task_of("x1*sin(x2)", {"x1": (0.5, 3.0), "x2": (0.5, 3.0)}, noise=0.05)
    front = task.working_front
    laws = [parse("1.4"), parse("x1*sin(x2)")]
    candidates = [one for law in laws if (one := task.data.candidate(law)) is not None]
    assert not is_nearly_right(front.update(candidates, 50))


def test_a_part_that_was_searched_is_not_searched_again() -> None:
    law = parse("x1*(x2 - x2**3/6 + x2**5/120) + exp(x3)*(x3 - 1.5*x3**2)")
    front = task_of("x1 + x2", {"x1": (0.5, 3.0), "x2": (0.5, 3.0)}).working_front
    front = front.update([Candidate(law, 1e-6), Candidate(parse("3.4"), 9.0)], 50)
    parts = list(parts_to_search(front, ()))
    left = list(parts_to_search(front, [parts[0].form]))
    assert len(parts) >= 2
    assert parts[0].form not in [one.form for one in left]
    assert len(left) < len(parts)


def nearly_right() -> tuple[Task, State]:
    """A search whose best law has a polynomial in the place of a sine."""
    task = task_of("x1*sin(x2) + x3", {"x1": (0.5, 3.0), "x2": (0.5, 3.0), "x3": (0.5, 3.0)})
    series = approximated("x1*PART + x3", "sin(x4)", 9, 0.5, 3.0).replace("x4", "x2")
    near = [task.data.candidate(parse(law)) for law in ("2.1", series)]
    state = start(task, 0)
    return task, replace(state, front=state.front.update([one for one in near if one is not None], 50))


def test_a_turn_remembers_its_part_until_the_slices_are_done() -> None:
    task, state = nearly_right()
    move = Parts()
    assert move.ready(state)
    found, after = move.run(task, state, np.random.default_rng(0), NO_LIMIT)
    searched = LawPart(*after.parting)
    assert after.record(move.name).part > 0
    while after.parting:
        new, after = move.run(task, after, np.random.default_rng(0), NO_LIMIT)
        found += new
    assert searched.form in after.parted
    assert any(map(task.data.is_law, found))


def test_a_search_goes_on_in_the_middle_of_a_part() -> None:
    task, state = nearly_right()
    move = Parts()
    _, middle = move.run(task, state, np.random.default_rng(0), NO_LIMIT)
    assert middle.parting
    document = json.loads(json.dumps(document_of(Checkpoint(middle, middle.front, "gp", ""))))
    again = restored(Path("a checkpoint"), document).state
    assert again == middle
    fresh = replace(task)  # nothing of the first turn is remembered outside of the state
    expected = move.run(task, middle, np.random.default_rng(0), NO_LIMIT)
    assert move.run(fresh, again, np.random.default_rng(0), NO_LIMIT) == expected
