"""What a law is judged by: the mean of a function of the rows' residuals, or any callable of the user's.

A scan is least squares whatever the loss is; these say how its finds are ranked and their constants fitted. Each knows
the weights under which least squares has the same minimum (iteratively reweighted least squares), but for a callable.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol

import torch
from torch import Tensor

from symenum.enumeration.target import Target

__all__ = [
    "LOSSES",
    "Absolute",
    "Custom",
    "Huber",
    "LogCosh",
    "Loss",
    "Relative",
    "Squared",
    "make_loss",
    "typical_size",
]

LOSSES = ("mse", "mae", "huber", "log_cosh", "relative")
# Of the typical deviation of y: residuals beyond it are outliers to Huber's loss and log-cosh. Each pulls at the law as
# one of that size would, so it must be small; where noise is larger, the loss is nearly the mean absolute error.
_BEND = 0.02
_TO_SIGMA = 1.4826  # the median of |deviations| of a normal distribution is the standard deviation over this
_SHARP = 1e-2  # of the median residual: what is nearer to zero weighs no more in the mean absolute error


class Loss(Protocol):
    """`robust`: a few rows far off do not decide."""

    @property
    def name(self) -> str: ...
    @property
    def robust(self) -> bool: ...

    def rows(self, y: Tensor, prediction: Tensor) -> Tensor | None:
        """The loss of each row (rows,); None where only all rows together have one."""
        ...

    def total(self, y: Tensor, prediction: Tensor, weight: Tensor) -> float:
        """The loss on rows whose weights sum to 1; inf where it is no finite number."""
        ...

    def weights(self, y: Tensor, prediction: Tensor) -> Tensor | None:
        """Factors (rows,) on the weights that make least squares fall as the loss does; None where not known."""
        ...


class _ByRow:
    """What all losses that are a mean over rows share."""

    def rows(self, y: Tensor, prediction: Tensor) -> Tensor:
        raise NotImplementedError

    def total(self, y: Tensor, prediction: Tensor, weight: Tensor) -> float:
        loss = float((self.rows(y, prediction) * weight).sum())
        return loss if loss < math.inf else math.inf


@dataclass(frozen=True)
class Squared(_ByRow):
    """The mean square error."""

    name: str = "mse"
    robust: bool = False

    def rows(self, y: Tensor, prediction: Tensor) -> Tensor:
        return (prediction - y).square()

    def weights(self, y: Tensor, prediction: Tensor) -> Tensor:
        return torch.ones_like(y)


@dataclass(frozen=True)
class Absolute(_ByRow):
    """The mean absolute error."""

    name: str = "mae"
    robust: bool = True

    def rows(self, y: Tensor, prediction: Tensor) -> Tensor:
        return (prediction - y).abs()

    def weights(self, y: Tensor, prediction: Tensor) -> Tensor:
        size = (prediction - y).abs()
        least = max(_SHARP * float(size.median()), torch.finfo(torch.float64).eps * float(y.abs().max()), 1e-300)
        return least / size.clamp_min(least)


@dataclass(frozen=True)
class Huber(_ByRow):
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
class LogCosh(_ByRow):
    """scale²·log cosh(r/scale): r²/2 for small residuals, a straight line for large ones."""

    scale: float
    name: str = "log_cosh"
    robust: bool = True

    def __post_init__(self) -> None:
        _check_bend("scale", self.scale)

    def rows(self, y: Tensor, prediction: Tensor) -> Tensor:
        size = (prediction - y).abs() / self.scale
        # log cosh without the overflow of cosh; near 0 its digits are lost to log 2, where r²/2 is it to rounding.
        far = size + torch.log1p(torch.exp(-2 * size)) - math.log(2)
        return self.scale**2 * torch.where(size < 1e-4, size.square() / 2, far)

    def weights(self, y: Tensor, prediction: Tensor) -> Tensor:
        size = ((prediction - y).abs() / self.scale).clamp_min(1e-8)
        return torch.tanh(size) / size


@dataclass(frozen=True)
class Relative(_ByRow):
    """The mean square of (prediction - y)/y."""

    name: str = "relative"
    robust: bool = False

    def rows(self, y: Tensor, prediction: Tensor) -> Tensor:
        return ((prediction - y) / y).square()

    def weights(self, y: Tensor, prediction: Tensor) -> Tensor:
        smallest = y.abs().min()
        return (smallest / y).square()


@dataclass(frozen=True)
class Custom:
    """A callable of the user's: (y, prediction) or (y, prediction, weights), arrays (rows,), gives one number."""

    function: Callable[..., Any]
    weighted: str | int | None = None  # how it takes the weights: a keyword, a place, or not at all
    name: str = "custom"
    robust: bool = False

    def rows(self, y: Tensor, prediction: Tensor) -> None:
        return None

    def total(self, y: Tensor, prediction: Tensor, weight: Tensor) -> float:
        if not bool(torch.isfinite(prediction).all()):
            return math.inf
        arguments = [y.clone().numpy(), prediction.clone().numpy()]  # whatever it does to them
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


def make_loss(loss: object, target: Target, *, weighted: bool = False) -> Loss:
    """The loss of one of the names in LOSSES, of a record of this module, or of a callable.

    Huber's loss and log-cosh bend at a fiftieth of the typical deviation of y from its median, whatever its unit.
    `weighted`: rows have weights of their own, so that a callable must take them.
    """
    if isinstance(loss, (Squared, Absolute, Huber, LogCosh, Relative, Custom)):
        made: Loss = loss
    elif isinstance(loss, str):
        if loss not in LOSSES:
            raise ValueError(f"loss must be one of {', '.join(map(repr, LOSSES))} or a callable, not {loss!r}")
        made = _named(loss, target)
    elif callable(loss):
        made = Custom(loss, _takes_weights(loss))
        if weighted and made.weighted is None:
            raise ValueError("loss must take a third argument, the weights, where sample_weight is given")
        mean = torch.full_like(target.y, float((target.y * target.weight).sum()))
        if made.total(target.y, mean, target.weight) == math.inf:
            raise ValueError("loss must return a finite number: for y and its mean as prediction it does not")
    else:
        raise ValueError(f"loss must be one of {', '.join(map(repr, LOSSES))} or a callable, not {loss!r}")
    if isinstance(made, Relative) and bool((target.y == 0).any()):
        raise ValueError("loss='relative' divides by y, and y is 0 in some rows: leave them out, or take another loss")
    return made


def typical_size(values: Tensor) -> float:
    """The standard deviation as the median of |deviations| tells it; where most are equal, as it is. At least tiny."""
    deviation = (values - values.median()).abs()
    size = _TO_SIGMA * float(deviation.median()) or float(deviation.square().mean().sqrt())
    return max(size, torch.finfo(torch.float64).tiny)


def _check_bend(parameter: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < math.inf:
        raise ValueError(f"{parameter} of a loss must be a number above 0, in the unit of y, not {value!r}")


def _named(name: str, target: Target) -> Loss:
    bend = _BEND * typical_size(target.y)
    named: dict[str, Loss] = {
        "mse": Squared(),
        "mae": Absolute(),
        "huber": Huber(bend),
        "log_cosh": LogCosh(bend),
        "relative": Relative(),
    }
    return named[name]


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
