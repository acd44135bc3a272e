"""What the commands say beside their results: to stderr."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

INTERRUPTED = 130
"""Exit code after Ctrl-C."""


def say(text: str) -> None:
    """Lines that are not a result; what a terminal would take for a command is shown as an escape."""
    from cosim.results.render.text import printable

    typer.echo("\n".join(map(printable, text.split("\n"))), err=True)


def print_json(value: Any) -> None:
    """A result as JSON, to stdout."""
    typer.echo(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False))


def end_if_interrupted(why: str) -> None:
    """End the command with the exit code of an interrupt, if there was one: then ``why`` says when."""
    if why:
        say(f"interrupted: {why}; what was computed until then is kept")
        raise typer.Exit(INTERRUPTED)


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
