"""Combine: the paper's last layer. op(v_i, v_j) and u(v_i) as they are, no coefficients, by mean square error.

The scan is the engine's own (`engine.cpu`), on features of two layers instead of one layer of an architecture.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from symenum.core.budget import Budget
from symenum.core.target import Target
from symenum.core.threads import available_cores
from symenum.engine import cpu
from symenum.engine.bank import NO_COMPLEXITY, NO_EXPRESSION, Bank
from symenum.engine.layer import SymbolLayer
from symenum.engine.shortlist import Pool, Scorer
from symenum.expressions import apply
from symenum.expressions.candidate import Candidate
from symenum.heads.features import Features
from symenum.heads.response import Response
from symenum.operators import Operator

__all__ = ["Combine"]


@dataclass(frozen=True)
class Combine:
    """operator(v, w) and operator(v) for every operator of `operators` on the `cap` simplest features."""

    operators: tuple[Operator, ...]
    cap: int = 20_000
    name: str = "combine"

    def scan(self, features: Features, response: Response, k: int, budget: Budget) -> list[Candidate]:
        """See `Head`; the best k differ on the scanned rows."""
        chosen = features.simplest(self.cap)
        t, root = response.scanned()
        target = Target(t, root.square())
        layer = SymbolLayer(self.operators, len(chosen))
        pool = Pool(k, target)
        scorer = Scorer(layer, _bank(chosen), target, pool)
        if chosen.dimension is None or response.dimension is None:
            cpu.scan(scorer, budget, available_cores())
        else:
            by_norm = chosen.dimension[scorer.bank.plus]
            scorer = replace(scorer, dimension=by_norm, wanted=response.dimension.number)
            cpu.scan_admissible(scorer, budget, available_cores())
        best = pool.best()
        found: list[Candidate] = []
        for number in [] if best is None else best.number.tolist():
            operator, operands = layer.structure(number)
            candidate = response.candidate(apply(operator, *map(chosen.expression, operands)))
            if candidate is not None:
                found.append(candidate)
        return found


def _bank(features: Features) -> Bank:
    """The features as a bank of the engine: ordered by norm; no feature stands for its negative too."""
    order = torch.argsort(features.values.norm(dim=1), stable=True)
    none = torch.full_like(order, NO_EXPRESSION)
    never = torch.full_like(order, NO_COMPLEXITY)
    stand_in = torch.arange(len(order))
    return Bank(features.values[order], order, none, features.complexity[order], never, stand_in)
