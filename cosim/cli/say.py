"""What the commands say beside their results: to stderr."""

from __future__ import annotations

import typer

INTERRUPTED = 130
"""Exit code after Ctrl-C."""


def say(text: str) -> None:
    """A line that is not a result."""
    typer.echo(text, err=True)
