"""Laws that nearly stand on the front: with one more coefficient one of them may be better than what stands there."""

from __future__ import annotations

from collections.abc import Iterable

from symenum.core.exactness import EXACTNESS
from symenum.enumeration.shortlist import Candidate
from symenum.front import Front

__all__ = ["near", "runners_up"]

_EACH = 12  # of a complexity; this and the next two by benchmarks/breadth.py, on laws drawn at random
_MOST = 240  # the simplest
_NEAR = 10.0  # times the loss of what stands on the front


def runners_up(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """The best few of each complexity, each function once; by complexity, then loss."""
    best: dict[int, list[Candidate]] = {}
    for candidate in sorted(candidates, key=lambda candidate: candidate.loss):
        kept = best.setdefault(candidate.complexity, [])
        if len(kept) < _EACH and not (kept and candidate.loss <= kept[-1].loss * (1 + EXACTNESS.tie)):
            kept.append(candidate)
    return tuple(candidate for complexity in sorted(best) for candidate in best[complexity])[:_MOST]


def near(front: Front, candidates: Iterable[Candidate]) -> list[Candidate]:
    """Those that are not far behind what stands on the front, and no simpler than all of it."""
    known = {entry.expression for entry in front}
    found = []
    for candidate in candidates:
        rival = min((entry.loss for entry in front if entry.complexity <= candidate.complexity), default=0.0)
        if candidate.loss <= _NEAR * rival and candidate.expression not in known:
            found.append(candidate)
    return found
