"""The front: the non-dominated expressions by loss and complexity. Which of them to believe: `symenum.selection`.

Losses are those of the expressions as printed, on all rows. What is exact up to rounding cannot be improved: the
simplest such expression whose constants the data vouch for ends the front.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import overload

from symenum.core.exactness import EXACTNESS
from symenum.core.target import Target
from symenum.expressions import same_function
from symenum.expressions.candidate import Candidate
from symenum.fitting.recognise import fitted_constants, unsnapped
from symenum.heads.response import law_limit, surplus_constants
from symenum.selection import description_lengths, reward, scores, select

__all__ = ["Front"]

_ALWAYS_ALLOWED = 2  # fitted constants that every law may have, however few the rows: those of a straight line
_ROWS_PER_CONSTANT = 3  # a law may have one fitted constant for each three rows
# A constant that is not needed still takes about loss/rows off the loss, since it fits some of the noise. A law with
# one more constant must take off more than 1.5 times that.
_BY_CHANCE = 1.5


@dataclass(frozen=True)
class Front(Sequence[Candidate]):
    """Candidates by complexity ascending, each better than all before it; an immutable value.

    `floor`: losses up to it are zero up to rounding. `rows`: of the data, for the description length.
    """

    entries: tuple[Candidate, ...] = ()
    floor: float = 0.0
    rows: int = 0
    discount: float = 0.99

    @staticmethod
    def of(target: Target, discount: float = 0.99) -> Front:
        """An empty front for these data."""
        return Front((), law_limit(target), target.rows, discount)

    @overload
    def __getitem__(self, index: int) -> Candidate: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Candidate, ...]: ...
    def __getitem__(self, index: int | slice) -> Candidate | tuple[Candidate, ...]:
        return self.entries[index]

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.entries)

    def update(self, candidates: Iterable[Candidate], max_complexity: int | None = None) -> Front:
        """The front of what it holds and the candidates; a function appears once, in its simplest form.

        What has more fitted constants than a third of the rows is left out: the data cannot speak for it.
        """
        pool = {
            candidate.expression: candidate
            for candidate in (*candidates, *self.entries)
            if (max_complexity is None or candidate.complexity <= max_complexity)
            and fitted_constants(candidate.expression) <= max(_ALWAYS_ALLOWED, self.rows // _ROWS_PER_CONSTANT)
        }
        kept: list[Candidate] = []
        in_order = sorted(pool.values(), key=self._order)
        for _, equally_complex in itertools.groupby(in_order, key=lambda candidate: candidate.complexity):
            candidate = self._plainest(list(equally_complex))
            if not kept or self._improves(candidate, kept[-1]):
                kept.append(candidate)
        return replace(self, entries=tuple(kept))

    def rewards(self) -> tuple[float, ...]:
        """The paper's reward of each entry."""
        return tuple(reward(entry.loss, entry.complexity, self.discount) for entry in self.entries)

    def scores(self) -> tuple[float, ...]:
        """PySR's score of each entry: how fast ln(loss) falls with complexity; 0 for the first."""
        return scores(self.entries, self.floor)

    def description_lengths(self) -> tuple[float, ...]:
        """Bits to write each entry, its constants to the precision that the data give, and its residuals."""
        return description_lengths(self.entries, self.floor, self.rows)

    def select(self, rule: str = "best") -> int:
        """The index of the entry to believe, by one of MODEL_SELECTIONS of `symenum.selection`."""
        return select(self.entries, rule, floor=self.floor, rows=self.rows, discount=self.discount)

    def has_law(self) -> bool:
        """Whether an entry equals y up to rounding, with constants that the data vouch for."""
        return any(entry.loss <= self.floor and not self._doubt(entry) for entry in self.entries)

    def _doubt(self, candidate: Candidate) -> int:
        """Of what is exact up to rounding: how many constants could have been bent to make it so."""
        return surplus_constants(candidate.expression, self.rows) if candidate.loss <= self.floor else 0

    def _plainest(self, equally_complex: list[Candidate]) -> Candidate:
        """The best of them, or one with fewer fitted constants that is worse by no more than chance explains."""
        best = equally_complex[0]
        most = fitted_constants(best.expression)
        for candidate in equally_complex:
            fewer = most - fitted_constants(candidate.expression)
            if fewer > 0 and candidate.loss <= best.loss * (1 + _BY_CHANCE * fewer / max(1, self.rows)):
                return candidate
        return best

    def _order(self, candidate: Candidate) -> tuple[int, float, int, int, int, str]:
        text = str(candidate.expression)
        loss = 0.0 if candidate.loss <= self.floor else candidate.loss
        doubt = self._doubt(candidate)
        return candidate.complexity, loss, doubt, unsnapped(candidate.expression), len(text), text

    def _improves(self, candidate: Candidate, best: Candidate) -> bool:
        if best.loss <= self.floor:
            return candidate.loss <= self.floor and self._doubt(candidate) < self._doubt(best)
        if candidate.loss <= self.floor:
            return True
        if candidate.complexity == best.complexity or not candidate.loss < best.loss * (1 - EXACTNESS.tie):
            return False
        more = fitted_constants(candidate.expression) - fitted_constants(best.expression)
        if more > 0 and candidate.loss > best.loss * (1 - _BY_CHANCE * more / max(1, self.rows)):
            return False
        twins = candidate.loss > best.loss * (1 - EXACTNESS.twins)
        return not (twins and same_function(candidate.expression, best.expression))
