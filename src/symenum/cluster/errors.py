"""What goes wrong between machines, in words that say what was tried and what to do."""

from __future__ import annotations

__all__ = ["ClusterError", "NoWorkersError"]


class ClusterError(RuntimeError):
    """The cluster cannot do what was asked of it; the message says why, and what to do."""


class NoWorkersError(ClusterError):
    """No worker that can be used was there for a while."""
