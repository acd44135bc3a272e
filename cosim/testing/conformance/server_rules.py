"""Checks of the protocol's own rules: who may say what when, and what is true of every answer."""

from __future__ import annotations

import os
import signal
import time

import numpy as np

from cosim.errors import NetworkError
from cosim.protocol.digest import Digest
from cosim.protocol.flat_flows import LATER, FlatFlows, make
from cosim.protocol.v1 import VERSION
from cosim.protocol.v1 import network_simulator_pb2 as pb
from cosim.testing.conformance.cases import LATENCY_PS, MESSAGE, flows, long_run
from cosim.testing.conformance.kit import check, refused
from cosim.testing.conformance.report import CheckFailed, CheckSkipped, expect
from cosim.testing.conformance.server import ServerKit, ServerProbe
from cosim.units import NEVER

_IDLE_S = 0.5
_SIGTERM_S = 10.0
_TRIES = 3
"""What a busy machine may slow down is measured so often."""
_MOST_SENT = 1 << 26


@check("handshake", "Describe, version, health; what isn't there is refused", of=["server"])
def handshake(kit: ServerKit) -> None:
    connection = kit.connect()
    there = connection.describe()
    expect(bool(there.simulator), "Describe must name the simulator")
    expect(
        there.version.major == VERSION[0],
        f"speaks version {there.version.major} of the protocol; this is {VERSION[0]}",
    )
    expect(there.quantum_ps >= 1, f"quantum_ps is {there.quantum_ps}; at least 1 would be right")
    expect(there.limits.max_message_bytes >= 1 << 16, "max_message_bytes must be announced, at least 65536")
    expect(there.limits.max_open_flows > 0, "max_open_flows must be announced")
    expect(connection.healthy(kit.deadline_s), "grpc.health.v1 must say SERVING for the service")
    connection.close()
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


def _open_refused(probe: ServerProbe, request: pb.Open, reason: str, what: str) -> None:
    with refused(reason, what):
        probe.open(request)


@check("states", "Advance before Open and a second Open are refused", of=["server"])
def states(kit: ServerKit) -> None:
    with kit.probe(opened=False) as probe:
        probe.connection.open_stream()
        with refused("STATE", "Advance before Open"):
            probe.advance()
    with kit.probe() as probe:
        probe.send(pb.SessionRequest(open=probe.request()))
        with refused("STATE", "a second Open"):
            probe.receive()


@check("sequence", "advances are numbered 1, 2, 3 ...; another number is refused", of=["server"])
def sequence(kit: ServerKit) -> None:
    for wrong in (1, 3):
        with kit.probe() as probe:
            first = probe.advance(horizon_ps=1000)
            expect(first.sequence == 1, f"the answer to advance 1 says {first.sequence}")
            probe.ask(horizon_ps=2000, sequence=wrong)
            with refused("SEQUENCE", f"advance {wrong} after 1"):
                probe.answer()


@check(
    "unclaimed",
    "what isn't claimed is refused: peek, samples, dependencies; a cancel is ignored",
    of=["server"],
)
def unclaimed(kit: ServerKit) -> None:
    may_lack = ("peek", "queues", "rates", "dependent_flows", "cancel")
    lacking = [name for name in may_lack if not kit.has(name)]
    if not lacking:
        raise CheckSkipped(f"{', '.join(may_lack)} are claimed")
    if "peek" in lacking:
        with kit.probe() as probe, refused("STATE", "Peek, which is not claimed,"):
            probe.peek()
    if "queues" in lacking:
        with kit.probe() as probe, refused("STATE", "a sample of queues, which are not claimed,"):
            probe.sample(links=np.zeros(1, np.int64))
    if "rates" in lacking:
        with kit.probe() as probe, refused("STATE", "a sample of rates, which are not claimed,"):
            probe.sample(rates=True)
    if "dependent_flows" in lacking:
        waiting = flows(0, [(0, 1), (0, 1)], MESSAGE, [0, LATER], waits_for=[[], [0]])
        with kit.probe() as probe, refused("INVALID_FLOWS", "a dependency, which is not claimed,"):
            probe.advance(waiting)
    if "cancel" in lacking:
        with kit.probe() as probe:
            probe.advance(flows(0, [(0, 1)], MESSAGE, 0), LATENCY_PS)
            probe.send(pb.SessionRequest(cancel=pb.Cancel(sequence=probe.sequence)))
            probe.finish(most=8)


@check("digest", "the digest is that of the completions told", of=["server"])
def digest(kit: ServerKit) -> None:
    with kit.probe() as probe:
        long_run(probe)
        ours = Digest()
        for answer in probe.answers:
            known = answer.ids < probe.next_id
            ours.add(np.zeros(known.sum(), np.int64), answer.ids[known], answer.time_ps[known])
            theirs = Digest(*answer.digest)
            expect(ours == theirs, f"says {theirs}; its completions have {ours}")


@check(
    "limits",
    "flows within the credit are taken, beyond it refused; large answers come in parts",
    of=["server"],
)
def limits(kit: ServerKit) -> None:
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
    with kit.probe() as probe, refused("OVERLOADED", f"{most + 1} flows, where {most} may be open"):
        probe.advance(make(0, most + 1, start_ps=NEVER - 1, reaction_delay_ps=NEVER), 1000)


@check("cancel", "Cancel ends an advance early, and the session goes on", of=["server"])
def cancel(kit: ServerKit) -> None:
    kit.needs("cancel")
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


@check("budget", "an advance with a wall budget is answered about then", of=["server"])
def budget(kit: ServerKit) -> None:
    kit.needs("wall_budget")
    took = min(_longest_of_a_budget(kit) for _ in range(_TRIES))
    expect(took < 1.0, f"an advance with a budget of 0.05 s took {took:.2f} s, the least of {_TRIES} times")


def _longest_of_a_budget(kit: ServerKit) -> float:
    """The longest advance of a session whose advances have a budget of 0.05 s, in seconds."""
    took = 0.0
    with kit.probe() as probe:
        given: FlatFlows | None = _crowd()
        while len(probe.times()) < probe.next_id or given is not None:
            began = time.monotonic()
            probe.advance(given, wall_budget_us=50_000)
            took = max(took, time.monotonic() - began)
            given = None
    return took


@check("idle", "a session that is left alone for a while goes on", of=["server"])
def idle(kit: ServerKit) -> None:
    with kit.probe() as probe:
        probe.advance(flows(0, [(0, 1)], MESSAGE, 0), LATENCY_PS)
        time.sleep(_IDLE_S)
        probe.finish(most=8)


@check("credit", "the credit falls by each flow that is open, and rises when it has completed", of=["server"])
def credit(kit: ServerKit) -> None:
    with kit.probe(opened=False) as probe:
        before = probe.open().credit
        given = flows(0, [(0, 1), (2, 3), (4, 4)], [8_000_000, 8_000_000, 0], [0, 0, 0], reaction=NEVER)
        open_now = probe.advance(given, LATENCY_PS).credit
        expect(
            open_now == before - 2, f"with 2 flows open the credit is {open_now}; it was {before} with none"
        )
        probe.finish()
        after = probe.advance().credit
        expect(after == before, f"with all flows completed the credit is {after}; it was {before} with none")


@check("receives", "a message as large as max_message_bytes is taken", of=["server"])
def receives(kit: ServerKit) -> None:
    most = min(kit.described.limits.max_message_bytes, _MOST_SENT)
    with kit.probe(opened=False) as probe:
        request = probe.request()
        room = most - pb.SessionRequest(open=request).ByteSize() - 64
        request.topology.name = "x" * room
        try:
            probe.open(request)
        except Exception as error:
            raise CheckFailed(
                f"an Open of {most - 64} bytes, where {most} are announced: {type(error).__name__}: {error}"
            ) from error


@check("causes", "a completion is certain when it comes, or before", of=["server"])
def causes(kit: ServerKit) -> None:
    with kit.probe() as probe:
        long_run(probe)
        for answer in probe.told:
            late = answer.cause_ps > answer.time_ps
            expect(
                not late.any(),
                f"a completion at {answer.time_ps[late][:1]} ps became certain at "
                f"{answer.cause_ps[late][:1]} ps",
            )


@check("sigterm", "SIGTERM ends the server's process", of=["server"])
def sigterm(kit: ServerKit) -> None:
    process = kit.process
    if process is None:
        raise CheckSkipped("the server was not started here")
    os.kill(process.pid, signal.SIGTERM)
    until = time.monotonic() + _SIGTERM_S
    while process.is_alive and time.monotonic() < until:
        time.sleep(0.02)
    ended = not process.is_alive
    process.stop()
    expect(ended, f"the process still runs {_SIGTERM_S:g} s after SIGTERM")
