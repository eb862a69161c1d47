"""The front: the non-dominated expressions by loss and complexity, and the choice of one of them.

Losses are those of the expressions as printed, on all rows. What is exact up to rounding cannot be improved: the
simplest such expression whose constants the data vouch for ends the front.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import overload

from symenum.core.exactness import EXACTNESS
from symenum.enumeration.shortlist import Candidate
from symenum.enumeration.target import Target
from symenum.expressions import Constant, Expression, same_function, walk
from symenum.fitting.recognise import fitted_constants, unsnapped
from symenum.heads.goal import bent, law_limit

__all__ = ["MODEL_SELECTIONS", "Front", "reward", "rule_of"]

MODEL_SELECTIONS = ("best", "accuracy", "reward", "mdl")
_NEARLY_BEST = 1.5  # PySR's "best" looks among losses up to this factor above the smallest
_ALWAYS = 2  # fitted constants, as a straight line has
_ROWS_PER_CONSTANT = 3
_BY_CHANCE = 1.5  # rows' worth of loss that fitting one more constant may take off where it is not needed


def reward(loss: float, complexity: int, discount: float = 0.99) -> float:
    """η^α / (1 + √MSE), the paper's equation for the feedback to the token generator.

    >>> round(reward(1.0, 2), 4)
    0.49
    """
    return float(discount**complexity / (1 + math.sqrt(loss)))


def rule_of(model_selection: str) -> str:
    """How a front marks a law while the search runs: rows held out are asked only when it is over."""
    return model_selection if model_selection in MODEL_SELECTIONS else "best"


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
            and fitted_constants(candidate.expression) <= max(_ALWAYS, self.rows // _ROWS_PER_CONSTANT)
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
        scores = [0.0] if self.entries else []
        for before, entry in zip(self.entries, self.entries[1:], strict=False):
            fall = math.log(self._clamped(before.loss)) - math.log(self._clamped(entry.loss))
            scores.append(fall / (entry.complexity - before.complexity))
        return tuple(scores)

    def description_lengths(self) -> tuple[float, ...]:
        """Bits to write each entry, its constants to the precision that the data give, and its residuals."""
        return tuple(
            0.5 * self.rows * math.log2(self._clamped(entry.loss)) + description_length(entry.expression, self.rows)
            for entry in self.entries
        )

    def select(self, rule: str = "best") -> int:
        """The index of the entry to believe, by one of MODEL_SELECTIONS.

        `mdl`: the shortest description of law and data. `best`: PySR's rule, the highest score among those with a loss
        of up to 1.5 times the smallest; but what is longer to describe than the `mdl` one, and more accurate, has only
        fitted the noise, and takes no part. `accuracy`: the smallest loss. `reward`: the highest reward.
        """
        if rule not in MODEL_SELECTIONS:
            raise ValueError(f"model_selection must be one of {', '.join(map(repr, MODEL_SELECTIONS))}, not {rule!r}")
        if not self.entries:
            raise ValueError("the front is empty: nothing to select from")
        indices = range(len(self.entries))
        if rule == "accuracy":
            return len(self.entries) - 1
        if rule == "reward":
            rewards = self.rewards()
            return max(indices, key=lambda i: rewards[i])
        lengths = self.description_lengths()
        shortest = min(indices, key=lambda i: lengths[i])
        if rule == "mdl":
            return shortest
        scores = self.scores()
        limit = _NEARLY_BEST * self._clamped(self.entries[shortest].loss)
        believable = (i for i in indices[: shortest + 1] if self._clamped(self.entries[i].loss) <= limit)
        return max(believable, key=lambda i: scores[i])

    def has_law(self) -> bool:
        """Whether an entry equals y up to rounding, with constants that the data vouch for."""
        return any(entry.loss <= self.floor and not self._doubt(entry) for entry in self.entries)

    def _clamped(self, loss: float) -> float:
        return max(loss, self.floor, 1e-300)

    def _doubt(self, candidate: Candidate) -> int:
        """Of what is exact up to rounding: how many constants could have been bent to make it so."""
        return bent(candidate.expression, self.rows) if candidate.loss <= self.floor else 0

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


def description_length(expression: Expression, rows: int) -> float:
    """Bits to write an expression: its symbols, and its constants no finer than so many rows can tell."""
    nodes = list(walk(expression))
    symbols = {getattr(node, "name", None) or type(node).__name__ for node in nodes}
    bits = len(nodes) * math.log2(1 + len(symbols))
    for node in nodes:
        if isinstance(node, Constant) and node.name is None:
            fitted = 0.5 * math.log2(max(2, rows)) + 2
            whole = float(node.value).is_integer()
            bits += math.log2(1 + abs(node.value)) + 1 if whole and abs(node.value) < 1e6 else max(4.0, fitted)
    return bits
