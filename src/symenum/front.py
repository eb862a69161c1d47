"""The front: the non-dominated expressions by loss and complexity. Which of them to believe: `symenum.selection`.

Losses are those of the expressions as printed, on all rows. An expression that equals y up to rounding cannot be
improved: the simplest such expression without surplus constants ends the front.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import overload

from symenum.core.exactness import EXACTNESS
from symenum.core.memory import LAWS_REMEMBERED
from symenum.core.target import Target
from symenum.expressions import Apply, Expression, same_function, variables, walk
from symenum.expressions.algebra import with_joined_powers
from symenum.expressions.candidate import Candidate
from symenum.expressions.complexity import ComplexityWeights
from symenum.fitting.free_constants import form_as_printed, free_leaves, with_leaves
from symenum.fitting.recognise import count_fitted_constants, count_unsnapped
from symenum.heads.response import law_limit, surplus_constants
from symenum.operators.traits import Role
from symenum.selection import DEFAULT_RULE, DISCOUNT, description_lengths, reward, scores, select

__all__ = ["Front", "with_digits_of"]

_MIN_ALLOWED = 2  # fitted constants that every law may have, however few the rows: those of a straight line
# A constant that is not needed still takes about loss/rows off the loss, since it fits some of the noise. A law with
# one more constant must take off more than this number times that.
_BY_CHANCE = 1.5
_NO_NOISE = 1e-6  # of the loss of the first law, where there is no noise: residuals of a thousandth
_NAMED_FUNCTIONS = (Role.EXPONENTIAL, Role.LOGARITHM, Role.FUNCTION)  # that print as they are, beside periodic ones
_ROWS_PER_CONSTANT = 3  # rows that each fitted constant needs; both by trial, see benchmarks/constants.py


@dataclass(frozen=True)
class Front(Sequence[Candidate]):
    """Candidates by complexity ascending, each better than all before it; an immutable value.

    `floor`: losses up to it are zero up to rounding. `rows`: number of rows of the data, which decides how many
    constants a law may have. `discount`: η of the paper's reward. `weights`: what complexity counts, where the user has
    said so.
    """

    entries: tuple[Candidate, ...] = ()
    floor: float = 0.0
    rows: int = 0
    discount: float = DISCOUNT
    weights: ComplexityWeights | None = None

    @staticmethod
    def of(target: Target, discount: float = DISCOUNT, weights: ComplexityWeights | None = None) -> Front:
        """An empty front for these data."""
        return Front((), law_limit(target), target.rows, discount, weights)

    def complexity_of(self, expression: Expression) -> int:
        """The complexity that counts on this front."""
        return expression.complexity if self.weights is None else self.weights.of(expression)

    def weighed(self, candidate: Candidate) -> Candidate:
        """The candidate with the complexity that counts on this front."""
        return candidate if self.weights is None else replace(candidate, weighted=self.weights.of(candidate.expression))

    def in_its_form(self, candidate: Candidate) -> Candidate:
        """The candidate in the form in which it may stand on this front: powers of one base are one power there.

        Its values are the same, and so its loss is; the complexity is that of the shorter form.
        """
        expression = with_joined_powers(candidate.expression)
        return self.weighed(
            candidate if expression is candidate.expression else replace(candidate, expression=expression)
        )

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

    def loss_up_to(self, complexity: int) -> float:
        """The lowest loss of the entries that are at most so complex; infinite where there is none."""
        number = bisect_right(self.entries, complexity, key=lambda entry: entry.complexity)
        return self._lowest_losses[number]

    @cached_property
    def _lowest_losses(self) -> tuple[float, ...]:
        """Of the first 0, 1, 2, … entries."""
        return tuple(itertools.accumulate((entry.loss for entry in self.entries), min, initial=float("inf")))

    def update(self, candidates: Iterable[Candidate], max_complexity: int | None = None) -> Front:
        """The front of its entries and the candidates; a function appears once, in its simplest form.

        Of laws that print alike but for their digits, the simplest tree stays, with the best digits. A candidate with
        more fitted constants than a third of the rows is left out, unless it has at most two.
        """
        pool = {
            candidate.expression: candidate
            for candidate in map(self.in_its_form, (*candidates, *self.entries))
            if (max_complexity is None or candidate.complexity <= max_complexity) and self.may_hold(candidate)
        }
        entries: list[Candidate] = []
        in_order = sorted(pool.values(), key=self._order)
        for _, equally_complex in itertools.groupby(in_order, key=lambda candidate: candidate.complexity):
            candidate = self._plainest(list(equally_complex))
            if not entries or self._improves(candidate, entries[-1]):
                _enter(entries, candidate)
        return replace(self, entries=tuple(entries))

    def may_hold(self, candidate: Candidate) -> bool:
        """Whether there are rows enough for its fitted constants."""
        allowed = max(_MIN_ALLOWED, self.rows // _ROWS_PER_CONSTANT)
        return count_fitted_constants(candidate.expression) <= allowed

    def with_law(self, law: Candidate) -> Front:
        """The front with a law that is to stand there, without those that cannot stand beside it.

        These are the law of the same complexity, simpler ones that are as accurate, and longer ones that are not more
        accurate.
        """
        before = [entry for entry in self if entry.complexity < law.complexity and entry.loss > law.loss]
        after = [entry for entry in self if entry.complexity > law.complexity and entry.loss < law.loss]
        return replace(self, entries=(*before, law, *after))

    @property
    def shows_no_noise(self) -> bool:
        """Whether the last law leaves so little of what the first one leaves that few measurements have less noise.

        What is missing is then the law itself, which equals the data; a law that is merely more accurate is no step on
        the way to it.
        """
        return len(self) > 1 and self[-1].loss - self.zero <= _NO_NOISE * (self[0].loss - self.zero)

    @property
    def zero(self) -> float:
        """What losses are counted from: 0, or the loss of an exact law where a user's loss is negative there.

        A loss may be any real number, such as minus a log-likelihood; ratios of losses make sense from here only.
        """
        return min(self.floor, 0.0)

    def from_zero(self) -> Front:
        """The front with losses counted from `zero`, so that none is negative."""
        if not self.zero:
            return self
        entries = tuple(replace(entry, loss=self._size(entry)) for entry in self.entries)
        return replace(self, entries=entries, floor=0.0)

    def _size(self, candidate: Candidate) -> float:
        """The loss counted from `zero`."""
        return max(candidate.loss - self.zero, 0.0)

    def rewards(self) -> tuple[float, ...]:
        """The paper's reward of each entry."""
        return tuple(reward(entry.loss, entry.complexity, self.discount) for entry in self.from_zero())

    def scores(self) -> tuple[float, ...]:
        """PySR's score of each entry: how fast ln(loss) falls with complexity; 0 for the first."""
        front = self.from_zero()
        return scores(front.entries, front.floor)

    def description_lengths(self) -> tuple[float, ...]:
        """Bits to write each entry, its constants to the precision that the data give, and its residuals."""
        front = self.from_zero()
        return description_lengths(front.entries, front.floor, self.rows)

    def select(self, rule: str = DEFAULT_RULE) -> int:
        """The index of the entry to believe, by one of MODEL_SELECTIONS of `symenum.selection`."""
        front = self.from_zero()
        return select(front.entries, rule, floor=front.floor, rows=self.rows, discount=self.discount)

    def has_law(self) -> bool:
        """Whether an entry equals y up to rounding, without surplus constants."""
        return any(entry.loss <= self.floor and not self._surplus(entry) for entry in self.entries)

    def _surplus(self, candidate: Candidate) -> int:
        """Constants that may only have been fitted to make the candidate exact; 0 for one that is not exact."""
        return surplus_constants(candidate.expression, self.rows) if candidate.loss <= self.floor else 0

    def _plainest(self, equally_complex: list[Candidate]) -> Candidate:
        """The best of equally complex ones, or one with fewer fitted constants that is worse by no more than chance.

        A number, the mean, gives way to none: a variable that explains less than the mean explains nothing.
        """
        best = equally_complex[0]
        if not variables(best.expression):
            return best
        constants = count_fitted_constants(best.expression)
        for candidate in equally_complex:
            fewer = constants - count_fitted_constants(candidate.expression)
            if fewer > 0 and self._size(candidate) <= self._size(best) * (1 + _BY_CHANCE * fewer / max(1, self.rows)):
                return candidate
        return best

    def _order(self, candidate: Candidate) -> tuple[int, float, int, int, int, str]:
        """By complexity, loss, surplus constants, constants of many digits, and length of the text."""
        loss = self.zero if candidate.loss <= self.floor else candidate.loss
        return candidate.complexity, loss, self._surplus(candidate), *_plainness(candidate.expression)

    def _improves(self, candidate: Candidate, best: Candidate) -> bool:
        """Whether the candidate follows the last entry, `best`: better by more than chance."""
        if best.loss <= self.floor:
            return candidate.loss <= self.floor and self._surplus(candidate) < self._surplus(best)
        if candidate.loss <= self.floor:
            return True
        loss, best_loss = self._size(candidate), self._size(best)
        if candidate.complexity == best.complexity or not loss < best_loss * (1 - EXACTNESS.tie):
            return False
        more = count_fitted_constants(candidate.expression) - count_fitted_constants(best.expression)
        if more > 0 and loss > best_loss * (1 - _BY_CHANCE * more / max(1, self.rows)):
            return False
        twins = loss > best_loss * (1 - EXACTNESS.scanned_tie)
        return not (twins and same_function(candidate.expression, best.expression))


def _enter(entries: list[Candidate], candidate: Candidate) -> None:
    """Add a candidate that is better than all entries, as the simpler entry that prints alike where there is one.

    3*x*x and 3.01*x**2 print alike, but x*x counts less. Such an entry takes over the better digits. Those after it are
    then no better, and leave.
    """
    for place, entry in enumerate(entries):
        shorter = with_digits_of(entry.expression, candidate.expression)
        if shorter is not None:
            entries[place:] = [replace(entry, expression=shorter, loss=candidate.loss)]
            return
    entries.append(candidate)


def with_digits_of(law: Expression, other: Expression) -> Expression | None:
    """The law with the constants of another that prints alike but for its digits; None where this is another law."""
    if _parts(law) != _parts(other) or form_as_printed(law) != form_as_printed(other):
        return None
    digits = free_leaves(other)
    changed = with_leaves(law, digits) if digits else law
    return changed if digits and same_function(changed, other) else None


@lru_cache(LAWS_REMEMBERED)  # as for `_plainness`
def _parts(law: Expression) -> tuple[int, frozenset[str], tuple[str, ...]]:
    """The number of fitted constants, the variables, and the functions in order: told faster than how a law prints.

    Functions that print as powers, signs and quotients are not counted.
    """
    functions = [
        node.operator.name
        for node in walk(law)
        if isinstance(node, Apply) and (node.operator.role in _NAMED_FUNCTIONS or node.operator.traits.period)
    ]
    return len(free_leaves(law)), frozenset(variables(law)), tuple(sorted(functions))


@lru_cache(LAWS_REMEMBERED)  # the same laws are compared in every step of a search, which has some thousands at hand
def _plainness(expression: Expression) -> tuple[int, int, str]:
    """Constants of many digits, length of the text, and the text: the lower, the plainer."""
    text = str(expression)
    return count_unsnapped(expression), len(text), text
