"""The doors for parts from outside the package: what works, and what is refused when it is registered."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from symenum import (
    PSERegressor,
    first_pass,
    register_generator,
    register_head,
    register_loss,
    register_set,
    register_system,
)
from symenum.bench.jobs import make_bench_plan
from symenum.bench.problems import SETS, MissingDataError, Problem, ProblemSet
from symenum.bench.systems import SYSTEMS, Found, Law, check_found, make_system
from symenum.cli import main
from symenum.core.budget import CutShortError
from symenum.core.registration import PLUGINS_VARIABLE, PluginError, load_plugins
from symenum.expressions import Variable, apply, parse
from symenum.fitting.losses import LOSSES, Absolute, Custom, RowLoss
from symenum.heads.head import HEADS
from symenum.tokens import GENERATORS, STATES

X = np.random.default_rng(0).uniform(1, 2, (24, 2))
Y = np.tanh(X[:, 0] / X[:, 1]) + np.random.default_rng(1).normal(0, 0.1, 24)


@pytest.fixture(autouse=True)
def clean(one_thread: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Registering is for the process: the next test begins without."""
    monkeypatch.delenv(PLUGINS_VARIABLE, raising=False)
    tables: list[dict[str, Any]] = [HEADS, GENERATORS, STATES, LOSSES, SYSTEMS, SETS]
    before = [dict(table) for table in tables]
    path = list(sys.path)
    yield
    for table, content in zip(tables, before, strict=True):
        table.clear()
        table.update(content)
    sys.path[:] = path
    os.environ.pop(PLUGINS_VARIABLE, None)


# Heads


class Tanh:
    """y = a + b*tanh(x1/x2)."""

    name = "tanh of a ratio"

    def __init__(self) -> None:
        self.calls: list[int] = []

    def scan(self, features: Any, response: Any, k: int, budget: Any) -> list[Any]:
        self.calls.append(len(features))
        found = response.fit([parse("1"), parse("tanh(x1/x2)")])
        return [] if found is None else [found]


def quick(**changes: Any) -> PSERegressor:
    given = {"operators": ["+", "*", "/", "tanh"], "max_iterations": 4, "max_time": None, "random_state": 0}
    return PSERegressor(**{**given, **changes})


def stages(**changes: Any) -> list[str]:
    seen: list[str] = []
    quick(callbacks=lambda report: seen.append(report.stage), **changes).fit(X, Y)
    return seen


def test_a_head_is_a_move_of_its_own() -> None:
    assert Tanh.name not in stages(max_iterations=20)
    head = Tanh()
    register_head(head)
    assert stages(max_iterations=20).count(Tanh.name) == 1
    assert len(head.calls) == 2  # when it was registered, and in the search


def test_a_head_may_call_its_arguments_as_it_likes() -> None:
    register_head(with_scan(lambda columns, response, most, time: []))
    assert list(HEADS) == ["mine"]


def test_a_late_head_comes_after_the_cheap_ones() -> None:
    register_head(Tanh(), late=True)
    assert Tanh.name not in stages(max_iterations=12)
    seen: list[str] = []
    model = quick(max_iterations=200, callbacks=lambda report: seen.append(report.stage) or report.stage == Tanh.name)
    model.fit(X[:, :2], Y)
    assert seen[-1] == Tanh.name


def test_the_law_of_a_head_is_on_the_front() -> None:
    exact = 2 * np.tanh(X[:, 0] / X[:, 1]) + 1
    register_head(Tanh())
    model = quick(max_iterations=20).fit(X, exact)
    assert str(model.best_expression_) == "2*tanh(x1/x2) + 1"
    assert str(first_pass(X, exact, operators=["+", "*", "/", "tanh"], k=1)[0].expression) == "2*tanh(x1/x2) + 1"


def test_what_the_operators_cannot_write_is_left_out() -> None:
    register_head(Tanh())
    model = quick(operators=["+", "*"], max_iterations=20).fit(X, Y)
    assert not any("tanh" in equation for equation in model.equations_["equation"].astype(str))


def test_a_head_gets_the_features_that_it_asks_for() -> None:
    sizes = []
    for features in ("slots", "layers", "extended"):
        head = Tanh()
        register_head(head, features=features)
        quick(max_iterations=20).fit(X, Y)
        sizes.append(head.calls[-1])
        HEADS.clear()
    assert sizes[0] <= 3  # the two variables, and 1
    assert 10 * sizes[0] < sizes[1] < sizes[2]


def with_scan(function: Any, name: str = "mine") -> Any:
    return type("Mine", (), {"name": name, "scan": staticmethod(function)})()


def fails(features: Any, response: Any, k: int, budget: Any) -> Any:
    raise ZeroDivisionError("one over nothing")


def boasts(features: Any, response: Any, k: int, budget: Any) -> Any:
    candidate = response.fit([parse("x1")])
    return [type(candidate)(candidate.expression, candidate.loss / 2)]


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (with_scan(fails), "'mine' raised ZeroDivisionError: one over nothing"),
        (with_scan(lambda features, response, k, budget: None), "'mine' must return a list of Candidate.*not None"),
        (with_scan(lambda features, response, k, budget: ["x1"]), "list of Candidate"),
        (with_scan(lambda features, response, k, budget: (response.fit([parse("x1")]),)), "list of Candidate"),
        (with_scan(boasts), "gives .*x1 the loss"),
        (with_scan(lambda features, response: []), r"'mine' is called as scan\(features, response, k, budget\), and"),
        (type("NoScan", (), {"name": "mine"})(), r"'mine' \(NoScan\) has no method scan"),
        (type("NoName", (), {"scan": fails})(), r"a head \(NoName\) has no name"),
        (Tanh, "class Tanh: give an object of it"),
        (with_scan(fails, name="two terms"), "'two terms' of a head is taken"),
        (with_scan(fails, name="network"), "is taken"),
        (with_scan(fails, name="Two, three"), "small letters"),
        (with_scan(fails, name=3), "small letters"),
    ],
)
def test_a_head_that_cannot_work_is_refused(head: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError, RuntimeError), match=message):
        register_head(head)
    assert not HEADS


def test_a_head_is_registered_once() -> None:
    register_head(Tanh())
    with pytest.raises(ValueError, match="'tanh of a ratio' of a head is taken"):
        register_head(Tanh())


def test_features_of_another_name_are_refused() -> None:
    with pytest.raises(ValueError, match="one of 'slots', 'layers', 'extended', not 'all'"):
        register_head(Tanh(), features="all")  # type: ignore[arg-type]


class Moody(Tanh):
    """Works when it is registered, and not in the search."""

    answer: Any = None

    def scan(self, features: Any, response: Any, k: int, budget: Any) -> Any:
        found = super().scan(features, response, k, budget)
        if len(self.calls) == 1:
            return found
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_a_head_that_fails_in_the_search_is_named_and_the_search_goes_on() -> None:
    head = Moody()
    register_head(head)
    head.answer = KeyError("lost")
    with pytest.warns(RuntimeWarning, match=r"'tanh of a ratio' failed .*raised KeyError: 'lost'.*goes on without it"):
        model = quick(max_iterations=20).fit(X, Y)
    assert model.n_iter_ == 20
    assert "lost" in model.schedule_.set_index("move").loc[Tanh.name, "error"]
    head.answer = "a law"
    with pytest.warns(RuntimeWarning, match="scan of the head 'tanh of a ratio' must return a list of Candidate"):
        quick(max_iterations=20).fit(X, Y)


def test_a_head_that_is_cut_short_is_no_fault() -> None:
    head = Moody()
    register_head(head)
    head.answer = CutShortError()
    assert quick(max_iterations=20).fit(X, Y).n_iter_ == 20


def test_a_checkpoint_is_read_with_other_heads_than_it_was_written_with(tmp_path: Path) -> None:
    register_head(Tanh())
    path = tmp_path / "search.json"
    quick(max_iterations=20, checkpoint=path).fit(X, Y)
    HEADS.clear()
    assert PSERegressor.resume(path, max_iterations=22).n_iter_ == 22


# Token generators


@dataclass(frozen=True)
class Count:
    done: int = 0


class Ratios:
    name = "ratios"

    def start(self, context: Any) -> Any:
        return Count()

    def propose(self, context: Any, state: Any, count: int, rng: np.random.Generator, budget: Any) -> Any:
        return (apply("div", Variable("x1"), Variable("x2")),), state

    def learn(self, context: Any, state: Any, reward: float, front: Any) -> Any:
        return Count(state.done + 1)


def tokens_only(**changes: Any) -> PSERegressor:
    return quick(operators=["+", "*", "/"], constants=False, layers=2, token_generator="ratios", **changes)


def test_a_checkpoint_reads_the_state_of_a_registered_generator_back(tmp_path: Path) -> None:
    register_generator(Ratios())
    path = tmp_path / "search.json"
    whole = tokens_only(max_iterations=6).fit(X, Y)
    tokens_only(max_iterations=3, checkpoint=path).fit(X, Y)
    resumed = PSERegressor.resume(path, max_iterations=6)
    assert list(resumed.front_) == list(whole.front_)
    assert json.loads(path.read_text(encoding="utf-8"))["state"]["generator"] == {"done": 4}
    del GENERATORS["ratios"], STATES["ratios"]
    with pytest.raises(ValueError, match="token generator 'ratios' is not known: import the module that registers it"):
        PSERegressor.resume(path, max_iterations=7)


def test_a_generator_that_is_not_registered_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="token_generator must be one of 'gp', 'mcts', 'random', not 'ratios'"):
        tokens_only().fit(X, Y)


def changed(**methods: Any) -> Any:
    return type("Changed", (Ratios,), methods)()


@dataclass
class Loose:
    done: int = 0


@dataclass(frozen=True)
class Unkept:
    seen: dict[str, int]


@dataclass(frozen=True)
class Mistyped:
    best: float = 0.5
    names: list[str] = ()  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("generator", "message"),
    [
        (changed(propose=None), r"has no method propose\(context, state, count, rng, budget\)"),
        (changed(learn=lambda self, context: Count()), r"called as learn\(context, state, reward, front\)"),
        (changed(name="gp"), "'gp' of a token generator is taken"),
        (changed(name="a:b"), "small letters"),
        (
            changed(propose=lambda self, context, state, count, rng, budget: ["x1/x2"]),
            "must return .tuple of expressions",
        ),
        (
            changed(propose=lambda self, context, state, count, rng, budget: (("x1/x2",), state)),
            "must give expressions",
        ),
        (
            changed(propose=lambda self, context, state, count, rng, budget: ((Variable("x1"),), state)),
            "has an operator",
        ),
        (
            changed(propose=lambda self, context, state, count, rng, budget: ((parse("log(-x1)"),), state)),
            "finite on every",
        ),
        (
            changed(propose=lambda self, context, state, count, rng, budget: ((parse("x1/x2"),) * 2, state)),
            "different tokens",
        ),
        (
            changed(
                propose=lambda self, context, state, count, rng, budget: ((parse(f"x1*{np.random.rand()}"),), state)
            ),
            "take all random numbers from rng",
        ),
        (
            changed(propose=lambda self, context, state, count, rng, budget: 1 / 0),
            "failed on a small table: ZeroDivision",
        ),
        (changed(learn=lambda self, context, state, reward, front: front[9]), "learn of .* failed .*IndexError"),
        (changed(learn=lambda self, context, state, reward, front: None), "state of type NoneType, and start one of"),
        (changed(start=lambda self, context: {"done": 0}), "dict"),
        (
            changed(start=lambda self, context: Loose(), learn=lambda self, context, state, reward, front: state),
            "frozen dataclass, not Loose",
        ),
        (
            changed(start=lambda self, context: Unkept({}), learn=lambda self, context, state, reward, front: state),
            "cannot be kept in a checkpoint: a dict cannot",
        ),
        (
            changed(start=lambda self, context: Mistyped(), learn=lambda self, context, state, reward, front: state),
            "is a list.str., and only",
        ),
    ],
)
def test_a_generator_that_cannot_work_is_refused(generator: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        register_generator(generator)
    assert "ratios" not in GENERATORS


# Losses


class Cubic(RowLoss):
    name = "cubic"

    def rows(self, y: torch.Tensor, prediction: torch.Tensor) -> Any:
        return (prediction - y).abs() ** 3


def test_a_registered_loss_ranks_and_fits_as_the_object_does() -> None:
    register_loss("cubic", Cubic())
    by_name = quick(loss="cubic", operators=["+", "*"], max_iterations=2).fit(X, Y)
    by_object = quick(loss=Cubic(), operators=["+", "*"], max_iterations=2).fit(X, Y)
    assert list(by_name.front_) == list(by_object.front_)
    law = by_name.front_[-1]
    assert law.loss == pytest.approx(np.mean(np.abs(by_name.predict(X, index=-1) - Y) ** 3), rel=1e-9)


def test_a_registered_callable_is_a_loss_with_its_name() -> None:
    register_loss("worst", lambda y, prediction: float(np.abs(prediction - y).max()))
    assert isinstance(LOSSES["worst"](None), Custom)  # type: ignore[arg-type]
    assert LOSSES["worst"](None).name == "worst"  # type: ignore[arg-type]
    model = quick(loss="worst", operators=["+", "*"], max_iterations=2).fit(X, Y)
    assert model.front_[0].loss == pytest.approx(np.abs(model.predict(X, index=0) - Y).max())


def test_row_weights_alone_make_a_loss_least_squares_with_other_weights() -> None:
    class Weighted(RowLoss):
        name = "weighted"

        def rows(self, y: torch.Tensor, prediction: torch.Tensor) -> torch.Tensor:
            return ((prediction - y) / y).square()

        def row_weights(self, y: torch.Tensor) -> torch.Tensor:
            return y.abs().min().square() / y.square()

        def weights(self, y: torch.Tensor, prediction: torch.Tensor) -> torch.Tensor:
            return self.row_weights(y)

    ours = quick(loss="relative", operators=["+", "*"], max_iterations=2).fit(X, Y)
    mine = quick(loss=Weighted(), operators=["+", "*"], max_iterations=2).fit(X, Y)
    assert [entry.complexity for entry in mine.front_] == [entry.complexity for entry in ours.front_]
    for index in range(len(mine.front_)):  # the weights have another scale, and so the last digits may differ
        np.testing.assert_allclose(mine.predict(X, index=index), ours.predict(X, index=index), rtol=1e-9)


def test_a_loss_may_refuse_a_target() -> None:
    class Positive(Cubic):
        def check(self, y: torch.Tensor) -> None:
            if bool((y <= 0).any()):
                raise ValueError("loss='positive' needs y above 0")

    register_loss("positive", Positive())
    with pytest.raises(ValueError, match="needs y above 0"):
        quick(loss="positive").fit(X, Y - 10)


def cubic(**methods: Any) -> Any:
    return type("Changed", (Cubic,), methods)()


def test_a_loss_of_rows_needs_the_method_rows() -> None:
    with pytest.raises(TypeError, match=r"abstract.*rows"):
        type("NoRows", (RowLoss,), {"name": "no rows"})()


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (cubic(rows=lambda self, y, prediction: 1.0), "rows of loss .* must return None or a float64 tensor"),
        (cubic(rows=lambda self, y, prediction: (prediction - y)[:2]), "failed on 5 rows|shape"),
        (cubic(rows=lambda self, y, prediction: (prediction - y).float()), "float64"),
        (cubic(total=lambda self, y, prediction, weight: "much"), "total of loss .* finite number, not 'much'"),
        (cubic(weights=lambda self, y, prediction: prediction - y), "weights of loss .* at least 0"),
        (cubic(weights=lambda self, y, prediction: 1 / 0), "ZeroDivisionError"),
        (type("Bare", (), {"total": lambda self, y, prediction, weight: 0.0})(), "no check, rows, weights.*RowLoss"),
        (lambda y, prediction: prediction, "one number for all rows"),
        (lambda y, prediction: "much", "must return a number"),
        (lambda y, prediction: float("nan"), "finite number"),
        (lambda y, prediction: 1 / 0, "loss 'mine' failed on a small table: ZeroDivisionError"),
        (lambda y, prediction: b"\xff".decode(), "loss 'mine': 'utf-8' codec"),
        (Cubic, r"loss is the class Cubic: give an object of it, Cubic\(\)"),
        (3, "loss must be one of 'mse'"),
        ("mse", "not the text 'mse'"),
    ],
)
def test_a_loss_that_cannot_work_is_refused(loss: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        register_loss("mine", loss)
    assert "mine" not in LOSSES


@pytest.mark.parametrize("name", ["mse", "Mine", "", "a,b", None])
def test_a_name_that_a_loss_cannot_have_is_refused(name: Any) -> None:
    with pytest.raises(ValueError, match="name"):
        register_loss(name, Absolute())


# Rivals and problem sets


class Mean:
    def fit(self, X: Any, y: Any, *, operators: str, seed: int, max_time: float, cores: int) -> Any:
        return Found((Law(repr(float(y.mean())), 0, float(y.var())),), 0)


def test_a_rival_is_planned_and_made_by_its_name() -> None:
    register_system("mean", Mean)
    assert make_bench_plan(["nguyen"], seeds=1, systems=["mean"]).systems == ("mean",)
    assert isinstance(make_system("mean"), Mean)
    with pytest.raises(ValueError, match="takes no options"):
        make_system("mean:seed=3")


def test_a_rival_whose_package_is_missing_is_skipped_in_words() -> None:
    register_system("mean", Mean, package="no_such_package_anywhere")
    plan = make_bench_plan(["nguyen"], seeds=1, systems=["mean"])
    assert not plan.jobs
    assert "no_such_package_anywhere is not installed" in plan.notes[0]


@pytest.mark.parametrize(
    ("name", "factory", "message"),
    [
        ("gplearn", Mean, "'gplearn' of a system is taken"),
        ("a:b", Mean, "small letters"),
        ("mine", Mean(), "factory of the system 'mine' must be callable"),
        ("mine", dict, r"has no method fit\(X, y, operators=, seed=, max_time=, cores=\)"),
        ("mine", lambda: with_fit(lambda X, y: None), "the factory of the system 'mine' makes is called as fit"),
    ],
)
def test_a_rival_that_cannot_work_is_refused(name: str, factory: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        register_system(name, factory)
    assert "mine" not in SYSTEMS


def with_fit(function: Any) -> Any:
    return type("Mine", (), {"fit": staticmethod(function)})()


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (None, r"fit of the system 'mine' must return Found\(laws, selected\), laws of Law, not None"),
        (Found(("x1",), 0), "laws of Law"),  # type: ignore[arg-type]
        (Found((Law("x1", 1, 0.0),), 1), "selected law 1 of 1"),
    ],
)
def test_what_a_rival_hands_back_is_checked(found: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        check_found("mine", found)


def line(name: str = "line") -> Problem:
    return Problem(name, "2*x1", ("x1",), low=0, high=1, rows=5)


def test_a_set_that_needs_files_is_registered_and_says_which() -> None:
    def load() -> Any:
        raise MissingDataError("coffee needs cups.csv")

    register_set(ProblemSet("coffee", "Coffee", load))
    with pytest.raises(MissingDataError, match=r"cups\.csv"):
        SETS["coffee"].problems()


@pytest.mark.parametrize(
    ("one", "message"),
    [
        ({"name": "coffee"}, "must be a ProblemSet"),
        (ProblemSet("nguyen", "", lambda: ()), "'nguyen' of a problem set is taken"),
        (ProblemSet("cold-coffee", "", lambda: ()), "must be written 'cold_coffee'"),
        (ProblemSet("coffee", "", lambda: [line()]), "must return a tuple of problems"),  # type: ignore[arg-type]
        (ProblemSet("coffee", "", lambda: ("2*x1",)), "a problem of the set 'coffee'"),  # type: ignore[arg-type]
        (ProblemSet("coffee", "", lambda: (line(), line())), "two problems of one name"),
    ],
)
def test_a_set_that_cannot_work_is_refused(one: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        register_set(one)
    assert "coffee" not in SETS


# Loading


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module in the working folder that registers a loss."""
    monkeypatch.chdir(tmp_path)
    name = f"plugin_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(
        "from symenum import register_loss\n"
        "register_loss('worst', lambda y, prediction: float(abs(prediction - y).max()))\n",
        encoding="utf-8",
    )
    return name


def test_a_command_loads_plugins_of_its_option_and_tells_its_processes(plugin: str) -> None:
    Path("t.csv").write_text("x,y\n1,3\n2,5\n3,7\n4,9\n5.5,12\n", encoding="utf-8")
    arguments = ["--plugin", plugin, "fit", "t.csv", "-q", "--loss", "worst", "--max-iterations", "2"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert result.stdout.strip() == "y = 2*x + 1"
    assert os.environ[PLUGINS_VARIABLE] == plugin


def test_the_variable_alone_loads_plugins(plugin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PLUGINS_VARIABLE, plugin)
    load_plugins()
    assert "worst" in LOSSES


def test_a_plugin_that_cannot_be_loaded_is_named(plugin: str) -> None:
    result = CliRunner().invoke(main, ["--plugin", "no_such_module_anywhere", "devices"])
    assert result.exit_code == 2
    assert "--plugin: the plug-in 'no_such_module_anywhere' cannot be loaded: ModuleNotFoundError" in result.output
    Path("faulty_plugin.py").write_text("1 / 0\n", encoding="utf-8")
    with pytest.raises(PluginError, match="'faulty_plugin' cannot be loaded: ZeroDivisionError"):
        load_plugins(["faulty_plugin"])
    assert PLUGINS_VARIABLE not in os.environ
