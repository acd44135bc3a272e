"""``cosim report``: a run, or two beside each other, as one HTML file."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from cosim.cli.say import say


def report(
    first: Annotated[Path, typer.Argument(metavar="RUN", help="A folder that cosim run --out wrote.")],
    second: Annotated[
        Path | None, typer.Argument(metavar="[RUN]", help="Another, beside it.", show_default=False)
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The page.")] = Path("report.html"),
    shown: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
) -> None:
    """Write a run as one HTML file without a network: answer, timeline, critical path, fabric."""
    from cosim.results.report.document import report as report_of
    from cosim.results.stored_run import load_run

    runs = [load_run(folder) for folder in (first, second) if folder is not None]
    written = report_of(runs).save(out)
    say(f"written: {written} ({written.stat().st_size:,} bytes)")
    if shown:
        webbrowser.open(written.resolve().as_uri())
