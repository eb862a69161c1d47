"""What is ruled out for certain: the best a·f + b for every f of up to so many operators, on all rows.

A search scans much more, but parts of the rows, or the simplest features only. Here nothing is left out, so that the
sentence "no law with up to 3 of these operators fits better" is true. It is one scan of about a second.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from symenum.core.target import Training
from symenum.core.threads import single_threaded
from symenum.engine.layer import SymbolLayer, apply_poisoned
from symenum.expressions import Expression, Variable, apply
from symenum.heads.affine import best_affine
from symenum.heads.features import OUTPUTS_PER_COLUMN, Features, build_features
from symenum.heads.response import ONE, Response, make_data
from symenum.operators import Kind, Operator
from symenum.operators.traits import ARITHMETIC, Role
from symenum.scans.pairs import best_single
from symenum.scans.projection import orthonormal

__all__ = ["Exhausted", "exhaust"]

_MAX_OUTPUTS = 60_000  # expressions of a layer that are evaluated,
_MAX_VALUES = 20_000_000  # and their values: 160 MB, of which a few copies are made
_MAX_WORK = 8e9  # pairs of the last scan times rows: a second on one core,
_SLOW = 50  # where a pair of an operator that is no matrix product counts as so many
_MAX_LAYERS = 2  # of the expressions that the last scan combines
_WIDTH = 16  # best of a scan that are judged again, of which the first is wanted


@dataclass(frozen=True)
class Exhausted:
    """Every f of up to `operators` operators was tried as a·f + b; `tried` expressions f, duplicates included.

    `law`: the best of these laws, its constants rounded where the data allow; `loss`: the mean square error of the best
    before rounding, below which none is.
    """

    operators: int
    tried: int
    law: Expression
    loss: float


@single_threaded()
def exhaust(training: Training, operators: tuple[Operator, ...]) -> Exhausted | None:
    """The deepest space that about a second is enough for; None where even one operator is too many.

    The leaves of f are the columns, 1 and 2.
    """
    working = tuple(operator for operator in operators if operator.role is not Role.IDENTITY)
    target, rows = training.target, training.target.rows
    if rows < 2 or not working or not training.variance > 0:
        return None
    slots = [Variable(name) for name in training.columns]
    values = torch.stack(list(training.columns.values()))
    response = Response.of(make_data(slots, values, target, rows))
    layers, tried, features = 0, 0, _features(slots, values, working, 0)
    while layers < _MAX_LAYERS and _fits(SymbolLayer(working, len(features)).size, rows):
        layers += 1
        tried = SymbolLayer(working, len(features)).size
        features = _features(slots, values, working, layers)
    if not layers:
        return None
    scans = [_single(features, None, response)]
    if _work(len(features), working, rows) <= _MAX_WORK:
        layers += 1
        tried = SymbolLayer(working, len(features)).size
        for operator in working:
            scan = _single if operator.kind is Kind.UNARY else _pair
            scans.append(scan(features, operator, response))
    found = [scan for scan in scans if scan is not None]
    if not found:
        return None
    residual, f = min(found, key=lambda one: one[0])
    fitted = response.fit([ONE, f])
    return None if fitted is None else Exhausted(layers, tried, fitted.expression, residual**2 * training.variance)


def _features(slots: list[Variable], values: Tensor, operators: tuple[Operator, ...], layers: int) -> Features:
    """All distinct expressions of so many layers."""
    limit = max(1 << 28, 8 * OUTPUTS_PER_COLUMN * _MAX_VALUES)  # no limit: `_fits` was asked before
    return build_features(slots, values, operators, layers, max_columns=_MAX_OUTPUTS, max_bytes=limit)


def _fits(outputs: int, rows: int) -> bool:
    """Whether all outputs of a layer can be features: none is left out for memory."""
    return outputs <= _MAX_OUTPUTS // 2 and outputs * rows <= _MAX_VALUES


def _work(features: int, operators: tuple[Operator, ...], rows: int) -> float:
    """The work of the last scan, in pairs times rows."""
    binary = [operator for operator in operators if operator.kind is not Kind.UNARY]
    return features**2 * rows * sum(1 if operator.role in ARITHMETIC else _SLOW for operator in binary)


def _single(features: Features, operator: Operator | None, response: Response) -> tuple[float, Expression] | None:
    """The relative residual of the best feature, or the best operator(feature), with scale and offset; and it."""
    t, root = response.scanned()
    values = features.values if operator is None else apply_poisoned(operator, features.values, None)
    finite = torch.nonzero(torch.isfinite(values).all(dim=1)).flatten()
    which, residual = best_single(values[finite] * root, t * root, orthonormal(root[None]), _WIDTH)
    if not len(which):
        return None
    f = features.expression(int(finite[which[0]]))
    return float(residual[0]), f if operator is None else apply(operator, f)


def _pair(features: Features, operator: Operator, response: Response) -> tuple[float, Expression] | None:
    """The same for the best operator(feature, feature)."""
    t, root = response.scanned()
    pairs = best_affine(features.values, t, root, operator, width=_WIDTH)
    if not len(pairs.i):
        return None
    left, right = (features.expression(int(side[0])) for side in (pairs.i, pairs.j))
    return float(pairs.residual[0]), apply(operator, left, right)
