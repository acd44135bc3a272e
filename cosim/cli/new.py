"""``cosim new``: a first scenario, by three questions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from cosim.cli.say import say

_GPUS = {
    "dgx-a100": "a100-80gb",
    "dgx-b200": "b200",
    "dgx-b300": "b300",
    "dgx-h100": "h100-sxm",
    "dgx-h200": "h200-sxm",
    "gb200-nvl72": "gb200",
    "gb300-nvl72": "gb300",
    "mi300x-platform": "mi300x",
}
"""The GPU of each system by name."""

_QUESTIONS = {
    "job": (
        "What runs? A model (`cosim list model`), a script (train.py), or a collective (all_reduce 1GB)",
        "llama3-8b",
    ),
    "gpus": ("On how many GPUs, in which hosts", "16 dgx-h100"),
    "network": ("Which network: fair_share, or a congestion control such as dcqcn or swift", "fair_share"),
}


def new(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The YAML file to write.")],
    job: Annotated[
        str | None,
        typer.Option("--job", help="A model, a script's path, or a collective and a size: 'all_reduce 1GB'."),
    ] = None,
    gpus: Annotated[
        str | None, typer.Option("--gpus", help="How many GPUs, in which hosts: '16 dgx-h100'.")
    ] = None,
    network: Annotated[
        str | None, typer.Option("--network", help="A network model, or a congestion control: dcqcn.")
    ] = None,
) -> None:
    """Write a first scenario: asks what runs, on which GPUs, over which network.

    An option answers its question.
    """
    from cosim.errors import InputError

    if file.exists():
        raise InputError(f"{file} exists", hint="name another file: cosim new never replaces one")
    text = scenario_text(
        _answered("job", job), _answered("gpus", gpus), _answered("network", network), file.resolve().parent
    )
    from cosim.files.text import write_text

    write_text(file, text)
    say(f"written: {file}\nrun it: cosim run {file}")


def _answered(option: str, given: str | None) -> str:
    from cosim.errors import InputError

    if given is None:
        question, example = _QUESTIONS[option]
        if not sys.stdin.isatty():
            raise InputError(f"--{option} is missing", hint=f"say it, as in --{option} '{example}'")
        given = str(typer.prompt(question, default=example, err=True))
    if not given.strip():
        raise InputError(f"--{option} is empty", hint=f"as in --{option} '{_QUESTIONS[option][1]}'")
    return given.strip()


def scenario_text(job: str, gpus: str, network: str, base: Path) -> str:
    """Return a scenario as YAML with comments; a model is cut so that it fits.

    Raises
    ------
    InputError
        An answer names what there isn't, two answers contradict, or no cut of the model fits.
    """
    from cosim.errors import InfeasibleError, InputError
    from cosim.experiment.build import build
    from cosim.experiment.scenario import loads

    ranks, per_host, system = _hosts(gpus)
    above = [
        f"# How long does {job} take on {ranks} GPUs? What if: --set topology.oversubscription=2",
        "topology:",
        f"  kind: {system}  # cosim list topology",
        f"  hosts: {ranks // per_host}  # of {per_host} GPUs each",
        *_network(network),
        "jobs:",
        "  - workload:",
    ]
    for workload in _workloads(job, ranks, _GPUS[system], base):
        text = "\n".join([*above, *(f"      {line}" for line in workload)]) + "\n"
        scenario = loads(text, base=base)
        if not job.endswith(".py"):  # a script is profiled when it runs
            try:
                build(scenario)
            except InfeasibleError:
                continue
        return text
    raise InputError(
        f"{job} does not fit on {ranks} GPUs of {system}, cut by tp and fsdp, with activations recomputed",
        hint="more GPUs; or pp, ep and offload, by hand: cosim list workload model",
    )


def _hosts(gpus: str) -> tuple[int, int, str]:
    from cosim.errors import InputError
    from cosim.registry import find, nearest

    number, _, system = gpus.partition(" ")
    system = system.strip()
    if not number.isdecimal() or int(number) < 1 or not system:
        raise InputError(f"--gpus {gpus!r} is not a number and a system", hint="as in --gpus '16 dgx-h100'")
    if system not in _GPUS:
        near = nearest(system, _GPUS)
        raise InputError(
            f"--gpus: there is no system {system!r}{near}", hint=f"there are: {', '.join(_GPUS)}"
        )
    ranks, per_host = int(number), int(find("cosim.topologies", system).sheet.gpus)
    if ranks % per_host:
        below, above = ranks // per_host * per_host, -(-ranks // per_host) * per_host
        raise InputError(
            f"--gpus: {ranks} GPUs don't fill hosts of {per_host} ({system})",
            hint=f"{above} do" if not below else f"{below} or {above} do",
        )
    return ranks, per_host, system


def _network(network: str) -> list[str]:
    from cosim.errors import InputError
    from cosim.registry import find, names, nearest
    from cosim.spec import Spec

    models, controls = names("cosim.networks"), names("cosim.controls")
    if network in controls:
        return ["network:", "  model: congestion", f"  control: {network}  # cosim list control"]
    kind = find("cosim.networks", network) if network in models else None
    fields = kind.model_fields if isinstance(kind, type) and issubclass(kind, Spec) else {}
    if any(field.is_required() for field in fields.values()):
        return ["network:", f"  model: {network}", "  control: dcqcn  # or another: cosim list control"]
    if network not in models:
        near = nearest(network, (*models, *controls))
        raise InputError(
            f"--network: there is no network and no control {network!r}{near}",
            hint=f"there are: {', '.join((*models, *controls))}",
        )
    return [f"network: {network}  # cosim list network"]


def _workloads(job: str, ranks: int, gpu: str, base: Path) -> Iterator[list[str]]:
    """Workloads that the answer may mean, the best first: cuts of a model, of which some may not fit."""
    from cosim.errors import InputError
    from cosim.models.contract import DataParallelModel
    from cosim.pattern.template import Collective
    from cosim.registry import find, names, nearest

    kind, _, size = job.partition(" ")
    collectives = tuple(each.value for each in Collective)
    # A class is a kind of model whose sizes are its user's to say.
    models = [name for name in names("cosim.models") if not isinstance(find("cosim.models", name), type)]
    if kind in collectives:
        if not size.strip():
            raise InputError(f"--job {job!r} has no size", hint=f"as in --job '{kind} 1GB'")
        yield ["kind: collective", f"collective: {kind}", f"size: {size.strip()}", f"ranks: {ranks}"]
    elif job.endswith(".py"):
        if not (base / job).is_file():
            raise InputError(f"--job: there is no script {job}", hint=f"beside the scenario, in {base}")
        yield ["kind: script", f"script: {job}", f"world_size: {ranks}", f"gpu: {gpu}"]
    elif job in models:
        cuts = [(tp, how) for how in ("none", "full") for tp in (1, 2, 4, 8) if ranks % tp == 0]
        if isinstance(find("cosim.models", job), DataParallelModel):
            cuts = [(0, "none")]
        for tp, recompute in cuts:
            parallel = f"tp: {tp}, fsdp: {ranks // tp}" if tp > 1 else f"{'fsdp' if tp else 'dp'}: {ranks}"
            yield [
                "kind: model",
                f"model: {job}  # cosim list model",
                f"gpu: {gpu}",
                f"parallel: {{{parallel}}}  # cosim list workload model",
                f"batch: {ranks}",
                *(["recompute: full"] if recompute == "full" else []),
            ]
    else:
        near = nearest(kind, (*models, *collectives))
        raise InputError(
            f"--job: there is no model, no collective and no script {job!r}{near}",
            hint=f"models: {', '.join(models)}; collectives: {', '.join(collectives)}",
        )
