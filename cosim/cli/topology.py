"""``cosim topology``: the fabric of a scenario, its nodes and links by the names that events take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cosim.cli import options
from cosim.cli.say import say


def topology(
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="A YAML file.")],
    settings: options.Settings = None,
    links: Annotated[
        bool, typer.Option("--links", help="Print every link: number, name, rate, latency.")
    ] = False,
    nodes: Annotated[bool, typer.Option("--nodes", help="Print every node: endpoint or switch.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Draw it to this SVG file.")
    ] = None,
) -> None:
    """Print a scenario's nodes and links by the names that `events` take, or draw them."""
    from cosim.experiment.build import fabric
    from cosim.experiment.scenario import load
    from cosim.units import format_rate, format_time

    found = fabric(load(scenario, settings or ()))
    switches = found.num_nodes - found.num_endpoints
    typer.echo(f"{found.name}: {found.num_endpoints} endpoints, {switches} switches, {found.num_links} links")
    if nodes:
        for number, name in enumerate(found.node_names):
            typer.echo(f"  {number:>6}  {name}  {'endpoint' if number < found.num_endpoints else 'switch'}")
    if links:
        for link in range(found.num_links):
            rate = format_rate(float(found.link_rate_bps[link]))
            latency = format_time(int(found.link_latency_ps[link]))
            typer.echo(f"  {link:>6}  {found.link_name(link)}  {rate}  {latency}")
    if out is not None:
        from cosim.files.text import write_text
        from cosim.results.report.fabric_svg import fabric_svg

        say(f"drawn: {write_text(out, fabric_svg(found))}")
