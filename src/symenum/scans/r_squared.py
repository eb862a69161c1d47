"""R² from inner products: the part of a target that one function, or two, explain with their best coefficients.

These formulas are written only here, with two exceptions: the GPU's kernels (`pair_kernels`) need their own code, and
the tests of `pair_tests` are the formulas solved for "R² ≥ τ?". DESIGN.md, "The last layer as matrix products", derives
them. All tensors are float64 on one device, and broadcast against each other.

The denominators are differences of nearly equal numbers where a function is nearly constant, or where two rows have
nearly one direction. Below a small part of its terms a difference is rounding; there R² is `otherwise`.
"""

from __future__ import annotations

from torch import Tensor

from symenum.core.exactness import EXACTNESS

__all__ = ["affine_r_squared", "pair_r_squared"]


def affine_r_squared(
    along: Tensor, spread: Tensor, square: Tensor, *, least: float = EXACTNESS.remainder, otherwise: float = 0.0
) -> Tensor:
    """R² of a·f + b: (f·t)² over the variance of f, for a target t that is centred and of unit norm.

    `along`: f·t; `spread`: the variance of f; `square`: its mean square, or any number of the size of the two terms
    whose difference is the variance. With target and functions off a background this is R² beyond that background.
    Where the variance is not above `least` times `square`, or is NaN: `otherwise`.
    """
    usable = spread > least * square
    return (along.square() / spread).where(usable, _number(along, otherwise))


def pair_r_squared(
    first: Tensor, second: Tensor, cosine: Tensor, *, least: float = EXACTNESS.remainder, otherwise: float = 0.0
) -> Tensor:
    """R² of a·c + b·d for unit rows c, d and a unit target t: (r² + q² - 2·g·r·q) / (1 - g²).

    `first`: r = c·t; `second`: q = d·t; `cosine`: g = c·d, of the shape of the result. Where 1 - g² is not above
    `least` (the rows have one direction), or is NaN: `otherwise`.
    """
    apart = 1 - cosine.square()
    explained = (cosine * second).mul_(-2 * first).add_(first.square()).add_(second.square())
    return explained.div_(apart).where(apart > least, _number(cosine, otherwise))


def _number(like: Tensor, value: float) -> Tensor:
    return like.new_tensor(value)
