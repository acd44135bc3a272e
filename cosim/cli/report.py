"""``cosim report``, ``view`` and ``plot``: runs and sweeps as one HTML file, as a list, as figures."""

from __future__ import annotations

import os
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from cosim.cli import options
from cosim.cli.say import say
from cosim.errors import InputError, Location


def report(
    first: Annotated[
        Path, typer.Argument(metavar="RUN", help="A folder that cosim run --out wrote, of a run or a sweep.")
    ],
    second: Annotated[
        Path | None, typer.Argument(metavar="[RUN]", help="A second run to compare with.", show_default=False)
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The file to write.")] = Path(
        "report.html"
    ),
    shown: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
) -> None:
    """Write a run as one HTML file without a network: answer, timeline, critical path, fabric."""
    from cosim.results.report.document import report as report_of
    from cosim.results.report.document import sweep_report
    from cosim.results.report.sweep_data import TRIALS, load_sweep
    from cosim.results.stored_run import load_run

    keep_page(out)
    if (first / TRIALS).is_file():
        if second is not None:
            raise InputError(
                "a sweep stands alone in a report: give one folder", location=Location(str(first))
            )
        page = sweep_report(load_sweep(first), lambda trial: _page_beside(out, first / trial.folder))
    else:
        page = report_of([load_run(folder) for folder in (first, second) if folder is not None])
    written = page.save(out)
    say(f"written: {written} ({written.stat().st_size:,} bytes)")
    if shown:
        webbrowser.open(written.resolve().as_uri())


def keep_page(path: Path) -> None:
    """See that a page to be written replaces no file that is read, and none but a page of cosim's.

    Raises
    ------
    InputError
        It would.
    """
    from cosim.files.reads import keep_read
    from cosim.files.whole import keep_others

    keep_read(path)
    keep_others(path, 'name="generator" content="cosim"', "page")


def _page_beside(page: Path, folder: Path) -> str:
    """The page of a run that a sweep kept, as ``page`` names it; empty: there is none."""
    from cosim.results.sweep import RUN_REPORT

    if not (folder / RUN_REPORT).is_file():
        return ""
    return quote(os.path.relpath(folder / RUN_REPORT, page.parent))


def plot(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Folders that cosim run --out wrote, or a sweep's.")
    ],
    what: Annotated[
        str,
        typer.Option(
            metavar="NAME[,NAME]",
            help="cdf, fct-by-size, slowdown, queue, rate, throughput, goodput, timeline, sweep; several "
            "stand beside each other.",
        ),
    ] = "cdf",
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Without an ending: PDF and SVG.")
    ] = Path("figure"),
    style: Annotated[str, typer.Option(help="paper or screen.")] = "paper",
    columns: Annotated[
        int, typer.Option(min=1, max=2, help="How many columns of a paper it is wide: 84 mm or 174 mm.")
    ] = 1,
    overwrite: options.Overwrite = False,
) -> None:
    """Draw runs on one axis for a paper: PDF, SVG, the data as CSV, and a script that draws them again."""
    from cosim.results.plots.plot import save_plots

    for path in save_plots(runs, what.split(","), out, style=style, columns=columns, overwrite=overwrite):
        say(f"written: {path}")


def view(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that has runs in it or below it.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 0,
    shown: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
) -> None:
    """Show a folder of runs in a browser on this machine: search, open one, compare two."""
    from cosim.results.report.server import view_server

    with view_server(folder, port) as server:
        address = f"http://127.0.0.1:{server.server_port}/"
        typer.echo(f"LISTENING {address}")
        if shown:
            webbrowser.open(address)
        with suppress(KeyboardInterrupt):
            server.serve_forever()
