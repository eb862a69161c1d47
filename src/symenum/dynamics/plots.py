"""Measured and simulated trajectories of a fitted ODERegressor."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from symenum.display.figures import COLOURS
from symenum.display.plots import new_panels
from symenum.dynamics.local_polynomial import local_fit
from symenum.dynamics.trajectory import make_pieces

if TYPE_CHECKING:
    from symenum.dynamics import ODERegressor

__all__ = ["plot_trajectories"]

_DOTS, _LINE = COLOURS[:2]
_WINDOW = 15  # samples that the start of a simulation is smoothed over


def plot_trajectories(model: ODERegressor, X: object, t: object, u: object = None) -> Any:
    """One panel for each state: the samples as dots, the laws simulated from the start of each piece as lines.

    X, t and u are what `fit` takes. Gives the figure; save it with `figure.savefig("trajectories.png")`.
    """
    count = len(model.state_names_)
    panels = new_panels(count, 1.6 * count + 1.4)
    for piece in make_pieces(X, t, u):
        # The first sample has its noise; the start of a simulation should not.
        begin = local_fit(piece.t, piece.X, _WINDOW)
        start = begin.values[0] if model.order == 1 else np.concatenate([begin.values[0], begin.first[0]])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a motion that blows up is seen in the picture
            simulated = model.simulate(start, piece.t, piece.U if piece.U.size else None)
        for i, panel in enumerate(panels):
            panel.plot(piece.t, piece.X[:, i], ".", markersize=3, color=_DOTS, alpha=0.5)
            panel.plot(piece.t, simulated[:, i], linewidth=1.2, color=_LINE)
    for panel, name in zip(panels, model.state_names_, strict=True):
        panel.set_ylabel(name)
    panels[0].legend(panels[0].lines[:2], ["measured", "simulated from the start of each piece"], loc="upper right")
    panels[-1].set_xlabel("time")
    return panels[0].figure
