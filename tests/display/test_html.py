"""Pages and tables: text is escaped unless it says that it is markup."""

from __future__ import annotations

from symenum.display.html import Markup, Table, html_page, html_table, inline


def test_cells_are_escaped_unless_they_are_markup() -> None:
    table = html_table(Table("<t>", "<n>", ("<c>",), (("<b>bold</b>",), (Markup("<b>bold</b>"),)), chosen=1))
    assert table.count("<b>bold</b>") == 1
    assert "&lt;b&gt;bold" in table
    assert "<t>" not in table
    assert "<n>" not in table
    assert "<c>" not in table
    assert table.count("class=chosen") == 1


def test_titles_and_inline_code_are_escaped() -> None:
    assert "<title>a &lt; b</title>" in html_page("a < b", "")
    assert inline("`x < y` & z") == "<code>x &lt; y</code> &amp; z"
