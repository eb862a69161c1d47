"""HTML pages and tables, and the same tables as Markdown. All text is escaped, unless it is of the type `Markup`."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

__all__ = ["Markup", "Table", "html_page", "html_table", "inline", "markdown_table"]

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 78em; padding: 0 1em; color: #222 }
table { border-collapse: collapse; font-size: 13px; margin: .6em 0 1.6em }
th, td { border-bottom: 1px solid #ddd; padding: .25em .7em; text-align: left; vertical-align: top }
th { background: #f4f4f4; position: sticky; top: 0 }
code, pre { background: #f4f4f4; padding: .1em .3em; white-space: pre-wrap; overflow-wrap: anywhere }
svg { max-width: 100%; height: auto }
.plots { display: flex; flex-wrap: wrap; gap: 1em }
.plots > * { flex: 1 1 32em; min-width: 20em; max-width: 40em }
.wide { overflow-x: auto }
.law { font-size: 1.5em; margin: .6em 0; padding: .4em 0 }
.chosen { background: #eef6fb; font-weight: 600 }
"""


class Markup(str):
    """Text that is HTML already: the caller has escaped what is in it."""

    __slots__ = ()


@dataclass(frozen=True)
class Table:
    """A table with its heading, a note below the heading, and the index of the row to mark, if any."""

    title: str
    note: str
    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    chosen: int | None = None


def html_page(title: str, body: str) -> str:
    """A whole page around a body, which is HTML already."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body>{body}</body></html>\n"
    )


def html_table(table: Table) -> str:
    """A table as HTML, with its heading and note where they are not empty."""
    titles = "".join(f"<th>{_cell(name)}</th>" for name in table.columns)
    head = f"<thead><tr>{titles}</tr></thead>" if any(table.columns) else ""
    body = "".join(
        f"<tr{' class=chosen' * (i == table.chosen)}>{''.join(f'<td>{_cell(cell)}</td>' for cell in line)}</tr>"
        for i, line in enumerate(table.cells)
    )
    title = f"<h2>{escape(table.title)}</h2>" if table.title else ""
    note = f"<p>{escape(table.note)}</p>" if table.note else ""
    return f'{title}{note}<div class="wide"><table>{head}<tbody>{body}</tbody></table></div>'


def markdown_table(table: Table) -> str:
    """A table as Markdown, with its heading and note; the mark of a row is not shown."""
    lines = [f"## {table.title}", "", *([table.note, ""] if table.note else [])]
    lines += [f"| {' | '.join(table.columns)} |", f"|{'---|' * len(table.columns)}"]
    lines += [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in table.cells]
    return "\n".join(lines)


def inline(text: str) -> str:
    """Text as HTML, escaped; what stands between backquotes becomes code."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts))


def _cell(text: str) -> str:
    return text if isinstance(text, Markup) else escape(text)
