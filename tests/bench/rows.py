"""Rows for tests of what is made of them."""

from __future__ import annotations

from dataclasses import replace

from symenum.bench.jobs import Job, Row
from symenum.bench.systems import Law

__all__ = ["make_row"]


def make_row(problem: str = "Nguyen-1", system: str = "symenum", seed: int = 0, **changes: object) -> Row:
    laws = (Law("x1", 0, 0.5), Law("x1 + x1**2 + x1**3", 6, 1e-32))
    row = Row(
        Job("nguyen", problem, system, seed),
        "0.1.0",
        5.0,
        "done",
        seconds=0.25,
        wall=3.0,
        peak=1 << 28,
        laws=laws,
        selected=1,
        judged=1,
        numeric=True,
        symbolic="yes",
        structure=True,
        solved=True,
        r2=1.0,
    )
    return replace(row, **changes)  # type: ignore[arg-type]
