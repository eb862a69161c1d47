"""Systems side by side: pairs of runs, groups, and what was recovered after so many seconds."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from scipy.stats import binom

from symenum.bench.compare import Paired, by_time_table, group_table, paired, paired_table, text_table
from symenum.bench.jobs import Job, Row
from symenum.display.html import Table

from .rows import make_row


def run(problem: int, system: str, solved: bool, found_at: float | None = None, **changes: object) -> Row:
    row = make_row(f"P-{problem}", system, solved=solved, found_at=found_at, max_time=20.0)
    return replace(row, **changes)  # type: ignore[arg-type]


ROWS = [
    run(1, "a", True, 0.5),
    run(2, "a", True, 4.0),
    run(3, "a", True),
    run(4, "a", False),
    run(1, "b", True, 1.0),
    run(2, "b", False, ended="crashed"),
    run(3, "b", False),
    run(4, "b", True, 19.0),
    run(5, "b", True, 0.1),
]


def test_only_runs_that_both_have_done_are_paired() -> None:
    pair = paired(ROWS, "a", "b")
    assert pair == Paired(both=1, only_first=2, only_second=1, neither=0)
    assert (pair.first, pair.second, pair.ratio) == (3, 2, 1.5)


def test_runs_of_another_seed_or_noise_are_no_pair() -> None:
    other = [replace(row, job=replace(row.job, seed=1)) for row in ROWS if row.job.system == "b"]
    assert paired([row for row in ROWS if row.job.system == "a"] + other, "a", "b") == Paired(0, 0, 0, 0)


@pytest.mark.parametrize(("first", "second"), [(5, 0), (9, 2), (3, 3), (1, 4)])
def test_the_p_value_is_the_chance_of_so_uneven_a_split(first: int, second: int) -> None:
    total = first + second
    tail = binom.cdf(min(first, second), total, 0.5)
    assert Paired(7, first, second, 3).p_value == pytest.approx(min(1.0, 2 * tail))


def test_nothing_that_differs_is_no_evidence() -> None:
    assert Paired(3, 0, 0, 2).p_value == 1
    assert math.isnan(Paired(0, 0, 0, 2).ratio)
    assert math.isinf(Paired(0, 1, 0, 2).ratio)


def test_groups_count_recovered_runs_and_failures() -> None:
    table = group_table(ROWS, ["a", "b"], "parity", lambda row: int(row.job.problem[-1]) % 2)
    assert table.columns == ("system", "0", "1", "all", "failed")
    counts = [[cell.partition(" ")[0] for cell in line] for line in table.cells]
    assert counts == [["a", "1/2", "2/2", "3/4", "0"], ["b", "1/2", "2/3", "3/5", "1"]]


def test_a_system_without_runs_in_a_group_has_none() -> None:
    table = group_table([run(1, "a", True), run(2, "b", True)], ["a", "b"], "n", lambda row: int(row.job.problem[-1]))
    assert table.cells[0][1:3] == ("1/1 (21-100)", "-")


def test_recovered_by_time_grows_to_what_is_recovered_at_the_end() -> None:
    table = by_time_table(ROWS, ["a", "b"])
    assert table.columns == ("system", "1 s", "2 s", "5 s", "10 s", "the end", "runs")
    assert table.cells == (("a", "1", "1", "2", "2", "3", "4"), ("b", "2", "2", "2", "2", "3", "5"))


def test_every_pair_of_systems_has_a_line() -> None:
    rows = [*ROWS, *(replace(row, job=Job("nguyen", row.job.problem, "c", 0)) for row in ROWS[:4])]
    table = paired_table(rows, ["a", "b", "c"])
    assert [line[:2] for line in table.cells] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert table.cells[1][2:] == ("4", "3", "3", "0", "0", "1.00", "1")


def test_a_table_as_text_has_its_columns_below_each_other() -> None:
    lines = text_table(Table("T", "Note.", ("system", "n"), (("a", "10"), ("longer name", "9")))).splitlines()
    assert lines == ["T. Note.", "system        n", "a            10", "longer name   9"]
