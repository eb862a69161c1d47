"""A scan that is told to stop stops inside a tile, where no bound excludes any candidate."""

from __future__ import annotations

import numpy as np

from symenum import PSRN


def test_a_scan_of_equally_bad_candidates_stops_inside_a_tile() -> None:
    """y is so large that all candidates are equally far from it, so that each of them must be looked at."""
    X = 1e-8 * np.random.default_rng(0).uniform(1, 2, (5, 5))
    asked = [0]

    def stop() -> bool:
        asked[0] += 1
        return asked[0] > 30

    shortlist = PSRN(5, "koza", 3).search(X, np.full(5, 1e30), k=5, stop=stop, threads=1, device="cpu")
    assert not shortlist.complete
    assert asked[0] < 60  # after the first yes the scan asks a few times more, once in each part that it leaves
