"""A page as text: tables aligned, long lines wrapped; and values as one character each."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from cosim.results.render.page import Lines, Page, PageTable

BLOCKS = "▁▂▃▄▅▆▇█"
ASCII_BLOCKS = ".:-=+*#%"
"""For terminals without UTF-8."""

_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}

_BOLD, _DIM, _RESET = "\033[1m", "\033[2m", "\033[0m"
_MAX_TREND = 48


def text(page: Page, *, color: bool = False, width: int | None = None) -> str:
    """The page, a line feed at its end.

    Where ``width`` is given, tables leave out optional columns until they fit, and lines are wrapped.
    """
    lines: list[str] = []
    for section in page:
        if lines:
            lines.append("")
        for part in section.parts:
            lines += _table(part, color, width) if isinstance(part, PageTable) else _lines(part, color, width)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def printable(line: str) -> str:
    """What a terminal shows as it is: control characters, and lone surrogates, as escapes."""
    if line.isprintable():
        return line
    return line.translate(_CONTROLS).encode("utf-8", "backslashreplace").decode()


def _table(table: PageTable, color: bool, width: int | None) -> list[str]:
    clean = replace(table, rows=[[printable(cell) for cell in row] for row in table.rows])
    head, *rows = fitted(clean, width)
    return [f"{_BOLD}{head}{_RESET}" if color and not table.headless else head, *rows]


def _lines(part: Lines, color: bool, width: int | None) -> list[str]:
    lines = wrapped([printable(line) for line in part.lines], width or part.width)
    if color and part.bold:
        return [f"{_BOLD}{line}{_RESET}" for line in lines]
    if color and part.dim:
        return [line.replace(part.dim, f"{_DIM}{part.dim}{_RESET}") for line in lines]
    return lines


def align(rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> list[str]:
    """Rows of cells as lines; columns in ``left`` flush left, the others flush right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def fitted(table: PageTable, width: int | None) -> list[str]:
    """A table as lines no longer than ``width``: without optional columns, or in parts under one another."""
    heads = table.rows[0]
    gone: list[str] = []
    while True:
        kept = [i for i, head in enumerate(heads) if head not in gone]
        chosen = [[row[i] for i in kept] for row in table.rows]
        left = [n for n, i in enumerate(kept) if i in table.left]
        lines = align(chosen, left)
        if width is None or max(map(len, lines)) <= width:
            return lines
        if len(gone) == len(table.optional):
            return _in_parts(chosen, left, width)
        gone.append(table.optional[len(gone)])


def _in_parts(rows: Sequence[Sequence[str]], left: Sequence[int], width: int) -> list[str]:
    """As many columns as fit beside the first, then the first with those that follow; a long cell is cut."""
    columns = [[_cut(cell, width // 2) for cell in column] for column in zip(*rows, strict=True)]
    wide = [2 + max(map(len, column)) for column in columns]
    parts: list[list[int]] = [[]]
    for n in range(1, len(columns)):
        if parts[-1] and wide[0] - 2 + sum(wide[k] for k in [*parts[-1], n]) > width:
            parts.append([])
        parts[-1].append(n)
    lines: list[str] = []
    for part in parts:
        kept = [0, *part]
        chosen = list(zip(*(columns[k] for k in kept), strict=True))
        lines += [
            _cut(line.rstrip(), width) for line in align(chosen, [n for n, k in enumerate(kept) if k in left])
        ]
    return lines


def _cut(cell: str, width: int) -> str:
    return cell if len(cell) <= width else f"{cell[: max(width - 1, 0)]}…"


def wrapped(lines: Sequence[str], width: int | None) -> list[str]:
    """Lines no longer than ``width``, what is broken off indented; None: as they are."""
    if width is None:
        return list(lines)
    wrap = textwrap.TextWrapper(
        max(width, 20), subsequent_indent="    ", break_long_words=True, break_on_hyphens=False
    )
    return [part for line in lines for part in wrap.wrap(line) or [""]]


def sparkline(values: Sequence[float], blocks: str = BLOCKS) -> str:
    """One character for each value between 0 and 1; a blank for exactly 0."""
    last = len(blocks) - 1
    return "".join(" " if v <= 0 else blocks[min(int(v * len(blocks)), last)] for v in values)


def trend(times: Sequence[int], blocks: str = BLOCKS) -> str:
    """A character for each time, or for the mean of several; lowest for the least."""
    parts = min(len(times), _MAX_TREND)
    bounds = [len(times) * k // parts for k in range(parts + 1)]
    means = [sum(times[a:b]) / (b - a) for a, b in pairwise(bounds)]
    low, high = min(means), max(means)
    last = len(blocks) - 1
    return "".join(blocks[round((mean - low) / (high - low) * last) if high > low else 0] for mean in means)


def percent(share: float) -> str:
    """``12.3 %``."""
    return f"{100 * share:.1f} %"
