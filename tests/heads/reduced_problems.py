"""Formulas that are on no benchmark list, each with the slots that the reductions should leave of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from symenum.core.target import check_target
from symenum.expressions import Variable, evaluate, parse
from symenum.heads.response import Data, make_data


@dataclass(frozen=True)
class Planted:
    """A law in a, b, c, …, all uniform between `low` and `high`, and how many slots it needs after all reductions."""

    text: str
    variables: int
    slots: int
    low: float = 1.0
    high: float = 3.0

    def data(self, rows: int = 600, noise: float = 0.0, seed: int = 0) -> Data:
        rng = np.random.default_rng(seed)
        names = [chr(ord("a") + i) for i in range(self.variables)]
        X = rng.uniform(self.low, self.high, (rows, self.variables))
        y = np.asarray(evaluate(parse(self.text), dict(zip(names, X.T.copy(), strict=True))))
        y = y + noise * np.sqrt(np.mean(y**2)) * rng.normal(size=rows)
        return data_of(names, X, y)


def data_of(names: list[str], X: np.ndarray, y: np.ndarray) -> Data:
    target, _ = check_target(y, None, len(X))
    return make_data([Variable(name) for name in names], torch.from_numpy(X.T.copy()), target, 400)


PLANTED = (
    Planted("a*b**2*log(1 + c)", 3, 1),
    Planted("a*exp(-b*c/d)", 4, 1),
    Planted("a**2/(b*(1 + exp(-c*d)))", 4, 1),
    Planted("sqrt(a/b)*cos(c - d)", 4, 1, 1.0, 2.0),
    Planted("exp(-(a - b)**2)/c", 3, 1, 1.0, 2.5),
    Planted("a*b/(a + b)", 2, 1),
    Planted("a*sqrt(b**2 + c**2)*d", 4, 1),
    Planted("(a + b*c)/(a - b*c/20)", 3, 1),
    Planted("a*(1 - b/c)**3/d**2", 4, 1, 1.0, 2.0),
    Planted("a/(b + c*sin(d)/4)", 4, 2),
    Planted("a*tanh(b*c/2)*d", 4, 1),
    Planted("log(a*b/c) + d**2", 4, 2),
)
