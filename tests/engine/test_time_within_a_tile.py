"""A scan that is told to stop stops inside a tile: where all laws are equally bad, one tile holds a million of them."""

from __future__ import annotations

import numpy as np
import pytest

from symenum import PSRN
from symenum.engine import cpu
from symenum.engine.shortlist import Scorer


def test_a_scan_stops_between_two_groups_of_candidates_of_a_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).uniform(1, 2, (20, 3))
    scored = [0]
    form, survivors = Scorer.form, cpu._survivors

    def counted(self: Scorer, *arguments: object) -> None:
        scored[0] += 1
        form(self, *arguments)

    def many_groups(*arguments: object):
        for group in survivors(*arguments):
            for _ in range(1000):
                yield group

    monkeypatch.setattr(Scorer, "form", counted)
    monkeypatch.setattr(cpu, "_survivors", many_groups)
    stopped = PSRN(3, "koza", 2).search(X, X[:, 0] + 0.1, k=5, stop=lambda: scored[0] >= 10, threads=1, device="cpu")
    assert not stopped.complete
    assert scored[0] == 10
