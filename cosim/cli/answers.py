"""``cosim compare``, ``list``, ``schema``, ``prove``: what there is, and what came."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from cosim.cli import options
from cosim.cli.say import print_json
from cosim.errors import InputError


def compare(
    first: Annotated[Path, typer.Argument(metavar="RUN", help="A folder that cosim run --out wrote.")],
    second: Annotated[Path, typer.Argument(metavar="RUN", help="Another.")],
    as_json: options.AsJson = False,
) -> None:
    """Print what differs between two runs: settings first, then results."""
    from cosim.results.compare import compare as compare_runs

    comparison = compare_runs(first, second)
    if as_json:
        print_json(comparison.to_json())
    else:
        from cosim.results.render.terminal import show_page

        show_page(comparison.page())


def list_names(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="[KIND", help="topology, network, workload, collective ...", show_default=False
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]]", help="A name of that kind, whose fields to show.", show_default=False
        ),
    ] = None,
) -> None:
    """List everything that a scenario can name; with KIND and NAME, the fields of one."""
    from cosim.experiment.catalog import list_all, list_group, list_one

    typer.echo(
        list_all() if kind is None else list_group(kind) if name is None else list_one(kind, name), nl=False
    )


def schema(
    what: Annotated[
        Literal["scenario", "run"],
        typer.Argument(
            metavar="scenario|run", help="scenario: what you write, sweeps too; run: what --out writes."
        ),
    ] = "scenario",
) -> None:
    """Print the schema of scenarios, so that editors complete them, or of what a run writes."""
    if what == "run":
        from cosim.results.run_schema import run_schema as schema_of
    else:
        from cosim.experiment.schema import schema as schema_of
    print_json(schema_of())


def prove(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE|NAME...", help="MSCCL XML, a folder of Chakra files, or an algorithm such as ring."
        ),
    ],
    collective: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The collective, if the file doesn't say: all_reduce ..."),
    ] = None,
    ranks: Annotated[int | None, typer.Option(metavar="N", help="The number of ranks.")] = None,
    size: Annotated[
        str, typer.Option(metavar="SIZE", help="The size, to count bytes; no proof depends on it.")
    ] = "1MiB",
    root: Annotated[int, typer.Option(metavar="RANK", help="The rank where a broadcast starts.")] = 0,
) -> None:
    """Prove a collective algorithm, or say what is wrong with it (exit code 1): deadlock, race, result."""
    from cosim.errors import RefutedError
    from cosim.experiment.prove import prove as prove_one
    from cosim.units import parse_size

    try:
        size_bytes = parse_size(size)
    except ValueError as error:
        raise InputError(f"--size: {error}") from None
    wrong = False
    for each in what:
        try:
            typer.echo(prove_one(each, collective, ranks, size_bytes, root))
        except RefutedError as error:
            wrong = True
            typer.echo(f"wrong: {error}")
    if wrong:
        raise typer.Exit(1)
