"""A pass of a three-layer network without the scan of its last layer, for benchmarks that need thousands of passes.

A law that the network holds is found, and no other: for each sub-expression of the second layer, the partner that would
make the law is looked up among all of them. What is merely good comes from less than the network has: all functions of
one sub-expression, and the sums, products and quotients of the simplest, each with its best scale and offset.
"""

from __future__ import annotations

import torch
from torch import Tensor

from symenum.enumeration.layer import apply_poisoned
from symenum.expressions import Constant, Expression, apply
from symenum.fitting import linear_combination, plain_number
from symenum.heads import Features
from symenum.operators import OPERATORS, Operator

__all__ = ["combined", "good_fits", "laws"]

SAME = 1e-10  # relative, at each row
KEPT = 3  # of each form and tier
TIERS = (60, 500)  # the simplest sub-expressions: simple fits are wanted too, for the front


def laws(bank: Features, y: Tensor, unary: tuple[Operator, ...], limit: int = 10) -> list[Expression]:
    """The candidates a + b, a - b, a*b, a/b and u(a) of the bank that equal y (rows,), simplest first."""
    V = bank.values
    order = torch.argsort(V[:, 0], stable=True)
    keys = V[order, 0].contiguous()
    found: list[tuple[int, Expression]] = []
    for operator in unary:
        near = (apply_poisoned(operator, V, None) - y).abs() <= SAME * y.abs()
        hits = torch.nonzero(near.all(dim=1)).flatten().tolist()
        found += [(int(bank.complexity[i]) + operator.complexity, apply(operator, bank.expression(i))) for i in hits]
    # y = a + b is looked up as b = y - a, and so on; a division by zero finds no partner.
    for name, partner in {"add": y - V, "sub": V - y, "mul": y / V, "div": V / y}.items():
        slack = SAME * (V.abs() + y.abs() + partner.abs())
        low = torch.searchsorted(keys, (partner - slack)[:, 0].contiguous())
        high = torch.searchsorted(keys, (partner + slack)[:, 0].contiguous(), right=True)
        count = torch.where(torch.isfinite(partner[:, 0]), high - low, 0)
        i = torch.repeat_interleave(torch.arange(len(V)), count)
        step = torch.arange(len(i)) - torch.repeat_interleave(count.cumsum(0) - count, count)
        j = order[low[i] + step]
        hit = ((V[j] - partner[i]).abs() <= slack[i]).all(dim=1)
        i, j = i[hit], j[hit]
        cheap = torch.argsort(bank.complexity[i] + bank.complexity[j], stable=True)[:limit]
        for a, b in zip(i[cheap].tolist(), j[cheap].tolist(), strict=True):
            cost = int(bank.complexity[a] + bank.complexity[b])
            found.append((cost, apply(name, bank.expression(a), bank.expression(b))))
    found.sort(key=lambda item: item[0])
    return [law for _, law in found[:limit]]


def good_fits(bank: Features, y: Tensor, unary: tuple[Operator, ...]) -> list[tuple[Expression, ...]]:
    """Terms (one or two, the constant aside) whose linear combinations are near y."""
    target = (y - y.mean()) / (y - y.mean()).norm()
    out: list[tuple[Expression, ...]] = []
    for size in (*TIERS, len(bank)):
        some = bank.simplest(size)
        for operator in (OPERATORS["identity"], *unary):
            share = _unit(apply_poisoned(operator, some.values, None)) @ target
            best = torch.topk(share.abs(), min(KEPT, len(share))).indices.tolist()
            out += [(apply(operator, some.expression(i)),) for i in best]
    for size in TIERS:
        some = bank.simplest(size)
        unit = _unit(some.values)
        share, g = unit @ target, unit @ unit.T
        left, right = share[:, None], share[None, :]
        pair = (left.square() + right.square() - 2 * g * left * right) / (1 - g.square())
        pair = torch.where(1 - g.square() > 1e-8, pair, 0.0)
        out += [(some.expression(i), some.expression(j)) for i, j in _best(pair)]
        for name, partner in (("mul", some.values), ("div", some.values.reciprocal())):
            fine = torch.isfinite(partner).all(dim=1)
            W = torch.where(fine[:, None], partner, 0.0)
            mean, square = some.values @ W.T / len(y), some.values.square() @ W.square().T
            spread = square - len(y) * mean.square()
            along = ((some.values * target) @ W.T).square() / spread.clamp_min(1e-300)
            along = torch.where(fine & (spread > 1e-9 * square), along, 0.0)
            out += [(apply(name, some.expression(i), some.expression(j)),) for i, j in _best(along)]
    return list(dict.fromkeys(out))


def combined(terms: tuple[Expression, ...], values: Tensor, y: Tensor) -> Expression:
    """The least-squares combination of the terms (values (terms, rows)) and a constant."""
    A = torch.cat([values, torch.ones(1, len(y), dtype=torch.float64)]).T
    solution = torch.linalg.lstsq(A, y[:, None], driver="gelsd").solution.flatten().tolist()
    return linear_combination([plain_number(value) for value in solution], [*terms, Constant(1)])


def _best(score: Tensor) -> list[tuple[int, int]]:
    """The places of the largest entries of a square matrix, each pair once."""
    places = torch.topk(score.flatten(), min(2 * KEPT, score.numel())).indices.tolist()
    pairs = [(place // score.shape[1], place % score.shape[1]) for place in places]
    return list({tuple(sorted(pair)): pair for pair in pairs}.values())[:KEPT]


def _unit(rows: Tensor) -> Tensor:
    """Rows centred and of unit norm; zero where a row is constant or not finite."""
    safe = torch.where(torch.isfinite(rows).all(dim=1)[:, None], rows, 0.0)
    centred = safe - safe.mean(dim=1, keepdim=True)
    norm = centred.norm(dim=1, keepdim=True)
    return torch.where(norm > 1e-9 * safe.norm(dim=1, keepdim=True), centred / norm.clamp_min(1e-300), 0.0)
