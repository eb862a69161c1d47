"""The law is chosen on rows that were held out, and of those that are as good there, the simplest."""

from __future__ import annotations

import time

import numpy as np
import pandas
import pytest
import torch

from symenum import PSERegressor
from symenum.core.budget import Budget
from symenum.core.target import Target, Training
from symenum.expressions import parse
from symenum.fitting.losses import Squared
from symenum.selection import HeldOut, on_folds

RNG = np.random.default_rng(0)
X = RNG.uniform(1, 3, (40, 2))
Y = X[:, 0] ** 2 + 0.5 * X[:, 1] + RNG.normal(0, 0.1, 40)
NEW = RNG.uniform(1, 3, (200, 2))
NEW_Y = NEW[:, 0] ** 2 + 0.5 * NEW[:, 1] + RNG.normal(0, 0.1, 200)


def quick(**parameters: object) -> PSERegressor:
    return PSERegressor(**{"max_time": None, "max_iterations": 4, "random_state": 0, **parameters})


def test_validation_losses_are_a_column_and_choose_the_law() -> None:
    model = quick().fit(X, Y, validation=(NEW, NEW_Y))
    column = model.equations_["validation_loss"]
    for i, value in enumerate(column):
        assert value == pytest.approx(np.mean((model.predict(NEW, index=i) - NEW_Y) ** 2))
    assert column[model.selected_index_] <= 1.1 * column.min()
    assert (
        model.selected_index_ == quick(model_selection="validation").fit(X, Y, validation=(NEW, NEW_Y)).selected_index_
    )
    assert model.selected_index_ <= int(column.argmin())
    assert "validation_loss" not in quick(max_iterations=1).fit(X, Y).equations_


def test_another_rule_still_gets_the_column() -> None:
    model = quick(model_selection="accuracy", max_iterations=2).fit(X, Y, validation=(NEW, NEW_Y, np.ones(200)))
    assert model.selected_index_ == len(model.front_) - 1
    assert "validation_loss" in model.equations_


def test_folds_choose_a_law_that_does_well_elsewhere() -> None:
    model = quick(model_selection="kfold").fit(X, Y)
    new = np.array([np.mean((model.predict(NEW, index=i) - NEW_Y) ** 2) for i in range(len(model.front_))])
    assert new[model.selected_index_] <= 2 * new.min()  # front constants may be rounded, those of the folds are not
    assert (model.equations_["validation_loss"] > 0).all()


def test_a_law_that_has_too_many_constants_loses_on_folds() -> None:
    x = torch.linspace(0, 1, 12, dtype=torch.float64)
    y = 2 * x + 0.1 * torch.randn(12, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    line, curve = parse("2.01*x"), parse("0.1 + 2.0*x + 1.1*x**2 - 2.1*x**3 + 0.3*x**4 + 0.7*x**5 - 0.4*x**6")
    target = Target(y, torch.full((12,), 1 / 12, dtype=torch.float64))
    held = on_folds([line, curve], Training({"x": x}, target), Squared(), 0.0, seed=0)
    assert held.losses[0] < held.losses[1]
    assert held.select() == 0


def test_when_the_time_is_over_the_folds_that_were_done_decide() -> None:
    x = torch.linspace(0, 1, 20, dtype=torch.float64)
    training = Training({"x": x}, Target(2 * x + 0.1 * x.sin(), torch.full((20,), 0.05, dtype=torch.float64)))
    laws = [parse("2.01*x"), parse("1.9*x + 0.1")]
    ended = Budget()
    ended.end()
    assert on_folds(laws, training, Squared(), 0.0, 0, ended) is None
    looks = iter(range(1000))
    some = on_folds(laws, training, Squared(), 0.0, 0, Budget(stop=lambda: next(looks) > 20))
    whole = on_folds(laws, training, Squared(), 0.0, 0)
    assert whole is not None
    assert len(whole.weight) == 20
    assert some is not None
    assert 0 < len(some.weight) < 20
    assert float(some.weight.sum()) == pytest.approx(1)
    assert some.losses == pytest.approx((some.rows @ some.weight).tolist())


def test_cross_validation_without_time_says_so() -> None:
    with pytest.warns(UserWarning, match="before cross-validation had judged the laws"):
        model = PSERegressor(max_time=1e-3, model_selection="kfold", loss=_slow, random_state=0).fit(X, Y)
    assert "validation_loss" not in model.equations_


def _slow(y: np.ndarray, prediction: np.ndarray) -> float:
    time.sleep(0.1)
    return float(np.square(y - prediction).mean())


def test_what_rows_cannot_tell_apart_is_a_tie_for_the_simplest() -> None:
    weight = torch.full((100,), 0.01, dtype=torch.float64)
    noise = torch.randn(100, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    rows = torch.stack([torch.full_like(noise, 5.0), 1 + noise - noise.mean() + 0.01, torch.ones_like(noise)])
    held = HeldOut(tuple((rows @ weight).tolist()), rows, weight, 0.0)
    assert held.select() == 1
    assert HeldOut((5.0, 1.01, 1.0), None, weight, 0.0).select() == 2
    assert HeldOut((float("inf"),) * 2, None, weight, 0.0).select() is None


def test_a_law_that_has_no_value_on_held_out_rows_is_not_chosen() -> None:
    x = np.linspace(0.1, 3, 40)[:, None]
    model = quick().fit(x, np.log(x[:, 0]), validation=(np.array([[-1.0], [2.0]]), np.array([0.0, np.log(2.0)])))
    assert np.isfinite(model.equations_["validation_loss"][model.selected_index_])


@pytest.mark.parametrize(
    ("validation", "message"),
    [
        ((NEW,), "validation must be a pair"),
        ("rows", "validation must be a pair"),
        ((NEW[:, :1], NEW_Y), "validation: .*features"),
        ((NEW, NEW_Y[:-1]), "validation: .*inconsistent"),
        ((np.where(NEW > 2.9, np.nan, NEW), NEW_Y), "validation: .*NaN"),
        ((NEW, NEW_Y, -np.ones(200)), "validation: sample_weight"),
        ((pandas.DataFrame({"p": NEW[:, 0], "q": NEW[:, 1]}), NEW_Y), None),
    ],
)
def test_bad_rows_are_refused(validation: object, message: str | None) -> None:
    if message is None:
        with pytest.warns(UserWarning, match="feature names"):
            quick(max_iterations=1).fit(X, Y, validation=validation)
        return
    with pytest.raises(ValueError, match=message):
        quick(max_iterations=1).fit(X, Y, validation=validation)
