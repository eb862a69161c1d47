"""R² by formula is R² by least squares, and what is only rounding explains nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from symenum.scans.r_squared import affine_r_squared, pair_r_squared


def explained(columns: np.ndarray, t: np.ndarray) -> float:
    """R² of t (n,) on columns (n, k), t centred and of unit norm."""
    left = t - columns @ np.linalg.lstsq(columns, t, rcond=None)[0]
    return 1 - float(left @ left)


def centred_unit(rows: np.ndarray) -> np.ndarray:
    rows = rows - rows.mean(axis=-1, keepdims=True)
    return np.asarray(rows / np.linalg.norm(rows, axis=-1, keepdims=True))


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(4, 40), st.floats(1e-3, 1.0))
def test_the_pair_of_every_tile_is_that_of_least_squares(seed: int, rows: int, apart: float) -> None:
    random = np.random.default_rng(seed)
    C, t = centred_unit(random.normal(size=(5, rows))), centred_unit(random.normal(size=rows))
    C[1] = centred_unit(C[0] + apart * C[1])  # two that have nearly one direction
    U, target = torch.from_numpy(C), torch.from_numpy(t)
    along = U @ target
    found = pair_r_squared(along[:, None], along[None], U @ U.T)
    for i in range(5):
        for j in range(5):
            gap = 1 - float(C[i] @ C[j]) ** 2
            if gap > 1e-6:  # rounding grows as one over it, and near 1e-7 a pair counts as one row
                assert float(found[i, j]) == pytest.approx(explained(C[[i, j]].T, t), abs=2e-14 / gap + 1e-12)


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(3, 40), st.floats(0, 100))
def test_one_function_and_an_offset_is_that_of_least_squares(seed: int, rows: int, offset: float) -> None:
    random = np.random.default_rng(seed)
    f, t = random.normal(size=(6, rows)) + offset, centred_unit(random.normal(size=rows))
    square, mean = (f**2).mean(axis=1), f.mean(axis=1)
    along = f @ t / rows**0.5
    found = affine_r_squared(*map(torch.from_numpy, (along, square - mean**2, square)))
    truth = [explained(np.column_stack([row, np.ones(rows)]), t) for row in f]
    np.testing.assert_allclose(found, truth, atol=1e-8)


@pytest.mark.parametrize("otherwise", [0.0, -math.inf])
def test_two_rows_of_one_direction_and_constants_explain_what_was_asked_for(otherwise: float) -> None:
    one = torch.tensor([1.0, -1.0, 1 - 1e-9, math.nan], dtype=torch.float64)
    share = torch.full_like(one, 0.6)
    assert pair_r_squared(share, share, one, otherwise=otherwise).tolist() == [otherwise] * 4
    spread = torch.tensor([0.0, -1e-17, 1e-12, math.nan], dtype=torch.float64)
    assert affine_r_squared(share, spread, torch.ones_like(spread), otherwise=otherwise).tolist() == [otherwise] * 4


def test_the_limit_below_which_a_difference_is_rounding_is_the_callers() -> None:
    cosine = torch.tensor([1 - 1e-9], dtype=torch.float64)
    share = torch.tensor([0.6], dtype=torch.float64)
    assert float(pair_r_squared(share, share, cosine, least=1e-12)) == pytest.approx(0.36, rel=1e-6)
