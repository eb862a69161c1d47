"""symenum, its variants and its rivals behind one protocol."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from symenum.bench.problems import get_problem, get_set
from symenum.bench.problems.problem import law_values
from symenum.bench.systems import SYSTEMS, Law, check_system, make_system
from symenum.bench.systems.other_tree import SymenumAt
from symenum.bench.systems.ours import Symenum
from symenum.core.target import check_target
from symenum.estimator import PSERegressor
from symenum.expressions import parse
from symenum.heads.stages import STAGE_NAMES
from symenum.operators import OPERATOR_SETS
from symenum.search import Settings, make_task

KOZA = OPERATOR_SETS["koza"]
RIVALS = [name for name, entry in SYSTEMS.items() if entry.package not in ("", "symenum")]
ROOT = Path(__file__).parents[2]
LEFT_OUT = ("two terms", "polynomials", "transforms")


@pytest.mark.parametrize(
    "spec",
    [
        "symenum",
        "symenum:generator=none",
        "symenum:range=-1..1,generator=mcts",
        "symenum:without=polynomials",
        f"symenum_at:path={ROOT},device=cpu",
    ],
)
def test_symenum_and_its_variants_find_an_easy_law(spec: str) -> None:
    problem = get_problem("Feynman-3")
    X, y = problem.sample()
    found = make_system(spec).fit(X, y, operators=KOZA, seed=0, max_time=20, cores=1)
    law = found.laws[found.selected]
    assert np.allclose(law_values(parse(law.text), problem.variables, X), y)
    assert found.ended


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("symenum:without=nothing", r"two terms.*not 'nothing'"),
        ("symenum:generator=radnom", r"one of .*'random'"),
        ("symenum:device=gpu", "'cuda'"),
        ("symenum:threads=0", "above 0"),
        ("symenum_at", "symenum_at:path="),
        ("symenum_at:path=/nowhere", "has no src/symenum"),
        (f"symenum_at:path={ROOT},range=1..2", "no option 'range'"),
    ],
)
def test_options_that_cannot_be_met_are_refused(spec: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_system(spec)


def test_symenum_tells_when_each_member_of_the_front_was_first_there() -> None:
    problem = get_problem("Feynman-3")
    X, y = problem.sample()
    system = make_system("symenum:token_generator=random,device=cpu,threads=1")
    found = system.fit(X, y, operators=KOZA, seed=0, max_time=20, cores=1)
    seconds = [sighting.seconds for sighting in found.sightings]
    assert seconds[0] > 0
    assert seconds == sorted(seconds)
    texts = [sighting.text for sighting in found.sightings]
    assert len(set(texts)) == len(texts)
    # Constants may have fewer digits in the end than when the law was first there.
    forms = {re.sub(r"[0-9.]+(e-?[0-9]+)?", "c", text) for text in texts}
    assert {re.sub(r"[0-9.]+(e-?[0-9]+)?", "c", law.text) for law in found.laws} <= forms


def test_the_law_that_symenum_marks_is_that_of_the_estimator() -> None:
    problem = get_set("engineering").problem("Pump")
    X, y = problem.sample(0)
    system = make_system("symenum:generator=none,selection=accuracy,device=cpu")
    found = system.fit(X, y, operators=["+", "*"], seed=0, max_time=2, cores=1)
    assert found.selected == len(found.laws) - 1
    assert Symenum().selection == PSERegressor().model_selection


def test_a_straight_line_is_a_law_and_trees_give_predictions() -> None:
    random = np.random.default_rng(0)
    X = random.uniform(-1, 1, (200, 3))
    y = 2 * X[:, 0] - 3 * X[:, 2] + 0.5
    line = make_system("linear").fit(X, y, operators=KOZA, seed=0, max_time=1, cores=1)
    assert line.laws[line.selected].loss < 1e-20
    for name in ("forest", "boosting"):
        found = make_system(name).fit(X, y, operators=KOZA, seed=0, max_time=1, cores=1)
        assert found.predictor is not None
        assert not found.laws
        values = found.predictor.predict(X)
        assert 0 < np.mean(np.square(values - y)) < 0.1 * y.var()
        assert found.predictor.size > 100


def fake_tree(folder: Path, init: str) -> SymenumAt:
    """A source tree whose package holds no more than `init`."""
    package = folder / "src" / "symenum"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(init, encoding="utf-8")
    system = make_system(f"symenum_at:path={folder}")
    assert isinstance(system, SymenumAt)
    return system


OTHER_VERSION = """
import types

__version__ = "0.0.1"


class PSERegressor:
    def __init__(self, operators, max_time, random_state, callbacks, threads=None):
        if "sin" in operators:
            raise ValueError("unknown operator 'sin'")
        self.callbacks, self.threads = callbacks, threads

    def fit(self, X, y):
        members = [types.SimpleNamespace(expression=text) for text in ("x1", "x1**2")]
        for count in (1, 2):
            self.callbacks(types.SimpleNamespace(front=members[:count]))
        self.equations_ = {"equation": ["x1", "x1**2"], "complexity": [0, 1], "loss": [y.var(), self.threads]}
        self.selected_index_, self.stop_reason_ = 1, "the end"
        return self
"""


def test_another_source_tree_is_run_through_its_own_public_interface(tmp_path: Path) -> None:
    system = fake_tree(tmp_path, OTHER_VERSION)
    x = np.arange(5.0)
    found = system.fit(x[:, None], x, operators=["+"], seed=0, max_time=1.0, cores=3)
    assert found.laws == (Law("x1", 0, 2.0), Law("x1**2", 1, 3.0))  # the second loss is the number of threads
    assert (found.selected, found.ended) == (1, "the end (symenum 0.0.1)")
    assert [sighting.text for sighting in found.sightings] == ["x1", "x1**2"]
    assert found.seconds is not None
    assert found.seconds < 10


@pytest.mark.parametrize(
    ("init", "message"),
    [
        ("import no_such_package", "cannot run this: ModuleNotFoundError: No module named 'no_such_package'"),
        ("", "cannot run this: AttributeError"),
        (OTHER_VERSION, "cannot run this: ValueError: unknown operator 'sin'"),
    ],
)
def test_another_source_tree_that_cannot_run_says_why(tmp_path: Path, init: str, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        fake_tree(tmp_path, init).check(["+", "sin"])


def test_every_stage_of_the_heads_can_be_left_out() -> None:
    for name in STAGE_NAMES:
        make_system(f"symenum:without={name}")


def test_a_stage_that_is_left_out_does_not_run() -> None:
    problem = get_problem("Nguyen-9")
    X, y = problem.sample()
    target, _ = check_target(y, None, len(X))
    tasks = [make_task(problem.variables, torch.tensor(X), target, Settings(leave_out=out)) for out in ((), LEFT_OUT)]
    whole, part = ({stage.name for group in task.stages for stage in group} for task in tasks)
    assert whole - part == {"two terms", "polynomials", "transforms"}
    quick, fewer = ({stage.name for stage in task.heads.on_slots()} for task in tasks)
    assert quick - fewer == {"two terms"}


@pytest.mark.filterwarnings("ignore")  # their own
@pytest.mark.parametrize("name", RIVALS)
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
    for name in RIVALS:
        why = check_system(name)
        assert (why is None) == (importlib.util.find_spec(SYSTEMS[name].package) is not None)
        assert why is None or "pip install" in why
