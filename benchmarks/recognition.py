"""How often a random constant is taken for a number that people write: python benchmarks/recognition.py [--constants N]

Constants whose logarithm is uniform from 0.01 to 100 are whole, fractions or multiples of π by chance only. Each is
handed to `recognise` with a standard error that is a part of its size, as from a fit with noise and as from an exact
one. A decimal of fewer digits does no harm: those digits are not known. A multiple of π that is none misleads.
"""

from __future__ import annotations

import argparse
from collections import Counter

import numpy as np

from symenum.expressions import Constant
from symenum.fitting.recognise import Number, recognise

ERRORS = (3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 1e-6, 1e-9)  # standard errors, as parts of the constants
KINDS = ("whole", "fraction", "decimal", "irrational")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--constants", type=int, default=20_000, help="constants for each row")
    constants = 10 ** np.random.default_rng(0).uniform(-2, 2, parser.parse_args().constants)
    print(f"{'fit':<6} {'error':>7} " + " ".join(f"{kind:>11}" for kind in KINDS))
    for exact in (False, True):
        for error in ERRORS:
            found = [recognise(value, error * value, exact=exact) for value in constants.tolist()]
            counts = Counter(kind_of(number) for number in found if number is not None)
            parts = " ".join(f"{100 * counts[kind] / len(constants):>10.2f}%" for kind in KINDS)
            print(f"{'exact' if exact else 'noise':<6} {error:>7.0e} {parts}", flush=True)


def kind_of(number: Number) -> str:
    parts = [number.numerator] if number.denominator is None else [number.numerator, number.denominator]
    if not all(isinstance(part, Constant) and part.name is None for part in parts):
        return "irrational"
    if number.denominator is not None:
        return "fraction"
    return "whole" if number.value.is_integer() else "decimal"


if __name__ == "__main__":
    main()
