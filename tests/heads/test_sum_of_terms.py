"""A beam that is searched in parts goes through the same sets of terms as the whole; large problems have such parts."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

from symenum.core.budget import Budget
from symenum.core.target import Target
from symenum.expressions import Variable
from symenum.heads.response import make_data
from symenum.heads.stages import AllHeads, Stage
from symenum.heads.sum_of_terms import SEARCHES, Beam, BeamSearch, Reached, search_beam
from symenum.operators import get_operators
from symenum.scans.products import Products, build_factors
from symenum.scans.projection import orthonormal

pytestmark = pytest.mark.usefixtures("one_thread")


def data(slots: int, rows: int):
    rng = np.random.default_rng(0)
    values = torch.tensor(rng.uniform(0.5, 3, (slots, rows)))
    y = values[0] * values[1] + values[2] / values[3] - values[1] + 0.3 * torch.tensor(rng.normal(size=rows))
    weight = torch.full((rows,), 1 / rows, dtype=torch.float64)
    return make_data([Variable(f"x{i + 1}") for i in range(slots)], values, Target(y, weight), 400)


@pytest.mark.parametrize("parts", [2, 3, 8])
@pytest.mark.parametrize("forgotten", [False, True], ids=["in one run", "resumed"])
def test_a_beam_in_parts_is_the_whole_beam(parts: int, forgotten: bool) -> None:
    found = data(4, 60)
    columns = torch.stack([found.columns[f"x{i + 1}"] for i in range(4)])
    root = found.target.weight.sqrt()
    products = Products(build_factors(found.stand_ins, columns, get_operators("koza")), root)
    y, background = found.target.y * root, orthonormal(root[None])
    beam = Beam(3, True, True)
    tiers = (1, 2, 3)
    whole = search_beam(products, y, background, beam, max_terms=8, tiers=tiers, budget=Budget())
    together = []
    for part in BeamSearch(beam, beside_slots=False).cut(parts):
        reached = Reached() if forgotten else part.reached
        together += search_beam(
            products, y, background, beam, max_terms=part.last, tiers=tiers, budget=Budget(), first=part.first,
            reached=reached,
        )  # fmt: skip
    assert sorted(state.terms for state in together) == sorted(state.terms for state in whole)


def test_a_part_that_was_cut_short_is_not_taken_for_done() -> None:
    found = data(4, 40)
    columns = torch.stack([found.columns[f"x{i + 1}"] for i in range(4)])
    root = found.target.weight.sqrt()
    products = Products(build_factors(found.stand_ins, columns, get_operators("arithmetic")), root)
    ended = Budget()
    ended.end()
    reached = Reached()
    search_beam(
        products, found.target.y * root, orthonormal(root[None]), Beam(2, False, True), max_terms=2, tiers=(1, 2),
        budget=ended, reached=reached,
    )  # fmt: skip
    assert reached == Reached()


def test_only_large_problems_are_cut() -> None:
    heads = AllHeads(data(4, 60), get_operators("koza"), 10)
    assert heads.sizes.parts_of_sums == 1
    assert len(heads.sums_of_terms(SEARCHES)) == len(SEARCHES)
    wide = replace(heads.sizes, slots=50, scanned=400)
    assert wide.parts_of_sums == 8


def test_functions_of_one_slot_are_terms_beside_the_slots() -> None:
    rng = np.random.default_rng(1)
    x, z = torch.tensor(rng.uniform(0.5, 3, (2, 100)))
    y = x + 2.76 / z - torch.cos(x) + 0.31 * torch.tanh(z) + 4.2
    weight = torch.full((100,), 1 / 100, dtype=torch.float64)
    problem = make_data([Variable("x"), Variable("z")], torch.stack([x, z]), Target(y, weight), 400)
    heads = AllHeads(problem, get_operators(["+", "-", "*", "/", "cos", "tanh", "exp"]), 10)
    (stage,) = [stage for stage in heads.on_target() if stage.name == "sums of clear terms"]
    found = [candidate for number in count_slices(stage) for candidate in stage.run(number, Budget())]
    assert any(problem.is_law(candidate) for candidate in found)


def count_slices(stage: Stage) -> range:
    return range(next(number for number in itertools.count() if stage.scan(number) is None))
