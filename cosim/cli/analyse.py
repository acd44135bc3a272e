"""``cosim analyse``: traffic of runs and captures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cosim.cli import options
from cosim.cli.say import print_json


def analyse(
    sources: Annotated[
        list[Path] | None,
        typer.Argument(metavar="RUN|CAPTURE...", help="Folders that cosim run --out wrote, and captures."),
    ] = None,
    hosts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Read names of addresses from this YAML: ADDRESS: NAME, one a line."
        ),
    ] = None,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="The captures' format, or my.py:MyFormat; omitted: found by their content.",
        ),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(metavar="SCENARIO", help="Run this scenario and compare the sources with it."),
    ] = None,
    models: Annotated[
        str | None,
        typer.Option(metavar="NAME,...", help="Run these models of the catalogue, and compare them."),
    ] = None,
    settings: options.Settings = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Write page, JSON and CSV here.")] = None,
    as_json: options.AsJson = False,
    overwrite: options.Overwrite = False,
) -> None:
    """Print who sends how much to whom, in which period and pattern, in runs and captures."""
    from cosim.captures.contract import CaptureFormat
    from cosim.captures.hosts import named, read_hosts
    from cosim.errors import InputError
    from cosim.experiment.mistakes import find_named
    from cosim.files.located_yaml import parse_value
    from cosim.results.render.terminal import show_page
    from cosim.results.render.traffic_models_page import models_page
    from cosim.results.traffic.analysis import analyse_capture
    from cosim.results.traffic.files import all_pages, all_to_json, differences, write
    from cosim.results.traffic.read import read_traffic

    if settings and against is None and models is None:
        raise InputError("--set changes the scenario of --against or --models, and none is given")
    if not sources and models is None:
        raise InputError("nothing to analyse", hint="name runs or captures, or --models vgg-16,resnet-50")
    sources = sources or []
    names = read_hosts(hosts) if hosts is not None else {}
    chosen = find_named("cosim.capture_formats", CaptureFormat, parse_value(format_)) if format_ else None
    found = [read_traffic(path, chosen) for path in sources]
    analyses = [analyse_capture(named(one, names) if names else one) for one in found]
    if against is not None:
        from cosim.experiment.traffic import traffic_of

        analyses.insert(0, analyse_capture(traffic_of(against, settings or (), found)))
    names_of_models = models.split(",") if models is not None else []
    if names_of_models:
        from cosim.experiment.traffic import traffic_of_model

        analyses += [analyse_capture(traffic_of_model(name, settings or ())) for name in names_of_models]
    compared = differences(analyses)
    if out is not None:
        write(analyses, compared, out, inputs=sources, overwrite=overwrite)
    if as_json:
        print_json(all_to_json(analyses, compared))
        return
    pages = [models_page(analyses)] if names_of_models else all_pages(analyses, compared)
    for number, page in enumerate(pages):
        if number:
            typer.echo()
        show_page(page)
