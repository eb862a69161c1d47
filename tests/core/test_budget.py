"""A budget that is over gives work up; the shared one without limits cannot be ended."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch

from symenum.core.budget import NO_LIMIT, Budget, CutShortError
from symenum.expressions import Variable
from symenum.heads import build_features
from symenum.operators import get_operators
from symenum.tokens.generator import TokenContext
from symenum.tokens.registry import GENERATORS


def ended() -> Budget:
    budget = Budget()
    budget.end()
    return budget


def test_check_raises_once_the_budget_is_ended_and_from_then_on() -> None:
    budget = Budget()
    budget.check()
    budget.end()
    for _ in range(2):
        with pytest.raises(CutShortError):
            budget.check()


def test_check_raises_once_the_time_is_over() -> None:
    budget = Budget(time_limit=1e-6)
    time.sleep(1e-3)
    with pytest.raises(CutShortError):
        budget.check()


def test_check_asks_the_callers_stop_flag() -> None:
    wanted = [False]
    budget = Budget(stop=lambda: wanted[0])
    budget.check()
    wanted[0] = True
    with pytest.raises(CutShortError):
        budget.check()


def test_a_check_of_one_budget_says_nothing_of_another() -> None:
    with pytest.raises(CutShortError):
        ended().check()
    Budget().check()


def test_the_shared_budget_without_limits_refuses_to_be_ended() -> None:
    with pytest.raises(RuntimeError, match="Budget"):
        NO_LIMIT.end()
    NO_LIMIT.check()


def test_features_are_given_up_and_made_in_full_by_the_next_who_asks() -> None:
    values = torch.linspace(0.1, 2.0, 20, dtype=torch.float64)[None]
    slots = [Variable("x")]
    with pytest.raises(CutShortError):
        build_features(slots, values, get_operators("koza"), 1, budget=ended())
    features = build_features(slots, values, get_operators("koza"), 1)
    with pytest.raises(CutShortError):
        features.up_to_affine(ended())
    assert len(features.up_to_affine()) > 1
    assert features.up_to_affine(ended()) is features.up_to_affine()  # made once; no work is left to give up


@pytest.mark.parametrize("name", GENERATORS)
def test_every_token_generator_gives_a_proposal_up(name: str) -> None:
    x = torch.linspace(0.5, 2.0, 16, dtype=torch.float64)
    y = x.sin()
    material = TokenContext(get_operators("koza"), {"x": x}, y, torch.full_like(y, 1 / len(y)))
    generator = GENERATORS[name]
    state = generator.start(material)
    with pytest.raises(CutShortError):
        generator.propose(material, state, 2, np.random.default_rng(0), ended())
    assert len(generator.propose(material, state, 2, np.random.default_rng(0))[0]) == 2


def test_budget_once_over_stays_over() -> None:
    flags = iter([False, True, False])
    budget = Budget(stop=lambda: next(flags))
    assert [budget.over() for _ in range(4)] == [False, True, True, True]


def test_budget_without_limits_is_never_over_until_it_is_ended() -> None:
    budget = Budget()
    assert not budget.over()
    budget.end()
    assert budget.over()
