"""How the search for laws of motion is shown: what the laws are laws of, and which one is marked meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symenum.watch import Observer, Report, for_estimator

if TYPE_CHECKING:
    from symenum.dynamics.regressor import ODERegressor

__all__ = ["rule_of", "title_of", "watching"]


def title_of(report: Report) -> str:
    """The left side of the laws of a SystemReport."""
    return f"{getattr(report, 'state', '')}'"


def rule_of(model_selection: str) -> str:
    """How a law is marked while the search runs: held-out pieces are asked only when it is over."""
    return "mdl" if model_selection == "heldout" else model_selection


def watching(model: ODERegressor) -> Observer:
    """The observer that suits `verbose` and the place."""
    rule = rule_of(model.model_selection)
    return for_estimator(title_of, rule, model.max_time, verbose=model.verbose, several=True)
