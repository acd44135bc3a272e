"""``cosim learn``, ``synthesise``: traces made from what was learned of others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cosim.cli import options
from cosim.cli.say import print_json


def learn(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="TRACES...", help="Traces of one job: Chakra .et, one a rank, or PyTorch's, also .tar.gz."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write the model here.")
    ] = None,
    hide: Annotated[
        int,
        typer.Option(
            metavar="K",
            min=1,
            help="Keep no name, and no size or duration that fewer than K operations share.",
        ),
    ] = 1,
    audit: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE|DIR", help="Search this model, or these synthetic traces, for what --hide forbids."
        ),
    ] = None,
    ranks: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Ranks, where one trace stands for all.")
    ] = None,
    gpu: Annotated[
        str | None, typer.Option(metavar="NAME", help="The GPU that times operators without a Kineto time.")
    ] = None,
    dependencies: Annotated[
        str,
        typer.Option(
            metavar="all|data", help="Which of Chakra's dependencies count; PyTorch's traces need data."
        ),
    ] = "all",
    quiet: options.Quiet = False,
) -> None:
    """Learn a model of a job's traces, from which cosim synthesise makes others."""
    from cosim.errors import InputError
    from cosim.synthesis.learn import learn as learn_model
    from cosim.synthesis.model import write_model
    from cosim.synthesis.sources import read_sources
    from cosim.synthesis.told import told_findings, told_model

    if out is None and audit is None:
        raise InputError("nothing to do with what is learned", hint="-o model.json, or --audit DIR")
    workload = read_sources(sources, world_size=ranks, gpu=gpu, dependencies=dependencies)
    if out is not None:
        model = learn_model(workload, hide=hide)
        write_model(model, out)
        if not quiet:
            typer.echo(told_model(model, out))
    if audit is not None:
        from cosim.synthesis.audit import audit as search
        from cosim.synthesis.told import read_made

        if hide < 2:
            raise InputError(
                "--audit searches for what --hide forbids, and nothing is hidden", hint="--hide 20"
            )
        found = search(workload, hide, read_made(audit))
        typer.echo(told_findings(found, audit))
        if found:
            raise typer.Exit(1)


def synthesise(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="What cosim learn wrote.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Write traces here, one per rank.")],
    ranks: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="How many ranks; omitted: as many as were learned from."),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="The seed of what is drawn.")] = 0,
    scale: Annotated[
        str, typer.Option(metavar="layers=F,bytes=F", help="Multiply repeated blocks, and bytes.")
    ] = "layers=1",
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Make traces like those that a model was learned from: Chakra .et, and process groups."""
    from cosim.synthesis.draw import read_scale
    from cosim.synthesis.draw import synthesise as draw
    from cosim.synthesis.files import write_traces
    from cosim.synthesis.model import read_model

    workload = draw(read_model(model), ranks=ranks, seed=seed, scale=read_scale(scale))
    done = write_traces(workload, out)
    if as_json:
        print_json(done.report.to_json())
    elif not quiet:
        operations = sum(len(workload.program(rank).operations) for rank in range(workload.world_size))
        typer.echo(
            f"{workload.world_size} ranks, {operations:,} operations: {len(done.files)} files in {out}"
        )
