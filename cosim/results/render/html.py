"""A page as HTML for a notebook: escaped, without scripts, and without colours, for dark and light alike."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from cosim.results.render.page import Lines, Page, PageTable
from cosim.results.table import Array

_MAX_ROWS = 10
_CELL = "padding:.1em .7em;border:0;white-space:pre;background:none"
_BLOCK = "overflow-x:auto;margin:.6em 0"
_TABLE = "border-collapse:collapse;border:0;margin:0;font-variant-numeric:tabular-nums"
_RULE = "border-bottom:1px solid color-mix(in srgb, currentColor 35%, transparent)"


def html(page: Page) -> str:
    """The page as one ``<div>`` that needs nothing from outside."""
    blocks = []
    for section in page:
        parts = [_table(part) if isinstance(part, PageTable) else _lines(part) for part in section.parts]
        blocks.append(f'<div style="{_BLOCK}">{"".join(parts)}</div>')
    return f'<div class="cosim" style="line-height:1.35">{"".join(blocks)}</div>'


def table_html(name: str, columns: Mapping[str, Array]) -> str:
    """The first rows of a table of results."""
    values = list(columns.values())
    count = len(values[0]) if values else 0
    shown = range(min(count, _MAX_ROWS))
    rows = [[*columns], *([str(column[k]) for column in values] for k in shown)]
    left = [k for k, column in enumerate(values) if count and isinstance(column[0], str)]
    title = f"{name}: {count:,} row{'s' * (count != 1)}"
    more = f", the first {_MAX_ROWS}" if count > _MAX_ROWS else ""
    block = _lines(Lines([title + more], bold=True)) + _table(PageTable(rows, left))
    return f'<div class="cosim" style="{_BLOCK};line-height:1.35">{block}</div>'


def _table(table: PageTable) -> str:
    rows = []
    for n, row in enumerate(table.rows):
        head = n == 0 and not table.headless
        tag, style = ("th", f"{_CELL};{_RULE}") if head else ("td", _CELL)
        sides = ("left" if k in table.left else "right" for k in range(len(row)))
        fonts = (";font-family:monospace" if cell.startswith("|") else "" for cell in row)  # sparklines
        cells = (
            f'<{tag} style="{style};text-align:{side}{font}">{escape(cell.strip())}</{tag}>'
            for side, font, cell in zip(sides, fonts, row, strict=False)
        )
        rows.append(f'<tr style="background:none">{"".join(cells)}</tr>')
    return f'<table style="{_TABLE}">{"".join(rows)}</table>'


def _lines(part: Lines) -> str:
    """One under another, indented as they are."""
    weight = ";font-weight:bold" if part.bold else ""
    out = []
    for line in part.lines:
        text = escape(line.strip())
        dim = escape(part.dim)
        if dim:
            text = text.replace(dim, f'<span style="opacity:.65">{dim}</span>')
        indent = (len(line) - len(line.lstrip())) / 2
        out.append(f'<div style="margin-left:{indent:g}em{weight}">{text}</div>')
    return "".join(out)
