"""What a search does next: the table of moves, and the one rule that chooses among them.

Every kind of work is a *move*: a family of laws that a head scans, a pass of the network with tokens, one more
coefficient for the laws at hand. A move does its work in turns, none of which is long; a move that needs more goes on
where it stopped. The rule:

1. *Opening*: moves whose turn costs a small part of the time, the cheapest first, so that simple laws come out in the
   first second. The opening as a whole is a small part of the time too, or a few seconds of a short search.
2. *Turns*: the network gets its share of the work, at least half of it by default. The other moves share the rest by
   what they have added to the front for their work. A move that had little work yet counts as promising. Where the
   front shows no noise, what was added does not count: series that approach the law add most, and do not lead to it.
   A GPU scans while the others have their turns, so its scans are no work; only proposing tokens and fitting the finds
   are.

Work is not measured: it is estimated from the sizes of the data before a turn, in units of a second on two cores of
our reference machine (benchmarks/moves.py compares both). So a search with a seed and an iteration limit does the same
on any machine, however busy. What the moves do stands in `moves`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite, log, log10, sqrt
from statistics import mean

from symenum.core.target import Training
from symenum.core.words import did_you_mean
from symenum.front import Front
from symenum.search.growth import parts_of_continuation
from symenum.search.moves import (
    GROWTH,
    NETWORK,
    SIMPLE_GROWTH,
    Growth,
    HeadOnVariables,
    HeadsOnTokens,
    Move,
    Network,
    NoisyRows,
    Parts,
    Residuals,
    Variants,
)
from symenum.search.part_search import can_be_searched
from symenum.search.problem import Task
from symenum.search.state import State
from symenum.search.template_search import TemplateSearch
from symenum.selection.growing_noise import noise_may_grow

__all__ = ["Schedule", "check_shares", "front_decades", "moves_of"]

# Chosen on random laws and measured tables (benchmarks/settings.py; RESULTS.md, "Settings of the schedule"). Laws
# cannot tell much: with openings of 4 s and of 12 s as many are recovered in 30 s (16 of 54), and 14 and 12 of 52 in
# 10 s; with 4 s and 8 s 9 of 30 in 20 s. What is left of y is then less with 8 s, and tables are fitted better with 4 s
# (R² 0.79 instead of 0.76); so the middle. With half of the work or three quarters of it for the network as many laws
# are recovered too. Half: what is left over goes to growth where that brings most, as on noisy tables.
_NETWORK_SHARE = 0.5  # of the work after the opening, for passes of the network
# Of other moves after the opening; 1 where none stands here. With 1 for growth two of three tables were fitted worse.
# Reductions find most random laws of all moves: 6 of the 15 of Random-145 to 184 that 10 s recover. With 2.5 it is 16,
# which may be chance. Exact meetings bring nothing until they bring the law: of 15 random laws of depth 5 and 6 without
# constants (seed 7001) they find 6 in 0.5 to 11 s of one core when run alone. With 2.5 a search of 30 s hardly began
# them (0.3 s of work); with 8 it gives them 1 to 3 s, and up to 7 where nothing else has anything to do.
# Variants take out what a grown law does not need; with 1 they had no turn in 20 s on data without noise.
# Parts have something to do where a law is nearly right, and then a part takes 4 units; with 4 a search of 30 s had
# three turns of them (2 units of work), with 24 eleven.
_SHARES = {
    GROWTH: 2.5, SIMPLE_GROWTH: 2.5, "reductions": 2.5, "exact meetings": 8.0, "variants": 2.5, Parts.name: 24.0,
}  # fmt: skip
_OPENING_SHARE = 0.15  # of the time, for the opening,
_SHORT_OPENING = 6.0  # or so many seconds, where that is more,
_LONGEST_OPENING = 0.95  # but not more than this part of the time
_OPENING_TURN = 0.2  # of the opening, that one turn of it may cost
_OPEN_END = 60.0  # seconds that a search without a time limit is planned for


def moves_of(task: Task) -> tuple[Move, ...]:
    """The table: all moves that apply to the data, whatever their shares."""
    if task.settings.template is not None:  # other moves find laws that are not of the template
        return (TemplateSearch(),)
    if not task.settings.constants:  # the paper's own search: expressions as they are
        return (HeadOnVariables(task.heads.combined()), Network(task.plan))
    rounds = 2 if task.settings.loss.robust else 1  # the weights of the first round are those of a poor law
    heads = [HeadOnVariables(stage, rounds) for stage in task.stages.on_variables]
    on_tokens = [HeadsOnTokens(mean([stage.work for stage in task.stages.on_slots]))] if task.stages.on_slots else []
    further: list[Move] = []
    if noise_may_grow(Training(task.data.columns, task.data.target), task.settings.loss):
        further = [NoisyRows(task)]
    if parts_of_continuation(task):
        sizes = task.heads.sizes
        further += [Growth(sizes), Growth(sizes, simple=True), Residuals(task.residuals_work)]
    parts = [Parts()] if can_be_searched(task.data.columns, task.data.target.rows) else []
    return (*heads, *on_tokens, *further, *parts, Variants(), Network(task.plan))


def check_shares(shares: Mapping[str, float], moves: Iterable[Move]) -> None:
    """Refuse shares of moves that do not exist, shares below 0, and shares that leave no move."""
    names = [move.name for move in moves]
    for name, share in shares.items():
        if name not in names:
            raise ValueError(
                f"shares has {name!r}, and these data have no such move{did_you_mean(name, names)}; the moves are: "
                f"{', '.join(names)}"
            )
        if not isfinite(share) or share < 0:
            raise ValueError(f"shares has {share!r} for {name!r}: a share is a number of at least 0")
    if shares.get(NETWORK, 0.0) > 1:
        raise ValueError(f"shares has {shares[NETWORK]!r} for {NETWORK!r}: its share is a part of all work, at most 1")
    if all(shares.get(name) == 0 for name in names):
        raise ValueError("shares leaves no move for these data: give one of them a share above 0")


@dataclass(frozen=True)
class Schedule:
    """The moves that have a share, and the seconds that the search is planned for.

    `shares`: of the network the least part of the work; of any other move the factor that it counts with when moves are
    compared. A move with share 0 gets no turn.
    """

    moves: tuple[Move, ...]
    shares: Mapping[str, float]
    seconds: float

    @staticmethod
    def of(task: Task) -> Schedule:
        """The schedule of a search."""
        shares = task.settings.shares
        moves = tuple(move for move in moves_of(task) if shares.get(move.name) != 0)
        return Schedule(moves, shares, task.settings.planned_time or _OPEN_END)

    def next_move(self, state: State) -> Move | None:
        """The move whose turn it is; None where no move has anything left to do."""
        ready = [move for move in self.moves if not state.record(move.name).ended and move.ready(state)]
        return self._of_the_opening(ready, state) or self._by_share(ready, state)

    def _of_the_opening(self, ready: Sequence[Move], state: State) -> Move | None:
        """The move whose turns cost least up to the next one, if that fits into the opening.

        So a move of many turns does not hold up one that is cheaper than all of them. The opening ends with the first
        pass of the network.
        """
        spent = state.work
        if state.opened:
            return None
        whole = min(max(_OPENING_SHARE * self.seconds, _SHORT_OPENING), _LONGEST_OPENING * self.seconds)
        room = min(_OPENING_TURN * whole, whole - spent)
        cheap = [move for move in ready if move.opens and move.work(state) <= room]
        return min(cheap, key=lambda move: state.record(move.name).work + move.work(state), default=None)

    def _by_share(self, ready: Sequence[Move], state: State) -> Move | None:
        """The network while it has had less than its share; else the move that promises most for its work.

        While a GPU scans a batch, the other moves have their turns for as much work as the scan takes.
        """
        network = next((move for move in ready if move.name == NETWORK), None)
        others = [move for move in ready if move is not network]
        if network is not None:
            share = self.shares.get(NETWORK, _NETWORK_SHARE)
            since_opening = max(0.0, state.work - state.opening_work)
            if state.scanning is not None:
                its_turn = state.work >= state.scanning.due
            else:
                its_turn = state.record(NETWORK).work <= share * since_opening
            if its_turn or not others:
                return network
        return max(others, key=lambda move: self._promise(move, others, state), default=network)

    def _promise(self, move: Move, others: Sequence[Move], state: State) -> float:
        """What a turn of the move promises: its gain for its work, and more the less work it has had.

        The gain counts in units of the best of the others. The second term is the confidence bound of a bandit (UCB1)
        with work in place of trials: what was never tried comes soon, the cheap first, and nothing is given up. Of a
        front that shows no noise only that term counts.
        """
        records = [state.record(one.name) for one in others]
        best = max((record.gain / record.work for record in records if record.work), default=0.0)
        total = sum(record.work for record in records)
        record = state.record(move.name)
        counts = best > 0 and record.work and not state.front.shows_no_noise
        brought = record.gain / record.work / best if counts else 0.0
        share = self.shares.get(move.name, _SHARES.get(move.name, 1.0))
        return share * brought + sqrt(2 * share * log(1.0 + total) / (record.work + move.work(state)))


def front_decades(front: Front, scale: float, max_complexity: int) -> float:
    """How low the front is: the decades from `scale` down to its loss, averaged over all complexities up to the limit.

    A step's gain is the difference of two such numbers. Losses up to the front's floor, which are rounding, are alike.
    Losses and `scale` count from the front's zero.
    """
    front = front.from_zero()
    ends = [entry.complexity for entry in front if entry.complexity <= max_complexity] + [max_complexity + 1]
    floor = max(front.floor, scale * 1e-30)  # of a front without a floor
    total = 0.0
    for entry, (low, high) in zip(front, pairwise(ends), strict=False):
        total += (high - low) * log10(scale / max(entry.loss, floor))
    return total / (max_complexity + 1)
