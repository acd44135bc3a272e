"""The page of a run on a terminal: in colour where it can be, in ASCII where nothing else is understood."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TextIO

from cosim.results.render.page import Page
from cosim.results.render.summary_page import summary_page
from cosim.results.render.text import ASCII_BLOCKS, BLOCKS, text
from cosim.results.summary import Summary


def render(
    summary: Summary, *, color: bool = False, plain_ascii: bool = False, width: int | None = None
) -> str:
    """The page as text, a line feed at its end.

    ``plain_ascii`` is for terminals without UTF-8. Where ``width`` is given, tables leave out what matters
    least until they fit, and other lines are wrapped.
    """
    blocks = ASCII_BLOCKS if plain_ascii else BLOCKS
    page = text(summary_page(summary, blocks=blocks, width=width), color=color, width=width)
    return page.encode("ascii", "replace").decode("ascii") if plain_ascii else page


def show(summary: Summary, file: TextIO | None = None) -> None:
    """Print a run's page: in colour on a terminal (unless NO_COLOR is set), plain elsewhere."""
    out = sys.stdout if file is None else file
    color, width = _color(out), _width(out)
    try:
        BLOCKS.encode(out.encoding or "utf-8")
        plain_ascii = False
    except (UnicodeEncodeError, LookupError):
        plain_ascii = True
    out.write(render(summary, color=color, plain_ascii=plain_ascii, width=width))


def show_page(page: Page, file: TextIO | None = None) -> None:
    """Print any other page: as wide as the terminal, plain."""
    out = sys.stdout if file is None else file
    out.write(text(page, width=_width(out)))


def _color(out: TextIO) -> bool:
    return out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _width(out: TextIO) -> int | None:
    return shutil.get_terminal_size().columns if out.isatty() else None
