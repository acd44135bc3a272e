"""Checks that a server refuses what it can't do exactly, rather than take it for something else."""

from __future__ import annotations

from collections.abc import Callable

from cosim.protocol.flat_flows import LATER
from cosim.protocol.v1 import network_simulator_pb2 as pb
from cosim.testing.conformance.cases import LATENCY_PS, MESSAGE, RATE_BPS
from cosim.testing.conformance.kit import check, refused
from cosim.testing.conformance.server import ServerKit
from cosim.units import NEVER

Change = Callable[[pb.Open], object]
_UNKNOWN = "no-such-thing"


def _routed(kind: pb.RoutingKind) -> Change:
    return lambda o: setattr(o.routing, "kind", kind)


def _open_is_refused(kit: ServerKit, changes: dict[str, Change]) -> None:
    for what, change in changes.items():
        with kit.probe(opened=False) as probe:
            request = probe.request()
            change(request)
            with refused("INVALID_OPEN", what):
                probe.open(request)


@check(
    "settings",
    "what Open asks for and isn't there is refused: routing, queue, ECN, transport, link events",
    of=["server"],
)
def settings(kit: ServerKit) -> None:
    changes: dict[str, Change] = {
        "an unknown queue discipline": lambda o: setattr(o.queue, "discipline", _UNKNOWN),
        "an unknown transport": lambda o: setattr(o.transport, "name", _UNKNOWN),
    }
    for feature, kind in (
        ("given_paths", pb.ROUTING_KIND_GIVEN),
        ("ecmp", pb.ROUTING_KIND_ECMP),
        ("spray", pb.ROUTING_KIND_SPRAY),
    ):
        if not kit.has(feature):
            changes[f"routing by {feature}, which is not claimed,"] = _routed(kind)
    if not kit.described.queue_disciplines:
        changes["room for queues, of which there is no choice,"] = lambda o: setattr(
            o.queue, "capacity_bytes", 100_000
        )
    if not kit.described.transports:
        changes["an MTU, where there is no choice of transports,"] = lambda o: setattr(
            o.transport, "mtu_bytes", 1500
        )
    if not kit.has("ecn"):
        changes["ECN, which is not claimed,"] = lambda o: o.ecn.MergeFrom(
            pb.Ecn(mark_min_bytes=30_000, mark_max_bytes=90_000)
        )
    if not kit.has("link_events"):
        changes["link events, which are not claimed,"] = lambda o: o.link_events.MergeFrom(
            pb.LinkEvents(time_ps=[LATENCY_PS], link=[0], up=[False])
        )
    elif not kit.has("link_rates"):
        changes["rates of links, which are not claimed,"] = lambda o: o.link_events.MergeFrom(
            pb.LinkEvents(time_ps=[LATENCY_PS], link=[0], up=[True], rate_bps=[RATE_BPS / 2])
        )
    if kit.has("link_events") and not kit.has("detours"):
        changes["detours, which are not claimed,"] = lambda o: o.link_events.MergeFrom(
            pb.LinkEvents(time_ps=[LATENCY_PS], link=[0], up=[False], detection_ps=LATENCY_PS)
        )
    _open_is_refused(kit, changes)


@check("topology", "a topology that can't be is refused: columns, nodes, rates, latencies", of=["server"])
def topology(kit: ServerKit) -> None:
    def with_link(column: str, value: float) -> Change:
        return lambda o: getattr(o.topology, column).__setitem__(0, value)

    _open_is_refused(
        kit,
        {
            "a column of links that is too short": lambda o: o.topology.link_dst.pop(),
            "a link to a node that isn't there": with_link("link_dst", 1000),
            "more endpoints than nodes": lambda o: setattr(o.topology, "num_endpoints", 1000),
            "a rate of 0": with_link("link_rate_bps", 0.0),
            "a rate below 0": with_link("link_rate_bps", -1e9),
            "a rate that is no number": with_link("link_rate_bps", float("nan")),
            "a latency below 0": with_link("link_latency_ps", -1),
        },
    )


@check(
    "invalid_flows", "flows that can't be are refused: columns, ids, endpoints, sizes, starts", of=["server"]
)
def invalid_flows(kit: ServerKit) -> None:
    mark = pb.Flows(count=1, start_ps=[5])
    wrong = {
        "a column of 2 entries for 3 flows": [pb.Flows(count=3, size_bytes=[1, 2])],
        "first_id 5 of the first flow": [pb.Flows(count=1, first_id=5)],
        "the id of a flow that was given before": [mark, pb.Flows(count=1, first_id=0, start_ps=[9])],
        "a source that is no endpoint": [pb.Flows(count=1, src=[1000], start_ps=[5])],
        "a destination that is no endpoint": [pb.Flows(count=1, dst=[1000], start_ps=[5])],
        "a size of -1 bytes": [pb.Flows(count=1, size_bytes=[-1])],
        "a reaction delay of -1 ps": [pb.Flows(count=1, reaction_delay_ps=[-1], start_ps=[5])],
    }
    starts = {
        "a second start of a flow": (mark, pb.Starts(id=[0], start_ps=[7])),
        "a flow that is started twice at once": (
            pb.Flows(count=1, start_ps=[LATER]),
            pb.Starts(id=[0, 0], start_ps=[7, 8]),
        ),
        "a start of a flow that was never given": (pb.Flows(), pb.Starts(id=[3], start_ps=[7])),
        "columns of starts that differ in length": (
            pb.Flows(count=2, start_ps=[LATER]),
            pb.Starts(id=[0, 1], start_ps=[7]),
        ),
    }
    if not kit.has("switch_ends"):
        switch = kit.topology.num_endpoints
        wrong["a switch as source"] = [pb.Flows(count=1, src=[switch], start_ps=[5])]
    if kit.has("dependent_flows"):
        wrong["a flow that waits for itself"] = [
            pb.Flows(count=1, start_ps=[LATER], dependency_end=[1], dependency_id=[0])
        ]
    for what, batches in wrong.items():
        with kit.probe() as probe, refused("INVALID_FLOWS", what):
            for at, batch in enumerate(batches, 1):
                probe.send(pb.SessionRequest(advance=pb.Advance(sequence=at, horizon_ps=1, flows=batch)))
                probe.answer()
    for what, (given, started) in starts.items():
        with kit.probe() as probe, refused("INVALID_FLOWS", what):
            probe.send(pb.SessionRequest(advance=pb.Advance(sequence=1, flows=given, starts=started)))
            probe.answer()


@check("paths", "paths lead from source to destination, and are given before the first flow", of=["server"])
def paths(kit: ServerKit) -> None:
    kit.needs("given_paths")
    way = kit.links(0, 1)
    other = kit.links(2, 3)
    end = len(way)
    one = {"src": [0], "dst": [1], "channel": [0]}
    wrong = {
        "no path": ("NO_PATH", pb.Paths()),
        "a path of another channel": (
            "NO_PATH",
            pb.Paths(src=[0], dst=[1], channel=[7], end=[end], link=way),
        ),
        "a path that ends elsewhere": (
            "INVALID_FLOWS",
            pb.Paths(**one, end=[end], link=[*way[:-1], other[-1]]),
        ),
        "a path that begins elsewhere": (
            "INVALID_FLOWS",
            pb.Paths(**one, end=[end], link=[other[0], *way[1:]]),
        ),
        "a path of half of the way": ("INVALID_FLOWS", pb.Paths(**one, end=[1], link=way[:1])),
        "a path over a link that isn't there": (
            "INVALID_FLOWS",
            pb.Paths(**one, end=[end], link=[*way[:-1], kit.topology.num_links]),
        ),
        "a column of paths that is too short": (
            "INVALID_FLOWS",
            pb.Paths(src=[0], dst=[1], end=[end], link=way),
        ),
        "paths of more links than there are": ("INVALID_FLOWS", pb.Paths(**one, end=[end + 1], link=way)),
    }
    for what, (reason, given) in wrong.items():
        flow = pb.Flows(count=1, src=[0], dst=[1], size_bytes=[MESSAGE], start_ps=[0])
        advance = pb.Advance(sequence=1, horizon_ps=NEVER, paths=given, flows=flow)
        with kit.probe() as probe, refused(reason, what):
            probe.send(pb.SessionRequest(advance=advance))
            probe.answer()
