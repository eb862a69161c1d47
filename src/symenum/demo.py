"""`python -m symenum.demo`: Kepler's third law from the orbits of the eight planets, in one pass of the engine.

The demo is a reader of the public interface, no part of the library: nothing imports it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import sympy
from rich.console import Console
from rich.table import Table

from symenum.data import load_planets
from symenum.enumeration import PSRN, Candidate
from symenum.expressions import evaluate, to_sympy

# What a newcomer would try first: arithmetic and the functions of a pocket calculator. "identity" hands a shorter
# expression on to the next layer.
OPERATORS = ("+", "*", "-", "/", "identity", "sqrt", "sin", "cos", "exp", "log")
LAYERS = 3
SHOWN = 10
TOLERANCE = 1.5  # a loss within this factor of the best is as good as the best


def choose(hits: Sequence[Candidate], tolerance: float = TOLERANCE) -> Candidate:
    """The simplest candidate whose loss is within `tolerance` times the smallest; of equally simple ones the best."""
    limit = tolerance * min(hit.loss for hit in hits)
    return min((hit for hit in hits if hit.loss <= limit), key=lambda hit: (hit.expression.complexity, hit.loss))


def candidate_table(hits: Sequence[Candidate], chosen: Candidate) -> Table:
    """The candidates as a table, the chosen one marked."""
    table = Table("", "loss (MSE)", "complexity", box=None, title=f"The best {len(hits)} expressions")
    table.add_column("expression", overflow="fold")
    for hit in hits:
        mark = ">>>>" if hit is chosen else ""
        table.add_row(mark, f"{hit.loss:.4g}", str(hit.expression.complexity), str(hit.expression))
    return table


def main() -> None:
    """Search, and say what was found."""
    console = Console(soft_wrap=True, highlight=False)
    planets = load_planets()
    distance = planets["distance_au"].to_numpy()
    period = planets["period_years"].to_numpy()
    console.print("The eight planets: distance from the Sun (AU) and period (years). Which law gives the period?\n")

    start = time.perf_counter()
    net = PSRN(inputs=1, operators=OPERATORS, layers=LAYERS)
    hits = net.search(distance[:, None], period, k=SHOWN, slots=["distance_au"])
    seconds = time.perf_counter() - start

    chosen = choose(hits)
    console.print(candidate_table(hits, chosen))
    console.print(f"\nScored {net.sizes[-1]:,} candidates exactly in {seconds:.2f} s.")

    law = to_sympy(chosen.expression)
    console.print(f"Chosen, the simplest within {TOLERANCE} times the best loss: period_years = {chosen.expression}")
    console.print(f"SymPy writes it as: period_years = {law}")
    kepler = sympy.Symbol("distance_au") ** 3
    same = "the same law" if sympy.simplify(law**2 - kepler) == 0 else "not the same law"
    console.print(f"Kepler's third law (1619) is period_years**2 = {kepler}: {same}.\n")

    found = evaluate(chosen.expression, {"distance_au": distance})
    errors = Table("planet", box=None)
    for header in ("period (years)", "law gives", "relative error"):
        errors.add_column(header, justify="right")
    for name, true, value in zip(planets["planet"], period, found, strict=True):
        errors.add_row(name, f"{true:.4f}", f"{value:.4f}", f"{abs(value / true - 1):.3%}")
    console.print(errors)


if __name__ == "__main__":
    main()
