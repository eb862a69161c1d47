"""Random laws: always the same, as deep and as wide as they say, and real laws on their box."""

from __future__ import annotations

import re

import numpy as np
import pytest

from symenum.bench.judge import recovered
from symenum.bench.problems import get_set
from symenum.bench.problems.random_laws import (
    DEPTHS,
    DEVELOPMENT,
    FINAL,
    LAW_SETS,
    ONE_VARIABLE,
    LawSet,
    _is_law,
    _tree,
    random_law,
)
from symenum.expressions import Constant, parse, variables, walk

FUNCTION = "(sin|cos|tanh|exp|log|sqrt|abs|sign|cosh|sinh)"
some = pytest.mark.parametrize("number", [1, 2, 7, 12, 21, 24, 40, 95])


each_set = pytest.mark.parametrize("laws", LAW_SETS.values(), ids=LAW_SETS)


@each_set
def test_all_depths_and_numbers_of_variables_are_there_equally_often(laws: LawSet) -> None:
    shapes = [laws.shape(number) for number in range(1, len(laws) + 1)]
    assert set(shapes) == {(depth, count) for depth in laws.depths for count in laws.variables}
    assert {shapes.count(one) for one in shapes} == {10}


@some
@each_set
def test_a_law_is_finite_varies_and_depends_on_all_its_variables(number: int, laws: LawSet) -> None:
    if number > len(laws):
        pytest.skip(f"the set has {len(laws)} laws")
    law = random_law(laws, number)
    assert laws.number(law.name) == number
    assert set(variables(law.expression)) == set(law.variables)
    assert len(law.variables) == laws.shape(number)[1]
    X, y = law.sample(1)
    assert np.isfinite(y).all()
    assert y.std() > 0
    for at in range(X.shape[1]):
        moved = X.copy()
        moved[:, at] = law.sample(2)[0][:, at]
        assert np.nanmax(np.abs(law.values(moved) - y)) > 0.01 * y.std()
    assert recovered(law.expression, law)


@each_set
def test_a_tree_has_as_many_constants_as_its_set_allows(laws: LawSet) -> None:
    least, most = laws.constants
    for seed in range(12):
        tree = _tree(np.random.default_rng(seed), ("x1", "x2", "x3"), 5, laws.constants)
        constants = [float(node.value) for node in walk(tree) if isinstance(node, Constant)]
        drawn = [value for value in constants if value != round(value)]  # 1/(1 + exp(-a)) has a 1 of its own
        assert least <= len(drawn) <= most


def test_the_same_number_gives_the_same_law_and_the_sets_differ() -> None:
    again = [random_law.__wrapped__(DEVELOPMENT, number) for number in range(1, 13)]
    assert again == [random_law(DEVELOPMENT, number) for number in range(1, 13)]
    assert {law.text for law in again}.isdisjoint(random_law(FINAL, number).text for number in range(1, 13))


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("x1*sin(x2) + 2.1", True),
        ("x1*x2/x2 + x2", False),  # a part equals another
        ("abs(x1) + x2", False),
        ("x1 + sign(x2)", False),  # a part is constant
        ("x1 + x2/1000", False),  # one variable hardly counts
        ("x1 + exp(x2 - 20.5)", False),
        ("log(x1 - x2)", False),  # not finite
        ("x1/(x1 - x2)", False),  # a pole
        ("x1*exp(exp(x2))", False),  # too large
    ],
)
def test_what_is_no_law_on_its_box_is_not_kept(text: str, kept: bool) -> None:
    rng = np.random.default_rng(0)
    X, other = rng.uniform(0.5, 3.0, (2, 1000, 2))
    assert _is_law(parse(text), ("x1", "x2"), X, other) == kept


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_tree_has_the_depth_that_is_asked_and_no_function_in_a_function(depth: int) -> None:
    rng = np.random.default_rng(depth)
    for _ in range(50):
        for count in (*ONE_VARIABLE.variables, *DEVELOPMENT.variables):
            names = tuple(f"x{i + 1}" for i in range(count))
            tree = _tree(rng, names, depth)
            assert tree.depth >= depth  # 1/(1 + exp(-a)) is one operator of the table, but four of the tree
            assert set(variables(tree)) == set(names)
            assert not re.search(rf"{FUNCTION}\({FUNCTION}\([^()]*\)\)", str(tree))


def test_a_set_makes_the_one_problem_that_is_asked_for() -> None:
    random_law.cache_clear()
    drawn = get_set("random")
    assert len(drawn.problem_names()) == len(DEVELOPMENT) == 240
    assert drawn.problem("Random-5").name == "Random-5"
    assert random_law.cache_info().currsize == 1
    with pytest.raises(ValueError, match="did you mean 'Random-"):
        drawn.problem("Random-999")
    final = get_set("random_final").problem("Random-F5")
    assert str(final.expression) != str(drawn.problem("Random-5").expression)
