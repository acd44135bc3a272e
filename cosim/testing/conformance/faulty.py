"""A server that misbehaves on purpose: one switch for each fault, and the check that must notice it.

Run as ``python -m cosim.testing.conformance.faulty --fault NAME --address ADDRESS``. Faults of an answer
strike from the tenth answer of a session on, as real ones come late; the rest is cosim's own server.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from cosim.protocol.columns import DEFAULTS, LATER, FlatFlows, decode, encode
from cosim.protocol.host import Ran
from cosim.protocol.refusal import Refusal
from cosim.protocol.session import GONE, Served, Session
from cosim.protocol.v1 import network_simulator_pb2 as pb
from cosim.testing.conformance.worlds import LATENCY_PS
from cosim.units import NEVER

FAULTS = {
    "version": "handshake",
    "stateless": "states",
    "any_sequence": "sequence",
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
    "lost_bytes": "statistics",
    "too_fast": "line_rate",
    "no_latency": "latency",
    "unshared": "shares",
    "reorder": "order",
    "slow_marks": "marks",
    "split_instant": "one_instant",
    "overrun": "lookahead",
    "late_release": "dependents",
    "late_start": "start_dependents",
    "eager": "given_later",
    "random": "determinism",
    "cut_dependent": "cuts",
    "unrepeatable": "replay",
}
"""Every fault, and the check that fails because of it."""

_COMPLETION = ("ids", "start_ps", "time_ps", "cause_ps")
STRIKE = 10
CRASH = 50
_FREEZE_S = 0.4
_THAW_S = 60.0
_LARGE = 2_000_000


class FaultySession(Session):
    """A session with one fault; ``hard``: a crash ends the process, as a real one does."""

    def __init__(self, served: Served, fault: str, *, hard: bool = False) -> None:
        super().__init__(served)
        if fault not in FAULTS:
            raise ValueError(f"no fault {fault!r}; there are {', '.join(FAULTS)}")
        self.fault = fault
        self._hard = hard
        self._answers = 0
        self._last_grant = 0
        self._last_request = time.monotonic()
        self._kept: tuple[int, ...] | None = None
        if fault == "version":
            self.described.version.major += 1

    def handle(self, request: pb.SessionRequest) -> Iterator[pb.SessionResponse]:
        """As a good session does, but for the fault."""
        pause = time.monotonic() - self._last_request
        if self.fault == "frozen" and self._answers and pause > _FREEZE_S:
            thaw = time.monotonic() + _THAW_S  # a process must be able to end, even if nobody hangs up
            while self._cancelled != GONE and time.monotonic() < thaw:
                time.sleep(0.01)
            return
        if self.fault == "stateless" and request.HasField("open") and self._host is not None:
            yield pb.SessionResponse(opened=pb.Opened(credit=1))
            return
        for response in super().handle(request):
            if self.fault == "lost_bytes" and response.HasField("statistics"):
                del response.statistics.link_bytes[-1]
            elif self.fault == "wrong_peek" and response.peeked.HasField("time_ps"):
                response.peeked.time_ps += kept_quantum(self.described)
            yield response
        self._last_request = time.monotonic()

    def cancel(self, sequence: int) -> None:
        """no_cancel: takes it for the end."""
        super().cancel(sequence)
        if self.fault == "no_cancel" and sequence != GONE:
            self._refuse_next = True

    _refuse_next = False

    def open(self, message: pb.Open) -> pb.SessionResponse:
        """no_latency: builds another network."""
        if self.fault == "no_latency":
            for k in range(len(message.topology.link_latency_ps)):
                message.topology.link_latency_ps[k] = 0
        return super().open(message)

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
            self._spoil(flows, message)
            message.flows.Clear()
            encode(flows, message.flows)
        if self.fault == "lax" and self._host is not None:
            message.horizon_ps = max(message.horizon_ps, self._last_grant)
        super().take(message)

    def _spoil(self, flows: FlatFlows, message: pb.Advance) -> None:
        column = flows.columns
        large = column["size_bytes"] > _LARGE
        start = column["start_ps"]
        degree = np.diff(flows.dependency_ptr) if flows.has_dependencies else np.zeros(flows.count, np.int64)
        if self.fault == "lax":
            given = start != LATER
            start[given] = np.maximum(start[given], self._last_grant)
        elif self.fault == "too_fast" and flows.count == 1:
            column["size_bytes"][large] //= 4
        elif self.fault == "unshared" and flows.count == 2 and large.all():
            column["size_bytes"] //= 4
        elif self.fault == "reorder" and flows.count == 3 and not degree.any() and (column["src"] == 0).all():
            start[0] += 1_000_000_000
        elif self.fault == "slow_marks" and flows.count == 3:
            mark = column["src"] == column["dst"]
            start[mark] += kept_quantum(self.described)
        elif self.fault == "overrun":
            some = (column["reaction_delay_ps"] > 0) & (column["reaction_delay_ps"] < NEVER)
            column["reaction_delay_ps"][some] = NEVER
        elif self.fault in ("late_release", "late_start") and degree.any():
            waits_for_start = bool(flows.dependency_kind.any())
            if waits_for_start == (self.fault == "late_start") and (waits_for_start or flows.count == 5):
                column["delay_ps"][degree > 0] += kept_quantum(self.described)
        elif self.fault == "eager" and flows.count == 2 and degree.any():
            start[(start == LATER) & (degree == 0)] = LATENCY_PS
        elif self.fault == "random" and self._answers >= STRIKE:
            column["size_bytes"] += 1 + int.from_bytes(os.urandom(2), "little")
        elif self.fault == "cut_dependent" and flows.count == 8 and message.horizon_ps < NEVER:
            column["size_bytes"] += 50_000
        elif self.fault == "unrepeatable":
            column["size_bytes"] += 50_000 * (flows.count == 14)

    def answers(self, ran: Ran, began: int) -> Iterator[pb.SessionResponse]:
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

    _budget = 0

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
        elif self.fault == "wrong_digest":
            answer.digest.a ^= 1
        else:
            return
        self._lied = True

    _lied = False

    def _hold_back(self, ran: Ran) -> Ran:
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


def kept_quantum(described: pb.DescribeResponse) -> int:
    """The least time that a network can be late by."""
    return max(1, int(described.quantum_ps))


def faulty(fault: str, *, hard: bool = False) -> Callable[[Served], Session]:
    """A maker of faulty sessions, for :class:`~cosim.protocol.server.Server`."""
    return lambda served: FaultySession(served, fault, hard=hard)


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve ``congestion_aware`` with a fault."""
    import argparse

    from cosim.network.aware import CongestionAwareNetwork
    from cosim.protocol.server import run_server

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fault", choices=sorted(FAULTS), required=True)
    parser.add_argument("--address", required=True)
    given = parser.parse_args(arguments)
    run_server(Served(CongestionAwareNetwork), given.address, make_session=faulty(given.fault, hard=True))


if __name__ == "__main__":
    main()
