"""The tests "R² ≥ τ?" of the heads that judge pairs, as matrix products; see `certified`.

γ stands for the largest relative rounding error of a sum of n products in the precision used. Every test is shifted by
more than its own rounding error towards passing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from symenum.enumeration.workspace import tile_space
from symenum.heads.certified import Passes

__all__ = ["AffineProductTest", "AffineSumTest", "TwoTermTest"]

_LARGEST = {torch.float32: 1e18, torch.float64: 1e150}  # squares must stay in range


def _product(left: Tensor, right: Tensor, slot: int = 0) -> Tensor:
    return torch.mm(left, right.T, out=tile_space(len(left), len(right), left.dtype, slot))


def _gamma(dtype: torch.dtype, n: int) -> float:
    return (n + 12) * torch.finfo(dtype).eps / 2


@dataclass(frozen=True)
class TwoTermTest:
    """a·c_i + b·d_j explains τ of the unit target t; C (N, n) and D (M, n) are unit rows.

    With r = C·t, q = D·t and g = c_i·d_j, R² ≥ τ is the same as

        |g - r_i q_j / τ|  ≥  √(τ - r_i²) √(τ - q_j²) / τ

    so that two products, x - ab and -x - ab, decide.
    """

    C: Tensor
    D: Tensor
    target: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.C), len(self.D)

    def prepare(self, tau: float, dtype: torch.dtype) -> Passes | None:
        """See `PairTest`."""
        margin = 4 * _gamma(dtype, self.C.shape[1])

        def factors(rows: Tensor) -> tuple[Tensor, Tensor]:
            along = (rows @ self.target)[:, None]
            # A row that passes alone passes with every partner; 4e-15: the error of r² itself.
            rest = ((tau - along.square() - 4e-15).clamp_min(0) / tau).sqrt()
            return along / tau**0.5, rest

        (r, a), (q, b) = factors(self.C), factors(self.D)
        one = torch.ones_like(a)
        left = torch.cat([self.C, r, a, one], dim=1).to(dtype)
        more = torch.cat([self.D, -q, -b, margin * torch.ones_like(b)], dim=1).to(dtype)
        less = torch.cat([-self.D, q, -b, margin * torch.ones_like(b)], dim=1).to(dtype)

        def passes(i: slice, j: slice) -> Iterator[Tensor]:
            for right in (more, less):
                yield _product(left[i], right[j])

        return passes


@dataclass(frozen=True)
class AffineProductTest:
    """a·v_i·w_j + b explains τ of t; V (N, n), W (M, n), t (n,) weighted, centred, of unit norm, root (n,).

    With S1 = Σ w f, S2 = Σ w f², Sy = Σ √w t f, R² = Sy² / (S2 - S1²), so R² ≥ τ is Sy² + τ S1² - τ S2 ≥ 0. Its
    rounding error is at most 5 γ S2.
    """

    V: Tensor
    W: Tensor
    target: Tensor
    root: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.V), len(self.W)

    def prepare(self, tau: float, dtype: torch.dtype) -> Passes | None:
        """See `PairTest`."""
        # R² does not see the scale of a factor; with a largest value of 1 no square leaves the range.
        tiny = torch.finfo(torch.float64).tiny
        V, W = (rows / rows.abs().amax(dim=1, keepdim=True).clamp_min(tiny) for rows in (self.V, self.W))
        weight = self.root.square()
        share = tau - 7 * _gamma(dtype, V.shape[1])
        mean = (V * weight * tau**0.5).to(dtype)
        along = (V * (self.target * self.root)).to(dtype)
        square = (V.square() * (-share * weight)).to(dtype)
        right, right2 = W.to(dtype), W.square().to(dtype)

        def passes(i: slice, j: slice) -> Iterator[Tensor]:
            S1, Sy = _product(mean[i], right[j], 1), _product(along[i], right[j], 2)
            yield S1.mul_(S1).addcmul_(Sy, Sy).addmm_(square[i], right2[j].T)

        return passes


@dataclass(frozen=True)
class AffineSumTest:
    """a·(v_i ± v_j) + b explains τ of t; V (N, n), t (n,) weighted, centred, of unit norm, root (n,).

    With centred rows C, s = |c|² and p = c·t, R² ≥ τ is (p_i ± p_j)² - τ (s_i + s_j ± 2 g) ≥ 0: one product. Its
    rounding error is at most 6 γ (s_i + s_j), and centring has one of its own, in the last digit of what was not yet
    centred.
    """

    V: Tensor
    target: Tensor
    root: Tensor
    sign: int

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.V), len(self.V)

    def prepare(self, tau: float, dtype: torch.dtype) -> Passes | None:
        """See `PairTest`."""
        scaled = self.V * self.root
        scaled = scaled / scaled.abs().amax().clamp_min(torch.finfo(torch.float64).tiny)
        C = scaled - (scaled @ self.root)[:, None] * self.root
        C = C - (C @ self.root)[:, None] * self.root
        s, p = C.square().sum(dim=1, keepdim=True), (C @ self.target)[:, None]
        smallest = float(s[s > 0].min()) if bool((s > 0).any()) else 1.0
        if smallest < 1 / _LARGEST[dtype]:
            return None  # next to the largest rows the smallest would vanish, and all their sums pass
        gamma = 7 * _gamma(dtype, C.shape[1])
        centring = 8e-16 * scaled.norm(dim=1, keepdim=True) * s.sqrt()
        own = p.square() - (tau - gamma) * s + centring
        one = torch.ones_like(own)
        left = torch.cat([C, p, own, one], dim=1).to(dtype)
        right = torch.cat([-2 * tau * self.sign * C, 2 * self.sign * p, one, own], dim=1).to(dtype)

        def passes(i: slice, j: slice) -> Iterator[Tensor]:
            yield _product(left[i], right[j])

        return passes
