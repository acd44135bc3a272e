"""``cosim partition``: layers of a profile cut into stages for so many workers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

from cosim.cli import options
from cosim.errors import InputError

if TYPE_CHECKING:
    from cosim.workload.layers.partition import Partition
    from cosim.workload.layers.profile import LayerProfile


Number = TypeVar("Number", int, float)


def partition(
    profile: Annotated[Path, typer.Argument(metavar="FILE", help="PipeDream's graph.txt.")],
    workers: Annotated[int, typer.Option(metavar="N", min=1, help="Workers in all.")],
    rate: Annotated[str, typer.Option(metavar="RATE", help="Of each worker's link.")] = "10Gbps",
    levels: Annotated[
        str | None,
        typer.Option(metavar="N@RATE,...", help="Workers of a machine, machines ...: 4@16GB/s,4@10Gbps."),
    ] = None,
    memory: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Of a worker; omitted: no limit.")
    ] = None,
    equation: Annotated[
        Literal["paper", "code"], typer.Option(help="What a stage takes: as published, or as released.")
    ] = "paper",
    straight: Annotated[bool, typer.Option("--straight", help="A worker for each stage.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Cut a model's layers into stages as PipeDream does, and say what each takes and needs."""
    from cosim.units import parse_rate, parse_size
    from cosim.workload.layers.graph_file import read_graph
    from cosim.workload.layers.partition import Level, parse_levels
    from cosim.workload.layers.partition import partition as solve

    layers = read_graph(profile)
    found = solve(
        layers,
        parse_levels(levels, workers) if levels else [Level(workers, _parsed("--rate", parse_rate, rate))],
        equation=equation,
        memory_bytes=None if memory is None else _parsed("--memory", parse_size, memory),
        straight=straight,
    )
    if as_json:
        typer.echo(json.dumps(_as_json(layers, found), indent=1, ensure_ascii=False))
    else:
        typer.echo(_page(layers, found), nl=False)


def _parsed(option: str, parse: Callable[[str], Number], text: str) -> Number:
    """An option's value, or a mistake of the user's."""
    try:
        return parse(text)
    except ValueError as error:
        raise InputError(f"{option}: {error}") from None


def _as_json(layers: LayerProfile, found: Partition) -> dict[str, Any]:
    plan = found.plan
    stages = [
        {
            "layers": [stage.first, stage.last],
            "workers": stage.workers,
            "compute_s": float(layers.compute_s[stage.first : stage.last].sum()),
            "weights_bytes": int(layers.parameter_bytes[stage.first : stage.last].sum()),
            "versions": versions,
            "memory_bytes": memory,
        }
        for stage, versions, memory in zip(plan.stages, plan.versions, plan.memory_bytes(layers), strict=True)
    ]
    return {
        "model": layers.name,
        "stages": stages,
        "in_flight": plan.in_flight,
        "minibatch_s": found.minibatch_s,
        "data_parallel_s": found.data_parallel_s,
        "speedup": found.speedup,
    }


def _page(layers: LayerProfile, found: Partition) -> str:
    from cosim.results.render.text import align
    from cosim.units import format_size

    said = _as_json(layers, found)
    rows = [["stage", "layers", "workers", "compute", "weights", "versions", "memory"]]
    for number, stage in enumerate(said["stages"]):
        first, last = stage["layers"]
        rows.append(
            [
                str(number),
                f"{first}-{last - 1}",
                str(stage["workers"]),
                f"{stage['compute_s'] * 1e3:.4g} ms",
                format_size(stage["weights_bytes"]),
                str(stage["versions"]),
                format_size(stage["memory_bytes"]),
            ]
        )
    plan = found.plan
    head = f"{layers.name}: {len(layers)} layers on {plan.workers} workers, {len(plan.stages)} stages"
    tail = (
        f"a minibatch: {found.minibatch_s * 1e3:.6g} ms predicted, {found.speedup:.4g} x data parallelism "
        f"({found.data_parallel_s * 1e3:.6g} ms); {plan.in_flight} minibatches in flight"
    )
    return "\n".join([head, *align(rows), tail]) + "\n"
