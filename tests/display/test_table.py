"""The table of laws: one row type and one renderer for the estimator, the command line and laws of motion."""

from __future__ import annotations

from symenum.display.table import equations_table, rows_of, selected_row, text_table
from symenum.engine import Candidate
from symenum.expressions import parse
from symenum.front import Front

FRONT = Front((Candidate(parse("x"), 1.0), Candidate(parse("2.123456789*x + sin(x)"), 1e-3)), 0.0, 10)


def test_the_chosen_row_is_marked_and_columns_stand_below_their_names() -> None:
    head, first, second = text_table(rows_of(FRONT), 1).splitlines()
    assert (first[:4], second[:4]) == ("    ", ">>>>")
    assert head.split() == ["complexity", "loss", "score", "equation"]
    for name, cell in (("complexity", "0"), ("loss", "1"), ("score", "0")):
        end = head.index(name) + len(name)
        assert first[:end].endswith(f" {cell}")
    assert head.index("equation") == first.index("x") == second.index("2.1235*x")


def test_rows_that_the_data_cannot_tell_apart_are_marked_unless_chosen() -> None:
    marks = [line[:4] for line in text_table(rows_of(FRONT), 1, alike=[True, True]).splitlines()[1:]]
    assert marks == ["   ~", ">>>>"]


def test_lines_are_cut_only_where_a_width_is_given() -> None:
    wide = Front((Candidate(parse(" + ".join(f"x*sin({i}*x)" for i in range(2, 32))), 1.0),), 0.0, 10)
    assert "…" not in text_table(rows_of(wide), 0)
    lines = text_table(rows_of(wide), 0, width=70).splitlines()
    assert max(map(len, lines)) == 70
    assert lines[-1].endswith("…")


def test_laws_stand_as_people_write_them_with_the_complexity_of_what_was_found() -> None:
    front = Front((Candidate(parse("R + R + R + R"), 2.0), Candidate(parse("x*x*x*x + (-91.3)"), 1.0)), 0.0, 10)
    rows = rows_of(front)
    assert [line.split()[-3:] for line in text_table(rows, None).splitlines()[2:]] == [["x**4", "-", "91.3"]]
    assert list(equations_table(rows, ["R", "x"])["equation"]) == ["4*R", "x**4 - 91.3"]
    assert [row.complexity for row in rows] == [3, 4]


def test_the_data_frame_holds_every_digit() -> None:
    table = equations_table(rows_of(FRONT), ["x"])
    assert table["equation"][1] == "2.123456789*x + sin(x)"
    assert table["score"].tolist() == list(FRONT.scores())
    assert table["reward"].tolist() == list(FRONT.rewards())


def test_an_empty_front_has_no_chosen_row() -> None:
    assert selected_row(Front(), "best") is None
    assert selected_row(FRONT, "accuracy") == 1
