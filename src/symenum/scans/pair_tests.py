"""The tests "R² ≥ τ?" of the heads that judge pairs, as matrix products; see `certified`.

γ stands for the largest relative rounding error of a sum of n products in the precision used. Every test is shifted by
more than its own rounding error towards passing. They are the formulas of `scans.r_squared`, solved for τ. All are
divided by τ, so that the wide factors do not depend on it and are made once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from symenum.core.threads import tile_space
from symenum.scans.best_pairs import Passes
from symenum.scans.r_squared import affine_r_squared, pair_r_squared

__all__ = ["AffineProductTest", "AffineSumTest", "TwoTermTest"]


_LARGEST = {torch.float32: 1e18, torch.float64: 1e150}  # squares must stay in range
_TINY = torch.finfo(torch.float64).tiny
_SCALED = 0.02  # the largest rounding error of a test, relative to its sides, that scaling may bring
_CANCELLED = 1e-12  # estimates: a variance of this part of its terms is noise


class _Parts:
    """Rows of a factor, or of its transpose the columns, as views that are made once.

    A slice takes no time, but lets another thread of the interpreter go first, and then the tile waits for its turn.
    """

    def __init__(self, factor: Tensor, *, transposed: bool = False) -> None:
        self._factor = factor
        self._transposed = transposed
        self._views: dict[tuple[int, int], Tensor] = {}

    def __getitem__(self, part: slice) -> Tensor:
        key = part.start, part.stop
        view = self._views.get(key)
        if view is None:
            view = self._factor[part]
            view = self._views[key] = view.T if self._transposed else view
        return view


def _by_rows(factor: Tensor) -> _Parts:
    return _Parts(factor)


def _by_columns(factor: Tensor) -> _Parts:
    return _Parts(factor, transposed=True)


def _product(left: Tensor, right: Tensor, slot: int = 0) -> Tensor:
    """left (a, n) times right (n, b)."""
    return torch.mm(left, right, out=tile_space(left.shape[0], right.shape[1], left.dtype, slot))


def _gamma(dtype: torch.dtype, n: int) -> float:
    return (n + 12) * torch.finfo(dtype).eps / 2


def _of_size_one(rows: Tensor) -> Tensor:
    """Rows with a largest absolute value of 1; a zero row stays zero."""
    return rows / rows.abs().amax(dim=1, keepdim=True).clamp_min_(_TINY)


def _beside(wide: Tensor, *columns: Tensor) -> Tensor:
    """Columns (N, 1) of any type beside a wide factor (N, n), in its type."""
    n = wide.shape[1]
    factor = wide.new_empty(len(wide), n + len(columns))  # torch.cat would take five times as long for short rows
    factor[:, :n] = wide
    for at, column in enumerate(columns, n):
        factor[:, at : at + 1] = column
    return factor


@dataclass(frozen=True)
class TwoTermTest:
    """a·c_i + b·d_j explains τ of the unit target t; C (N, n) and D (M, n) are unit rows.

    With r = C·t, q = D·t and g = c_i·d_j, R² ≥ τ is the same as

        |g - r_i q_j / τ|  ≥  √(τ - r_i²) √(τ - q_j²) / τ

    or x² ≥ 1 for the left side over the right one, which is one product of scaled rows. Where a row explains nearly τ
    alone, its scale has no digits left; then both sides are compared.
    """

    C: Tensor
    D: Tensor
    target: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.C), len(self.D)

    @cached_property
    def _along(self) -> tuple[Tensor, Tensor]:
        return (self.C @ self.target)[:, None], (self.D @ self.target)[:, None]

    @cached_property
    def _wide(self) -> dict[torch.dtype, tuple[Tensor, Tensor]]:
        """C and D in both precisions."""
        return {dtype: (self.C.to(dtype), self.D.to(dtype)) for dtype in (torch.float32, torch.float64)}

    def prepare(self, tau: float, dtype: torch.dtype) -> Passes | None:
        """See `PairTest`."""

        def thin(along: Tensor) -> tuple[Tensor, Tensor]:
            # A row that passes alone passes with every partner; 4e-15: the error of r² itself.
            rest = ((tau - along.square() - 4e-15).clamp_min(0) / tau).sqrt()
            return along / tau**0.5, rest

        (r, a), (q, b) = map(thin, self._along)
        C, D = self._wide[dtype]
        left, right = _beside(C, r), _beside(D, -q)
        rows, columns = _by_rows(left), _by_columns(right)
        margin = 4 * _gamma(dtype, C.shape[1])
        smallest = float(a.min() * b.min())
        if margin < _SCALED * smallest:
            left.div_(a.to(dtype))
            right.div_(b.to(dtype))
            bound = (1 - margin / smallest) ** 2

            def passes(i: slice, j: slice) -> tuple[Tensor, float]:
                return _product(rows[i], columns[j]).square_(), bound

        else:
            near = _by_rows(torch.cat([-a, torch.ones_like(a)], dim=1).to(dtype))
            far = _by_columns(torch.cat([b, torch.full_like(b, margin)], dim=1).to(dtype))

            def passes(i: slice, j: slice) -> tuple[Tensor, float]:
                return _product(rows[i], columns[j]).abs_().addmm_(near[i], far[j]), 0.0

        return passes

    def estimate(self, rows: Tensor) -> Tensor:
        """See `PairTest`."""
        r, q = self._along[0][rows], self._along[1].T
        g = self.C[rows] @ self.D.T
        return pair_r_squared(r, q, g, least=_CANCELLED)


@dataclass(frozen=True)
class AffineProductTest:
    """a·v_i·w_j + b explains τ of t; V (N, n), W (M, n), t (n,) weighted, centred, of unit norm, root (n,).

    With S1 = Σ w f, S2 = Σ w f², Sy = Σ √w t f, R² = Sy² / (S2 - S1²), so R² ≥ τ is Sy² / τ + S1² - S2 ≥ 0. Its
    rounding error is at most 5 γ S2 / τ.
    """

    V: Tensor
    W: Tensor
    target: Tensor
    root: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.V), len(self.W)

    @cached_property
    def _scaled(self) -> tuple[Tensor, Tensor]:
        # R² does not see the scale of a factor; with a largest value of 1 no square leaves the range.
        V = _of_size_one(self.V)
        return V, V if self.W is self.V else _of_size_one(self.W)

    @cached_property
    def _typed(self) -> dict[torch.dtype, tuple[Tensor, ...]]:
        """Factors that were made, for each precision."""
        return {}

    def _factors(self, dtype: torch.dtype) -> tuple[Tensor, ...]:
        """The left factors of S1, Sy and S2, and the right ones of the first two and of the last."""
        if dtype not in self._typed:
            V, W = self._scaled
            left, right = V.to(dtype), W.to(dtype)
            self._typed[dtype] = (*self._left(left), right, right.square())
        return self._typed[dtype]

    def _left(self, V: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        weight, along = self.root.square().to(V.dtype), (self.target * self.root).to(V.dtype)
        return V * weight, V * along, V.square().mul_(weight)

    def prepare(self, tau: float, dtype: torch.dtype) -> Passes | None:
        """See `PairTest`."""
        mean, along, square = map(_by_rows, self._factors(dtype)[:3])
        right, right2 = map(_by_columns, self._factors(dtype)[3:])
        share = 1 - 7 * _gamma(dtype, self.V.shape[1]) / tau

        def passes(i: slice, j: slice) -> tuple[Tensor, float]:
            S1, Sy = _product(mean[i], right[j], 1), _product(along[i], right[j], 2)
            S1.mul_(S1).addcmul_(Sy, Sy, value=1 / tau)
            return S1.addmm_(square[i], right2[j], alpha=-share), 0.0

        return passes

    def estimate(self, rows: Tensor) -> Tensor:
        """See `PairTest`."""
        V, W = self._scaled
        mean, along, square = self._left(V[rows])
        S2 = square @ W.square().T
        spread = S2 - (mean @ W.T).square_()
        return affine_r_squared(along @ W.T, spread, S2, least=_CANCELLED)


@dataclass(frozen=True)
class AffineSumTest:
    """a·(v_i ± v_j) + b explains τ of t; V (N, n), t (n,) weighted, centred, of unit norm, root (n,).

    With centred rows C, s = |c|² and p = c·t, R² ≥ τ is (p_i ± p_j)² / τ - (s_i + s_j ± 2 g) ≥ 0: one product. Its
    rounding error is at most 6 γ (s_i + s_j) / τ, and centring has one of its own, in the last digit of what was not
    yet centred.
    """

    V: Tensor
    target: Tensor
    root: Tensor
    sign: int

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.V), len(self.V)

    @cached_property
    def centred(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """C (N, n), s, p and the error of centring (N, 1), which is one of s."""
        scaled = self.V * self.root
        scaled = scaled / scaled.abs().amax().clamp_min(_TINY)
        C = scaled - (scaled @ self.root)[:, None] * self.root
        C = C - (C @ self.root)[:, None] * self.root
        s = C.square().sum(dim=1, keepdim=True)
        return C, s, (C @ self.target)[:, None], 8e-16 * scaled.norm(dim=1, keepdim=True) * s.sqrt()

    @cached_property
    def _wide(self) -> dict[torch.dtype, tuple[Tensor, Tensor]]:
        """C and -2 (± C) in both precisions."""
        C = self.centred[0]
        other = -2 * self.sign * C
        return {dtype: (C.to(dtype), other.to(dtype)) for dtype in (torch.float32, torch.float64)}

    @cached_property
    def _smallest(self) -> float:
        s = self.centred[1]
        return float(s[s > 0].min()) if bool((s > 0).any()) else 1.0

    def prepare(self, tau: float, dtype: torch.dtype) -> Passes | None:
        """See `PairTest`."""
        if self._smallest < 1 / _LARGEST[dtype]:
            return None  # next to the largest rows the smallest would vanish, and all their sums pass
        _, s, p, centring = self.centred
        C, other = self._wide[dtype]
        gamma = 7 * _gamma(dtype, C.shape[1])
        own = (p.square() + gamma * s + centring) / tau - s
        one = torch.ones_like(own)
        rows = _by_rows(_beside(C, p, own, one))
        columns = _by_columns(_beside(other, (2 * self.sign / tau) * p, one, own))

        def passes(i: slice, j: slice) -> tuple[Tensor, float]:
            return _product(rows[i], columns[j]), 0.0

        return passes

    def estimate(self, rows: Tensor) -> Tensor:
        """See `PairTest`."""
        C, s, p, _ = self.centred
        both = s[rows] + s.T
        spread = (C[rows] @ C.T).mul_(2 * self.sign).add_(both)
        return affine_r_squared(p[rows] + self.sign * p.T, spread, both, least=_CANCELLED)
