"""How the search for laws of motion is shown: what the laws are laws of, and which one is marked meanwhile."""

from __future__ import annotations

from symenum.watch import Report

__all__ = ["rule_of", "title_of"]


def title_of(report: Report) -> str:
    """The left side of the laws of a SystemReport."""
    return f"{getattr(report, 'state', '')}'"


def rule_of(model_selection: str) -> str:
    """How a law is marked while the search runs: held-out pieces are asked only when it is over."""
    return "mdl" if model_selection == "heldout" else model_selection
