"""One pass of all heads on the slots, from cheap to dear, until one of them has found the law.

Simple laws come out here in the first second, without any search; what does not is the work of tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.enumeration.shortlist import Candidate, Shortlist
from symenum.enumeration.target import check_names, check_slots, check_target, check_whole
from symenum.enumeration.threads import single_threaded
from symenum.expressions import Expression
from symenum.heads.all_heads import AllHeads
from symenum.heads.goal import best_and_front, make_data
from symenum.operators import Operator, get_operators

__all__ = ["SCAN_ROWS", "first_pass", "telling"]

SCAN_ROWS = 400  # scans look at no more rows; every candidate is fitted and judged on all


def first_pass(
    values: object,
    y: object,
    *,
    slots: Iterable[str | Expression] | None = None,
    operators: str | Iterable[str | Operator] = "koza",
    sample_weight: object = None,
    k: int = 10,
    time_limit: float | None = None,
    stop: Callable[[], bool] | None = None,
    seed: int = 0,
) -> Shortlist:
    """The best k candidates of all heads, best first; among fits that are exact up to rounding the simplest first.

    After them come those, if any, that are simpler than all before them: the rest of the front of loss and complexity.

    `values` (rows, slots) and `y` (rows,) as for `PSRN.search`. The pass ends early when a candidate equals y up to
    rounding with constants that are recognised (or few for the number of rows); after `time_limit` seconds or when
    `stop()` is true it ends with what it has, and `complete` is False. `seed`: of all random numbers.

    >>> import numpy as np
    >>> x = np.linspace(0.5, 3, 20)
    >>> print(first_pass(x, 3 * x * np.sin(x) + 1, k=1)[0].expression)
    3*x1*sin(x1) + 1
    """
    check_whole("k", k)
    budget = Budget(time_limit, stop)
    records = get_operators(operators)
    columns, expressions = _checked(values, slots)
    target, rows = check_target(y, sample_weight, columns.shape[0])
    columns = columns[rows]
    kept = telling(columns)
    data = make_data([expressions[i] for i in kept], columns[:, kept].T.contiguous(), target, SCAN_ROWS, seed)
    with single_threaded():
        found, complete = _run(AllHeads(data, records, k), budget)
    return Shortlist(tuple(best_and_front(found, target, k)), complete, len(found))


def _run(heads: AllHeads, budget: Budget) -> tuple[list[Candidate], bool]:
    """All candidates, and whether the pass went to its end."""
    found = heads.constant()
    stages = heads.stages()
    while not any(heads.data.is_law(candidate) for candidate in found):
        stage = next(stages, None)
        if stage is None or budget.over():
            return found, stage is None and not budget.over()
        found += stage.run(budget)
    return found, True


def _checked(values: object, slots: Iterable[str | Expression] | None) -> tuple[Tensor, list[Expression]]:
    """Slot values (rows, slots) and the slots' expressions."""
    width = _width(values)
    names = check_names(slots, width)
    columns = check_slots(values, width)
    if not width:
        raise ValueError("values must have at least one column")
    return columns, names


def telling(columns: Tensor) -> list[int]:
    """The slots of `columns` (rows, slots) that say something of their own: not constant, not equal to an earlier one.

    A law written with a constant column, or spread over two equal ones, would be right on these data only.
    """
    kept: list[int] = []
    for i, column in enumerate(columns.T):
        constant = bool((column == column[0]).all())
        if not constant and not any(torch.equal(column, columns[:, j]) for j in kept):
            kept.append(i)
    return kept or [0]


def _width(values: object) -> int:
    shape = getattr(values, "shape", None)
    if shape is None and isinstance(values, Sequence) and len(values):
        first = values[0]
        return len(first) if isinstance(first, Sequence) else 1
    return int(shape[1]) if shape is not None and len(shape) == 2 else 1
