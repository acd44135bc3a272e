"""What the commands say beside their results: to stderr."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import typer

INTERRUPTED = 130
"""Exit code after Ctrl-C."""


def say(text: str) -> None:
    """Lines that are not a result; what a terminal would take for a command is shown as an escape."""
    from cosim.results.render.text import printable

    typer.echo("\n".join(map(printable, text.split("\n"))), err=True)


class _ToStderr(logging.Handler):
    """Says what is logged."""

    def emit(self, record: logging.LogRecord) -> None:
        level = "" if record.levelno < logging.WARNING else f"{record.levelname.lower()}: "
        say(level + record.getMessage())


@contextmanager
def logged(quiet: bool) -> Iterator[None]:
    """Say what cosim logs: warnings, and what is being done; nothing if ``quiet``."""
    logger, handler = logging.getLogger("cosim"), _ToStderr()
    before = logger.level
    logger.setLevel(logging.CRITICAL if quiet else logging.INFO)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
