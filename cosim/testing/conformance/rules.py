"""Checks of the protocol's own rules: who may say what when, and what is true of every answer."""

from __future__ import annotations

import time

import numpy as np

from cosim.errors import CosimError, NetworkError
from cosim.protocol.columns import FlatFlows, make
from cosim.protocol.digest import Digest
from cosim.protocol.v1 import VERSION
from cosim.protocol.v1 import network_simulator_pb2 as pb
from cosim.testing.conformance.kit import Kit, check, expect
from cosim.testing.conformance.probe import Probe
from cosim.testing.conformance.worlds import LATENCY_PS, flows
from cosim.units import NEVER

_MESSAGE = 20_000
_LONG = 24
_ENDURANCE = 60
_IDLE_S = 0.5


def refused(probe: Probe, reason: str, what: str) -> None:
    """The next answer must be an error of that reason."""
    try:
        probe.receive()
    except CosimError as error:
        got = getattr(error, "reason", "") or type(error).__name__
        expected = {
            "VERSION": "VersionError",
            "FEATURE_MISSING": "FeatureError",
            "CAUSALITY": "CausalityError",
            "OVERLOADED": "OverloadError",
        }.get(reason, reason)
        expect(got == expected, f"{what} must be refused as {reason}; got {type(error).__name__}: {error}")
    else:
        expect(False, f"{what} must be refused as {reason}; it was taken")


def long_run(probe: Probe, rounds: int = _LONG) -> None:
    """One message after another; each other advance ends before its message does."""
    now = 0
    for k in range(rounds // 2):
        pair = (k % 8, (k + 1 + k % 3) % 8)
        probe.advance(flows(k, [pair], _MESSAGE + k, now), now + LATENCY_PS)
        while k not in probe.times():
            now = max(now, probe.advance().granted_ps)
        now = max(now, probe.times()[k])


@check("handshake", "Describe, version, health; what isn't there is refused")
def handshake(kit: Kit) -> None:
    wire = kit.wire()
    there = wire.describe()
    expect(bool(there.simulator), "Describe must name the simulator")
    expect(
        there.version.major == VERSION[0],
        f"speaks version {there.version.major} of the protocol; this is {VERSION[0]}",
    )
    expect(there.quantum_ps >= 1, f"quantum_ps is {there.quantum_ps}; at least 1 would be right")
    expect(there.limits.max_message_bytes >= 1 << 16, "max_message_bytes must be announced, at least 65536")
    expect(there.limits.max_open_flows > 0, "max_open_flows must be announced")
    expect(wire.healthy(kit.deadline_s), "grpc.health.v1 must say SERVING for the service")
    wire.close()
    with kit.probe(opened=False) as probe:
        request = probe.request()
        request.version.major = VERSION[0] + 1
        _open_refused(probe, request, "VERSION", "another major version")
    lacking = [f for f in pb.Feature.values() if f and f not in there.features]
    if lacking:
        with kit.probe(opened=False) as probe:
            request = probe.request()
            request.required_features.extend(lacking[:1])  # type: ignore[arg-type]
            _open_refused(probe, request, "FEATURE_MISSING", "a required feature that isn't there")
    with kit.probe(opened=False) as probe:
        request = probe.request()
        request.options["no-such-option"] = "1"
        _open_refused(probe, request, "INVALID_OPEN", "an unknown option")


def _open_refused(probe: Probe, request: pb.Open, reason: str, what: str) -> None:
    probe.wire.open_stream()
    probe.send(pb.SessionRequest(open=request))
    refused(probe, reason, what)


@check("states", "Advance before Open and a second Open are refused")
def states(kit: Kit) -> None:
    with kit.probe(opened=False) as probe:
        probe.wire.open_stream()
        probe.ask()
        refused(probe, "STATE", "Advance before Open")
    with kit.probe() as probe:
        probe.send(pb.SessionRequest(open=probe.request()))
        refused(probe, "STATE", "a second Open")


@check("sequence", "advances are numbered 1, 2, 3 ...; another number is refused")
def sequence(kit: Kit) -> None:
    for wrong in (1, 3):
        with kit.probe() as probe:
            first = probe.advance(horizon_ps=1000)
            expect(first.sequence == 1, f"the answer to advance 1 says {first.sequence}")
            probe.ask(horizon_ps=2000, sequence=wrong)
            refused(probe, "SEQUENCE", f"advance {wrong} after 1")


@check("causality", "a start or a horizon before the grant is refused")
def causality(kit: Kit) -> None:
    with kit.probe() as probe:
        probe.advance(horizon_ps=5 * LATENCY_PS)
        probe.ask(flows(0, [(0, 1)], _MESSAGE, 4 * LATENCY_PS))
        refused(probe, "CAUSALITY", "a start before the grant")
    with kit.probe() as probe:
        probe.advance(horizon_ps=5 * LATENCY_PS)
        probe.ask(horizon_ps=4 * LATENCY_PS)
        refused(probe, "CAUSALITY", "a horizon before the grant")


@check("time", "grants never go back")
def grants(kit: Kit) -> None:
    with kit.probe() as probe:
        long_run(probe)
        before = 0
        for answer in probe.answers:
            expect(answer.granted_ps >= before, f"granted {answer.granted_ps} ps after {before} ps")
            before = answer.granted_ps


@check("grant", "completions lie in what was granted, grants within the horizon")
def within(kit: Kit) -> None:
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
def ids(kit: Kit) -> None:
    with kit.probe() as probe:
        long_run(probe)
        seen: set[int] = set()
        for answer in probe.answers:
            for one in answer.ids.tolist():
                expect(one < probe.next_id, f"flow {one} completed; it was never given")
                expect(one not in seen, f"flow {one} completed twice")
                seen.add(one)
            expect(bool((answer.start_ps <= answer.time_ps).all()), "a flow completed before it started")


@check("digest", "the digest is that of the completions told")
def digest(kit: Kit) -> None:
    with kit.probe() as probe:
        long_run(probe)
        ours = Digest()
        for answer in probe.answers:
            known = answer.ids < probe.next_id
            ours.add(np.zeros(known.sum(), np.int64), answer.ids[known], answer.time_ps[known])
            theirs = Digest(*answer.digest)
            expect(ours == theirs, f"says {theirs}; its completions have {ours}")


@check("limits", "flows within the credit are taken, beyond it refused; large answers come in parts")
def limits(kit: Kit) -> None:
    with kit.probe(opened=False) as probe:
        request = probe.request()
        request.max_message_bytes = 1 << 16
        credit = probe.open(request).credit
        expect(credit > 0, "Opened gives no credit")
        count = min(credit, 6000)
        marks = flows(0, [(k % 8, k % 8) for k in range(count)], 1, 1000, reaction=NEVER)
        answer = probe.advance(marks)
        expect(
            max(answer.part_bytes) <= 1 << 16, f"a message of {max(answer.part_bytes)} bytes; 65536 was asked"
        )
        probe.finish()
    most = kit.described.limits.max_open_flows
    if most > 300_000:
        return
    with kit.probe() as probe:
        probe.ask(make(0, most + 1, start_ps=NEVER - 1, reaction_delay_ps=NEVER), horizon_ps=1000)
        refused(probe, "OVERLOADED", f"{most + 1} flows, where {most} may be open")


@check("cancel", "Cancel ends an advance early, and the session goes on")
def cancel(kit: Kit) -> None:
    kit.needs(pb.FEATURE_CANCEL)
    with kit.probe() as probe:
        probe.ask(_crowd())
        probe.send(pb.SessionRequest(cancel=pb.Cancel(sequence=probe.sequence)))
        try:
            probe.answer()
            probe.send(pb.SessionRequest(cancel=pb.Cancel(sequence=99)))
            probe.finish()
            probe.advance()
        except NetworkError as error:
            expect(False, f"the session must go on after Cancel; {error}")


def _crowd() -> FlatFlows:
    """160 messages of 256 KiB to one endpoint."""
    pairs = [(1 + k % 7, 0) for k in range(160)]
    return flows(0, pairs, 1 << 18, 0, reaction=NEVER, channel=np.arange(160) // 7)


@check("budget", "an advance with a wall budget is answered about then")
def budget(kit: Kit) -> None:
    kit.needs(pb.FEATURE_WALL_BUDGET)
    with kit.probe() as probe:
        given: FlatFlows | None = _crowd()
        while True:
            began = time.monotonic()
            probe.advance(given, wall_budget_us=50_000)
            took = time.monotonic() - began
            expect(took < 1.0, f"an advance with a budget of 0.05 s took {took:.2f} s")
            given = None
            if len(probe.times()) == probe.next_id:
                break


@check("idle", "a session that is left alone for a while goes on")
def idle(kit: Kit) -> None:
    with kit.probe() as probe:
        probe.advance(flows(0, [(0, 1)], _MESSAGE, 0), LATENCY_PS)
        time.sleep(_IDLE_S)
        probe.finish(most=8)


@check("endurance", f"{_ENDURANCE} advances in one session")
def endurance(kit: Kit) -> None:
    with kit.probe() as probe:
        for k in range(1, _ENDURANCE + 1):
            try:
                probe.advance(horizon_ps=k * LATENCY_PS)
            except NetworkError as error:
                expect(False, f"advance {k}: {error}")


@check("peek", "Peek tells the next completion, and doesn't move")
def peek(kit: Kit) -> None:
    kit.needs(pb.FEATURE_PEEK)
    with kit.probe() as probe:
        probe.advance(flows(0, [(0, 1)], _MESSAGE, 0), LATENCY_PS)
        told = []
        for _ in range(2):
            probe.send(pb.SessionRequest(peek=pb.PeekRequest()))
            told.append(probe.receive().peeked.time_ps)
        when = probe.finish(most=8)[0]
        expect(told == [when, when], f"Peek said {told} ps; the completion came at {when} ps")


@check("statistics", "bytes on each link, once for each message that crossed it")
def statistics(kit: Kit) -> None:
    with kit.probe() as probe:
        size = 1 << 20
        probe.advance(flows(0, [(0, 1)], size, 0))
        probe.finish(most=8)
        probe.send(pb.SessionRequest(statistics=pb.StatisticsRequest()))
        found = probe.receive().statistics
        expect(len(found.link_bytes) == 16, f"link_bytes has {len(found.link_bytes)} entries for 16 links")
        for link in (0, 9):
            moved = found.link_bytes[link]
            expect(size <= moved <= 1.2 * size, f"link {link} carried {moved} bytes of a message of {size}")
        expect(found.flows_completed == 1, f"flows_completed is {found.flows_completed}, not 1")
