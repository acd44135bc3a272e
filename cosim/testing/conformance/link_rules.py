"""Checks of links that fail, slow down and come back."""

from __future__ import annotations

from cosim.protocol.v1 import network_simulator_pb2 as pb
from cosim.testing.conformance.cases import LATENCY_PS, MESSAGE, RATE_BPS, flows, two_hosts
from cosim.testing.conformance.kit import check, refused
from cosim.testing.conformance.report import expect
from cosim.testing.conformance.server import ServerKit, ServerProbe
from cosim.units import NEVER


@check("link_events", "a link that fails carries nothing until it comes back", of=["server"])
def link_events(kit: ServerKit) -> None:
    kit.needs("link_events")
    wrong = {
        "an event of a link that isn't there": pb.LinkEvents(
            time_ps=[LATENCY_PS], link=[kit.topology.num_links], up=[False]
        ),
        "columns of events that differ in length": pb.LinkEvents(time_ps=[LATENCY_PS], link=[0], up=[]),
    }
    for what, events in wrong.items():
        with kit.probe(opened=False) as probe, refused("INVALID_OPEN", what):
            request = probe.request()
            request.link_events.MergeFrom(events)
            probe.open(request)
    back = 2_000 * LATENCY_PS
    link = kit.links(0, 1)[-1]
    came = _arrives(kit, pb.LinkEvents(time_ps=[0, back], link=[link] * 2, up=[False, True]))
    expect(came > back, f"a message over a link that works from {back} ps on arrived at {came} ps")


@check("link_rates", "a link that has another rate for a time sends no more than that", of=["server"])
def link_rates(kit: ServerKit) -> None:
    kit.needs("link_rates")
    link = kit.links(0, 1)[-1]
    least = LATENCY_PS + round(MESSAGE * 8e12 / (RATE_BPS / 4))
    came = _arrives(kit, pb.LinkEvents(time_ps=[0], link=[link], up=[True], rate_bps=[RATE_BPS / 4]))
    expect(
        came > least, f"a message arrived at {came} ps that a quarter of its link's rate sends by {least} ps"
    )


@check("detours", "what would go over a dead link goes by its detour after the detection", of=["server"])
def detours(kit: ServerKit) -> None:
    kit.needs("detours", "given_paths")
    topology, known = two_hosts(), 100 * LATENCY_PS
    # From 0 to 1 by way of their host's switch; or of the one between hosts.
    own, other = ([cable, topology.num_links // 2 + cable + 1] for cable in (0, topology.num_endpoints))
    probe = ServerProbe(kit.connect(), kit.described, topology)
    try:
        request = probe.request()
        dead = pb.LinkEvents(time_ps=[0], link=own[-1:], up=[False], detection_ps=known)
        request.link_events.MergeFrom(dead)
        probe.open(request)
        paths = pb.Paths(
            src=[0, 0], dst=[1, 1], channel=[0, 0], end=[2, 4], link=[*own, *other], dead_set=[0, 1]
        )
        given = pb.Flows(count=1, src=[0], dst=[1], size_bytes=[MESSAGE], start_ps=[LATENCY_PS])
        given.reaction_delay_ps.append(NEVER)
        probe.send(
            pb.SessionRequest(advance=pb.Advance(sequence=1, horizon_ps=NEVER, paths=paths, flows=given))
        )
        came = probe.answer().time_ps.tolist()
    finally:
        probe.close()
    expect(len(came) == 1, "a message whose link is dead never took its detour")
    expect(came[0] > known, f"a message took its detour before {known} ps: it arrived at {came[0]} ps")


@check(
    "live_changes",
    "a link that slows down while the session runs carries no more than its new rate from then on",
    of=["server"],
)
def live_changes(kit: ServerKit) -> None:
    kit.needs("live_changes")
    link, begin, change = kit.links(0, 1)[-1], LATENCY_PS, 2 * LATENCY_PS
    with kit.probe(opened=False) as probe:
        request = probe.request()
        request.link_events.SetInParent()  # none is known, and some may come
        probe.open(request)
        given = flows(0, [(0, 1)], MESSAGE, begin, reaction=NEVER)
        probe.advance(given, change)
        slower = pb.Changes(time_ps=[change], link=[link], rate_bps=[RATE_BPS / 4])
        number = probe.sequence + 1
        asked = pb.Advance(sequence=number, horizon_ps=NEVER, changes=slower)
        probe.send(pb.SessionRequest(advance=asked))
        came = probe.answer().time_ps.tolist()
    expect(len(came) == 1, "a message never completed over a link that changes")
    least = change + round((MESSAGE * 8e12 - RATE_BPS * (change - begin)) / (RATE_BPS / 4))
    expect(
        came[0] >= least,
        f"a message arrived at {came[0]} ps; a quarter of its link's rate, from {change} ps on, sends it by "
        f"{least} ps at the earliest",
    )


@check("live_control", "a parameter that the congestion control does not have is refused", of=["server"])
def live_control(kit: ServerKit) -> None:
    kit.needs("live_control")
    unknown = pb.Changes(control={"no such parameter": "1"})
    with kit.probe(opened=False) as probe, refused("INVALID_FLOWS", "a control's unknown parameter"):
        request = probe.request()
        request.link_events.SetInParent()
        probe.open(request)
        number = probe.sequence + 1
        probe.send(pb.SessionRequest(advance=pb.Advance(sequence=number, horizon_ps=0, changes=unknown)))
        probe.answer()


def _arrives(kit: ServerKit, events: pb.LinkEvents) -> int:
    """When a message from endpoint 0 to 1 is there."""
    with kit.probe(opened=False) as probe:
        request = probe.request()
        request.link_events.MergeFrom(events)
        probe.open(request)
        probe.advance(flows(0, [(0, 1)], MESSAGE, LATENCY_PS, reaction=NEVER))
        return int(probe.finish()[0])
