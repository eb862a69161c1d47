"""Pages that need nothing else: plots as SVG text, tables and a frame as HTML. Knows nothing of the package."""

from symenum.page.html import Markup, Table, html_page, html_table, inline, markdown_table
from symenum.page.svg import COLOURS, Mark, bars, points, scatter, steps

__all__ = [
    "COLOURS",
    "Mark",
    "Markup",
    "Table",
    "bars",
    "html_page",
    "html_table",
    "inline",
    "markdown_table",
    "points",
    "scatter",
    "steps",
]
