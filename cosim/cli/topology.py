"""``cosim topology``: the fabric of a scenario, its nodes and links by the names that events take."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cosim.cli import options
from cosim.cli.say import say
from cosim.cli.trust import asking_first

if TYPE_CHECKING:
    from cosim.topology.graph import Topology

_MOST = 2048
"""Endpoints whose pairs are looked at."""


@asking_first
def topology(
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="A YAML file.")],
    settings: options.Settings = None,
    links: Annotated[
        bool, typer.Option("--links", help="Print every link: number, name, rate, latency.")
    ] = False,
    nodes: Annotated[bool, typer.Option("--nodes", help="Print every node: endpoint or switch.")] = False,
    paths: Annotated[
        bool,
        typer.Option("--paths", help="Print how long paths are, and which link an all-to-all loads most."),
    ] = False,
    infragraph: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write it to this file, as InfraGraph YAML.")
    ] = None,
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
    if paths:
        typer.echo(_paths(found))
    if infragraph is not None:
        from cosim.files.text import write_text
        from cosim.formats.infragraph.write import write_infragraph

        say(f"written: {write_text(infragraph, write_infragraph(found))}")
    if out is not None:
        from cosim.files.text import write_text
        from cosim.results.report.fabric_svg import fabric_svg

        say(f"drawn: {write_text(out, fabric_svg(found))}")


def _paths(topology: Topology) -> str:
    from cosim.topology.path_lengths import path_lengths

    if topology.num_endpoints == 1:
        return "paths: none, as there is one endpoint"
    found = path_lengths(topology, min(topology.num_endpoints, _MOST))
    among = f" among the first {_MOST} endpoints" if topology.num_endpoints > _MOST else ""
    return (
        f"paths{among}: {found.mean:.3f} links on average, {found.most} at most; an all-to-all of s bytes a "
        f"pair brings {int(found.load[found.busiest])} s to the busiest link, "
        f"{topology.link_name(found.busiest)}"
    )
