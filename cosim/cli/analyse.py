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
    hosts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Read names of addresses from this YAML: ADDRESS: NAME, one a line."
        ),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(metavar="SCENARIO", help="Run this scenario and compare the sources with it."),
    ] = None,
    settings: options.Settings = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Write page, JSON and CSV here.")] = None,
    as_json: options.AsJson = False,
    overwrite: options.Overwrite = False,
) -> None:
    """Print who sends how much to whom, in which period and pattern, in runs and captures."""
    from cosim.captures.hosts import named, read_hosts
    from cosim.errors import InputError
    from cosim.results.render.terminal import show_page
    from cosim.results.traffic.analysis import analyse_capture
    from cosim.results.traffic.files import all_pages, all_to_json, differences, write
    from cosim.results.traffic.read import read_traffic

    if settings and against is None:
        raise InputError("--set changes the scenario of --against, and none is given")
    names = read_hosts(hosts) if hosts is not None else {}
    analyses = [
        analyse_capture(named(read_traffic(path), names) if names else read_traffic(path)) for path in sources
    ]
    if against is not None:
        from cosim.experiment.traffic import traffic_of

        analyses.insert(0, analyse_capture(traffic_of(against, settings or ())))
    compared = differences(analyses)
    if out is not None:
        write(analyses, compared, out, inputs=sources, overwrite=overwrite)
    if as_json:
        typer.echo(json.dumps(all_to_json(analyses, compared), indent=1, ensure_ascii=False))
        return
    for number, page in enumerate(all_pages(analyses, compared)):
        if number:
            typer.echo()
        show_page(page)
