"""``cosim topoopt``: links between servers and a job's parallelism, found in turns."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cosim.cli import options
from cosim.cli.say import say
from cosim.cli.trust import asking_first


@asking_first
def topoopt(
    scenario: Annotated[
        Path, typer.Argument(metavar="SCENARIO", help="A YAML file with one job; each GPU is a server.")
    ],
    degree: Annotated[int, typer.Option(metavar="N", min=1, help="Links of a server.")],
    rate: Annotated[str, typer.Option(metavar="RATE", help="Rate of a link: 100Gbps.")],
    latency: Annotated[str, typer.Option(metavar="TIME", help="Latency of a link.")] = "1us",
    settings: options.Settings = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write here; omitted: SCENARIO-topoopt.yaml, here."),
    ] = None,
) -> None:
    """Find direct links and the parallelism that suit each other; write the scenario that won."""
    from cosim.experiment.save import resolved_yaml
    from cosim.experiment.topoopt.alternate import TopoOpt
    from cosim.files.text import write_text

    _, won = TopoOpt(scenario, tuple(settings or ()), degree, rate, latency, typer.echo).search()
    target = out if out is not None else Path(f"{scenario.stem}-topoopt.yaml")
    say(f"written: {write_text(target, resolved_yaml(won))}")
