"""Poles, overflow and undefined points: found where they are, and not where they are not."""

from __future__ import annotations

import numpy as np
import pytest

from symenum.bench.judge.plausibility import has_pole_in_box
from symenum.expressions import parse
from symenum.sanity.domains import is_defined
from symenum.sanity.region import Region


def columns(rows: int = 100, **ranges: tuple[float, float]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {name: np.sort(rng.uniform(*ends, rows)) if len(ranges) == 1 else rng.uniform(*ends, rows)
            for name, ends in ranges.items()}  # fmt: skip


BAD = [
    "0.282/(a - 2.71828)",
    "1/(a - b)",
    "1/(a - 2.3)**2",
    "a + b/(a*b - 3)",
    "log(a - 1)",
    "sqrt(a - b)",
    "(a - 2)**0.3",
    "exp(1/(a - 2))",
    "exp(exp(3*a))",
    "b/(a*a - 4.2)",
    "1/((a - 1.7)*(a - 1.7) + 1e-20)",
]
GOOD = [
    "1/(a + b)",
    "1/(a*b - a + 2)",
    "sqrt(a*a + b*b - 2*a*b*cos(a - b))",
    "tanh(1/(a - 2))",
    "sin(3*(a - 2))/(a - 2)",
    "(a*a - 4)/(a - 2) + b",
    "1/(a*a - 2*a + 1.5)",
    "log(a)/(b + 0.1)",
    "exp(5*a)",
    "1/(exp(a) - a)",
    "a**b",
    "1/(1/(a - 2))",
]


@pytest.mark.parametrize("text", BAD)
def test_a_pole_or_an_undefined_point_in_the_box_is_seen(text: str) -> None:
    assert not is_defined(parse(text), Region(columns(a=(0.5, 3), b=(0.5, 3))), 10.0)


@pytest.mark.parametrize("text", GOOD)
def test_a_law_that_is_finite_in_the_box_passes(text: str) -> None:
    data = columns(a=(0.5, 3), b=(0.5, 3))
    assert is_defined(parse(text), Region(data), 10.0)
    assert text.startswith(("sin(3", "(a*a", "tanh")) or not has_pole_in_box(parse(text), data, np.array([10.0]))


@pytest.mark.parametrize("text", ["a + 0.01/(a - 1.23456789)", "1/(a - 2.00001)**2", "log(a - 0.5001)"])
def test_no_pole_passes_however_few_the_rows_near_it(text: str) -> None:
    data = {"a": np.array([0.5, 0.6, 2.9, 3.0])}
    assert not is_defined(parse(text), Region(data), 10.0)
    assert has_pole_in_box(parse(text), data, np.array([10.0]))


def test_columns_that_move_together_leave_room_for_a_pole_where_no_row_can_be() -> None:
    rng = np.random.default_rng(0)
    inlet = rng.uniform(300, 400, 80)
    outlet = rng.uniform(290, inlet - 5)
    mean_difference = parse("(a - b)/log(a/b)")  # a pole at a = b, were it not removable
    difference = parse("1/(a - b)")
    together = Region({"a": inlet, "b": outlet})
    assert is_defined(mean_difference, together, 400.0)
    assert is_defined(difference, together, 1.0)
    apart = Region({"a": inlet, "b": rng.permutation(outlet)})
    assert not is_defined(difference, apart, 1.0)


def test_corners_of_the_box_that_rows_do_not_reach_belong_to_the_region() -> None:
    data = columns(200, a=(0, 1), b=(0, 1))
    assert not is_defined(parse("1/(a + b - 1.9)"), Region(data), 1.0)
