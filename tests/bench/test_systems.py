"""symenum, its variants and its rivals behind one protocol."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
import torch

from symenum.bench.problems import get_problem
from symenum.bench.problems.problem import law_values
from symenum.bench.systems import SYSTEMS, check_system, make_system
from symenum.core.target import check_target
from symenum.expressions import parse
from symenum.heads.stages import STAGE_NAMES, stage_order
from symenum.operators import OPERATOR_SETS
from symenum.search import Settings, make_task

KOZA = OPERATOR_SETS["koza"]
LEFT_OUT = ("two terms", "polynomials", "transforms")


@pytest.mark.parametrize(
    "spec", ["symenum", "symenum:generator=none", "symenum:range=-1..1,generator=mcts", "symenum:without=polynomials"]
)
def test_symenum_and_its_variants_find_an_easy_law(spec: str) -> None:
    problem = get_problem("Feynman-3")
    X, y = problem.sample()
    found = make_system(spec).fit(X, y, operators=KOZA, seed=0, max_time=20, cores=1)
    law = found.laws[found.selected]
    assert np.allclose(law_values(parse(law.text), problem.variables, X), y)
    assert found.ended


def test_a_stage_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match=r"two terms.*not 'nothing'"):
        make_system("symenum:without=nothing")


def test_every_stage_of_the_heads_can_be_left_out() -> None:
    for slots in (1, 2, 5, 20):
        for rows in (50, 1000):
            assert set(stage_order(slots, rows)) <= set(STAGE_NAMES)
    for name in STAGE_NAMES:
        make_system(f"symenum:without={name}")


def test_a_stage_that_is_left_out_does_not_run() -> None:
    problem = get_problem("Nguyen-9")
    X, y = problem.sample()
    target, _ = check_target(y, None, len(X))
    tasks = [make_task(problem.variables, torch.tensor(X), target, Settings(leave_out=out)) for out in ((), LEFT_OUT)]
    whole, part = ({stage.name for group in task.stages for stage in group} for task in tasks)
    assert whole - part == {"two terms", "polynomials", *(name for name in whole if name.startswith("for "))}
    quick, fewer = ({stage.name for stage in task.heads.quick()} for task in tasks)
    assert quick - fewer == {"two terms"}


@pytest.mark.filterwarnings("ignore")  # their own
@pytest.mark.parametrize("name", [name for name in SYSTEMS if name != "symenum"])
def test_a_rival_gives_laws_that_fit_as_they_say(name: str) -> None:
    if check_system(name) is not None:
        pytest.skip(f"{name} is not installed")
    problem = get_problem("Feynman-1")
    X, y = problem.sample()
    found = make_system(name).fit(X, y, operators=KOZA, seed=0, max_time=2, cores=1)
    assert found.laws
    assert 0 <= found.selected < len(found.laws)
    for law in found.laws:
        values = law_values(parse(law.text), problem.variables, X)
        assert law.loss == pytest.approx(np.mean(np.square(values - y)), rel=1e-6)


def test_a_rival_that_is_not_installed_says_how_to_get_it() -> None:
    for name, entry in SYSTEMS.items():
        why = check_system(name)
        assert (why is None) == (importlib.util.find_spec(entry.package) is not None)
        assert why is None or "pip install" in why
