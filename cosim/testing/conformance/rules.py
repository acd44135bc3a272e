"""Checks of the seam's own rules: what may be asked when, and what is true of every answer."""

from __future__ import annotations

import numpy as np

from cosim.testing.conformance.cases import LATENCY_PS, MESSAGE, flows, long_run
from cosim.testing.conformance.kit import Kit, Probe, check, refused
from cosim.testing.conformance.report import CheckFailed, expect
from cosim.units import NEVER

_ENDURANCE = 60


@check("causality", "a start or a horizon before the grant is refused")
def causality(kit: Kit[Probe]) -> None:
    with kit.probe() as probe:
        probe.advance(horizon_ps=5 * LATENCY_PS)
        with refused("CAUSALITY", "a start before the grant"):
            probe.advance(flows(0, [(0, 1)], MESSAGE, 4 * LATENCY_PS))
    with kit.probe() as probe:
        probe.advance(horizon_ps=5 * LATENCY_PS)
        with refused("CAUSALITY", "a horizon before the grant"):
            probe.advance(horizon_ps=4 * LATENCY_PS)


@check("time", "grants never go back")
def grants(kit: Kit[Probe]) -> None:
    with kit.probe() as probe:
        long_run(probe)
        before = 0
        for answer in probe.answers:
            expect(answer.granted_ps >= before, f"granted {answer.granted_ps} ps after {before} ps")
            before = answer.granted_ps


@check("grant", "completions lie in what was granted, grants within the horizon")
def within(kit: Kit[Probe]) -> None:
    with kit.probe() as probe:
        long_run(probe)
        for answer in probe.answers:
            late = answer.time_ps[answer.time_ps > answer.granted_ps]
            expect(not len(late), f"completion at {late[:1]} ps with a grant of {answer.granted_ps} ps")
        horizon = probe.answers[-1].granted_ps
        if horizon < NEVER - LATENCY_PS:
            answer = probe.advance(horizon_ps=horizon + LATENCY_PS)
            expect(
                answer.granted_ps == horizon + LATENCY_PS,
                f"with nothing left to simulate the horizon {horizon + LATENCY_PS} ps must be granted, "
                f"not {answer.granted_ps} ps",
            )


@check("ids", "every flow completes once; nothing else does")
def ids(kit: Kit[Probe]) -> None:
    with kit.probe() as probe:
        long_run(probe)
        seen: set[int] = set()
        for answer in probe.answers:
            for one in answer.ids.tolist():
                expect(one < probe.next_id, f"flow {one} completed; it was never given")
                expect(one not in seen, f"flow {one} completed twice")
                seen.add(one)
            expect(bool((answer.start_ps <= answer.time_ps).all()), "a flow completed before it started")


@check("endurance", f"{_ENDURANCE} advances in one session")
def endurance(kit: Kit[Probe]) -> None:
    with kit.probe() as probe:
        for k in range(1, _ENDURANCE + 1):
            try:
                probe.advance(horizon_ps=k * LATENCY_PS)
            except Exception as error:
                raise CheckFailed(f"advance {k}: {type(error).__name__}: {error}") from error


@check("peek", "Peek tells the next completion, and doesn't move")
def peek(kit: Kit[Probe]) -> None:
    kit.needs("peek")
    with kit.probe() as probe:
        probe.advance(flows(0, [(0, 1)], MESSAGE, 0), LATENCY_PS)
        told = [probe.peek(), probe.peek()]
        when = probe.finish(most=8)[0]
        expect(told == [when, when], f"Peek said {told} ps; the completion came at {when} ps")


@check("statistics", "bytes on each link, once for each message that crossed it; counters that can be")
def statistics(kit: Kit[Probe]) -> None:
    size = 1 << 20
    with kit.probe() as probe:
        probe.advance(flows(0, [(0, 1)], size, 0))
        probe.finish(most=8)
        found = probe.statistics()
    links = kit.topology.num_links
    expect(
        len(found.link_bytes) == links, f"link_bytes has {len(found.link_bytes)} entries for {links} links"
    )
    for link in kit.links(0, 1):
        moved = found.link_bytes[link]
        expect(size <= moved <= 1.2 * size, f"link {link} carried {moved} bytes of a message of {size}")
    expect(found.flows_completed == 1, f"flows_completed is {found.flows_completed}, not 1")
    for name, values in {"link_bytes": found.link_bytes, "busy_ps": found.busy_ps, **found.extra}.items():
        wrong = ~np.isfinite(values) | (values < 0)
        expect(not wrong.any(), f"{name} has {values[wrong][:1]}; counters are numbers, 0 at least")
        width = np.shape(values)[-1]
        expect(width == links, f"{name} has {width} entries for {links} links")
    if found.bin_ps:
        expect(
            bool((found.busy_ps <= found.bin_ps).all()),
            f"a link was busy for more than a bin of {found.bin_ps} ps",
        )


@check("starts", "a flow's start is told as it was given")
def starts(kit: Kit[Probe]) -> None:
    quantum = kit.capabilities.quantum_ps
    given = [k * LATENCY_PS // quantum * quantum for k in (1, 2, 2, 3)]
    with kit.probe() as probe:
        probe.advance(flows(0, [(0, 1), (0, 1), (2, 1), (3, 3)], [5 * MESSAGE] * 4, given, reaction=NEVER))
        probe.finish()
        told = {
            one: when
            for answer in probe.answers
            for one, when in zip(answer.ids.tolist(), answer.start_ps.tolist(), strict=True)
        }
    expect(told == dict(enumerate(given)), f"starts were given for {given} ps, and told as {told}")


@check("quantum", "completions are multiples of the quantum that is claimed")
def quantum(kit: Kit[Probe]) -> None:
    claimed = kit.capabilities.quantum_ps
    with kit.probe() as probe:
        probe.advance(flows(0, [(k, k + 1) for k in range(7)], [MESSAGE + 7 * k for k in range(7)], 0))
        off = [when for when in probe.finish().values() if when % claimed]
    expect(not off, f"completions at {off[:3]} ps are no multiples of {claimed} ps")
