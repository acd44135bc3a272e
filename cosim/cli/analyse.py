"""``cosim analyse``: traffic of runs and captures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from cosim.cli import options


def analyse(
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="RUN|CAPTURE...", help="Folders that cosim run --out wrote, and captures."),
    ],
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Write page, JSON and CSV here.")] = None,
    as_json: options.AsJson = False,
    overwrite: options.Overwrite = False,
) -> None:
    """Say who sends how much to whom, with which period and in which pattern, of runs and captures."""
    from cosim.results.render.terminal import show_page
    from cosim.results.render.traffic_page import traffic_page
    from cosim.results.traffic.analysis import analyse_capture
    from cosim.results.traffic.files import to_json, write
    from cosim.results.traffic.read import read_traffic

    analyses = [analyse_capture(capture) for capture in map(read_traffic, sources)]
    if out is not None:
        write(analyses, out, inputs=sources, overwrite=overwrite)
    if as_json:
        typer.echo(json.dumps([to_json(one) for one in analyses], indent=1, ensure_ascii=False))
        return
    for number, one in enumerate(analyses):
        if number:
            typer.echo()
        show_page(traffic_page(one))
