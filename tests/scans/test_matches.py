"""Pairs that equal targets up to scale and offset, against a comparison of every pair with every target."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from symenum.core.budget import NO_LIMIT, Budget
from symenum.scans.matches import Forms, Index, find_matches


def random(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def centred(rows):
    rows = rows - rows.mean(dim=1, keepdim=True)
    return rows / rows.norm(dim=1, keepdim=True)


def alike(functions, targets):
    along = (centred(functions) * centred(targets)).sum(dim=1).abs()
    return along > 1 - 1e-9


def matches(left, right, forms, targets, budget=NO_LIMIT, rows=None):
    def equal(functions, numbers):
        return alike(functions, targets[numbers])

    found = find_matches(Index(targets[:, :4]), left, right, forms, equal, budget, rows=rows)
    return set(zip(found.i.tolist(), found.j.tolist(), found.target.tolist(), strict=True))


FORMS = {
    "product": Forms(torch.mul, symmetric=True),
    "difference": Forms(torch.sub, symmetric=True),
    "quotient": Forms(torch.div, symmetric=False),
    "sine of a product": Forms(torch.mul, symmetric=True, outer=torch.sin),
}


@pytest.mark.parametrize("name", FORMS)
@given(seed=st.integers(0, 10_000))
def test_exactly_the_pairs_that_equal_a_target_are_found(name, seed):
    forms, V = FORMS[name], random(7, 9, seed=seed)
    made = torch.stack([forms.of(V[i], V[j]) for i, j in ((1, 2), (3, 6), (0, 5))])
    scale, offset = random(3, 1, seed=seed + 1), random(3, 1, seed=seed + 2)
    targets = torch.cat([made * scale + offset, random(20, 9, seed=seed + 3)])
    expected = set()
    for i in range(7):
        for j in range(i if forms.symmetric else 0, 7):
            f = forms.of(V[i], V[j]).expand(len(targets), -1)
            if i != j or (forms.symmetric and name != "difference"):
                expected |= {(i, j, t) for t in torch.nonzero(alike(f, targets)).flatten().tolist()}
    assert {(1, 2, 0), (3, 6, 1), (0, 5, 2)} <= expected
    assert matches(V, V, forms, targets) == expected


def test_rows_of_the_left_table_are_those_that_were_asked_for():
    V = random(6, 8, seed=1)
    targets = torch.stack([V[1] * V[2], V[4] * V[5]])
    assert matches(V, V, FORMS["product"], targets, rows=range(3, 6)) == {(4, 5, 1)}


def test_targets_and_functions_without_a_direction_match_nothing():
    V = torch.ones(3, 8, dtype=torch.float64)
    assert matches(V, V, FORMS["product"], torch.cat([V[:1], V[:1] / 0])) == set()


def test_a_look_up_without_time_finds_nothing():
    budget = Budget()
    budget.end()
    V = random(6, 8, seed=2)
    assert matches(V, V, FORMS["product"], V[:1] * V[1:2], budget) == set()


def test_an_index_without_targets_matches_nothing():
    V = random(4, 8, seed=3)
    assert matches(V, V, FORMS["product"], torch.empty(0, 8, dtype=torch.float64)) == set()
