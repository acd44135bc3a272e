"""The traffic that a scenario says, as a capture of it would have it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from cosim.captures.read import read_capture
from cosim.captures.traffic import LoggedCommunicator, TrafficCapture
from cosim.errors import InputError, SimulationError
from cosim.experiment.build import fabric
from cosim.experiment.run import run
from cosim.experiment.scenario import Scenario, from_document, load
from cosim.experiment.translate import translate
from cosim.files.located_yaml import Document
from cosim.pattern.nccl import Nccl
from cosim.pattern.nccl_tree import rank_parents
from cosim.pattern.template import Collective
from cosim.results.traffic.read import capture_of_messages
from cosim.topology.host_shape import HostShape
from cosim.topology.scale_up import host_shape

_NEIGHBOURS_FIRST = 2, 19, 3
"""NCCL since then passes GPUs next to each other first."""


def traffic_of(
    scenario: Path, settings: Iterable[str] = (), beside: Sequence[TrafficCapture] = ()
) -> TrafficCapture:
    """What of a scenario can be set ``beside`` captures: its run's messages; where ranks logged collectives
    also what its ranks would log; where they logged rings its NCCL's, without a run where nothing else is.

    Raises
    ------
    InputError
        A mistake in the scenario; or see :func:`rings_of`.
    SimulationError
        The run was interrupted.
    """
    loaded = load(scenario, settings)
    capture = TrafficCapture(f"{scenario} (model)", "rings of NCCL's")
    communicators = [found for one in beside for found in one.communicators]
    if not communicators or not all(one.communicators for one in beside):
        capture = _recorded(capture.name, loaded)
    if any(one.collectives is not None for one in beside):
        with TemporaryDirectory() as folder:
            translate(loaded, "inspector", folder)
            capture = replace(capture, collectives=read_capture(Path(folder)).collectives)
    return replace(capture, communicators=rings_of(loaded, communicators)) if communicators else capture


def rings_of(scenario: Scenario, logged: Iterable[LoggedCommunicator]) -> tuple[LoggedCommunicator, ...]:
    """The rings, trees and NICs that a scenario's NCCL has for communicators that were logged.

    Hosts have two sockets. NCCL runs each ring on two channels between hosts (``ncclTopoPostset``). What
    ranks that don't divide over hosts have isn't said.

    Raises
    ------
    InputError
        The scenario's topology has no hosts, or too few GPUs, or its all-reduces aren't NCCL's.
    """
    topology, logged = fabric(scenario), tuple(logged)
    shape = host_shape(topology, scenario.topology)
    if shape is None:
        raise InputError(
            "the topology has no hosts with several GPUs, so NCCL's rings can't be said",
            location=scenario.locate("topology"),
            hint="topology: {kind: leaf_spine, ..., hosts: {gpus: 8, nics: 4, ...}}",
        )
    nccl = scenario.collectives.on_hosts(shape).choice(Collective.ALL_REDUCE)
    if not isinstance(nccl, Nccl) or nccl.by_links():
        raise InputError(
            "all_reduce is not by NCCL's rings, and the log has these",
            location=scenario.locate("collectives"),
            hint="leave collectives.all_reduce out, or write nccl",
        )
    most = max((one.num_ranks for one in logged), default=0)
    if most > topology.num_endpoints:
        raise InputError(
            f"the log has a communicator of {most:,} ranks, and the topology {topology.num_endpoints:,} GPUs",
            location=scenario.locate("topology"),
            hint="give the topology of the job that wrote the log",
        )
    return tuple(_communicator(one, nccl, shape) for one in logged)


def _communicator(logged: LoggedCommunicator, nccl: Nccl, shape: HostShape) -> LoggedCommunicator:
    ranks = logged.num_ranks
    hosts = logged.num_hosts or -(-ranks // shape.gpus)
    one = LoggedCommunicator(logged.name, ranks, hosts, logged.version, {}, 0, {}, {}, {}, {})
    if ranks % hosts or ranks // hosts > shape.gpus:
        return one
    local = ranks // hosts
    old = logged.version and tuple(map(int, logged.version.split("."))) < _NEIGHBOURS_FIRST
    orders = nccl.ring_orders(ranks, hosts, sockets=2 if old and local == shape.gpus else 1).tolist()
    both = orders * 2
    heads = [order[0] % local for order in orders] if hosts > 1 else [0]
    trees = [rank_parents(hosts, local, which, head) for which in (0, 1) for head in heads]
    ways = {
        (channel, src, dst): f"NET/{src % local * shape.nics // shape.gpus}"
        for channel, order in enumerate(both)
        for src, dst in zip(order, order[1:] + order[:1], strict=True)
        if src // local != dst // local and local == shape.gpus and shape.gpu_nics == 1
    }
    return replace(
        one,
        hosts={rank: f"host {rank // local}" for rank in range(ranks)},
        num_channels=len(both) if hosts > 1 else 0,
        nexts={c: dict(zip(order, order[1:] + order[:1], strict=True)) for c, order in enumerate(both)},
        parents={c: dict(enumerate(parents)) for c, parents in enumerate(trees)},
        ways=ways,
    )


def traffic_of_model(name: str, settings: Iterable[str] = ()) -> TrafficCapture:
    """The traffic of four iterations of a catalogue's model: data parallel on 8 A100s, a batch of 64.

    They are below two leaves, 100 Gbps each. ``settings`` change that: ``jobs[0].workload.batch=128``.

    Raises
    ------
    InputError
        No such model, or a setting that doesn't fit.
    SimulationError
        The run was interrupted.
    """
    fabric = {"kind": "leaf_spine", "leaves": 2, "spines": 2, "endpoints_per_leaf": 4}
    workload = {"kind": "model", "model": name, "gpu": "a100-80gb", "batch": 64, "parallel": {"dp": 8}}
    scenario = {
        "topology": {**fabric, "rate": "100Gbps", "latency": "500ns"},
        "network": "fair_share",
        "jobs": [{"name": name, "iterations": 4, "workload": workload}],
    }
    return _recorded(name, from_document(Document(name, scenario), Path(), name, settings))


def _recorded(name: str, scenario: Scenario) -> TrafficCapture:
    records = run(scenario.with_settings({"record.messages": "npz"})).records
    if records.messages is None or records.interrupted:
        raise SimulationError("the run was interrupted")
    jobs = [job.name for job in records.jobs]
    return capture_of_messages(name, records.messages, records.topology.node_names, jobs)
