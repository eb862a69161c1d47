"""An independent judge of the scans: numpy.linalg.lstsq for every candidate, nothing shared with the heads' code."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st


def residual(columns: list[np.ndarray], t: np.ndarray, weight: np.ndarray) -> float:
    """Residual norm of t on the columns, relative to that on a constant alone."""
    root = np.sqrt(weight)
    mean = np.average(t, weights=weight)
    A = np.column_stack([np.ones_like(t), *columns]) * root[:, None]
    size = np.abs(A).max(axis=0)
    A = A / np.where(size > 0, size, 1)
    A[:, 1:] -= A[:, :1] * (A[:, :1].T @ A[:, 1:]) / (A[:, :1].T @ A[:, :1])  # centred: offsets take no digits
    norm = np.linalg.norm(A, axis=0)
    A = A / np.where(norm > 0, norm, 1)
    y = (t - mean) * root
    c = np.linalg.lstsq(A, y, rcond=1e-14)[0]
    left = y - A @ c
    left -= A @ np.linalg.lstsq(A, left, rcond=1e-14)[0]
    return float(np.linalg.norm(left) / np.linalg.norm(y))


@st.composite
def banks(draw: st.DrawFn, positive: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows V (N, n), t (n,) and weights (n,): random, some nearly collinear, of any scale, t with or without offset."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count, rows = draw(st.integers(3, 24)), draw(st.integers(8, 30))
    V = generator.uniform(0.5, 2, (count, rows)) if positive else generator.normal(size=(count, rows))
    nearness = draw(st.sampled_from([0.0, 1e-2, 1e-4, 1e-6, 1e-8]))
    if nearness:
        V[1::2] = V[:-1:2][: len(V[1::2])] * (1 + nearness * generator.normal(size=V[1::2].shape))
    apart = (V[1] - V[0]) / (nearness or 1.0)  # what only a nearly collinear pair explains
    t = V[0] * generator.normal() + V[-1] * generator.normal() + apart * generator.normal()
    t = t + draw(st.sampled_from([0.01, 1.0])) * generator.normal(size=rows)
    t = t * 10.0 ** draw(st.integers(-8, 8))
    if draw(st.booleans()):
        t = t + 1e6 * np.abs(t).max()
    V = V * 10.0 ** generator.integers(-8, 9, size=(count, 1)) if draw(st.booleans()) else V
    weight = generator.uniform(0.1, 1, rows) if draw(st.booleans()) else np.ones(rows)
    return V, t, weight / weight.sum()


def assert_top_recalled(truth: dict[tuple[int, int], float], found: dict[tuple[int, int], float], k: int = 10) -> None:
    """The k best of the truth are found, with their residuals; those that tie with the last place may differ."""
    order = sorted(truth, key=truth.__getitem__)
    last = truth[order[min(k, len(order)) - 1]]
    for pair in order[:k]:
        assert pair in found or truth[pair] >= last - TOLERANCE, f"{pair} with {truth[pair]} is missing"
        if pair in found:
            assert abs(found[pair] - truth[pair]) <= TOLERANCE


# Of relative residuals. An offset of 1e6 costs six digits of t, and nearly collinear columns (1e-6) six of theirs.
TOLERANCE = 1e-7
