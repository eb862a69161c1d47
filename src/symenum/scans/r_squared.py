"""R² from inner products alone: how much of a target one function, or two, explain with their best coefficients.

The only home of these formulas, but for two: the GPU's kernels (`pair_kernels`) have their own code, and the tests of
`pair_tests` are these formulas solved for "R² ≥ τ?". How the formulas arise stands in DESIGN.md, "The last layer as
matrix products". All tensors are float64 on one device, and broadcast against each other.

A variance, or what two rows do not share, is a difference of nearly equal numbers where a function is nearly constant
or two rows have nearly one direction. Below a small part of its terms it is rounding; there R² is `otherwise`.
"""

from __future__ import annotations

from torch import Tensor

from symenum.core.exactness import EXACTNESS

__all__ = ["affine_r_squared", "pair_r_squared"]


def affine_r_squared(
    along: Tensor, spread: Tensor, square: Tensor, *, least: float = EXACTNESS.left, otherwise: float = 0.0
) -> Tensor:
    """R² of a·f + b: (f·t)² over the variance of f, for a target t that is centred and of unit norm.

    `along`: f·t; `spread`: the variance of f; `square`: its mean square, or any number of the size of the terms that
    the variance is the difference of. With a target and functions off any background this is R² of a·f and that
    background. Where the variance is not above `least` of `square`, or not finite: `otherwise`.
    """
    usable = spread > least * square
    return (along.square() / spread).where(usable, _number(along, otherwise))


def pair_r_squared(
    first: Tensor, second: Tensor, cosine: Tensor, *, least: float = EXACTNESS.left, otherwise: float = 0.0
) -> Tensor:
    """R² of a·c + b·d for unit rows c, d and a unit target t: (r² + q² - 2·g·r·q) / (1 - g²).

    `first`: r = c·t; `second`: q = d·t; `cosine`: g = c·d, of the shape of the result. Where 1 - g² is not above
    `least`, as where the two have one direction, or not finite: `otherwise`.
    """
    apart = 1 - cosine.square()
    explained = (cosine * second).mul_(-2 * first).add_(first.square()).add_(second.square())
    return explained.div_(apart).where(apart > least, _number(cosine, otherwise))


def _number(like: Tensor, value: float) -> Tensor:
    return like.new_tensor(value)
