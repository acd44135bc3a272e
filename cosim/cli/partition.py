"""``cosim partition``: layers of a profile cut into stages for so many workers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

from cosim.cli import options
from cosim.cli.say import print_json
from cosim.errors import InputError
from cosim.units import PS_PER_S

if TYPE_CHECKING:
    from cosim.workload.layers.partition import Level, Partition
    from cosim.workload.layers.plan import StagePlan
    from cosim.workload.layers.profile import LayerProfile


Number = TypeVar("Number", int, float)
_FEWEST_ITERATIONS = 16
"""Replayed; more of pipelines that are longer, until they have settled."""


def partition(
    profile: Annotated[Path, typer.Argument(metavar="FILE", help="PipeDream's graph.txt.")],
    workers: Annotated[int, typer.Option(metavar="N", min=1, help="The number of workers.")],
    rate: Annotated[str, typer.Option(metavar="RATE", help="The rate of each worker's link.")] = "10Gbps",
    levels: Annotated[
        str | None,
        typer.Option(metavar="N@RATE,...", help="Workers in a machine, machines, ...: 4@16GB/s,4@10Gbps."),
    ] = None,
    memory: Annotated[
        str | None, typer.Option(metavar="SIZE", help="The memory of a worker; default: no limit.")
    ] = None,
    equation: Annotated[
        Literal["paper", "code"], typer.Option(help="How a stage is timed: as published, or as released.")
    ] = "paper",
    straight: Annotated[bool, typer.Option("--straight", help="Give each stage one worker.")] = False,
    simulate: Annotated[
        bool, typer.Option("--simulate/--no-simulate", help="Also simulate the plan and data parallelism.")
    ] = True,
    as_json: options.AsJson = False,
) -> None:
    """Cut a model's layers into stages as PipeDream does, with the time and memory of each."""
    from cosim.units import parse_rate, parse_size
    from cosim.workload.layers.graph_file import read_graph
    from cosim.workload.layers.partition import Level, parse_levels
    from cosim.workload.layers.partition import partition as solve
    from cosim.workload.layers.plan import data_parallel

    layers = read_graph(profile)
    machines = (
        parse_levels(levels, workers) if levels else [Level(workers, _parsed("--rate", parse_rate, rate))]
    )
    found = solve(
        layers,
        machines,
        equation=equation,
        memory_bytes=None if memory is None else _parsed("--memory", parse_size, memory),
        straight=straight,
    )
    said = _as_json(layers, found)
    if simulate and len(machines) <= 2:
        for name, plan in (
            ("simulated_s", found.plan),
            ("simulated_data_parallel_s", data_parallel(layers, workers)),
        ):
            said[name] = _simulated_s(profile, plan, machines)
    if as_json:
        print_json(said)
    else:
        typer.echo(_page(layers, said), nl=False)


def _simulated_s(profile: Path, plan: StagePlan, machines: list[Level]) -> float:
    """A minibatch in the steady state, replayed: on a switch, or on machines below one."""
    import cosim

    topology: dict[str, Any] = {
        "kind": "switch",
        "endpoints": plan.workers,
        "rate": f"{machines[-1].rate_bps:.12f}bps",
    }
    if len(machines) == 2:
        inside, outside = machines
        hosts = {
            "gpus": inside.workers,
            "nvlink_rate": f"{inside.rate_bps:.12f}bps",
            "nics": 1,
            "nic_rate": f"{outside.rate_bps:.12f}bps",
        }
        topology = {
            "kind": "leaf_spine",
            "leaves": 1,
            "spines": 1,
            "endpoints_per_leaf": plan.workers,
            "hosts": hosts,
        }
    stages = [{"layers": [one.first, one.last], "workers": one.workers} for one in plan.stages]
    workload = {"kind": "layers", "file": str(profile.absolute()), "workers": plan.workers, "plan": stages}
    done = cosim.run(
        {
            "topology": {**topology, "latency": "0ns"},
            "network": "fair_share",
            "jobs": [{"iterations": max(_FEWEST_ITERATIONS, 5 * max(plan.versions)), "workload": workload}],
        }
    )
    job = done.summary.jobs[0]
    return (job.iteration_mean_ps or 0) / job.minibatches / PS_PER_S


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


def _page(layers: LayerProfile, said: dict[str, Any]) -> str:
    from cosim.results.render.text import align
    from cosim.units import format_size

    rows = [["stage", "layers", "workers", "compute", "weights", "versions", "memory"]]
    for number, stage in enumerate(said["stages"]):
        first, last = stage["layers"]
        rows.append(
            [
                str(number),
                f"[{first}, {last}]",
                str(stage["workers"]),
                f"{stage['compute_s'] * 1e3:.4g} ms",
                format_size(stage["weights_bytes"]),
                str(stage["versions"]),
                format_size(stage["memory_bytes"]),
            ]
        )
    stages = said["stages"]
    workers = sum(stage["workers"] for stage in stages)
    lines = [f"{layers.name}: {len(layers)} layers on {workers} workers, {len(stages)} stages", *align(rows)]
    lines.append(f"{said['in_flight']} minibatches in flight for each replica of the first stage")
    for name, one, other in (
        ("predicted", "minibatch_s", "data_parallel_s"),
        ("simulated", "simulated_s", "simulated_data_parallel_s"),
    ):
        if one in said:
            lines.append(
                f"{name}: {said[one] * 1e3:.6g} ms a minibatch, {said[other] / said[one]:.4g} x data "
                f"parallelism ({said[other] * 1e3:.6g} ms)"
            )
    return "\n".join(lines) + "\n"
