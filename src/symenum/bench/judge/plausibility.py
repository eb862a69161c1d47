"""Whether a law is one that a scientist could print, seen from outside: dense samples, and signs counted row by row.

It shares no code with `symenum.sanity`, the policy that keeps absurd laws off a front, so that the two can be compared:
no intervals and no proofs, only values of the law at many points. It may miss a pole; what it reports is one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from symenum.expressions import Apply, Expression, evaluate, variables, walk

__all__ = ["has_pole_in_box", "has_unresolved_wave"]

Array = npt.NDArray[np.float64]

_SEGMENTS = 40  # straight lines through the box along which the law is followed,
_POINTS = 400  # and points on each
_SUSPECTS = 6  # intervals of each line in which a pole is looked for,
_ZOOMS = 45  # by cutting the interval in two so often
_POLE_FACTOR = 1e8  # times the largest |y|: a law that reaches this in the box has a pole there
_MISSED = 0.34  # part of neighbouring rows between which a wave changes its sign twice or more, unseen
_FLIPPED = 0.8  # part of neighbouring rows between which a wave changes its sign at all: it is in step with the rows


def has_pole_in_box(law: Expression, columns: dict[str, Array], y: Array, seed: int = 0) -> bool:
    """Whether the law is not finite, or grows without end, somewhere in the box of its columns (rows,)."""
    names = variables(law)
    if not names:
        return False
    rng = np.random.default_rng(seed)
    low, high = (np.array([end(columns[name]) for name in names]) for end in (np.min, np.max))
    ends: Array = rng.uniform(low, high, (2, _SEGMENTS, len(names)))
    ends[0, : len(names)], ends[1, : len(names)] = (low + high) / 2, (low + high) / 2
    for i in range(min(len(names), _SEGMENTS)):  # through the middle, along each column
        ends[0, i, i], ends[1, i, i] = low[i], high[i]
    start, step = ends[0][:, None], (ends[1] - ends[0])[:, None]

    def values(parts: Array) -> Array:
        """The law (segments, points) at these parts (segments, points) of each segment."""
        points = start + parts[:, :, None] * step
        grid = {name: np.ascontiguousarray(points[:, :, i]) for i, name in enumerate(names)}
        return np.asarray(evaluate(law, grid), dtype=np.float64)

    limit = _POLE_FACTOR * float(np.abs(y).max() or 1.0)
    parts = np.broadcast_to(np.linspace(0.0, 1.0, _POINTS), (_SEGMENTS, _POINTS))
    found = values(parts)
    if not (np.abs(found) <= limit).all():  # NaN compares false
        return True
    jumps = np.argsort(-np.abs(np.diff(found, axis=1)), axis=1)[:, :_SUSPECTS]
    peaks = np.clip(np.argsort(-np.abs(found), axis=1)[:, :_SUSPECTS], 1, _POINTS - 2)
    left = np.take_along_axis(parts, np.concatenate([jumps, peaks - 1], axis=1), axis=1)
    right = np.take_along_axis(parts, np.concatenate([jumps + 1, peaks + 1], axis=1), axis=1)
    by_jump = np.arange(left.shape[1]) < _SUSPECTS
    for _ in range(_ZOOMS):
        quarter = (right - left) / 4
        at = [values(left + k * quarter) for k in range(5)]
        if any((np.abs(value) > limit).any() for value in at):  # NaN is none: 0/0 at one point can be filled in
            return True
        jumped_left = np.abs(at[2] - at[0]) > np.abs(at[4] - at[2])
        to_left = np.where(by_jump, jumped_left, np.abs(at[1]) > np.abs(at[3]))
        left, right = np.where(to_left, left, left + 2 * quarter), np.where(to_left, left + 2 * quarter, right)
    return False


def has_unresolved_wave(law: Expression, columns: dict[str, Array]) -> bool:
    """Whether a sine or cosine of the law changes its sign between neighbouring rows unseen, or at nearly every row.

    Neighbours are rows with neighbouring values of the wave's argument; rows with the same value are one. A wave whose
    argument grows without end in the box of the columns counts as well.
    """
    for node in walk(law):
        if isinstance(node, Apply) and node.operator.periodic and variables(node.operands[0]):
            period = node.operator.traits.period
            argument = np.unique(evaluate(node.operands[0], columns))
            argument = argument[np.isfinite(argument)]
            if len(argument) < 2 or period is None:
                continue
            changes = np.diff(np.floor(argument / (period / 2)))
            if np.mean(changes >= 2) > _MISSED or np.mean(changes >= 1) > _FLIPPED:
                return True
            if has_pole_in_box(node.operands[0], columns, argument):
                return True
    return False
