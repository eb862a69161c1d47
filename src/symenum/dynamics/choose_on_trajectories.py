"""Which laws of motion to believe, by the trajectories themselves: all equations together.

On a short run averages over windows cannot tell laws that lead to quite different motions. So the laws of the pools,
the fronts among them, are fitted to the samples by multiple shooting, starts and constants, and described in bits: the
residuals of the fitted motion, and the law. First each equation is judged for itself, the other states being those that
were measured, smoothed. Then the best few of each take part in systems whose states are all followed.

Where no law leaves as little as the errors of the samples, something is missing from all of them, and what they leave
is no noise: neighbouring samples repeat each other. Only so many of them count as tell something of their own
(`independent_share`); else each would speak for long laws that follow what is missing.

A system also pays where it blows up from points among the data: laws that only hold on the measured curve are no laws.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch

from symenum.core.budget import Budget
from symenum.core.seeds import stream
from symenum.core.target import Target
from symenum.dynamics.derivatives import SavitzkyGolay, smooth
from symenum.dynamics.noise import Noise
from symenum.dynamics.shared_parts import symbols, ties
from symenum.dynamics.shooting import Followed, Nodes, Segment, Shot, blow_ups, follow
from symenum.dynamics.system import Names
from symenum.dynamics.trajectory import Piece
from symenum.expressions import (
    Apply,
    Constant,
    Expression,
    Variable,
    apply,
    evaluate,
    fold,
    simplify,
    variables,
    walk,
)
from symenum.expressions.candidate import Candidate
from symenum.fitting import nice_number, with_one_less
from symenum.fitting.free_constants import form_as_printed, form_of, free_constants, with_leaves
from symenum.fitting.recognise import constant_bits
from symenum.heads.operator_grammar import NO_PRIOR, Prior
from symenum.operators import Operator
from symenum.operators.traits import Role
from symenum.sanity import Policy
from symenum.selection import description_length

__all__ = ["MOST_STATES", "Chosen", "choose_on_trajectories", "make_nodes"]

Array = npt.NDArray[np.float64]
Windows = npt.NDArray[np.int64]

_CROSSINGS = 6  # of a state through its mean, in a segment: three periods, over which errors grow little even in chaos
MOST_STATES = 12
"""Of a system that is followed: the work of one fit grows as their third power."""
_MOST_NODES = 4000  # samples that fits go through: more only make them slower, their constants are known well
_FORM_NODES, _LEAST_FORMS = 300_000, 20  # forms of an equation that are tried, times the samples; and at least
_MIN_SEGMENT = 30  # samples of a segment: its start takes one of them for each state
_TRIED = 6  # laws of each equation that take part in systems
_NEAR_BITS = 40.0  # laws so many bits behind the best of their equation take no part in systems
_SHORTENED = 3  # best laws of an equation that are tried without one of their parts
_ROUNDS = 4  # of shortening, and of exchanging the laws of a system
_RANKED_AGAIN = 40  # best laws of an equation that are judged again along the fitted motion of the others
_AS_GOOD, _SLACK = (
    1.5,
    0.1,
)  # a motion stands in for smoothed samples up to so many times their misfit, and so much more
# Of the time, for each of two rounds: ranking begins, ranking ends, the search for a system ends.
_SHARES = ((0.0, 0.45, 0.7), (0.7, 0.85, 1.0))
_HOPELESS = 100.0  # bits behind the best from which on a fit is given up before it has ended
_LARGEST_POWER = 1000.0  # of 2, near the largest of doubles
_FREE_EXPONENT = 5.0  # bits beside its own for an exponent that is no nice number: x**1.07 is rarely meant
_MARGIN = 2.0  # bits that a system must gain on a simpler one: how constants are rounded moves it by as much
_STARTS = 8  # points of the samples' box from which a system must not blow up
_BLOW_UP = 3.0  # bits for each of them: together as much as a term of a law, since true laws may blow up too
_MAX_STEPS = 1000  # of such a simulation
_DIGITS = (1, 2, 3, 4, 5, 6)  # significant ones that constants are rounded to
_LARGEST_WHOLE = 1e6  # larger numbers stay as they are
_MIN_SECONDS = 1e-3  # of a budget that is over already: a Budget needs a limit above 0
_MORE_THAN_NOISE = 4.0  # chi-square of a sample from which on a law leaves twice what noise would: something is missing
_LEAST_INDEPENDENT = 20.0  # samples that count at least: some segments of a few periods
_NEAR_ZERO, _STRAIGHT = (1e-3, 2e-3), 1e-5  # where a smooth odd function has one slope, up to so much
_TINY = 1e-300  # near the smallest normal double: logarithms are taken of at least this


@dataclass(frozen=True)
class Chosen:
    """The laws of all states that move, with the constants that fit the trajectories.

    `laws` as they are written, with constants in few digits; `fitted` with all digits, and `errors`, for each law the
    standard errors of its constants from left to right. `bits`: the description length of each state's law and
    residuals. `chi_square`: mean squared residuals of each state in units of the samples' errors. `motion` (states,
    samples): the fitted motion. `others`: for each state the chosen law and those that were tried in its place, with
    the bits that they add, the best first.
    """

    laws: tuple[Expression, ...]
    fitted: tuple[Expression, ...]
    errors: tuple[tuple[float, ...], ...]
    bits: tuple[float, ...]
    chi_square: tuple[float, ...]
    motion: Array
    others: tuple[tuple[tuple[Expression, float], ...], ...]


def make_nodes(
    pieces: Sequence[Piece], names: Names, noise: Sequence[Noise], windows: Sequence[Windows] | None = None
) -> Nodes:
    """The samples of all pieces as nodes, cut into segments of a few periods of the fastest state.

    `windows` (states,) of each piece: those that smooth it, where they are known. Of very long records a part takes
    part.
    """
    motion: dict[str, list[tuple[Array, Array]]] = {}
    segments: list[Segment] = []
    begin = 0
    for number, piece in enumerate(pieces):
        own = SavitzkyGolay().windows(piece.t, piece.X) if windows is None else windows[number]
        fit = smooth(piece.t, piece.X, own)
        for i, name in enumerate(names.states):
            motion.setdefault(name, []).append((fit.values[:, i], fit.first[:, i]))
        for i, name in enumerate(names.velocities):
            motion.setdefault(name, []).append((fit.first[:, i], fit.second[:, i]))
        for i, name in enumerate(names.inputs):
            motion.setdefault(name, []).append((piece.U[:, i], np.gradient(piece.U[:, i], piece.t)))
        segments += [Segment(begin + a, begin + b) for a, b in _cut(fit.values)]
        begin += len(piece)
    whole = {
        name: (np.concatenate([one[0] for one in parts]), np.concatenate([one[1] for one in parts]))
        for name, parts in motion.items()
    }
    samples = np.concatenate([piece.X for piece in pieces])
    errors = np.stack([one.errors(whole[name][0]) for name, one in zip(names.states, noise, strict=True)], axis=1)
    t = np.concatenate([piece.t for piece in pieces])
    parts = _bounded(segments)
    rows = np.concatenate(parts)
    ends = np.cumsum([0, *map(len, parts)]).tolist()
    motion_there = {name: (values[rows], slopes[rows]) for name, (values, slopes) in whole.items()}
    kept = tuple(Segment(a, b) for a, b in itertools.pairwise(ends))
    return Nodes(t[rows], samples[rows], errors[rows], names.states, motion_there, kept)


def _bounded(segments: Sequence[Segment]) -> list[npt.NDArray[np.int64]]:
    """The rows of each segment that take part: of many segments every k-th, of long ones every k-th row."""
    total = sum(one.end - one.first for one in segments)
    several = math.ceil(total / _MOST_NODES)
    kept = segments[:: min(several, len(segments))]
    rows = sum(one.end - one.first for one in kept)
    stride = math.ceil(rows / _MOST_NODES)
    return [np.arange(one.first, one.end, stride) for one in kept]


def _cut(values: Array) -> Iterator[tuple[int, int]]:
    """Where segments of a piece with these smoothed states (n, states) begin and end."""
    centred = values - values.mean(axis=0)
    crossings = int((np.diff(np.signbit(centred), axis=0) != 0).sum(axis=0).max())
    count = max(1, min(math.ceil(crossings / _CROSSINGS), len(values) // _MIN_SEGMENT))
    places = np.linspace(0, len(values), count + 1).round().astype(int).tolist()
    return itertools.pairwise(places)


@dataclass
class _Judge:
    """Fits and describes laws of one system's samples; each form is fitted once."""

    nodes: Nodes
    noise: Sequence[Noise]
    names: Names
    budget: Budget  # of all fits
    priors: Sequence[Prior]  # what the user knows of the law of each state
    judged: dict[tuple[int, Expression], tuple[float, Expression] | None] = field(default_factory=dict)
    best: dict[int, float] = field(default_factory=dict)  # bits of the best law of each equation alone
    least: dict[int, float] = field(default_factory=dict)  # chi-square of the law of each equation that leaves least
    share: dict[int, float] = field(default_factory=dict)  # part of a state's samples that are independent, if below 1
    policies: dict[int, Policy] = field(default_factory=dict)

    def alone(self, state: int, law: Expression) -> tuple[float, Expression] | None:
        """Chi-square and fitted law of one equation, the other states as measured; None: it cannot be followed."""
        key = (state, form_of(law))
        if key not in self.judged:
            shot = self.shot([state], [law], self._hopeless([state], [law], self.best.get(state, math.inf)))
            self.judged[key] = None
            if shot is not None:
                fitted = shot.laws[-1]
                chi_square = float(shot.chi_square[0])
                near = self.bits(state, chi_square, fitted) <= self.best.get(state, math.inf) + _NEAR_BITS
                if not near or self.is_sane(state, fitted):
                    self.judged[key] = (chi_square, fitted)
                    self._learn_share(state, chi_square, shot)
                    bits = self.bits(state, chi_square, fitted)
                    self.best[state] = min(bits, self.best.get(state, math.inf))
        return self.judged[key]

    def _learn_share(self, state: int, chi_square: float, shot: Shot) -> None:
        """How many samples are independent, from what the law leaves, if it leaves less than all before it."""
        if chi_square >= self.least.get(state, math.inf):
            return
        self.least[state] = chi_square
        share = 1.0
        if chi_square > _MORE_THAN_NOISE * len(self.nodes.t):
            left = (self.nodes.samples[:, state] - shot.states[0]) / self.nodes.errors[:, state]
            share = independent_share(left)
        if share != self.share.get(state, 1.0):
            self.share[state] = share
            known = [one for (of, _), one in self.judged.items() if of == state and one is not None]
            self.best[state] = min((self.bits(state, *one) for one in known), default=math.inf)

    def independent(self, states: Sequence[int]) -> float:
        """How many samples of these states are independent."""
        return len(self.nodes.t) * sum(self.share.get(state, 1.0) for state in states)

    def is_sane(self, state: int, law: Expression) -> bool:
        """Whether a scientist would print the law: no pole among the data, no limit in disguise (`symenum.sanity`)."""
        if state not in self.policies:
            moving = (self.names.velocities or self.names.states)[state]
            y = torch.from_numpy(np.array(self.nodes.motion[moving][1]))
            columns = {name: torch.from_numpy(np.array(values)) for name, (values, _) in self.nodes.motion.items()}
            target = Target(y, torch.full((len(y),), 1 / len(y), dtype=torch.float64))
            self.policies[state] = Policy.of(columns, target, sanity="on")
        return self.policies[state].reason(law) is None

    def shorter(self, state: int, law: Expression) -> list[Expression]:
        """The law without one of its parts or functions, in all ways that the user's knowledge allows."""
        prior = self.priors[state]
        found = dict.fromkeys([*with_one_less(law), *without_functions(law)])
        return [one for one in found if not prior.active or prior.allows(one)]

    def are_sane(self, laws: Sequence[Expression]) -> bool:
        """Whether all laws of a system are."""
        return all(self.is_sane(state, law) for state, law in enumerate(laws))

    def shot(self, states: Sequence[int], laws: Sequence[Expression], hopeless: float = math.inf) -> Shot | None:
        """The laws of some states fitted to their samples; `hopeless` as in `follow`."""
        return follow(self.followed(states, laws), self.nodes, hopeless, self.budget)

    def _hopeless(self, states: Sequence[int], laws: Sequence[Expression], bits: float) -> float:
        """The sum of squares from which on laws are _HOPELESS bits behind others of so many bits."""
        n = len(self.nodes.t)
        written = sum(description_length(law, n) for law in laws)
        allowed = 2 * (bits + _HOPELESS - written) / self.independent(states)
        least = sum(self.noise[state].numerical for state in states)
        return n * max(least, len(states) * 2.0**allowed) if allowed < _LARGEST_POWER else math.inf

    def followed(self, states: Sequence[int], laws: Sequence[Expression]) -> Followed:
        """The laws of some states, for order 2 with the velocities as states of their own."""
        names = tuple(self.names.states[i] for i in states)
        if not self.names.velocities:
            return Followed(names, tuple(laws))
        velocities = tuple(self.names.velocities[i] for i in states)
        moving = tuple(Variable(name) for name in velocities)
        return Followed((*names, *velocities), (*moving, *laws))

    def unstable(self, laws: Sequence[Expression]) -> float:
        """Bits that a system pays for blowing up from points of the samples' box, over the time of a piece."""
        followed = self.followed(range(len(laws)), laws)
        random = stream(0, "starts in the box of the samples")
        starts = {name: random.choice(values, _STARTS) for name, (values, _) in self.nodes.motion.items()}
        steps = np.diff(self.nodes.t)
        step = float(np.median(steps[steps > 0]))
        size = np.array([float(np.abs(self.nodes.motion[name][0]).max()) for name in followed.names])
        lost = blow_ups(followed, starts, step, min(len(self.nodes.t), _MAX_STEPS), size)
        return _BLOW_UP * lost

    def bits(self, state: int, chi_square: float, law: Expression) -> float:
        n, independent = len(self.nodes.t), self.independent([state])
        least = max(self.noise[state].numerical, _TINY)
        odd = _FREE_EXPONENT * count_free_exponents(law)
        return 0.5 * independent * math.log2(max(chi_square / n, least)) + description_length(law, n) + odd


def independent_share(left: Array) -> float:
    """Which part of the residuals (n,) tells something of its own: one of so many as repeat each other.

    They repeat each other for as long as their autocorrelation, summed until it first vanishes, says.
    """
    n = len(left)
    spectrum = np.abs(np.fft.rfft(left, 2 * n)) ** 2  # of twice the length: the ends do not meet
    products = np.fft.irfft(spectrum)[:n]
    if not products[0] > 0:
        return 1.0
    correlation = products / products[0]
    until = int(np.argmax(correlation <= 0)) or n
    return min(1.0, max(1 / (1 + 2 * float(np.sum(correlation[1:until]))), _LEAST_INDEPENDENT / n))


@dataclass(frozen=True)
class _Timer:
    """The time that the choice may take, from now on."""

    max_time: float | None
    stopping: Budget
    begin: float = field(default_factory=time.monotonic)

    def until(self, share: float) -> Budget:
        """A budget that is over when that share of the time is."""
        if self.max_time is None:
            return self.stopping
        left = self.max_time * share - (time.monotonic() - self.begin)
        return Budget(max(left, _MIN_SECONDS), stop=self.stopping.over)


@dataclass(frozen=True)
class _System:
    """Laws fitted together, and as they are written: with constants in few digits, which `bits` are about."""

    laws: tuple[Expression, ...]
    written: tuple[Expression, ...]
    bits: tuple[float, ...]
    shot: Shot
    shared: float = 0.0  # bits that terms which stand in several laws need not be written again
    unstable: float = 0.0  # bits

    @property
    def total(self) -> float:
        return sum(self.bits) - self.shared + self.unstable

    @property
    def complexity(self) -> int:
        return sum(law.complexity for law in self.written)


def choose_on_trajectories(
    pools: Sequence[Sequence[Candidate]],
    nodes: Nodes,
    noise: Sequence[Noise],
    names: Names,
    max_time: float | None,
    stopping: Budget,
    start: Sequence[Expression] | None = None,
    known: Sequence[Expression] | None = None,
    keep: Callable[[tuple[Expression, ...]], object] | None = None,
    priors: Sequence[Prior] | None = None,
) -> Chosen | None:
    """The system of laws with the shortest description; None where no system of them can be followed in time.

    `pools`: for each state candidates, the most promising first. `max_time` in seconds; the budget `stopping` ends all.
    `start`: laws that are tried together before all others, such as those of another rule. `known`: laws that an
    earlier choice had come to before its time was over; they are taken if this one ends early with worse ones, and do
    not lead it, so that a choice with enough time is that of one without a pause. `keep` gets the laws of each better
    system. `priors`: what the user knows of the law of each state.
    """
    if len(names.states) > MOST_STATES:
        return None
    timer = _Timer(max_time, stopping)
    judge = _Judge(nodes, noise, names, timer.until(1.0), priors or [NO_PRIOR] * len(pools))
    most = max(_LEAST_FORMS, _FORM_NODES // len(nodes.t))
    laws = [[candidate.expression for candidate in pool[:most]] for pool in pools]
    best = None
    if start is not None:
        laws = [[law, *others] for law, others in zip(start, laws, strict=True)]
        best = _system_with_price(judge, start)
        if best is not None and keep is not None:
            keep(best.written)
    seen: list[_System] = []
    for shares in _SHARES if len(pools) > 1 else _SHARES[:1]:
        if best is not None:
            # Smoothed states are wrong by a part of their noise; those of a fitted system by far less.
            judge = replace(judge, nodes=_along(nodes, names, best), judged={}, best={}, least={}, policies={})
        before = dict(judge.share)
        ranked = _rank_all(judge, laws, timer, *shares[:2])
        if best is not None and judge.share != before:  # its bits were counted by other shares
            seen.clear()
            best = _system_with_price(judge, best.laws) or best
        if all(ranked):
            best = _best_system(judge, ranked, best, timer.until(shares[2]), seen)
        if best is not None and keep is not None:
            keep(best.written)
        if best is None or timer.until(1.0).over():
            break
        laws = [[law for _, law in new[:_RANKED_AGAIN]] or old for new, old in zip(ranked, laws, strict=True)]
    if known is not None and timer.until(1.0).over():
        # There is no time left to fit it, but for this one system that was fitted before.
        earlier = _system_with_price(replace(judge, budget=Budget()), known)
        if earlier is not None and (best is None or earlier.total < best.total):
            best = earlier
    return None if best is None else _chosen(judge, best, seen)


def _chosen(judge: _Judge, best: _System, seen: Sequence[_System]) -> Chosen:
    """The result: the best system, the errors of its constants, and what else was tried for each equation."""
    n, shot = len(judge.nodes.t), best.shot
    chi_square = tuple(float(value) / n for value in shot.chi_square)
    independent = judge.independent(range(len(best.laws)))
    scale = math.sqrt(max(sum(chi_square) / len(chi_square), _TINY) * n * len(chi_square) / independent)
    errors = (shot.standard_errors() * scale).tolist()
    of_laws = []
    for law in best.laws:
        count = len(free_constants(law, integers=False))
        of_laws.append(tuple(errors[:count]))
        errors = errors[count:]
    others = tuple(_others(best, seen, i) for i in range(len(best.laws)))
    motion = shot.states[: len(best.laws)]
    return Chosen(best.written, best.laws, tuple(of_laws), best.bits, chi_square, motion, others)


def _others(best: _System, seen: Sequence[_System], i: int) -> tuple[tuple[Expression, float], ...]:
    """The law of equation i, and those of systems that differ in it alone, with the bits that they add."""
    forms = list(map(form_as_printed, best.written))  # a reader sees no law twice, whatever the order of its terms
    found = {forms[i]: (best.written[i], 0.0)}
    for system in seen:
        own = list(map(form_as_printed, system.written))
        alone = own[:i] == forms[:i] and own[i + 1 :] == forms[i + 1 :]
        added = system.total - best.total
        # The chosen law stays as it is written, whatever digits other fits of its form have.
        if alone and own[i] != forms[i] and (own[i] not in found or added < found[own[i]][1]):
            found[own[i]] = (system.written[i], added)
    return tuple(sorted(found.values(), key=lambda one: one[1]))


def _written(judge: _Judge, laws: Sequence[Expression], shot: Shot) -> tuple[tuple[Expression, ...], float, float]:
    """The laws with constants in few digits, or as nice numbers, where that makes the whole shorter to describe.

    A coefficient may also be that of the same term in another law, up to its sign: the term is then written once.
    Second, by what factor the sum of squares grows; third, the bits that terms written once save. How much worse the
    fit becomes follows from the normal equations of the constants, without another fit.
    """
    n = len(judge.nodes.t)
    before = total = max(float(np.sum(shot.chi_square)), _TINY)
    samples = n * len(laws)
    least = max(float(np.mean([one.numerical for one in judge.noise])), _TINY)

    independent = judge.independent(range(len(laws)))

    def residual_bits(squares: float) -> float:
        return 0.5 * independent * math.log2(max(squares / samples, least))

    errors = shot.standard_errors() * math.sqrt(max(total / samples, least) * samples / independent)
    values = np.array(shot.constants)
    free = list(range(len(values)))

    for j in np.argsort(-errors / np.maximum(np.abs(values), _TINY)).tolist():
        value, at = float(values[j]), free.index(j)
        # Fixing one constant away from its best value moves the others, which are still free, along.
        column = shot.covariance(free)[:, at]
        if not column[at] > 0:
            continue
        best = (residual_bits(total) + constant_bits(value, n), value, total)
        for number in _rounder_numbers(value, float(errors[j])):
            worse = total + (number - value) ** 2 / column[at]
            best = min(best, (residual_bits(worse) + constant_bits(number, n), number, worse))
        values[free] += column / column[at] * (best[1] - value)
        if best[1] != value:
            values[j] = best[1]
            total = best[2]
            free.remove(j)
    shared = 0.0
    if len(laws) > 1:
        total, shared = _tie(laws, shot, values, free, total, residual_bits)
    rounded = values.tolist()
    written = []
    for law in laws:
        count = len(free_constants(law, integers=False))
        written.append(simplify(with_leaves(law, [_leaf(value) for value in rounded[:count]], integers=False)))
        rounded = rounded[count:]
    return tuple(written), total / before, shared


def _tie(
    laws: Sequence[Expression],
    shot: Shot,
    values: Array,
    free: list[int],
    total: float,
    residual_bits: Callable[[float], float],
) -> tuple[float, float]:
    """Make coefficients of one term in two laws one number where that is shorter to describe.

    `values` (constants,) and `free`, those that have no digits yet, change in place; `total`: the sum of squares.
    Gives the sum of squares then, and the bits of the terms that need not be written again.
    """
    n = len(shot.states[0])
    leaves = {getattr(node, "name", None) or type(node).__name__ for law in laws for node in walk(law)}
    symbol = math.log2(1 + len(leaves))  # bits of one symbol, as in `description_length`
    saved_in_all = 0.0
    for tie in ties(laws):
        sign = 1.0 if values[tie.first] * values[tie.second] > 0 else -1.0
        apart = float(values[tie.first] - sign * values[tie.second])
        direction = np.zeros(len(free))
        for constant, slope in ((tie.first, 1.0), (tie.second, -sign)):
            if constant in free:
                direction[free.index(constant)] = slope
        along = shot.covariance(free) @ direction if free else direction
        way = float(direction @ along)
        if apart != 0 and not way > 0:
            continue  # both have their digits, and these differ
        worse = total + (apart**2 / way if apart != 0 else 0.0)
        saved = constant_bits(float(values[tie.first]), n) + (symbols(tie.part) - 1) * symbol
        if residual_bits(worse) - residual_bits(total) >= saved:
            continue
        if apart != 0:
            values[free] -= along * (apart / way)
            values[tie.first] = sign * values[tie.second]  # to the last digit
        free[:] = [constant for constant in free if constant not in (tie.first, tie.second)]
        total = worse
        saved_in_all += saved
    return total, saved_in_all


def _rounder_numbers(value: float, error: float) -> list[float]:
    """The value in one to six significant digits, and the nice number within its error, where there is one."""
    nice = nice_number(value, error) if math.isfinite(error) else None
    return [float(f"{value:.{digits}g}") for digits in _DIGITS] + ([] if nice is None else [nice.value])


def without_functions(law: Expression) -> list[Expression]:
    """The law with the argument in the place of one of its functions that look like it near zero, or of all of them.

    On a short way a sine is a straight line, and so is a hyperbolic tangent: noise lets any of them fit a little better
    than the argument itself, which people would write.

    >>> from symenum.expressions import parse
    >>> print(*without_functions(parse("2*x*sin(y) - tanh(x) + cos(x)")), sep="; ")
    2*x*y - tanh(x) + cos(x); 2*x*sin(y) - x + cos(x); 2*x*y - x + cos(x)
    """

    def visit(node: Expression, below: tuple[list[Expression], ...]) -> list[Expression]:
        """The variants of the node: with one function left out, then, if there are several, without any."""
        if not isinstance(node, Apply):
            return []
        found = [
            apply(node.operator, *node.operands[:at], one, *node.operands[at + 1 :])
            for at, variants in enumerate(below)
            for one in variants
        ]
        return [*found, node.operands[0]] if _is_near_its_argument(node.operator) else found

    bare = fold(law, _bare)
    found = dict.fromkeys(simplify(one) for one in [*fold(law, visit), bare] if one != law)
    return [one for one in found if variables(one)]


def _bare(node: Expression, operands: tuple[Expression, ...]) -> Expression:
    """The node without its function, if it is one that looks like its argument near zero."""
    if not isinstance(node, Apply):
        return node
    return operands[0] if _is_near_its_argument(node.operator) else apply(node.operator, *operands)


@lru_cache(maxsize=256)  # of a few operators, asked for each node of many laws
def _is_near_its_argument(operator: Operator) -> bool:
    """Whether a function of one operand is odd and smooth at 0, a straight line there; or equal to it above 0."""
    if operator.role is Role.MAGNITUDE:
        return True  # of what has one sign
    if operator.arity != 1 or operator.traits.parity != -1 or operator.role is Role.NEGATION:
        return False
    with np.errstate(all="ignore"):
        slopes = [float(operator.function(torch.tensor([h], dtype=torch.float64))[0]) / h for h in _NEAR_ZERO]
    return all(math.isfinite(slope) and slope != 0 for slope in slopes) and math.isclose(*slopes, rel_tol=_STRAIGHT)


def count_free_exponents(law: Expression) -> int:
    """How many powers of the law have an exponent with more digits than people write.

    >>> from symenum.expressions import parse
    >>> count_free_exponents(parse("x**2 + y**1.5 + x**1.07312345"))
    1
    """
    exponents = [node.operands[1] for node in walk(law) if isinstance(node, Apply) and node.operator.role is Role.POWER]
    numbers = [one.value for one in exponents if isinstance(one, Constant) and one.name is None]
    return sum(nice_number(float(value), 0.0) is None for value in numbers)


def _leaf(value: float) -> Constant:
    return Constant(int(value)) if value.is_integer() and abs(value) < _LARGEST_WHOLE else Constant(value)


def _along(nodes: Nodes, names: Names, system: _System) -> Nodes:
    """The nodes with the fitted motion of a system in place of the smoothed samples, where it fits about as well."""
    fitted = dict(zip((*names.states, *names.velocities), system.shot.states, strict=True))
    for i, name in enumerate(names.states):
        smoothed = np.square((nodes.samples[:, i] - nodes.motion[name][0]) / nodes.errors[:, i])
        if system.shot.chi_square[i] > _AS_GOOD * float(smoothed.sum()) + _SLACK * len(nodes.t):
            for other in (name, *names.velocities[i : i + 1]):
                del fitted[other]
    columns = {name: fitted.get(name, values) for name, (values, _) in nodes.motion.items()}
    rates = dict(zip(names.states, (np.asarray(evaluate(law, columns)) for law in system.laws), strict=True))
    if names.velocities:
        pairs = list(zip(names.states, names.velocities, strict=True))
        rates = {name: columns[moving] for name, moving in pairs} | {moving: rates[name] for name, moving in pairs}
    n = len(nodes.t)
    motion = {
        name: (fitted[name], np.broadcast_to(rates[name], n)) if name in fitted else values
        for name, values in nodes.motion.items()
    }
    return replace(nodes, motion=motion)


def _rank_all(
    judge: _Judge, laws: Sequence[Sequence[Expression]], timer: _Timer, begin: float, end: float
) -> list[list[tuple[float, Expression]]]:
    """The laws of each equation by their bits; the equations share the time between two shares of it."""
    step = (end - begin) / len(laws)
    return [_rank_alone(judge, i, one, timer.until(begin + (i + 1) * step)) for i, one in enumerate(laws)]


def _rank_alone(
    judge: _Judge, state: int, laws: Sequence[Expression], budget: Budget
) -> list[tuple[float, Expression]]:
    """The laws of one equation by their bits, those that arise by leaving out a part among them."""
    found: list[tuple[float, Expression]] = []  # chi-square and law

    def by_bits() -> list[tuple[float, Expression]]:
        return sorted(((judge.bits(state, *one), one[1]) for one in found), key=lambda one: one[0])

    def add(law: Expression) -> None:
        known = (state, form_of(law)) in judge.judged
        result = judge.alone(state, law)
        if result is not None and not known:
            found.append(result)

    for law in laws:
        if judge.budget.over() or (found and budget.over()):
            break
        add(law)
    for _ in range(_ROUNDS):
        before = len(judge.judged)
        for _, law in by_bits()[:_SHORTENED]:
            for shorter in judge.shorter(state, law):
                if not budget.over():
                    add(shorter)
        if len(judge.judged) == before:
            break
    return by_bits()


def _best_system(
    judge: _Judge,
    ranked: Sequence[Sequence[tuple[float, Expression]]],
    start: _System | None,
    budget: Budget,
    seen: list[_System],
) -> _System | None:
    """From a system, or from the best laws of all equations, by steps while the whole is described in fewer bits.

    A step exchanges the law of one equation for one of its best others, or leaves out a part of it. All systems that
    could be followed are added to `seen`.
    """
    best = start
    first = _first_system(judge, ranked)
    if best is None or (first is not None and first.total < best.total):
        best = first
    if best is None:
        return best
    tried = {tuple(map(form_of, best.laws))}
    for _ in range(_ROUNDS):
        before = best
        for i, laws in enumerate(ranked):
            near = [law for bits, law in laws[:_TRIED] if bits <= laws[0][0] + _NEAR_BITS]
            best = _best_change(judge, best, i, near, tried, budget, seen)
            longer = None
            while longer is not best:
                longer = best
                best = _best_change(judge, longer, i, judge.shorter(i, longer.laws[i]), tried, budget, seen)
        if best is before or budget.over():
            break
    return best


def _best_change(
    judge: _Judge,
    best: _System,
    i: int,
    laws: Sequence[Expression],
    tried: set[tuple[Expression, ...]],
    budget: Budget,
    seen: list[_System],
) -> _System:
    """The system with the best of these laws for equation i; the same one where none is better."""
    start = best
    for law in laws:
        if budget.over():
            break
        system = (*start.laws[:i], law, *start.laws[i + 1 :])
        forms = tuple(map(form_of, system))
        if forms in tried:
            continue
        tried.add(forms)
        other = _system(judge, system)
        if other is None or not judge.are_sane(other.laws):
            continue
        if other.total < best.total + _NEAR_BITS:
            other = replace(other, unstable=judge.unstable(other.laws))
        seen.append(other)
        margin = _MARGIN if other.complexity >= best.complexity else 0.0
        if other.total < best.total - margin:
            best = other
    return best


def _first_system(judge: _Judge, ranked: Sequence[Sequence[tuple[float, Expression]]]) -> _System | None:
    """The system of the best laws of all equations, or of the next ones where that cannot be followed."""
    depth = min(_TRIED, max(map(len, ranked)))
    for at in range(depth):
        if judge.budget.over():
            break
        system = _system_with_price(judge, [laws[min(at, len(laws) - 1)][1] for laws in ranked])
        if system is not None:
            return system
    return None


def _system_with_price(judge: _Judge, laws: Sequence[Expression]) -> _System | None:
    """The laws fitted together, with what they pay where they blow up; None where they cannot be followed."""
    system = _system(judge, laws)
    return None if system is None else replace(system, unstable=judge.unstable(system.laws))


def _system(judge: _Judge, laws: Sequence[Expression]) -> _System | None:
    shot = judge.shot(range(len(laws)), laws)
    if shot is None:
        return None
    fitted = shot.laws[-len(laws) :]
    written, growth, shared = _written(judge, fitted, shot)
    bits = tuple(judge.bits(i, growth * float(shot.chi_square[i]), law) for i, law in enumerate(written))
    return _System(fitted, written, bits, replace(shot, laws=fitted), shared)
