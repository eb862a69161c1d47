"""Cases of users, each small and with a fixed number of steps: absurd laws stay away, the simple law comes."""

from __future__ import annotations

import math

import numpy as np
import pandas
import pytest

from symenum import PSERegressor
from symenum.bench.judge.plausibility import has_pole_in_box, has_unresolved_wave
from symenum.core.budget import Budget
from symenum.expressions import evaluate, parse, same_function, variables
from symenum.fitting import free_constants
from symenum.operators import get_operators
from symenum.search.polish import limit_in_disguise, simplest_exact


def fit(X: object, y: np.ndarray, steps: int, **parameters: object) -> PSERegressor:
    return PSERegressor(max_iterations=steps, max_time=None, random_state=0, **parameters).fit(X, y)


def arrhenius(draw: int) -> tuple[pandas.DataFrame, np.ndarray]:
    rng = np.random.default_rng(draw)
    T = rng.uniform(280, 400, 40)
    return pandas.DataFrame({"T": T}), 2e6 * np.exp(-5500 / T) * (1 + 0.05 * rng.standard_normal(40))


@pytest.mark.parametrize("draw", [0, 1])
def test_nothing_absurd_is_printed_for_arrhenius(draw: int) -> None:
    X, y = arrhenius(draw)
    model = fit(X, y, 15)
    columns = {"T": X["T"].to_numpy()}
    assert sum(model.refused_.values()) > 0
    for law in model.front_:
        assert not has_pole_in_box(law.expression, columns, y), law
        assert not has_unresolved_wave(law.expression, columns), law


def test_sanity_off_lets_everything_in() -> None:
    X, y = arrhenius(0)
    model = fit(X, y, 6, sanity="off")
    assert model.refused_ == {}


def test_of_a_length_in_two_units_one_is_enough() -> None:
    rng = np.random.default_rng(0)
    length = rng.uniform(0.1, 3, 60)
    X = pandas.DataFrame({"L_m": length, "L_cm": 100 * length, "m": rng.uniform(0.1, 2, 60)})
    model = fit(X, 2 * np.pi * np.sqrt(length / 9.81), 10)
    assert "rounding" in model.stop_reason_
    assert len(variables(model.best_expression_)) == 1
    factor = 2 * math.pi / math.sqrt(9.81)
    assert any(same_function(model.best_expression_, parse(f"{one!r}*sqrt({name})"))
               for one, name in ((factor, "L_m"), (factor / 10, "L_cm")))  # fmt: skip
    assert model.best_expression_.complexity == 3


def test_an_offset_that_is_rounding_leaves(make) -> None:
    task = make(lambda a, b: a + b)
    law = task.data.candidate(parse("x1 + x2 + 7.9e-16"))
    assert "x1 + x2" in [str(one.expression) for one in simplest_exact(task, [law], Budget())]


def test_a_sum_is_printed_without_a_tiny_offset() -> None:
    X = np.random.default_rng(1).uniform(-3, 3, (50, 2))
    assert str(fit(X, X[:, 0] + X[:, 1], 5).best_expression_) in ("x1 + x2", "x2 + x1")


def test_a_quotient_and_one_are_not_written_over_one_bar() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.uniform(1, 4, 40), rng.uniform(1, 3, 40)
    model = fit(pandas.DataFrame({"a": a, "b": b}), 3 * a / b + 1, 40)
    assert str(model.best_expression_) == "3*a/b + 1"  # (3*a + b)/b comes of a + a + a and has one operator more


def test_the_flow_law_has_round_exponents() -> None:
    rng = np.random.default_rng(0)
    d, dp, rho = rng.uniform(0.01, 0.1, 80), rng.uniform(1e3, 1e5, 80), rng.uniform(700, 1200, 80)
    y = 0.9 * d**2 * np.sqrt(dp / rho) * (1 + 0.03 * rng.standard_normal(80))
    model = fit(pandas.DataFrame({"d": d, "dp": dp, "rho": rho}), y, 20)
    texts = [str(law.expression) for law in model.front_]
    assert any(text.endswith("*d**2*sqrt(dp/rho)") for text in texts), texts
    (law,) = [law for law in model.front_ if str(law.expression).endswith("*d**2*sqrt(dp/rho)")]
    assert free_constants(law.expression, integers=False) == pytest.approx([0.9], rel=0.02)


@pytest.mark.parametrize(
    ("disguise", "plain"),
    [
        ("-3000000*sin(2*pi*x1)*sin(-1e-07*x1)", "0.3*x1*sin(2*pi*x1)"),
        ("5.4e29*sin(1e-15*x1)*sin(1e-15*x2)", "0.54*x1*x2"),
        ("2e8*(1 - cos(1e-4*x1))", "x1*x1"),
        ("x2*x1**0.0001", "x2"),
    ],
)
def test_a_limit_in_disguise_is_written_as_the_limit(make, disguise: str, plain: str) -> None:
    def values(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.asarray(evaluate(parse(plain), {"x1": a, "x2": b}))

    task = make(values, rows=60, noise=0.01)
    limit = limit_in_disguise(task, task.data.candidate(parse(disguise)), Budget())
    assert limit is not None
    rounded = [float(f"{value:.1g}") for value in free_constants(limit.expression, integers=False)]
    assert limit.loss < 3e-4
    assert len(rounded) <= 1
    assert "1e-" not in str(limit.expression).replace("e-05", "")


def test_a_step_in_disguise_is_a_step_where_sign_is_an_operator(make) -> None:
    def values(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return 2 * np.sign(a - 1.5) + b

    disguise = parse("2*tanh(168000*(x1 - 1.5)) + x2")
    task = make(values, rows=60, noise=0.01, operators=get_operators(["+", "-", "*", "tanh", "sign"]))
    limit = limit_in_disguise(task, task.data.candidate(disguise), Budget())
    assert limit is not None
    assert "tanh" not in str(limit.expression)
    assert len(free_constants(limit.expression)) < len(free_constants(disguise))
    without_sign = make(values, rows=60, noise=0.01, operators=get_operators(["+", "-", "*", "tanh"]))
    assert limit_in_disguise(without_sign, without_sign.data.candidate(disguise), Budget()) is None


def test_a_wave_is_not_a_limit(make) -> None:
    task = make(lambda a, b: np.sin(0.5 * a), rows=60, noise=0.01)
    assert limit_in_disguise(task, task.data.candidate(parse("sin(0.5*x1)")), Budget()) is None


def test_a_growing_wave_is_found_without_giants() -> None:
    x = np.random.default_rng(0).uniform(-3, 3, (60, 1))
    model = fit(x, 0.3 * x[:, 0] * np.sin(2 * np.pi * x[:, 0]), 20)
    sizes = [abs(value) for law in model.front_ for value in free_constants(law.expression)]
    assert all(1e-6 < size < 1e6 for size in sizes)


def test_constants_have_the_digits_that_the_data_support() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 5, (100, 1))
    y = 1.63421 * x[:, 0] + 4.2 + 0.1 * rng.standard_normal(100)
    model = fit(x, y, 3)
    line = next(i for i, law in enumerate(model.front_) if law.loss < 0.02)
    values = free_constants(model.front_[line].expression, integers=False)
    assert values == pytest.approx([1.634, 4.2], abs=0.05)
    assert all(float(f"{value:.5g}") == value for value in values)
    least = float(np.mean((np.polyval(np.polyfit(x[:, 0], y, 1), x[:, 0]) - y) ** 2))
    assert model.front_[line].loss == pytest.approx(np.mean((model.predict(x, index=line) - y) ** 2))
    assert model.front_[line].loss < least * (1 + 1e-3)


@pytest.mark.parametrize(
    ("spread", "plain"),
    [
        ("2.48*(x1 - 0.4032258064516129*sqrt(x2)) + x2", "2.48*x1 + x2 - sqrt(x2)"),
        ("1.61*(1.0683229813664599 - x2 - 0.6211180124223603*x1)*x2", "(1.72 - 1.61*x2 - x1)*x2"),
    ],
)
def test_a_number_before_a_sum_goes_into_it_where_the_law_is_simpler_so(make, spread: str, plain: str) -> None:
    task = make(lambda a, b: np.asarray(evaluate(parse(plain), {"x1": a, "x2": b})))
    law = task.data.candidate(parse(spread))
    shorter = [one for one in simplest_exact(task, [law], Budget()) if one.complexity < law.complexity]
    exact = [one for one in shorter if task.data.is_law(one)]
    assert any(same_function(one.expression, parse(plain)) for one in exact)
    fitted = [set(free_constants(one.expression)) for one in exact]
    assert any(numbers <= {2.48, 1.72, 1.61, -1.0, 1.0} for numbers in fitted)
