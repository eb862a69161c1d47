"""The scan of the last layer on the CPU: tiles of matrix products, on all cores, in bounded memory.

Each tile of candidates goes down a ladder and stops at the first rung that excludes all of it: lower bounds in single
precision, lower bounds in double precision, then squares summed row by row. What no rung can exclude is evaluated
exactly, in double precision, on all rows. So the result is exact, whatever the precision of the first rungs.
"""

from __future__ import annotations

from collections.abc import Iterator

from symenum.core.budget import Budget
from symenum.enumeration.backends.tiles import FormScan, OperatorScan, UnaryScan
from symenum.enumeration.forms import forms_of
from symenum.enumeration.scoring import Scorer
from symenum.enumeration.threads import Job, run_jobs
from symenum.operators import ARITHMETIC

__all__ = ["scan"]


def scan(scorer: Scorer, budget: Budget, threads: int) -> tuple[int, bool]:
    """Bring the best of all candidates into the scorer's pool; the share of work done, and whether that is all."""
    jobs = list(_jobs(scorer))
    total = sum(size for size, _ in jobs)
    done = run_jobs([job for _, job in jobs], budget, threads)
    scored = scorer.layer.size * done // max(1, total)
    return scored, done == total


def _jobs(scorer: Scorer) -> Iterator[tuple[int, Job]]:
    """(work, job): unary operators first, because they are quick and give the others a first limit."""
    operators = [block.operator for block in scorer.layer.blocks]
    for block in scorer.layer.blocks:
        if block.operator.arity == 1:
            yield from UnaryScan(scorer, block).jobs()
    for form in forms_of(operators):
        yield from FormScan(scorer, form).jobs()
    for block in scorer.layer.blocks:
        if block.operator.arity == 2 and block.operator.role not in ARITHMETIC:
            yield from OperatorScan(scorer, block).jobs()
