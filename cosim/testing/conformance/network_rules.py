"""Checks of a network of this process: its states, groups of flows, and what it doesn't claim."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from cosim.errors import NetworkError
from cosim.fabric.changes import LinkChange, LinkChanges
from cosim.network.flows import COMPUTATION, ON_COMPLETION, FlowBatch, FlowGroup, flat_table
from cosim.network.simulator import NetworkSimulator
from cosim.testing.conformance.cases import LATENCY_PS, flows
from cosim.testing.conformance.kit import check
from cosim.testing.conformance.network import NetworkKit
from cosim.testing.conformance.report import CheckSkipped, expect
from cosim.units import NEVER

_ENDS = np.arange(8, dtype=np.int32)
_SIZE = 50_000


def _batch(group: FlowGroup, index: list[int], start_ps: int) -> FlowBatch:
    """A group, and the start of some of its flows at one time."""
    n = len(index)
    when = np.full(n, start_ps, np.int64)
    return FlowBatch([group], np.full(n, group.handle, np.int32), np.array(index, np.int64), when, when)


def _run(network: NetworkSimulator, batch: FlowBatch, count: int) -> dict[int, int]:
    """Completion time by index, of ``count`` flows of one group."""
    found: dict[int, int] = {}
    for _ in range(1000):
        _, done = network.advance(batch, NEVER)
        found.update(zip(done.index.tolist(), done.time_ps.tolist(), strict=True))
        batch = FlowBatch()
        if len(found) == count:
            break
    return found


def refuses(action: Callable[[], object], what: str) -> None:
    """Fail the check unless the network refuses, with cosim's own error.

    Raises
    ------
    CheckFailed
        It is taken.
    """
    try:
        action()
    except NetworkError:
        return
    expect(False, f"{what} must be refused with a NetworkError; it was taken")


@check("describe", "a name, a quantum of at least 1 ps; an unknown option is refused", of=["network"])
def describe(kit: NetworkKit) -> None:
    there = kit.capabilities
    expect(bool(there.name), "describe must name the network")
    expect(there.quantum_ps >= 1, f"quantum_ps is {there.quantum_ps}; at least 1 would be right")
    network = kit.make()
    refuses(lambda: network.open(kit.topology, 0, {"no-such-option": 1}), "an unknown option")


@check(
    "states", "advance before open and a second open are refused; close may be called twice", of=["network"]
)
def states(kit: NetworkKit) -> None:
    with kit.probe(opened=False) as probe:
        refuses(lambda: probe.network.advance(FlowBatch(), 1000), "advance before open")
    with kit.probe() as probe:
        refuses(lambda: probe.network.open(kit.topology), "a second open")
        probe.network.close()


@check(
    "handles",
    "a handle in use is refused; when every flow of its group has completed, it is free",
    of=["network"],
)
def handles(kit: NetworkKit) -> None:
    group = FlowGroup(3, flat_table([0], [0], [0]), _ENDS[:1], (0, 0))
    with kit.probe() as probe:
        probe.network.advance(_batch(group, [0], LATENCY_PS), 1)
        refuses(lambda: probe.network.advance(_batch(group, [0], LATENCY_PS), 2), "a handle in use")
    with kit.probe() as probe:
        for k in range(1, 4):
            found = _run(probe.network, _batch(replace(group, key=(0, k)), [0], k * LATENCY_PS), 1)
            expect(len(found) == 1, f"use {k} of handle 3: its flow did not complete")


@check("repeats", "a table whose rows repeat is the same as one where each flow has a row", of=["network"])
def repeats(kit: NetworkKit) -> None:
    once = flat_table(
        [0, 1, 2], [1, 2, 3], [_SIZE, 2 * _SIZE, 3 * _SIZE], num_participants=8, reaction_ps=NEVER
    )
    table = replace(once, block_repeat=np.array([3], np.int64))
    row = np.tile(np.arange(3), 3)
    flat = flat_table(
        once.src[row].tolist(),
        once.dst[row].tolist(),
        once.size_bytes[row].tolist(),
        num_participants=8,
        reaction_ps=NEVER,
    )
    found = []
    for one in (table, flat):
        with kit.probe() as probe:
            batch = _batch(FlowGroup(0, one, _ENDS, (0, 0), release="caller"), list(range(9)), 0)
            found.append(_run(probe.network, batch, 9))
    expect(found[0] == found[1], f"repeated rows: {found[0]}; the same flows, a row each: {found[1]}")


@check("endpoints", "a group binds its table's participants to any endpoints", of=["network"])
def endpoints(kit: NetworkKit) -> None:
    table = flat_table([0, 0], [1, 0], [_SIZE, 0], reaction_ps=NEVER)
    with kit.probe() as probe:
        batch = _batch(FlowGroup(0, table, np.array([3, 2], np.int32), (0, 0)), [0, 1], 0)
        _run(probe.network, batch, 2)
        moved = np.flatnonzero(probe.network.statistics().link_bytes).tolist()
        path = kit.links(3, 2)
    expect(moved == sorted(path), f"3 to 2 takes the links {path}; bytes crossed {moved}")


@check(
    "symmetry",
    "where it claims to be symmetric, who is first at an instant makes no difference",
    of=["network"],
)
def symmetry(kit: NetworkKit) -> None:
    kit.needs("symmetric")
    for pairs in ([(k, (k + 1) % 8) for k in range(8)], [(1, 0), (2, 0), (3, 0)]):
        with kit.probe() as probe:
            probe.advance(flows(0, pairs, _SIZE, 0, reaction=NEVER))
            found = probe.finish()
        expect(len({*found.values()}) == 1, f"equal messages {pairs} arrived at {found}")


@check("unclaimed", "what isn't claimed is refused: dependent flows, peek, queues, rates", of=["network"])
def unclaimed(kit: NetworkKit) -> None:
    with kit.probe() as probe:
        refuses(lambda: probe.network.tune({"no_such_parameter": 1}, 0), "a control's unknown parameter")
    may_lack = ("dependent_flows", "peek", "queues", "rates")
    if all(kit.has(name) for name in may_lack):
        raise CheckSkipped(f"{', '.join(may_lack)} are claimed")
    for name in ("queues", "rates"):
        if not kit.has(name):
            with kit.probe() as probe:
                looks = {"queues": lambda: probe.queues(_ENDS[:1].astype(np.int64), 0), "rates": probe.rates}
                refuses(looks[name], name)
    if not kit.has("peek"):
        with kit.probe() as probe:
            refuses(probe.network.peek, "peek")
    if not kit.has("dependent_flows"):
        waiting = replace(
            flat_table([0, 1], [1, 2], [0, 0]),
            dep_ptr=np.array([0, 0, 1], np.int64),
            dep_distance=np.array([1], np.int64),
            dep_kind=np.array([ON_COMPLETION], np.int8),
        )
        with kit.probe() as probe:
            batch = _batch(FlowGroup(0, waiting, _ENDS[:3], (0, 0)), [0], 0)
            refuses(lambda: probe.network.advance(batch, NEVER), "a group that the network is to release")


@check(
    "switch_ends",
    "a message that ends at a switch takes at least what its bytes take on the links up to there",
    of=["network"],
)
def switch_ends(kit: NetworkKit) -> None:
    kit.needs("switch_ends")
    topology = kit.topology
    if topology.num_nodes == topology.num_endpoints:
        raise CheckSkipped("the topology has no switch")
    ends = np.array([0, topology.num_endpoints], np.int32)
    links = topology.paths(ends[:1], ends[1:], np.zeros(1, np.int32))[1]
    least = LATENCY_PS + round(_SIZE * 8e12 / float(topology.link_rate_bps[links].min()))
    network = kit.make()
    network.open(topology, 1)
    group = FlowGroup(0, flat_table([0], [1], [_SIZE]), ends, (0, 0))
    came = _run(network, _batch(group, [0], LATENCY_PS), 1)
    network.close()
    expect(len(came) == 1, "a message to a switch never completed")
    expect(
        came[0] >= least - 1,
        f"a message to a switch arrived at {came[0]} ps; its path takes until {least} ps",
    )


@check(
    "live_changes",
    "a link that slows down while the network runs carries no more than its new rate from then on",
    of=["network"],
)
def live_changes(kit: NetworkKit) -> None:
    kit.needs("live_changes")
    one = np.zeros(1, np.int32)
    link = int(kit.topology.paths(one, one + 1, one)[1][-1])
    rate, begin, change = float(kit.topology.link_rate_bps[link]), LATENCY_PS, 2 * LATENCY_PS
    network = kit.make()
    network.open(replace(kit.topology, changes=LinkChanges(())), 1)
    group = FlowGroup(0, flat_table([0], [1], [_SIZE]), _ENDS[:2], (0, 0))
    network.advance(_batch(group, [0], begin), change)
    network.change([LinkChange(change, link, rate / 4)])
    came = _run(network, FlowBatch(), 1)
    network.close()
    expect(len(came) == 1, "a message never completed over a link that changes")
    least = change + round((_SIZE * 8e12 - rate * (change - begin)) / (rate / 4))
    expect(
        came[0] >= least,
        f"a message arrived at {came[0]} ps; a quarter of its link's rate, from {change} ps on, sends it by "
        f"{least} ps at the earliest",
    )


@check(
    "link_changes",
    "a link that fails carries nothing until it comes back; one that slows down, no more than its rate",
    of=["network"],
)
def link_changes(kit: NetworkKit) -> None:
    kit.needs("link_changes")
    topology = kit.topology
    one = np.zeros(1, np.int32)
    link = int(topology.paths(one, one + 1, one)[1][-1])
    rate = float(topology.link_rate_bps[link])
    back = 2_000 * LATENCY_PS
    group = FlowGroup(0, flat_table([0], [1], [_SIZE]), _ENDS[:2], (0, 0))

    def arrives(*changes: LinkChange) -> int:
        network = kit.make()
        network.open(replace(topology, changes=LinkChanges(changes)), 1)
        came = _run(network, _batch(group, [0], LATENCY_PS), 1)
        network.close()
        expect(len(came) == 1, "a message never completed over a link that changes")
        return came[0]

    came = arrives(LinkChange(0, link, 0.0), LinkChange(back, link, rate))
    expect(came > back, f"a message over a link that works from {back} ps on arrived at {came} ps")
    least = LATENCY_PS + round(_SIZE * 8e12 / (rate / 4))
    came = arrives(LinkChange(0, link, rate / 4))
    expect(
        came > least, f"a message arrived at {came} ps that a quarter of its link's rate sends by {least} ps"
    )


@check(
    "computations",
    "a computation that has an endpoint to itself takes the time that it is given",
    of=["network"],
)
def computations(kit: NetworkKit) -> None:
    kit.needs("computations")
    network = kit.make()
    network.open(kit.topology, 1)
    table = flat_table([0], [0], [_SIZE], channel=[COMPUTATION])
    came = _run(network, _batch(FlowGroup(0, table, _ENDS[:1], (0, 0)), [0], LATENCY_PS), 1)
    network.close()
    said = f"a computation of {_SIZE} ps that began at {LATENCY_PS} ps ended at {came.get(0, 'no time')}"
    expect(came == {0: LATENCY_PS + _SIZE}, said)
