"""Powers of sums: laws on no benchmark list are found, with and without a function of the slots."""

from __future__ import annotations

import numpy as np
import pytest
from heads.tasks import features_of, law_response, make_response, relative_losses

from symenum.core.budget import Budget
from symenum.heads import PowersOfSums
from symenum.heads.head import LAST_FITS
from symenum.operators import get_operators

KOZA = get_operators("koza")


@pytest.mark.parametrize(
    ("law", "slots", "sums"),
    [
        ("5*x1/(x2**2 + 3*x1*x3)**1.5", 3, 1),
        ("(x1*x4 + 2*x2)/sqrt(x3**2 + x4**2)", 4, 2),
        ("3*x1**2.5/(x1**2.5 + 7)", 1, 1),
    ],
)
def test_powers_of_sums_are_found(law: str, slots: int, sums: int) -> None:
    assert relative_losses(PowersOfSums(KOZA, sums), law_response(law, slots))[0] < 1e-26


def test_units_far_from_one_make_no_constants_beyond_the_doubles() -> None:
    random = np.random.default_rng(0)
    x = random.uniform(1, 3, (60, 5))
    y = np.sin(x[:, 0] * x[:, 1]) * x[:, 2] + np.sqrt(x[:, 3] * x[:, 4] + 3) + 0.1 * random.normal(size=60) + 5
    response = make_response(x * np.array([1e-34, 1e-27, 1e8, 1e-19, 1e-30]), y)
    assert all(np.isfinite(loss) for loss in relative_losses(PowersOfSums(KOZA, 1), response))


@pytest.mark.parametrize("sums", [1, 2])
def test_when_the_time_is_over_only_a_few_are_fitted(sums: int) -> None:
    response = law_response("x1*sqrt(1 + x2) + sin(x3)", 3, noise=0.1)
    over = Budget()
    over.end()
    found = PowersOfSums(KOZA, sums).scan(features_of(response, 0), response, 50, over)
    assert len(found) <= 3 * LAST_FITS  # each with its constant fitted, recognised, or as a root
