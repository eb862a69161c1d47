"""One form for several groups: the right form is the cheapest, and constants are shared where groups do not differ."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from symenum.core.target import Target, Training
from symenum.expressions import parse
from symenum.search.one_form import GroupedLaw, GroupedRows, best_forms, fit_form_to_groups, forms_of, values_by_group

GROUPS, ROWS = 6, 15
RNG = np.random.default_rng(0)
A, B = RNG.uniform(1, 3, GROUPS), RNG.uniform(0.4, 1.5, GROUPS)
X = RNG.uniform(0.1, 3, (GROUPS, ROWS))
CODES = np.repeat(np.arange(GROUPS), ROWS)


def rows_of(y: np.ndarray) -> GroupedRows:
    count = GROUPS * ROWS
    weight = torch.full((count,), 1 / count, dtype=torch.float64)
    training = Training({"x": torch.tensor(X.ravel())}, Target(torch.tensor(y.ravel()), weight))
    return GroupedRows(training, tuple(torch.tensor(np.flatnonzero(group == CODES)) for group in range(GROUPS)))


DECAY = A[:, None] * np.exp(-B[:, None] * X) + 1.7


def laws(*texts: str) -> list:  # type: ignore[type-arg]
    return forms_of(parse(text) for text in texts)


def test_the_right_form_costs_least_and_its_shared_constant_is_found() -> None:
    rows = rows_of(DECAY)
    forms = laws("2.5*x + 1.1", "1.2*exp(-1.1*x) + 0.5", "2.1/(x + 0.5)", "1.5*x**2 - 0.3*x + 1.2")
    best = best_forms(forms, rows)
    assert best[0].loss < 1e-20
    shared = fit_form_to_groups(best[0], rows)
    assert len(shared.names) == 2
    assert "1.7" in str(shared.form)
    assert shared.numbers < best[0].numbers
    assert shared.cost(rows.rows, 1e-20) < best[0].cost(rows.rows, 1e-20)
    assert np.allclose(values_by_group(shared, {"x": X.ravel()}, CODES), DECAY.ravel(), atol=1e-9)
    assert sorted(np.abs(shared.values[:, 0])) == pytest.approx(sorted(A), rel=1e-6)


def test_noise_shares_what_is_alike_and_nothing_else() -> None:
    rows = rows_of(DECAY + 0.02 * RNG.normal(size=DECAY.shape))
    (law,) = best_forms(laws("1.2*exp(-1.1*x) + 0.5"), rows)
    shared = fit_form_to_groups(law, rows)
    assert len(shared.names) == 2
    assert shared.loss < 2 * 0.02**2


def test_where_all_groups_are_alike_all_constants_are_shared() -> None:
    rows = rows_of(2.5 * X + 1.25)
    (law,) = best_forms(laws("1.5*x + 0.5"), rows)
    shared = fit_form_to_groups(law, rows)
    assert shared.names == ()
    assert str(shared.form) in ("2.5*x + 1.25", "5*x/2 + 5/4")


def test_the_loss_is_that_of_the_values() -> None:
    rows = rows_of(DECAY + 0.1 * RNG.normal(size=DECAY.shape))
    y = rows.training.target.y.numpy()
    for law in best_forms(laws("2.5*x + 1.1", "1.2*exp(-1.1*x)", "1.1*x**2"), rows):
        for one in (law, fit_form_to_groups(law, rows)):
            values = values_by_group(one, {"x": X.ravel()}, CODES)
            assert one.loss == pytest.approx(float(np.mean((values - y) ** 2)), rel=1e-6)


def test_each_form_is_kept_once_and_constants_alone_are_no_form() -> None:
    assert len(laws("2.5*x + 1", "3.5*x + 1", "2*x + 1.5", "4.5")) == 2
    assert GroupedLaw(parse("x"), (), np.zeros((2, 0)), 1.0, 0).complexity == 0
