"""Linear least squares to the last digit of double precision, and the sum that its coefficients write.

For the handful of columns of one candidate (`least_squares`), or of each of many (`least_squares_of_each`). Scans of
all pairs and triples of columns are elsewhere (`scans`). `linear_combination` writes the result as people write it:
a/3 - 2*b + 1, and nothing for a zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from symenum.core.exactness import EXACTNESS
from symenum.expressions import Apply, Constant, Expression, apply
from symenum.expressions.algebra import with_factor
from symenum.fitting.batch_program import Array
from symenum.fitting.recognise import Number
from symenum.operators.traits import ADDITIVE, Role

__all__ = ["ONE", "Array", "Fit", "Fits", "least_squares", "least_squares_of_each", "linear_combination", "scaled"]

_TINY = float(np.finfo(np.float64).tiny)  # the smallest norm that is divided by, 2.2e-308
ONE = Constant(1)
"""The term of a constant summand."""


@dataclass(frozen=True)
class Fit:
    """`coefficients` (k,), `residual` (n,), and `sensitivity` (k,): the standard error of each for unit noise."""

    coefficients: Array
    residual: Array
    sensitivity: Array
    full_rank: bool

    @property
    def rms(self) -> float:
        """The root mean square of the residual; 0 without rows."""
        return float(np.sqrt(np.mean(self.residual**2))) if len(self.residual) else 0.0


def svd(A: Array) -> tuple[Array, Array, Array]:
    """The thin singular value decomposition U, S, Vᵀ of A (n, k).

    By torch, whose threads callers can limit: NumPy's own threads make a fit of 50 columns ten times slower on a busy
    machine.
    """
    U, S, Vh = torch.linalg.svd(torch.from_numpy(np.ascontiguousarray(A)), full_matrices=False)
    return U.numpy(), S.numpy(), Vh.numpy()


def least_squares(A: Array, y: Array) -> Fit:
    """The coefficients c of least |y - A c|, for A (n, k) and y (n,), float64; of least norm where A is singular.

    Columns are scaled to one norm first, so that their units do not matter, and the solution is refined once.
    """
    scale = np.max(np.abs(A), axis=0, initial=0.0)
    scale[scale == 0.0] = 1.0
    B = A / scale
    norm = np.sqrt((B**2).sum(axis=0))
    norm[norm == 0.0] = 1.0
    B, scale = B / norm, scale * norm
    U, S, Vt = svd(B)
    good = (S > 0) & (EXACTNESS.rank * S.max(initial=0.0) < S)
    W = Vt[good].T / S[good]
    Ut = U[:, good].T
    c = W @ (Ut @ y)
    c = c + W @ (Ut @ (y - B @ c))
    sensitivity = np.sqrt((W**2).sum(axis=1)) / scale
    return Fit(c / scale, y - B @ c, sensitivity, bool(good.all()) and len(S) == A.shape[1])


@dataclass(frozen=True)
class Fits:
    """Of B sets of m columns: `coefficients` (B, m), `residual` (B, n), and an orthonormal `basis` (B, n, m) of each.

    Where columns depend on each other, or are not finite, the coefficients mean nothing.
    """

    coefficients: Tensor
    residual: Tensor
    basis: Tensor

    def orthogonal_part(self, rows: Tensor) -> Tensor:
        """The part of rows (B, k, n) that is orthogonal to the columns of their set."""
        return rows - (rows @ self.basis) @ self.basis.transpose(1, 2)


def least_squares_of_each(columns: Tensor, y: Tensor) -> Fits:
    """The coefficients c of least |y - c·columns| for each of many small sets: columns (B, m, n) and y (n,), float64.

    By QR decompositions of columns of one norm. Columns that are not finite are taken for zeros.
    """
    size = torch.linalg.vector_norm(columns, dim=2, keepdim=True)
    fine = torch.isfinite(size).all(dim=1, keepdim=True)
    unit = torch.where(fine, columns / size.clamp_min(_TINY), 0.0)
    Q, R = torch.linalg.qr(unit.transpose(1, 2))
    diagonal = R.diagonal(dim1=1, dim2=2)
    R = R + torch.diag_embed(torch.where(diagonal.abs() < EXACTNESS.rank, EXACTNESS.rank, 0.0))
    along = (y @ Q)[..., None]
    coefficients = torch.linalg.solve_triangular(R, along, upper=True)[..., 0] / size[..., 0].clamp_min(_TINY)
    return Fits(coefficients, y - (Q @ along)[..., 0], Q)


def linear_combination(numbers: Sequence[Number], terms: Sequence[Expression]) -> Expression:
    """The sum of number·term, zeros left out; constants last, a positive term first where there is one.

    >>> from symenum.expressions import parse
    >>> from symenum.fitting import nice_number
    >>> print(linear_combination([nice_number(v, 1e-12) for v in (2, -1, 0.5)], [parse("1"), parse("x"), parse("y")]))
    y/2 - x + 2
    """
    pairs = [(number, term) for number, term in zip(numbers, terms, strict=True) if number.value != 0.0]
    if not pairs:
        return Constant(0)
    if len(pairs) == 1:
        return scaled(*pairs[0])
    pieces = [piece for pair in pairs for piece in _pieces(*pair)]
    pieces.sort(key=lambda piece: isinstance(piece.term, Constant))
    leading = next((i for i, piece in enumerate(pieces) if piece.positive), None)
    if leading is None:
        first = next(pair for pair in pairs if pair[1] != ONE)
        pairs.remove(first)
        total = scaled(*first)
        pieces = [piece for pair in pairs for piece in _pieces(*pair)]
    else:
        total = pieces.pop(leading).term
    for piece in pieces:
        total = apply("add" if piece.positive else "sub", total, piece.term)
    return total


@dataclass(frozen=True)
class _Piece:
    """A summand without its sign, and whether it is added or subtracted."""

    positive: bool
    term: Expression


def _pieces(number: Number, term: Expression) -> list[_Piece]:
    """The summands of number·term: a sum that is taken as it is gives up its brackets."""
    positive = number.value > 0
    if number.denominator is not None or number.numerator != ONE:
        return [_Piece(positive, _magnitude_times(number, term))]
    pieces: list[_Piece] = []
    stack = [_Piece(positive, term)]
    while stack:
        piece = stack.pop()
        node = piece.term
        if isinstance(node, Apply) and node.operator.role in ADDITIVE:
            left, right = node.operands
            same = piece.positive == (node.operator.role is Role.SUM)
            stack += [_Piece(same, right), _Piece(piece.positive, left)]
        else:
            pieces.append(piece)
    return pieces


def scaled(number: Number, term: Expression) -> Expression:
    """number·term as one expression, the sign in the number."""
    if number.value >= 0:
        return _magnitude_times(number, term)
    if term == ONE:
        return number.expression
    if number.numerator == ONE:
        product = apply("neg", term)
        return product if number.denominator is None else apply("div", product, number.denominator)
    if isinstance(number.numerator, Constant) and number.numerator.name is None:
        product = with_factor(Constant(-number.numerator.value), term)
        return product if number.denominator is None else apply("div", product, number.denominator)
    return apply("neg", _magnitude_times(number, term))


def _magnitude_times(number: Number, term: Expression) -> Expression:
    """|number|·term."""
    if term == ONE:
        return number.magnitude
    product = term if number.numerator == ONE else with_factor(number.numerator, term)
    return product if number.denominator is None else apply("div", product, number.denominator)
