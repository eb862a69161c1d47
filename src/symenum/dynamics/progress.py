"""How the search for laws of motion is shown: what the laws are laws of, and which one is marked meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symenum.display.observers import for_estimator
from symenum.display.progress import Observer, Report
from symenum.selection import rule_while_searching

if TYPE_CHECKING:
    from symenum.dynamics.regressor import ODERegressor

__all__ = ["RULE_IF_HELD_OUT", "title_of", "watching"]

RULE_IF_HELD_OUT = "mdl"
"""How a law is marked while the search runs, where held-out pieces decide in the end."""


def title_of(report: Report) -> str:
    """The left side of the laws of a SystemReport."""
    return f"{getattr(report, 'state', '')}'"


def watching(model: ODERegressor) -> Observer:
    """The observer that suits `verbose` and the place."""
    rule = rule_while_searching(model.model_selection, RULE_IF_HELD_OUT)
    return for_estimator(title_of, rule, model.max_time, verbose=model.verbose, several=True)
