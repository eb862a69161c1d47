"""A law is its form: ways to write it, and other digits of its constants, are the same law."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from symenum.core.target import Target, Training
from symenum.expressions import parse
from symenum.selection.same_law import families, same_as


@pytest.fixture(scope="module")
def rows() -> Training:
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 3, (80, 2))
    y = 6.27 * np.sqrt(X[:, 0] / X[:, 1]) + 0.1 * rng.standard_normal(80)
    target = Target(torch.tensor(y), torch.full((80,), 1 / 80, dtype=torch.float64))
    return Training.of(torch.tensor(X), ["x1", "x2"], target)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("6.6877*x1/x2**2", "6.6916*x1/x2**2"),
        ("6.2738*sqrt(x1/x2)", "sqrt(39.354*x1/x2)"),
        ("6.2738*sqrt(x1/x2)", "6.27*sqrt(x1)/sqrt(x2)"),
        ("x1 + 1.9982*(x1 + 1)", "3*x1 + 2"),
        ("sin(x2) + x1**2 - 0.037", "x1**2 + sin(x2) - 0.021"),
        ("exp(1.2 - 0.5*x1)", "3.3*exp(-0.5001*x1)"),
        ("2*x1**2.0003", "2*x1**2"),
    ],
)
def test_ways_to_write_a_law_are_one_law(rows: Training, one: str, other: str) -> None:
    assert same_as(parse(one), [parse(other)], rows) == [True]
    assert same_as(parse(other), [parse(one)], rows) == [True]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("6.27*sqrt(x1/x2)", "6.27*sqrt(x1/x2) + 0.05"),  # an offset that the rows can see
        ("2*x1 + 2*sin(x1)", "3*x1 + 2*sin(x1) - 2"),
        ("x1**2", "x1**3"),
        ("sin(0.05*x1)", "0.05*x1"),  # equal on these rows up to a hundredth of the noise, and not elsewhere
        ("x1", "x2"),
    ],
)
def test_other_laws_are_other_laws(rows: Training, one: str, other: str) -> None:
    assert same_as(parse(one), [parse(other)], rows) == [False]
    assert same_as(parse(other), [parse(one)], rows) == [False]


def test_each_law_is_in_one_family_and_the_first_leads_it(rows: Training) -> None:
    laws = [parse(text) for text in ("2*sqrt(x1/x2)", "x1", "sqrt(4.1*x1/x2)", "1.9*x1", "x1 + 0*log(x1 - 1)")]
    found = [[str(law) for law in family] for family in families(laws, rows)]
    assert found[0] == ["2*sqrt(x1/x2)", "sqrt(4.1*x1/x2)"]
    assert sorted(text for family in found for text in family) == sorted(map(str, laws))
