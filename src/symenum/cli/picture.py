"""The picture of measured and simulated trajectories; needs matplotlib, which is no dependency."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from symenum.cli.trajectories import Trajectories
    from symenum.dynamics import ODERegressor

__all__ = ["draw_trajectories"]


def draw_trajectories(path: Path, model: ODERegressor, found: Trajectories) -> None:
    """One panel for each state: the samples as dots, the laws simulated from the start of each piece as lines."""
    import numpy
    from matplotlib.figure import Figure

    from symenum.dynamics.local_polynomial import local_fit
    from symenum.dynamics.trajectory import make_pieces

    count = len(model.state_names_)
    figure = Figure(figsize=(8, 2 * count + 1), layout="constrained")
    axes = figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a motion that blows up is seen in the picture
        pieces = make_pieces(found.states, found.times, found.inputs)
        for piece in pieces:
            # The first sample has its noise; the start of a simulation should not.
            begin = local_fit(piece.t, piece.X, 15)
            start = begin.values[0] if model.order == 1 else numpy.concatenate([begin.values[0], begin.first[0]])
            simulated = model.simulate(start, piece.t, piece.U if piece.U.size else None)
            for i, axis in enumerate(axes):
                axis.plot(piece.t, piece.X[:, i], ".", markersize=2, color="0.6")
                axis.plot(piece.t, simulated[:, i], linewidth=1, color="C0")
    for axis, name in zip(axes, model.state_names_, strict=True):
        axis.set_ylabel(name)
    axes[-1].set_xlabel("time")
    axes[0].set_title("measured (dots) and simulated from the first point of each piece (lines)")
    figure.savefig(path, dpi=150)
