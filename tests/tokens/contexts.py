"""TokenContext for the tests of token generators."""

from __future__ import annotations

import numpy as np
import torch

from symenum.expressions import evaluate, parse
from symenum.operators import get_operators
from symenum.tokens import TokenContext

NAMES = ("gp", "mcts", "random")


def make_context(
    law: str = "x1*sin(x2) + 1",
    *,
    inputs: int = 2,
    rows: int = 40,
    seed: int = 0,
    low: float = 0.5,
    high: float = 3.0,
    operators: str | tuple[str, ...] = "koza",
    constant_range: tuple[float, float] | None = None,
) -> TokenContext:
    """Uniform samples of the law, all rows alike."""
    rng = np.random.default_rng(seed)
    columns = {f"x{i + 1}": torch.from_numpy(rng.uniform(low, high, rows)) for i in range(inputs)}
    weight = torch.full((rows,), 1 / rows, dtype=torch.float64)
    y = evaluate(parse(law), columns)
    return TokenContext(get_operators(operators), columns, y, weight, constant_range)
