"""The tests "R² ≥ τ?" for all pairs of rows, as matrix products; `best_pairs` scans with them.

They are the formulas of `r_squared`, solved for τ and divided by τ, so that the wide factors do not depend on τ and are
made once. γ is the largest relative rounding error of a sum of n products in the precision used. Every test is shifted
towards passing by more than its own rounding error.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from symenum.core.threads import tile_space
from symenum.scans.best_pairs import Passes
from symenum.scans.r_squared import affine_r_squared, pair_r_squared

__all__ = ["SQUARE_ERROR", "AffineProductTest", "AffineSumTest", "TwoTermTest", "of_size_one"]


_LARGEST = {torch.float32: 1e18, torch.float64: 1e150}  # bound of a square and of its inverse: products stay in range
_TINY = torch.finfo(torch.float64).tiny  # least number that is divided by: so a zero row stays zero
SQUARE_ERROR = 4e-15  # more than the rounding error of r², for unit rows: some 18 epsilons
_CENTRING_ERROR = 8e-16  # relative error of centring a row twice: 3.6 epsilons
_GAMMA_TERMS = 12  # roundings that count besides the n products of a sum
_CANCELLED = 1e-12  # in estimates: a variance below this part of its terms is rounding
# Chosen by trial: benchmarks/constants.py shows what half and twice of it do.
_MAX_SCALED_MARGIN = 0.02  # rounding error of a scaled test, relative to 1, up to which the cheaper scaled test is used


class _Parts:
    """Row slices of a factor, or column slices of its transpose, as views that are made once.

    To slice takes little time, but Python may switch to another thread there, and then the tile waits for its turn.
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
    """left (a, n) times right (n, b), in the thread's scratch memory of that slot; see `core.threads.tile_space`."""
    return torch.mm(left, right, out=tile_space(left.shape[0], right.shape[1], left.dtype, slot))


def _gamma(dtype: torch.dtype, n: int) -> float:
    """γ for sums of n products."""
    return (n + _GAMMA_TERMS) * torch.finfo(dtype).eps / 2


def of_size_one(rows: Tensor) -> Tensor:
    """Rows (N, n) scaled to a largest absolute value of 1; a zero row stays zero.

    R² does not change with the scale of a row, and then no square leaves the range of the type.
    """
    return rows / rows.abs().amax(dim=1, keepdim=True).clamp_min_(_TINY)


def _with_columns(wide: Tensor, *columns: Tensor) -> Tensor:
    """A wide factor (N, n) with columns (N, 1) of any type appended, in its type."""
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

    or x² ≥ 1 for x, the left side divided by the right one: one product of scaled rows. If a row alone explains nearly
    τ, its scale has too few correct digits; then the two sides are computed and compared.
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
            # Clamped at 0: a row that explains τ alone passes with every partner.
            rest = ((tau - along.square() - SQUARE_ERROR).clamp_min(0) / tau).sqrt()
            return along / tau**0.5, rest

        (r, a), (q, b) = map(thin, self._along)
        C, D = self._wide[dtype]
        left, right = _with_columns(C, r), _with_columns(D, -q)
        rows, columns = _by_rows(left), _by_columns(right)
        margin = 4 * _gamma(dtype, C.shape[1])
        smallest = float(a.min() * b.min())
        if margin < _MAX_SCALED_MARGIN * smallest:
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
    """a·v_i·w_j + b explains τ of t; V (N, n), W (M, n), t (n,) weighted, centred, of unit norm, root (n,); float64.

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
        V = of_size_one(self.V)
        return V, V if self.W is self.V else of_size_one(self.W)

    @cached_property
    def _typed(self) -> dict[torch.dtype, tuple[Tensor, ...]]:
        """The factors that were made, by precision."""
        return {}

    def _factors(self, dtype: torch.dtype) -> tuple[Tensor, ...]:
        """The left factors of S1, Sy and S2, the right factor of S1 and Sy, and that of S2."""
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

    With centred rows C, s = |c|², p = c·t and g = c_i·c_j, R² ≥ τ is (p_i ± p_j)² / τ - (s_i + s_j ± 2 g) ≥ 0: one
    product. Its rounding error is at most 6 γ (s_i + s_j) / τ; centring adds an error that is relative to the rows
    before they were centred.
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
        """C (N, n), and s, p and the error that centring makes in s, each (N, 1); float64."""
        scaled = self.V * self.root
        scaled = scaled / scaled.abs().amax().clamp_min(_TINY)
        C = scaled - (scaled @ self.root)[:, None] * self.root
        C = C - (C @ self.root)[:, None] * self.root
        s = C.square().sum(dim=1, keepdim=True)
        return C, s, (C @ self.target)[:, None], _CENTRING_ERROR * scaled.norm(dim=1, keepdim=True) * s.sqrt()

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
            return None  # the smallest rows would underflow beside the largest, and all their sums would pass
        _, s, p, centring = self.centred
        C, other = self._wide[dtype]
        gamma = 7 * _gamma(dtype, C.shape[1])
        own = (p.square() + gamma * s + centring) / tau - s
        one = torch.ones_like(own)
        rows = _by_rows(_with_columns(C, p, own, one))
        columns = _by_columns(_with_columns(other, (2 * self.sign / tau) * p, one, own))

        def passes(i: slice, j: slice) -> tuple[Tensor, float]:
            return _product(rows[i], columns[j]), 0.0

        return passes

    def estimate(self, rows: Tensor) -> Tensor:
        """See `PairTest`."""
        C, s, p, _ = self.centred
        both = s[rows] + s.T
        spread = (C[rows] @ C.T).mul_(2 * self.sign).add_(both)
        return affine_r_squared(p[rows] + self.sign * p.T, spread, both, least=_CANCELLED)
