"""Watching a search: one observer protocol, and observers for terminals, notebooks, files, and nobody.

Whoever drives the search does not know which one it has. Observers only look: they never ask to stop.
"""

from symenum.watch.choose import for_command, for_estimator
from symenum.watch.lines import Lines
from symenum.watch.notebook import NotebookTable
from symenum.watch.observer import Observer, Quiet, Report
from symenum.watch.terminal import LiveTable

__all__ = ["Lines", "LiveTable", "NotebookTable", "Observer", "Quiet", "Report", "for_command", "for_estimator"]
