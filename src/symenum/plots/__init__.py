"""Pictures in matplotlib, which is optional: pip install 'symenum[plot]'. They are drawn on given axes or new ones."""

from symenum.plots.fit import plot_fit, plot_front, plot_residuals
from symenum.plots.trajectories import plot_trajectories

__all__ = ["plot_fit", "plot_front", "plot_residuals", "plot_trajectories"]
