"""The scans of a batch of passes in a thread of their own, while other moves have their turns on the CPU.

A GPU needs no processor while it scans, so a search that waits for it leaves its cores idle. What a batch gives depends
on the batch alone, which the state of the search holds: the thread only makes it come sooner. A search that was resumed
in between scans its batch anew and gets the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event, Thread

from symenum.core.budget import Budget
from symenum.engine.shortlist import Shortlist
from symenum.search.state import Batch

__all__ = ["Scan", "ScanAhead"]

Scan = Callable[[Budget], Sequence[Shortlist]]
"""The shortlists of a batch; ends early, with those that are there, once the budget is over."""

_LOOK = 0.05  # seconds between two looks at the clock while a scan is waited for


class _Scanning:
    """One scan, and what came of it once it has `ended`."""

    def __init__(self, scan: Scan) -> None:
        self._scan = scan
        self.ended = Event()
        self.shortlists: Sequence[Shortlist] = ()
        self.error: Exception | None = None

    def run(self, budget: Budget) -> None:
        try:
            self.shortlists = self._scan(budget)
        except Exception as error:  # it is raised where the result is asked for
            self.error = error
        finally:
            self.ended.set()


class ScanAhead:
    """The batch that is scanned, at most one."""

    def __init__(self) -> None:
        self._batch: Batch | None = None
        self._budget = Budget()
        self._scanning: _Scanning | None = None

    def start(self, batch: Batch, scan: Scan) -> None:
        """Begin to scan the batch; one that is scanned already is given up."""
        self.give_up()
        self._batch, self._budget, self._scanning = batch, Budget(), _Scanning(scan)
        # Python waits for the thread before it exits: one in the middle of a launch would abort the process.
        Thread(target=self._scanning.run, args=(self._budget,), name="symenum-scan-ahead").start()

    def result(self, batch: Batch, scan: Scan, budget: Budget) -> Sequence[Shortlist]:
        """The shortlists of the batch. Raises CutShortError where the budget is over before, and the scan's own errors.

        A batch that is not being scanned, since the search was resumed, is scanned now.
        """
        if batch != self._batch:
            self.start(batch, scan)
        assert self._scanning is not None  # it was started
        while not self._scanning.ended.wait(_LOOK):
            budget.check()
        self._batch = None
        if self._scanning.error is not None:
            raise self._scanning.error
        return self._scanning.shortlists

    def give_up(self) -> None:
        """Let the scan end, if there is one, after the few passes that were launched already; nobody waits for it."""
        self._budget.end()
        self._batch = None
