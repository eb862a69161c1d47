"""What a law is judged by: the mean of a function of the rows' residuals, or any callable of the user's.

A scan is least squares whatever the loss is; the losses rank what a scan finds and fit its constants
(`fit_under_loss`). Each loss but a callable knows the weights under which least squares has the same minimum
(iteratively reweighted least squares).
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol

import torch
from torch import Tensor

from symenum.core.target import Target
from symenum.core.words import did_you_mean

__all__ = [
    "LOSSES",
    "Absolute",
    "Custom",
    "Huber",
    "LogCosh",
    "Loss",
    "Relative",
    "RowLoss",
    "Squared",
    "check_loss",
    "make_loss",
    "typical_size",
]

_MAD_TO_SIGMA = 1.4826  # standard deviation of a normal distribution, in units of its median absolute deviation
_TINY = 1e-300  # the least size of a residual in a quotient: no division by zero where y and all residuals are 0
# Below these residuals, in units of the scale, the limit r → 0 is exact to rounding, and the formula loses digits.
_LOG_COSH_LIMIT = 1e-4  # log cosh(r) is r²/2 up to r⁴/12
_TANH_LIMIT = 1e-8  # tanh(r)/r is 1 up to r²/3
# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
# Part of the typical deviation of y: residuals beyond it are outliers to Huber's loss and log-cosh. An outlier pulls at
# the law as a residual of that size would, so it must be small; where noise is larger, the loss is nearly the mean
# absolute error.
_BEND = 0.02
_SHARPNESS = 1e-2  # part of the median residual: smaller ones have no larger weight in the mean absolute error


class Loss(Protocol):
    """What every part of the program asks of a loss. y, predictions and weights are (rows,) float64 on the CPU.

    `robust`: a few outliers do not decide. `is_squared`: it is the mean square error, which scans minimise already.
    """

    @property
    def name(self) -> str: ...
    @property
    def robust(self) -> bool: ...
    @property
    def is_squared(self) -> bool: ...

    def check(self, y: Tensor) -> None:
        """Refuse (ValueError) a target (rows,) that the loss cannot judge."""
        ...

    def rows(self, y: Tensor, prediction: Tensor) -> Tensor | None:
        """The loss of each row (rows,); None where only all rows together have one."""
        ...

    def total(self, y: Tensor, prediction: Tensor, weight: Tensor) -> float:
        """The loss on rows whose weights sum to 1; inf where it is not finite."""
        ...

    def weights(self, y: Tensor, prediction: Tensor) -> Tensor | None:
        """Factors (rows,) on the weights that make least squares fall as the loss does; None where not known."""
        ...

    def row_weights(self, y: Tensor) -> Tensor | None:
        """Factors (rows,) with which least squares is the loss, whatever the prediction; None: no such, or all 1."""
        ...


class RowLoss(ABC):
    """A loss that is a weighted mean over rows: a class of your own needs `name` and `rows`, and may say more.

    Without `weights`, constants are fitted under the loss by the simplex method, which is slower.
    """

    robust: bool = False
    is_squared: bool = False

    def check(self, y: Tensor) -> None:  # noqa: B027 (a loss of your own need not have one)
        """Any target will do."""

    @abstractmethod
    def rows(self, y: Tensor, prediction: Tensor) -> Tensor:
        """The loss of each row (rows,)."""

    def total(self, y: Tensor, prediction: Tensor, weight: Tensor) -> float:
        loss = float((self.rows(y, prediction) * weight).sum())
        return loss if loss < math.inf else math.inf

    def weights(self, y: Tensor, prediction: Tensor) -> Tensor | None:
        return None

    def row_weights(self, y: Tensor) -> Tensor | None:
        return None


@dataclass(frozen=True)
class Squared(RowLoss):
    """The mean square error."""

    name: str = "mse"
    is_squared: bool = True

    def rows(self, y: Tensor, prediction: Tensor) -> Tensor:
        return (prediction - y).square()

    def weights(self, y: Tensor, prediction: Tensor) -> Tensor:
        return torch.ones_like(y)


@dataclass(frozen=True)
class Absolute(RowLoss):
    """The mean absolute error."""

    name: str = "mae"
    robust: bool = True

    def rows(self, y: Tensor, prediction: Tensor) -> Tensor:
        return (prediction - y).abs()

    def weights(self, y: Tensor, prediction: Tensor) -> Tensor:
        size = (prediction - y).abs()
        least = max(_SHARPNESS * float(size.median()), torch.finfo(torch.float64).eps * float(y.abs().max()), _TINY)
        return least / size.clamp_min(least)


@dataclass(frozen=True)
class Huber(RowLoss):
    """r²/2 up to |r| = delta, and from there on a straight line."""

    delta: float
    name: str = "huber"
    robust: bool = True

    def __post_init__(self) -> None:
        _check_bend("delta", self.delta)

    def rows(self, y: Tensor, prediction: Tensor) -> Tensor:
        size = (prediction - y).abs()
        inside = size.clamp_max(self.delta)
        return inside * (size - inside / 2)

    def weights(self, y: Tensor, prediction: Tensor) -> Tensor:
        return self.delta / (prediction - y).abs().clamp_min(self.delta)


@dataclass(frozen=True)
class LogCosh(RowLoss):
    """scale²·log cosh(r/scale): r²/2 for small residuals, a straight line for large ones."""

    scale: float
    name: str = "log_cosh"
    robust: bool = True

    def __post_init__(self) -> None:
        _check_bend("scale", self.scale)

    def rows(self, y: Tensor, prediction: Tensor) -> Tensor:
        size = (prediction - y).abs() / self.scale
        # log cosh without the overflow of cosh; near 0 the subtraction of log 2 would cost its digits.
        far = size + torch.log1p(torch.exp(-2 * size)) - math.log(2)
        return self.scale**2 * torch.where(size < _LOG_COSH_LIMIT, size.square() / 2, far)

    def weights(self, y: Tensor, prediction: Tensor) -> Tensor:
        size = ((prediction - y).abs() / self.scale).clamp_min(_TANH_LIMIT)
        return torch.tanh(size) / size


@dataclass(frozen=True)
class Relative(RowLoss):
    """The mean square of (prediction - y)/y."""

    name: str = "relative"

    def check(self, y: Tensor) -> None:
        if bool((y == 0).any()):
            raise ValueError(
                "loss='relative' divides by y, and y is 0 in some rows: leave them out, or take another loss"
            )

    def rows(self, y: Tensor, prediction: Tensor) -> Tensor:
        return ((prediction - y) / y).square()

    def weights(self, y: Tensor, prediction: Tensor) -> Tensor:
        return self.row_weights(y)

    def row_weights(self, y: Tensor) -> Tensor:
        smallest = y.abs().min()
        return (smallest / y).square()


@dataclass(frozen=True)
class Custom:
    """A callable of the user's: (y, prediction) or (y, prediction, weights), arrays (rows,), gives one number."""

    function: Callable[..., Any]
    weighted: str | int | None = None  # how it takes the weights: a keyword, a place, or not at all
    name: str = "custom"
    robust: bool = False
    is_squared: bool = False

    def check(self, y: Tensor) -> None:
        """A finite number for y and its mean as prediction is all that can be asked of a callable."""
        weight = torch.full_like(y, 1 / len(y))
        if self.total(y, torch.full_like(y, float(y.mean())), weight) == math.inf:
            raise ValueError("loss must return a finite number: for y and its mean as prediction it does not")

    def rows(self, y: Tensor, prediction: Tensor) -> None:
        return None

    def total(self, y: Tensor, prediction: Tensor, weight: Tensor) -> float:
        if not bool(torch.isfinite(prediction).all()):
            return math.inf
        arguments = [y.clone().numpy(), prediction.clone().numpy()]  # copies: the callable may change them
        keywords = {}
        if isinstance(self.weighted, str):
            keywords[self.weighted] = weight.clone().numpy()
        elif self.weighted is not None:
            arguments.append(weight.clone().numpy())
        found = self.function(*arguments, **keywords)
        if isinstance(found, Tensor) or hasattr(found, "item"):
            if getattr(found, "ndim", 0) and found.shape != (1,):
                raise TypeError(f"loss must return one number for all rows, not an array of shape {found.shape}")
            found = found.item()
        if isinstance(found, bool) or not isinstance(found, Real):
            raise TypeError(f"loss must return a number, not {type(found).__name__}")
        return float(found) if math.isfinite(found) else math.inf

    def weights(self, y: Tensor, prediction: Tensor) -> None:
        return None

    def row_weights(self, y: Tensor) -> None:
        return None


LOSSES: dict[str, Callable[[Target], Loss]] = {
    "mse": lambda target: Squared(),
    "mae": lambda target: Absolute(),
    "huber": lambda target: Huber(_BEND * typical_size(target.y)),
    "log_cosh": lambda target: LogCosh(_BEND * typical_size(target.y)),
    "relative": lambda target: Relative(),
}
"""The losses by name, made for a target. `symenum.register_loss` adds to them."""


def make_loss(loss: object, target: Target, *, weighted: bool = False) -> Loss:
    """The loss of one of the names in LOSSES, of an object with the methods of `Loss`, or of a callable.

    Huber's loss and log-cosh bend at a fiftieth of the typical deviation of y from its median, whatever its unit.
    `weighted`: rows have weights of their own, so that a callable must take them.
    """
    if isinstance(loss, str) and loss in LOSSES:
        made = LOSSES[loss](target)
    elif hasattr(loss, "total") and isinstance(loss, type):
        raise TypeError(f"loss is the class {loss.__name__}: give an object of it, {loss.__name__}()")
    elif hasattr(loss, "total"):
        made = check_loss(loss)
    elif callable(loss):
        made = Custom(loss, _takes_weights(loss))
    elif isinstance(loss, str):
        raise ValueError(
            f"loss must be one of {', '.join(map(repr, LOSSES))}, not {loss!r}{did_you_mean(loss, LOSSES)}"
        )
    else:
        raise ValueError(
            f"loss must be one of {', '.join(map(repr, LOSSES))}, an object with the methods of "
            f"symenum.fitting.losses.Loss, or a callable, not {loss!r}"
        )
    if isinstance(made, Custom) and weighted and made.weighted is None:
        raise ValueError("loss must take a third argument, the weights, where sample_weight is given")
    made.check(target.y)
    return made


# A small target on which an object is tried before it is taken for a loss: both signs, no zero in y, no residual of 0.
_PROBE_Y = torch.tensor([-2.0, -0.5, 0.25, 1.0, 3.0], dtype=torch.float64)
_PROBE_PREDICTION = torch.tensor([-1.5, 0.5, 0.75, 2.0, 1.0], dtype=torch.float64)  # for these five rows


def check_loss(loss: Any) -> Loss:
    """The object as a loss; refused where an attribute is missing or a method gives nonsense."""
    what = f"loss {loss!r}"
    methods = ("check", "rows", "total", "weights", "row_weights")
    missing = [name for name in methods if not callable(getattr(loss, name, None))]
    missing += [name for name in ("name", "robust", "is_squared") if not hasattr(loss, name)]
    if missing:
        raise TypeError(f"{what} has no {', '.join(missing)}: derive its class from symenum.fitting.losses.RowLoss")
    y, prediction = _PROBE_Y.clone(), _PROBE_PREDICTION.clone()
    weight = torch.full_like(y, 1 / len(y))
    try:
        total, rows = loss.total(y, prediction, weight), loss.rows(y, prediction)
        factors = (loss.weights(y, prediction), loss.row_weights(y))
    except Exception as error:
        raise ValueError(f"{what} failed on {len(y)} rows: {type(error).__name__}: {error}") from error
    if isinstance(total, bool) or not isinstance(total, Real) or not math.isfinite(total):
        raise TypeError(f"total of {what} must return a finite number, not {total!r}")
    for method, found in (("rows", rows), ("weights", factors[0]), ("row_weights", factors[1])):
        if found is None:
            continue
        if not isinstance(found, Tensor) or found.shape != y.shape or found.dtype != y.dtype:
            raise TypeError(f"{method} of {what} must return None or a float64 tensor of shape (rows,), not {found!r}")
        if not bool(torch.isfinite(found).all()) or (method != "rows" and bool((found < 0).any())):
            raise ValueError(f"{method} of {what} must be finite{'' if method == 'rows' else ' and at least 0'}")
    made: Loss = loss
    return made


def typical_size(values: Tensor) -> float:
    """The standard deviation of values (n,), from the median absolute deviation, which outliers do not move.

    Where more than half of the values are equal, the root mean square deviation. At least the smallest normal double.
    """
    deviation = (values - values.median()).abs()
    size = _MAD_TO_SIGMA * float(deviation.median()) or float(deviation.square().mean().sqrt())
    return max(size, torch.finfo(torch.float64).tiny)


def _check_bend(parameter: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < math.inf:
        raise ValueError(f"{parameter} of a loss must be a number above 0, in the unit of y, not {value!r}")


def _takes_weights(function: Callable[..., Any]) -> str | int | None:
    """The keyword `weights` or `sample_weight` where there is one, else 3 for a third place, else None."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some built-in functions do not say
        return None
    for name in ("weights", "sample_weight"):
        if any(parameter.name == name for parameter in parameters):
            return name
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return 3 if len(places) >= 3 and places[2].default is inspect.Parameter.empty else None
