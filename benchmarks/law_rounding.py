"""The rounding errors of laws in double precision, from which `core.exactness` takes its limit of rounding.

    python benchmarks/law_rounding.py [--laws 2000] [--seed 0]

Laws are random trees of up to four layers on two variables, with no part above 1e6, evaluated on 20 points in doubles
and in 60 digits. The table has quantiles of the root mean square of the errors, divided by that of the values, in units
of the machine epsilon.
"""

from __future__ import annotations

import argparse

import mpmath
import numpy as np
import torch

from symenum.bench.judge.numeric import extended_value
from symenum.core.exactness import EPSILON, EXACTNESS
from symenum.expressions import Expression, evaluate, walk
from symenum.operators import get_operators
from symenum.tokens.generator import TokenContext
from symenum.tokens.trees import random_tree

ROWS = 20
LAYERS = 4
MAX_VALUE = 1e6  # of any part of a law: mpmath takes hours for exp(1e9)


def error_of(law: Expression, columns: dict[str, torch.Tensor]) -> float | None:
    """The relative error in epsilons; None where the law has no value on a row, or is zero."""
    parts = [np.broadcast_to(np.asarray(evaluate(part, columns)), ROWS) for part in walk(law)]
    if not all((np.abs(part) <= MAX_VALUE).all() for part in parts):  # NaN compares false
        return None
    values = np.asarray(evaluate(law, columns))
    true = [extended_value(law, {name: float(column[i]) for name, column in columns.items()}) for i in range(ROWS)]
    if not values.any() or any(value is None for value in true):
        return None
    errors = np.array([float(mpmath.mpf(float(value)) - exact) for value, exact in zip(values, true, strict=True)])
    return float(np.sqrt((errors**2).sum() / (values**2).sum()) / EPSILON)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--laws", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    columns = {name: torch.from_numpy(rng.uniform(-3, 3, ROWS)) for name in ("x", "y")}
    ones = torch.ones(ROWS, dtype=torch.float64)
    context = TokenContext(get_operators("koza"), columns, ones, ones / ROWS, (-5.0, 5.0))
    trees = (random_tree(context, rng, LAYERS) for _ in range(options.laws))
    errors = np.array([error for law in trees if (error := error_of(law, columns)) is not None])
    inside = np.mean(errors * EPSILON <= EXACTNESS.rounding)
    quantiles = ", ".join(f"{q:.1%}: {np.quantile(errors, q):.1f}" for q in (0.5, 0.9, 0.99, 0.999))
    print(f"{len(errors)} laws; error in epsilons at quantile {quantiles}; largest {errors.max():.3g}")
    print(f"{inside:.2%} are within exactness.rounding, {EXACTNESS.rounding / EPSILON:.0f} epsilons")


if __name__ == "__main__":
    main()
