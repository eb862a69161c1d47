"""The noisy laws of engineering are what they claim to be, and the reference is the true form fitted."""

from __future__ import annotations

import numpy as np
import pytest

from symenum.bench.problems.engineering import ENGINEERING, EngineeringLaw, reference_error, root_mean_square
from symenum.bench.problems.problem import law_values
from symenum.expressions import parse, variables

BY_NAME = {law.name: law for law in ENGINEERING}


def test_there_are_enough_of_them() -> None:
    assert len(BY_NAME) == len(ENGINEERING) >= 30


@pytest.mark.parametrize("law", ENGINEERING, ids=lambda law: law.name)
def test_a_law_is_realistic_and_defined(law: EngineeringLaw) -> None:
    assert 1 <= len(law.inputs) <= 4
    assert 40 <= law.rows <= 150
    assert 0.01 <= law.noise <= 0.1
    assert set(variables(parse(law.text))) == {*law.variables, *law.constants}
    assert set(variables(law.expression)) == set(law.variables)
    X, y = law.sample(0)
    assert X.shape == (law.rows, len(law.inputs))
    for points, values in (law.sample(0), law.test(0)):
        assert np.isfinite(points).all()
        assert np.isfinite(values).all()
    clean = law_values(law.expression, law.variables, X)
    size = np.abs(clean) if law.kind == "relative" else clean.std()
    assert np.std((y - clean) / size) == pytest.approx(law.noise, rel=0.35)


@pytest.mark.parametrize("name", ["Arrhenius", "Michaelis-Menten", "Antoine", "Ringing", "Orifice", "Hill curve"])
def test_the_reference_is_nearer_to_the_truth_than_the_noise(name: str) -> None:
    law = BY_NAME[name]
    X, y = law.sample(0)
    noise = root_mean_square(y - law_values(law.expression, law.variables, X))
    assert 0 < reference_error(law, 0) < noise


def test_seeds_draw_other_rows_and_other_noise() -> None:
    law = BY_NAME["Pump"]
    assert not np.array_equal(law.sample(0)[0], law.sample(1)[0])
    assert np.array_equal(law.sample(1)[1], law.sample(1)[1])


def test_an_error_that_is_not_a_number_is_infinite() -> None:
    assert root_mean_square(np.array([1.0, np.nan])) == float("inf")
    assert root_mean_square(np.array([3.0, -4.0])) == pytest.approx(np.sqrt(12.5))
