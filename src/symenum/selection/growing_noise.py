"""Noise that grows with the values of a law, as that of most instruments does: 5% of a large value is much.

The standard deviation of a row's noise is then proportional to √(b²·m² + f²), where f is the value of the law, m the
root mean square of its values, and b the base: the part of the noise that is there at a value of zero, too. With noise
of one size for all rows, small values say little, and a law may miss them by far; with growing noise they count as much
as large ones. A law is compared with the constants that suit the noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from symenum.core.budget import NO_LIMIT, Budget
from symenum.core.target import Target, Training
from symenum.expressions import Expression, evaluate
from symenum.fitting.losses import Loss
from symenum.selection.evidence import INDISTINCT, evidence, law_price, noise_surprise, rows_to_weigh_on
from symenum.selection.influence import refitted, settled

__all__ = [
    "FittedLaw",
    "GrowingNoise",
    "NoiseAround",
    "best_with_growing_noise",
    "fitted_to_growing_noise",
    "judged_if_noise_grows",
    "noise_around",
    "noise_may_grow",
]

# From noise in proportion to the values, over more than two decades, to noise that is three times as large at typical
# values as at zero; half a decade apart, which moves a likelihood by little. At larger bases the weights hardly matter,
# and what a poor law leaves of y looks like such noise.
_BASES = (0.003, 0.01, 0.03, 0.1, 0.3)
# Nats for each row: noise in proportion to the values brings 0.3 where these go over one decade, 0.05 over a factor of
# two, where weights make no difference.
_LEAST_GAIN = 0.1
# Of the values at most: more than that is no noise of instruments, but what a law has missed. On tables of PMLB and of
# public data the noise would be 17 to 60%, and the laws that it chooses predict held-out rows worse: in a search of 8 s
# R² 0.72 instead of 0.86 (autoPrice), 0.64 instead of 0.81 (sleuth_case1202), 0.92 instead of 0.95 (emp), 0.52 instead
# of 0.59 (accel).
_LARGEST_NOISE = 0.15
_FEWEST_ROWS = 15  # that can tell how large the noise is at small values and at large ones: five for each constant
_LIKELY = 2  # bases that are looked at with the tails of Student's t, which take six times as long
_ROWS = 2000  # rows that are looked at, drawn at random: fits of sixty laws take a second
_ROUNDS = 3  # of fitting constants by the weights of the law's values, and taking these values anew
_HOPELESS = 20.0  # nats behind the best law after a round: the next round brings a few


@dataclass(frozen=True)
class GrowingNoise:
    """Noise that grows with the values of a law; `base` as above."""

    base: float

    def variances(self, values: Tensor) -> Tensor:
        """The variance of each row's noise, up to a common factor, for values (rows,) of a law; all above 0."""
        squares = values.square()
        mean = float(squares.mean())
        return self.base**2 * (mean if mean > 0 else 1.0) + squares

    def around(self, law: Expression, training: Training) -> NoiseAround:
        """The same as that of a law on these rows."""
        return NoiseAround(law, self.base * (float(_values(law, training).square().mean().sqrt()) or 1.0))


@dataclass(frozen=True)
class FittedLaw:
    """A law, the evidence for it if the noise grows, the noise that suits it best, and its size beside the values."""

    law: Expression
    nats: float
    noise: GrowingNoise
    size: float


def noise_may_grow(training: Training, loss: Loss) -> bool:
    """Whether the size of the noise is an open question that the rows can answer.

    No loss and no weights of the rows have answered it, and there are fifteen rows at least.
    """
    weight = training.target.weight
    return loss.is_squared and len(weight) >= _FEWEST_ROWS and bool((weight == weight[0]).all())


def judged_if_noise_grows(laws: Sequence[Expression], training: Training, floor: float) -> list[FittedLaw] | None:
    """The laws as they are, judged with growing noise; None: the rows do not say that it grows.

    They do if the best law is far more probable than the best one with noise of one size (20 times at least, and e^0.1
    times for each row), and leaves noise of at most 15% of the values. The base of the noise is one more number that
    the rows must tell, and is paid for as such. `floor`: losses up to it are zero up to rounding.
    """
    part, rows = rows_to_weigh_on(training, _ROWS), training.target.rows
    found = _judged(laws, part, floor, rows)
    return _settled(found, part, floor, rows) if _grows(found, laws, training, floor) else None


def fitted_to_growing_noise(
    laws: Sequence[Expression], training: Training, floor: float, budget: Budget = NO_LIMIT
) -> list[FittedLaw]:
    """Each law with the constants of the highest evidence, near those that it has, if the noise grows.

    The evidence is that on the rows which do not decide the constants of the best law alone (`influence`).
    """
    part, rows = rows_to_weigh_on(training, _ROWS), training.target.rows
    found = _fitted(laws, part, floor, rows, budget)
    return _settled(found, part, floor, rows) if found else []


def _fitted(laws: Sequence[Expression], part: Training, floor: float, rows: int, budget: Budget) -> list[FittedLaw]:
    """The same by the evidence on all of `part`, some of all `rows`."""
    best = _judged(laws, part, floor, rows)
    places = [i for i, one in enumerate(best) if one.nats > -math.inf]
    for _ in range(_ROUNDS):
        if not places or budget.over():
            break
        laws = _refitted([best[i] for i in places], part, budget)
        for i, new in zip(places, _judged(laws, part, floor, rows), strict=True):
            best[i] = max(best[i], new, key=lambda one: one.nats)
        top = max(one.nats for one in best)
        places = [i for i in places if best[i].nats > top - _HOPELESS]
    return best


def best_with_growing_noise(
    laws: Sequence[Expression], training: Training, floor: float, budget: Budget = NO_LIMIT
) -> FittedLaw | None:
    """The law of the highest evidence, with its constants, if the noise grows; None: the rows do not say so."""
    part, rows = rows_to_weigh_on(training, _ROWS), training.target.rows
    found = _fitted(laws, part, floor, rows, budget)
    return max(found, key=lambda one: one.nats) if _grows(found, laws, training, floor) else None


@dataclass(frozen=True)
class NoiseAround:
    """The noise around a law: of the size √(b²·m² + f²) at a value f, up to a common factor; `least` is b·m."""

    law: Expression
    least: float

    def sizes(self, columns: Mapping[str, Tensor]) -> Tensor:
        """The standard deviation of the noise at points (points,), up to a common factor; columns by name."""
        return (self.least**2 + evaluate(self.law, columns).to(torch.float64).square()).sqrt()

    def weigh(self, training: Training) -> Training:
        """The rows, each with the weight that its noise leaves it."""
        weight = self.sizes(training.columns).expand(training.target.rows).square().reciprocal()
        return Training(training.columns, Target(training.target.y, weight / weight.sum()))


def noise_around(law: Expression, laws: Sequence[Expression], training: Training, floor: float) -> NoiseAround | None:
    """The noise around a law, one of these laws, if it grows; None: the rows do not say that it does."""
    found = judged_if_noise_grows(laws, training, floor)
    if found is None:
        return None
    noise = next(one.noise for one in found if one.law == law)
    return noise.around(law, training)


def _grows(found: Sequence[FittedLaw], laws: Sequence[Expression], training: Training, floor: float) -> bool:
    best = max(found, key=lambda one: one.nats)
    if best.size > _LARGEST_NOISE:
        return False
    with_one_size = max(evidence(laws, training, floor, most_rows=_ROWS))
    return best.nats > with_one_size + max(INDISTINCT, _LEAST_GAIN * training.target.rows)


def _settled(found: list[FittedLaw], part: Training, floor: float, rows: int) -> list[FittedLaw]:
    """The laws, as they are, judged by what they are on those of the rows that do not decide the best one alone."""

    def best(judged: list[FittedLaw]) -> tuple[Expression, Training]:
        first = max(judged, key=lambda one: one.nats)
        return first.law, first.noise.around(first.law, part).weigh(part)

    def judged_on(some: Training) -> list[FittedLaw]:
        judged = _judged(_refitted(found, some), some, floor, rows)
        return [replace(new, law=old.law) for new, old in zip(judged, found, strict=True)]

    return settled(found, part, best, judged_on)


def _refitted(laws: Sequence[FittedLaw], part: Training, budget: Budget = NO_LIMIT) -> list[Expression]:
    """The laws with constants that suit the rows, weighed by the noise around each."""
    weights = torch.stack([one.noise.around(one.law, part).weigh(part).target.weight for one in laws])
    return refitted([one.law for one in laws], part, weights, budget)


def _judged(laws: Sequence[Expression], part: Training, floor: float, rows: int) -> list[FittedLaw]:
    """The laws on a part of all `rows`."""
    found = []
    for law in laws:
        values = _values(law, part)
        squares = (values - part.target.y).square()
        best = FittedLaw(law, -math.inf, GrowingNoise(_BASES[-1]), math.inf)
        if bool(torch.isfinite(squares).all()) and bool(torch.isfinite(values.square()).all()):
            price = law_price(law, rows) + 0.5 * math.log(max(2, rows))
            for noise in _likely_noises(values, squares):
                variances = noise.variances(values)
                surprise = noise_surprise((squares / variances).numpy(), floor / float(variances.mean()))
                likelihood = -surprise - 0.5 * float(variances.log().sum())
                nats = likelihood * rows / part.target.rows - price
                size = float((squares / variances).mean().sqrt())
                best = max(best, FittedLaw(law, nats, noise, size), key=lambda one: one.nats)
        found.append(best)
    return found


def _likely_noises(values: Tensor, squares: Tensor) -> list[GrowingNoise]:
    """The two noises that suit values and squared residuals (rows,) best if the tails are normal: told faster."""
    noises = [GrowingNoise(base) for base in _BASES]
    variances = torch.stack([noise.variances(values) for noise in noises])
    likelihoods = -((squares / variances).mean(dim=1).log() + variances.log().mean(dim=1))
    return [noises[i] for i in likelihoods.topk(_LIKELY).indices.tolist()]


def _values(law: Expression, training: Training) -> Tensor:
    """The values (rows,) of a law, float64."""
    values: Tensor = evaluate(law, training.columns).to(torch.float64)
    return values.expand(training.target.rows)
