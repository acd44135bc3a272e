"""Kind ``htsim``: a connection matrix as a workload: a SEND and a RECV for each flow, triggers as
dependencies.

Messages of one connection (``msg``) leave one after the other, in the file's order. Where a trigger is
fired by a flow's receiver and starts a flow of that node, or by a sender that starts its own next one, a
dependency says it. htsim's triggers reach any node at once; between nodes a message of 0 bytes carries them
here. A sender is done when its message has arrived (there: when it has been acknowledged).
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from pydantic import Field

from cosim.context import Context
from cosim.errors import Location, WorkloadError
from cosim.files.import_report import ReportBuilder
from cosim.formats.htsim.file import HtsimConnection, Matrix, Trigger, read_matrix
from cosim.workload.by_rank import FlowOperations
from cosim.workload.check import check
from cosim.workload.contract import WorkloadSpec
from cosim.workload.program import Workload

_Fired = tuple[int, bool]
"""A flow's place in the file, and whether its receiver fires (else its sender)."""


class HtsimWorkload(WorkloadSpec):
    """A connection matrix of htsim (.cm): flows with start times and triggers"""

    path: str = Field(description="the file")

    def build(self, context: Context) -> Workload:
        """Read the matrix; ``path`` is relative to ``context.base``.

        Raises
        ------
        WorkloadError
            A file that is missing or can't be meant; names file and line.
        """
        path = context.base / self.path
        matrix, lines = read_matrix(path)
        workload = _Maker(path, matrix, lines).workload()
        check(workload)
        return workload


class _Maker:
    def __init__(self, path: Path, matrix: Matrix, lines: list[int]) -> None:
        self._path, self._matrix, self._lines = path, matrix, lines
        self._report = ReportBuilder()
        self._operations = FlowOperations(matrix.nodes)
        self._ended: dict[_Fired, int] = {}
        """By what has fired: the number of the operation, on its node, that ends then."""

    def workload(self) -> Workload:
        flows = self._matrix.connections
        fired, triggers = self._fired_by(), {t.number: t for t in self._matrix.triggers}
        order, before = self._order(fired, triggers), self._messages_before()
        for at in order:
            flow = flows[at]
            waits = [self._arrival(flow.src, source) for source in fired.get(flow.trigger, ())]
            if at in before and (before[at], False) in self._ended:
                waits.append(self._ended[before[at], False])
            waits += self._operations.wait(flow.src, at, flow.start_ps or 0)
            ends = self._operations.message(f"flow {at}", flow.src, flow.dst, flow.size_bytes, waits)
            self._ended[at, False], self._ended[at, True] = ends
        self._report.read("flow", len(flows))
        self._report.read("trigger", len(triggers))
        self._report.read("message of a connection", sum(flow.message is not None for flow in flows))
        if before:
            self._report.assumed("a connection's next message leaves when the one before has arrived")
        ids = sum(flow.flow_id > 0 and flow.message is None for flow in flows)
        self._report.ignored("id of a flow", ids)
        priorities = sum(flow.priority is not None for flow in flows)
        self._report.ignored("prio of a flow (a job has a priority)", priorities)
        self._report.ignored("failure of a link", len(self._matrix.failures))
        return self._operations.workload(self._path.stem, self._report)

    def _arrival(self, node: int, source: _Fired) -> int:
        """The operation on ``node`` that ends when a flow fires."""
        at, by_receiver = source
        flow = self._matrix.connections[at]
        where = flow.dst if by_receiver else flow.src
        if where == node:
            return self._ended[source]
        if flow.dst == node:
            self._report.assumed("a trigger that a sender fires is fired by the receiver, which it starts")
            return self._ended[at, True]
        self._report.assumed("a message of 0 bytes that carries a trigger to another node")
        ended = [self._ended[source]]
        _, received = self._operations.message(f"trigger of {at}", where, node, 0, ended)
        return received

    def _messages_before(self) -> dict[int, int]:
        """For each message, the one that its connection sends before it."""
        last: dict[tuple[int, int, int], int] = {}
        before: dict[int, int] = {}
        for at, flow in enumerate(self._matrix.connections):
            if flow.message is not None:
                connection = flow.flow_id, flow.src, flow.dst
                if connection in last:
                    before[at] = last[connection]
                last[connection] = at
        return before

    def _fired_by(self) -> dict[int, list[_Fired]]:
        fired: dict[int, list[_Fired]] = defaultdict(list)
        for at, flow in enumerate(self._matrix.connections):
            for number, by_receiver in ((flow.send_done, False), (flow.recv_done, True)):
                if number:
                    fired[number].append((at, by_receiver))
        return fired

    def _order(self, fired: dict[int, list[_Fired]], triggers: dict[int, Trigger]) -> list[int]:
        """Flows, each after those that fire what starts it; triggers are checked on the way."""
        started: dict[int, list[int]] = defaultdict(list)
        missing: dict[int, int] = {}
        order = []
        for at, flow in enumerate(self._matrix.connections):
            for number in {flow.trigger, flow.send_done, flow.recv_done} - {0}:
                if number not in triggers:
                    raise self._wrong(at, f"trigger {number} is not there", f"trigger id {number} oneshot")
            if flow.trigger:
                self._check(at, flow, triggers[flow.trigger], len(fired.get(flow.trigger, ())))
                started[flow.trigger].append(at)
                missing[flow.trigger] = len(fired[flow.trigger])
            else:
                order.append(at)
        for at in order:  # grows while it is read
            flow = self._matrix.connections[at]
            for number in (flow.send_done, flow.recv_done):
                if number in missing:
                    missing[number] -= 1
                    if missing[number] == 0:
                        order += started[number]
        if len(order) < len(self._matrix.connections):
            left = min(set(range(len(self._matrix.connections))) - set(order))
            raise self._wrong(left, "never starts: it waits, by triggers, for itself", "a flow with a start")
        return order

    def _check(self, at: int, flow: HtsimConnection, trigger: Trigger, firings: int) -> None:
        if trigger.kind == "multishot":
            raise self._wrong(
                at, f"trigger {flow.trigger} is a multishot", "oneshot or barrier: a fixed order"
            )
        wanted = 1 if trigger.kind == "oneshot" else trigger.count
        if firings != wanted or not wanted:
            shown = "oneshot" if trigger.kind == "oneshot" else f"barrier of {wanted}"
            raise self._wrong(
                at, f"trigger {flow.trigger} is a {shown}, fired by {firings} flows", "as many as it takes"
            )

    def _wrong(self, at: int, message: str, right: str) -> WorkloadError:
        return WorkloadError(message, location=Location(str(self._path), self._lines[at]), hint=right)
