"""A server that breaks one rule on purpose: one switch for each fault, and the check that must notice it.

Run as ``python -m cosim.testing.conformance.faulty_server --fault NAME --address ADDRESS``. Faults of an
answer strike from the tenth answer of a session on, as real ones come late; the rest is cosim's own server.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from cosim.network.simulator import NetworkSimulator
from cosim.protocol.advance_parts import encode
from cosim.protocol.flat_flows import DEFAULTS, LATER, FlatFlows, decode
from cosim.protocol.frames import Frames
from cosim.protocol.refusal import Refusal
from cosim.protocol.served_network import AdvanceResult
from cosim.protocol.session import GONE, ServerConfig, Session
from cosim.protocol.v1 import network_simulator_pb2 as pb
from cosim.testing.conformance.cases import LATENCY_PS, RATE_BPS
from cosim.testing.conformance.faulty_network import CRASH, PHYSICS, STRIKE, FaultInNetwork, model_for
from cosim.units import NEVER

SERVER_FAULTS = {
    "version": "handshake",
    "stateless": "states",
    "any_sequence": "sequence",
    "peeks_unclaimed": "unclaimed",
    "credulous": "invalid_flows",
    "lax": "causality",
    "time_back": "time",
    "beyond_grant": "grant",
    "unknown_id": "ids",
    "wrong_digest": "digest",
    "overload": "limits",
    "no_cancel": "cancel",
    "slow": "budget",
    "frozen": "idle",
    "crash": "endurance",
    "wrong_peek": "peek",
    "split_instant": "one_instant",
    "overrun": "lookahead",
    "late_release": "dependents",
    "late_start": "start_dependents",
    "late_past": "past_dependents",
    "eager": "given_later",
    "wrong_starts": "starts",
    "off_quantum": "quantum",
    "any_settings": "settings",
    "any_topology": "topology",
    "any_path": "paths",
    "no_events": "link_events",
    "own_rates": "link_rates",
    "no_detours": "detours",
    "deaf_to_changes": "live_changes",
    "deaf_to_control": "live_control",
    "free_credit": "credit",
    "narrow": "receives",
    "stream_only": "socket",
    "late_cause": "causes",
    "deaf": "sigterm",
    **PHYSICS,
}
"""Every fault, and the check that fails because of it."""

_COMPLETION = ("ids", "start_ps", "time_ps", "cause_ps")
_FREEZE_S = 0.4
_THAW_S = 60.0
_NARROW = 1 << 20


class FaultySession(Session):
    """A session with one fault; ``hard``: a crash ends the process, as a real one does."""

    def __init__(self, served: ServerConfig, fault: str, *, hard: bool = False) -> None:
        super().__init__(served)
        if fault not in SERVER_FAULTS:
            raise ValueError(f"no fault {fault!r}; there are {', '.join(SERVER_FAULTS)}")
        self.fault = fault
        self._hard = hard
        self._answers = 0
        self._last_grant = 0
        self._last_request = time.monotonic()
        self._kept: tuple[int, ...] | None = None
        self._refuse_next = False
        self._budget = 0
        self._lied = False
        if fault == "version":
            self.described.version.major += 1
        elif fault == "peeks_unclaimed":
            self.described.features.remove(pb.FEATURE_PEEK)
        elif fault == "off_quantum":
            self.described.quantum_ps *= 1000
        elif fault == "no_events" and pb.FEATURE_LINK_EVENTS not in self.described.features:
            self.described.features.append(pb.FEATURE_LINK_EVENTS)

    def connect(self, name: str) -> Frames | None:
        """As a good session does, but for the fault."""
        return None if self.fault == "stream_only" else super().connect(name)

    def handle(self, request: pb.SessionRequest) -> Iterator[pb.SessionResponse]:
        """As a good session does, but for the fault."""
        pause = time.monotonic() - self._last_request
        if self.fault == "frozen" and self._answers and pause > _FREEZE_S:
            thaw = time.monotonic() + _THAW_S  # a process must be able to end, even if nobody hangs up
            while self._cancelled != GONE and time.monotonic() < thaw:
                time.sleep(0.01)
            return
        if self.fault == "stateless" and request.HasField("open") and self._simulation is not None:
            yield pb.SessionResponse(opened=pb.Opened(credit=1))
            return
        if self.fault == "peeks_unclaimed" and request.HasField("peek"):
            yield pb.SessionResponse(peeked=pb.Peeked(time_ps=0))
            return
        if self.fault == "narrow" and request.ByteSize() > _NARROW:
            raise Refusal("TOO_LARGE", f"at most {_NARROW} bytes")
        for response in super().handle(request):
            if self.fault == "wrong_peek" and response.peeked.HasField("time_ps"):
                response.peeked.time_ps += 1
            yield response
        self._last_request = time.monotonic()

    def open(self, message: pb.Open) -> pb.SessionResponse:
        """Faults of what is asked for: taken, and left undone."""
        if self.fault == "any_settings":
            for name in ("queue", "ecn", "transport", "link_events"):
                message.ClearField(name)
        elif self.fault == "any_topology":
            rates = message.topology.link_rate_bps
            rates[:] = [rate if rate > 0 else RATE_BPS for rate in rates]
        elif self.fault == "no_events" and len(message.link_events.up) == 2:
            message.ClearField("link_events")
        elif self.fault == "own_rates":
            del message.link_events.rate_bps[:]
        elif self.fault == "no_detours":
            message.link_events.ClearField("detection_ps")
        return super().open(message)

    def credit(self) -> int:
        """free_credit: as if nothing were open."""
        return self.served.max_open_flows if self.fault == "free_credit" else super().credit()

    def cancel(self, sequence: int) -> None:
        """no_cancel: takes it for the end."""
        super().cancel(sequence)
        if self.fault == "no_cancel" and sequence != GONE:
            self._refuse_next = True

    def check_sequence(self, message: pb.Advance) -> None:
        """any_sequence: doesn't care."""
        if self.fault == "any_sequence":
            self._sequence = message.sequence
            self._partial = message.more
            return
        super().check_sequence(message)

    def take(self, message: pb.Advance) -> None:
        """Faults of what is taken in."""
        if self.fault == "overload" and message.flows.count > 4 * 1000:
            raise Refusal("OVERLOADED", "too much at once")
        if message.HasField("flows") and message.flows.count:
            flows = decode(message.flows)
            for name in DEFAULTS:
                flows.columns[name] = flows.column(name).copy()
            self._spoil(flows)
            message.flows.Clear()
            encode(flows, message.flows)
        if self.fault == "any_path" and len(message.paths.end) == 1:
            src, dst = message.paths.src[0], message.paths.dst[0]
            message.paths.link[:] = [src, self._num_links // 2 + dst]  # of a star: up, and down
            message.paths.end[:] = [2]
        if self.fault == "deaf_to_changes":
            message.ClearField("changes")
        if self.fault == "deaf_to_control" and message.changes.control:
            message.changes.ClearField("control")
        if self.fault == "lax" and self._simulation is not None:
            message.horizon_ps = max(message.horizon_ps, self._last_grant)
        super().take(message)

    def _spoil(self, flows: FlatFlows) -> None:
        column = flows.columns
        start = column["start_ps"]
        degree = np.diff(flows.pointers)
        if self.fault == "credulous":
            column["size_bytes"] = np.maximum(column["size_bytes"], 0)
        elif self.fault == "lax":
            given = start != LATER
            start[given] = np.maximum(start[given], self._last_grant)
        elif self.fault == "overrun":
            some = (column["reaction_delay_ps"] > 0) & (column["reaction_delay_ps"] < NEVER)
            column["reaction_delay_ps"][some] = NEVER
        elif self.fault in ("late_release", "late_start") and degree.any():
            waits_for_start = bool(flows.dependency_kind.any())
            if waits_for_start == (self.fault == "late_start") and (waits_for_start or flows.count == 5):
                column["delay_ps"][degree > 0] += self.described.quantum_ps
        elif self.fault == "late_past" and (flows.dependency_id < flows.first_id).any():
            column["delay_ps"] += self.described.quantum_ps
        elif self.fault == "eager" and flows.count == 2 and degree.any():
            start[(start == LATER) & (degree == 0)] = LATENCY_PS

    def answers(self, ran: AdvanceResult, began: int) -> Iterator[pb.SessionResponse]:
        """Faults of what is answered."""
        self._answers += 1
        if self._refuse_next:
            raise Refusal("SIMULATOR", "cancelled, and so it ended")
        if self.fault == "crash" and self._answers >= CRASH:
            if self._hard:
                os._exit(70)
            raise RuntimeError("crashed")
        if self.fault == "slow" and self._budget:
            time.sleep(1.5)
        if self.fault == "split_instant":
            ran = self._hold_back(ran)
        elif self.fault == "wrong_starts":
            ran.start_ps = np.maximum(ran.start_ps - 1000, 0)
        granted = ran.granted_ps
        for response in super().answers(ran, began):
            answer = response.advanced
            if self._answers >= STRIKE and not answer.more and not self._lied:
                self._lie(answer)
            yield response
        self._last_grant = granted

    def advance(self, message: pb.Advance) -> Iterator[pb.SessionResponse]:
        """Remember the budget."""
        self._budget = message.wall_budget_us
        yield from super().advance(message)

    def _lie(self, answer: pb.Advanced) -> None:
        """Once in a session."""
        if self.fault == "time_back" and not len(answer.id) and self._last_grant > 0:
            answer.granted_ps = self._last_grant - 1
        elif self.fault == "beyond_grant" and len(answer.id):
            answer.granted_ps = min(answer.time_ps) - 1
        elif self.fault == "unknown_id":
            answer.id.append(1 << 40)
            answer.start_ps.append(answer.granted_ps)
            answer.time_ps.append(answer.granted_ps)
            if answer.cause_ps:
                answer.cause_ps.append(answer.granted_ps)
        elif self.fault == "late_cause" and len(answer.cause_ps):
            answer.cause_ps[0] = answer.time_ps[0] + 1
        elif self.fault == "wrong_digest":
            answer.digest.a ^= 1
        else:
            return
        self._lied = True

    def _hold_back(self, ran: AdvanceResult) -> AdvanceResult:
        """Tell one of several completions at the grant with the next answer."""
        if self._kept is not None:
            for name, value in zip(_COMPLETION, self._kept, strict=True):
                setattr(ran, name, np.append(getattr(ran, name), value))
            self._kept = None
        elif len(ran.ids) > 1 and ran.granted_ps == ran.time_ps[-1]:
            self._kept = tuple(int(getattr(ran, name)[-1]) for name in _COMPLETION)
            for name in _COMPLETION:
                setattr(ran, name, getattr(ran, name)[:-1])
        return ran


def faulty(
    fault: str, *, hard: bool = False
) -> tuple[Callable[[], NetworkSimulator], Callable[[ServerConfig], Session]]:
    """Makers of the network and the sessions of a server with that fault."""
    if fault in PHYSICS:
        return lambda: FaultInNetwork(model_for(fault), fault), Session
    return lambda: model_for(fault), lambda served: FaultySession(served, fault, hard=hard)


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve ``congestion_aware`` with a fault."""
    import argparse

    from cosim.protocol.server import run_server

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fault", choices=sorted(SERVER_FAULTS), required=True)
    parser.add_argument("--address", required=True)
    given = parser.parse_args(arguments)
    if given.fault == "deaf":
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    make, make_session = faulty(given.fault, hard=True)
    run_server(ServerConfig(make), given.address, make_session=make_session)


if __name__ == "__main__":
    main()
