"""Several slot sets in one call: each shortlist is what a search of its own gives."""

from __future__ import annotations

import numpy as np
import pytest

from symenum import PSRN
from symenum.expressions import parse

SLOTS = [["a", "b", "c"], [parse("a*b"), "b", parse("sin(c)")], ["c", parse("a - b"), parse("1/b")]]


@pytest.fixture(scope="module")
def problem():
    random = np.random.default_rng(3)
    a, b, c = random.uniform(0.5, 2.0, (3, 40))
    values = [np.stack(columns, axis=1) for columns in ((a, b, c), (a * b, b, np.sin(c)), (c, a - b, 1 / b))]
    return values, np.sin(c) * a * b + 0.1 * random.normal(size=40), random.uniform(0.0, 2.0, 40)


def test_each_shortlist_is_that_of_a_search_of_its_own(problem):
    values, y, weight = problem
    net = PSRN(3, "koza", 2)
    many = net.search_many(values, y, 7, weight, slots=SLOTS, device="cpu")
    assert many == [net.search(x, y, 7, weight, slots=s, device="cpu") for x, s in zip(values, SLOTS, strict=True)]


def test_many_rows_are_screened_in_the_same_order():
    random = np.random.default_rng(1)
    values = [random.uniform(1, 2, (2500, 2)) for _ in range(2)]
    y = values[1][:, 0] * values[1][:, 1] + 0.1 * random.normal(size=2500)
    net = PSRN(2, "arithmetic", 2)
    many = net.search_many(values, y, slots=[None, None], seed=5, device="cpu")
    assert many == [net.search(x, y, seed=5, device="cpu") for x in values]


def test_no_sets_give_no_shortlists(problem):
    assert PSRN(3, "koza", 2).search_many([], problem[1], slots=[]) == []


def test_sets_that_are_left_when_it_is_stopped_have_empty_shortlists(problem):
    values, y, _ = problem
    calls = []
    many = PSRN(3, "koza", 2).search_many(values, y, slots=SLOTS, stop=lambda: bool(calls.append(1)) or len(calls) > 40)
    assert len(many) == 3
    assert not many[-1].complete
    assert list(many[-1]) == []
    assert many[-1].scored == 0


def test_sets_and_slots_must_be_equally_many(problem):
    values, y, _ = problem
    with pytest.raises(ValueError, match="equally many"):
        PSRN(3, "koza", 2).search_many(values, y, slots=SLOTS[:2])
    with pytest.raises(TypeError, match="sequences"):
        PSRN(3, "koza", 2).search_many(values, y, slots="abc")
    with pytest.raises(ValueError, match="values must have shape"):
        PSRN(3, "koza", 2).search_many([values[0], values[1][:, :2], values[2]], y, slots=SLOTS)
    with pytest.raises(ValueError, match="rows"):
        PSRN(3, "koza", 2).search_many([values[0], values[1][:20], values[2]], y, slots=SLOTS)


def test_there_is_nothing_to_warm_up_on_the_cpu():
    net = PSRN(3, "koza", 2)
    net.warm_up(32, 30, device="cpu")
    with pytest.raises(ValueError, match="rows"):
        net.warm_up(0)
