"""One Levenberg–Marquardt: ends where SciPy's ends, side by side as alone, in time, for every adapter."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest
import scipy.optimize
import torch

from symenum.core.budget import Budget
from symenum.expressions import evaluate, parse
from symenum.fitting import levenberg_marquardt
from symenum.fitting.batch_program import compile_program
from symenum.fitting.form_fit import _Problem, _Starts
from symenum.fitting.free_constants import postfix, with_constants
from symenum.fitting.levenberg_marquardt import Problems, fit, solve_positive
from symenum.fitting.many_starts import Starts, _problems
from symenum.fitting.refine import Batch, Problem

pytestmark = pytest.mark.usefixtures("one_thread")


TEXTS = ["1.5*sin(1.2*x) + 0.3", "exp(0.7*x)*x - 0.5*y", "y/(x + 2.5)"]


COPIES = 4


def problem() -> Problem:
    """Data that no constants fit exactly, so that no start ends the others of its expression."""
    x = torch.linspace(0, 2, 30, dtype=torch.float64)
    columns = {"x": 0.5 + x, "y": 0.5 + x**3}
    expressions = [parse(text) for text in TEXTS]
    program = compile_program([postfix(expression) for expression in expressions], columns)
    root = np.full((len(TEXTS), 30), 30**-0.5)
    noise = 0.1 * np.random.default_rng(0).normal(size=root.shape)
    y = torch.stack([evaluate(expression, columns) for expression in expressions]).numpy() + noise
    return Problem(program, program.data, y * root, root, np.zeros(len(TEXTS)))


def points(given: Problem) -> np.ndarray:
    factors = np.exp(np.random.default_rng(1).uniform(-0.7, 0.7, (given.program.starts.shape[1], 3 * COPIES)))
    return np.repeat(given.program.starts.T, COPIES, axis=1) * factors


@pytest.mark.parametrize("compact", [0, 10**9])
def test_starts_side_by_side_end_where_each_ends_alone(compact: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levenberg_marquardt, "_COMPACT", compact)
    given = problem()
    constants = points(given)
    together = fit(Batch(given, np.arange(3), COPIES), constants, steps=25, tolerance=1e-6, budget=Budget())
    for at, member in enumerate(np.repeat(np.arange(3), COPIES)):
        alone = fit(Batch(given, np.array([member])), constants[:, [at]], steps=25, tolerance=1e-6, budget=Budget())
        assert together.loss[at] == pytest.approx(alone.loss[0], rel=1e-6)
        assert together.converged[at] == alone.converged[0]
        np.testing.assert_allclose(together.constants[:, at], alone.constants[:, 0], rtol=1e-3, atol=1e-6)


def test_a_batch_without_its_idle_members_holds_all_that_work() -> None:
    given = problem()
    batch = Batch(given, np.arange(3), COPIES)
    working = np.zeros(3 * COPIES, dtype=bool)
    working[[1, 3, 2 * COPIES]] = True
    smaller, kept = batch.without_idle(working)
    assert set(np.flatnonzero(working)) <= set(kept.tolist())
    assert smaller.groups.tolist() == batch.groups[kept].tolist() == [0, 0, 2, 2]
    constants = points(given)
    losses = smaller.losses(constants[: smaller.width, kept])
    np.testing.assert_allclose(losses, batch.losses(constants)[kept], rtol=1e-12)


SHAPES = {
    "1.5*sin(1.2*x) + 0.3": 0.3,
    "exp(0.7*x)*x - 0.5*y": 0.3,
    "y/(x + 2.5)": 0.5,
    "2.1*x": 1.0,
    "1.1*x*exp(-0.4*y) + 0.6*cos(1.3*x + 0.2)": 0.1,
    "log(x + 1.7)*y - 2.5": 0.3,
}


def test_a_batch_of_different_shapes_ends_where_scipy_ends() -> None:
    random = np.random.default_rng(3)
    columns = {name: torch.from_numpy(random.uniform(0.5, 2.5, 40)) for name in "xy"}
    truths = [parse(text) for text in SHAPES]
    program = compile_program([postfix(truth) for truth in truths], columns)
    y = torch.stack([evaluate(truth, columns) for truth in truths]).numpy()
    y = y + 0.05 * random.normal(size=y.shape)
    root = np.sqrt(random.uniform(0.5, 2.0, y.shape) / 40)
    given = Problem(program, program.data, y * root, root, np.zeros(len(truths)))
    spread = np.array(list(SHAPES.values()))
    starts = program.starts.T * np.exp(spread * random.uniform(-1, 1, program.starts.T.shape))
    ours = fit(Batch(given, np.arange(len(truths))), starts, steps=60, tolerance=1e-14, budget=Budget())
    for at, truth in enumerate(truths):
        size = int(program.count[at])

        def residual(values: np.ndarray, truth=truth, at=at) -> np.ndarray:  # type: ignore[no-untyped-def]
            law = evaluate(with_constants(truth, values.tolist()), columns).numpy()
            return np.asarray((y[at] - law) * root[at])

        theirs = scipy.optimize.least_squares(residual, starts[:size, at], xtol=1e-14, ftol=1e-14, gtol=1e-14)
        assert ours.loss[at] == pytest.approx(2 * theirs.cost, rel=1e-8)
        np.testing.assert_allclose(ours.constants[:size, at], theirs.x, rtol=1e-4, atol=1e-6)
        assert ours.converged[at]


class _Sines:
    """c·sin(θ·x) + d·x as a model of a head."""

    def __init__(self, x: torch.Tensor) -> None:
        self.x = x

    def columns(self, theta: torch.Tensor, members: torch.Tensor):  # type: ignore[no-untyped-def]
        angle = theta * self.x
        F = torch.stack([angle.sin(), self.x.expand_as(angle)], dim=1)
        return F, lambda c: (c[:, :1] * self.x * angle.cos())[:, None]


def adapters() -> list[tuple[str, Problems, np.ndarray]]:
    x = torch.linspace(0.2, 3, 30, dtype=torch.float64)
    y = (1.3 * x).sin() + 0.2 * x.square()
    theta = torch.tensor([[0.7], [1.2], [2.9]], dtype=torch.float64)
    columns = _problems(_Sines(x), Starts(theta, torch.arange(3)), y / y.norm(), together=False)
    form = _Problem(parse("a*exp(-b*x) + b*x**c"), ("a", "b", "c"), {"x": x}, y, torch.full_like(x, 1 / 30))
    around = np.random.default_rng(2).uniform(0.5, 1.5, (3, 4))
    whole = problem()
    return [
        ("programs", Batch(whole, np.arange(3), COPIES), points(whole)),
        ("columns", columns, theta.numpy().T.copy()),
        ("form", _Starts.of(form, 4), around),
    ]


@pytest.mark.parametrize("number", range(3), ids=["programs", "columns", "form"])
def test_the_derivatives_of_an_adapter_are_those_of_differences(number: int) -> None:
    _, problems, constants = adapters()[number]
    products, _ = problems.products(constants)
    for at in range(len(constants)):
        moved = constants.copy()
        up, down = [], []
        for step, losses in ((1e-6, up), (-1e-6, down)):
            moved[at] = constants[at] + step
            losses.append(problems.products(moved)[0][-1, -1])
        slope = (up[0] - down[0]) / 2e-6
        np.testing.assert_allclose(-2 * products[at, -1], slope, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("number", [1, 2], ids=["columns", "form"])
def test_a_batch_gives_what_its_members_give_one_by_one(number: int) -> None:
    _, problems, constants = adapters()[number]
    together = fit(problems, constants, steps=20, tolerance=1e-12, budget=Budget())
    for at in range(constants.shape[1]):
        single = np.zeros(constants.shape[1], dtype=bool)
        single[at] = True
        alone, kept = problems.without_idle(single)
        found = fit(alone, constants[:, kept], steps=20, tolerance=1e-12, budget=Budget())
        assert found.loss[0] == pytest.approx(together.loss[at], rel=1e-9)
        np.testing.assert_allclose(found.constants[:, 0], together.constants[:, at], rtol=1e-6)


def test_the_same_batch_gives_the_same_bits() -> None:
    for _, problems, constants in adapters():
        first, second = (fit(problems, constants, steps=20, tolerance=1e-12, budget=Budget()) for _ in range(2))
        np.testing.assert_array_equal(first.constants, second.constants)
        np.testing.assert_array_equal(first.loss, second.loss)


class _Counted:
    """Problems that count how often they are evaluated."""

    def __init__(self, problems: Problems) -> None:
        self.problems, self.count = problems, 0

    def __getattr__(self, name: str) -> object:
        return getattr(self.problems, name)

    def products(self, constants: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.count += 1
        return self.problems.products(constants)


@pytest.mark.parametrize("number", range(3), ids=["programs", "columns", "form"])
def test_the_budget_ends_the_steps_and_more_steps_lose_nothing(number: int) -> None:
    losses = []
    for allowed in (0, 1, 3, 20):
        _, problems, constants = adapters()[number]
        counted = _Counted(problems)
        asked = itertools.count()
        budget = Budget(stop=partial(lambda asked, allowed: next(asked) >= allowed, asked, allowed))
        losses.append(fit(counted, constants, steps=20, tolerance=0.0, budget=budget).loss)  # type: ignore[arg-type]
        assert counted.count <= allowed + 1
    for before, after in itertools.pairwise(losses):
        assert (after <= before * (1 + 1e-9)).all()


def test_a_start_without_values_stays_where_it_is_and_spoils_no_other() -> None:
    x = torch.linspace(0.2, 3, 30, dtype=torch.float64)
    form = _Problem(parse("log(x - a) + b"), ("a", "b"), {"x": x}, (x + 1).log() + 2, torch.full_like(x, 1 / 30))
    constants = np.array([[5.0, -0.5], [1.0, 1.0]])
    found = fit(_Starts.of(form, 2), constants, steps=50, tolerance=1e-14, budget=Budget())
    assert found.loss[0] == np.inf
    np.testing.assert_array_equal(found.constants[:, 0], constants[:, 0])
    np.testing.assert_allclose(found.constants[:, 1], [-1.0, 2.0], rtol=1e-9)


def test_all_systems_of_a_batch_are_solved() -> None:
    random = np.random.default_rng(0)
    A = random.normal(size=(50, 5, 5))
    A = A @ A.transpose(0, 2, 1) + np.eye(5)
    b = random.normal(size=(50, 5))
    x = solve_positive(A.transpose(1, 2, 0), b.T)
    np.testing.assert_allclose((A @ x.T[:, :, None])[:, :, 0], b, rtol=1e-10, atol=1e-10)


def test_one_with_nan_does_not_spoil_the_others_and_a_singular_one_is_still_solved() -> None:
    A = np.stack([np.eye(2), np.ones((2, 2)), np.full((2, 2), np.nan)], axis=-1)
    x = solve_positive(A, np.ones((2, 3)))
    assert x[:, 0].tolist() == [1.0, 1.0]
    assert x[:, 1].sum() == 1.0
    assert np.isnan(x[:, 2]).all()


def test_what_is_added_to_the_diagonal_is_as_if_it_had_been_there() -> None:
    random = np.random.default_rng(1)
    A, b, more = random.normal(size=(3, 3, 20)), random.normal(size=(3, 20)), random.uniform(0, 1, size=(3, 20))
    A = np.einsum("ijb,kjb->ikb", A, A)
    before = A.copy()
    x = solve_positive(A, b, more + 1)
    np.testing.assert_array_equal(A, before)
    np.testing.assert_allclose(x, solve_positive(A + np.eye(3)[:, :, None] * (more + 1), b), rtol=1e-12)
