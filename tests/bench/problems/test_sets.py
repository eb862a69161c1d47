"""The sets by name: complete, with their protocols, and found by name."""

from __future__ import annotations

import pytest
from bench.problems.test_external import EXTERNAL
from bench.problems.test_measured import MEASURED

from symenum.bench.problems import SETS, get_set
from symenum.bench.problems.problem import MissingDataError

DRAWN = ("random", "random_final", "random_deep", "random_deep_constants")
INTERNAL = [name for name in SETS if name not in (*EXTERNAL, *MEASURED, *DRAWN)]


@pytest.mark.parametrize("name", INTERNAL)
def test_a_set_has_problems_with_names_of_their_own(name: str) -> None:
    try:
        problems = get_set(name).problems()
    except MissingDataError as missing:
        pytest.skip(str(missing))
    assert len({problem.name for problem in problems}) == len(problems) > 0
    for problem in problems:
        assert get_set(name).problem(problem.name) == problem
        assert problem.variables == tuple(f"x{i + 1}" for i in range(len(problem.variables)))


def test_the_reference_samples_more_and_differs_in_three_problems() -> None:
    nguyen, theirs = get_set("nguyen"), get_set("nguyen_reference")
    assert len(theirs.problem("Nguyen-9-reference").sample()[1]) == 400
    assert len(get_set("livermore_reference").problem("Livermore-11-reference").sample()[1]) == 1000
    assert len(nguyen.problem("Nguyen-9").sample()[1]) == 20
    assert theirs.problem("Nguyen-7-reference").sample()[0].max() > 2
    assert str(theirs.problem("Nguyen-12-reference").expression) != str(nguyen.problem("Nguyen-12").expression)
    assert get_set("nguyen_c_reference").problem("Nguyen-5c-reference").sample()[0].min() < 0


def test_constants_of_nguyen_c_are_trimmed_to_two_decimals() -> None:
    assert get_set("nguyen-c").protocol.decimals == 2


def test_a_misspelt_set_or_problem_is_answered_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="did you mean 'livermore'"):
        get_set("livermoor")
    with pytest.raises(ValueError, match="did you mean 'Nguyen-1"):
        get_set("nguyen").problem("nguyen1")
