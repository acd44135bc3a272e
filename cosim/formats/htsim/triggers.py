"""What flows wait for, said by the triggers that csg-htsim's programs fire.

A program there fires one trigger for a flow: its ``send_done_trigger``, when the sender has the last
acknowledgement. ``recv_done_trigger`` is read, too, and never fired (github.com/Broadcom/csg-htsim at
841d9e7: the sinks keep it and don't call it). So everything that waits for a flow waits for that one trigger.
A flow that others wait for together with different flows starts, by its trigger, a *carrier* for each such
set: a flow of one byte the same way, whose own trigger counts for the set.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from cosim.formats.htsim.file import HtsimConnection, Matrix, Trigger
from cosim.translation.loss_report import LossReport

CARRIER_BYTES = 1

_Waits = frozenset[int]
"""Places of the flows that must be done."""


def with_triggers(
    nodes: int, flows: Sequence[HtsimConnection], waits: Sequence[_Waits], report: LossReport
) -> Matrix:
    """``flows[i]`` starts when all of ``waits[i]`` are done, at its own time if there are none."""
    return _Triggers(list(flows), _reduced(waits), report).matrix(nodes)


class _Triggers:
    def __init__(self, flows: list[HtsimConnection], waits: list[_Waits], report: LossReport) -> None:
        self._flows, self._waits, self._report = flows, waits, report
        self._triggers: list[Trigger] = []
        self._own: dict[int, int] = {}
        """The trigger of each flow that fires."""

    def matrix(self, nodes: int) -> Matrix:
        """Everything; carriers stand after the flows."""
        waiters: dict[_Waits, list[int]] = defaultdict(list)
        for at, waits in enumerate(self._waits):
            if waits:
                waiters[waits].append(at)
        sets_of: dict[int, int] = defaultdict(int)
        for waits in waiters:
            for at in waits:
                sets_of[at] += 1
        carriers = 0
        for waits, started in waiters.items():
            if len(waits) == 1:
                number = self._trigger_of(*waits)
            else:
                number = self._new(len(waits))
                for at in sorted(waits):
                    if sets_of[at] == 1:
                        self._fires(at, number)
                    else:
                        carriers += 1
                        self._carry(at, number)
            for at in started:
                self._flows[at] = replace(self._flows[at], start_ps=None, trigger=number)
        edges = sum(map(len, self._waits))
        self._report.approximated("dependencies", edges, "on the last acknowledgement, not on the arrival")
        why = "the trigger of a flow that others wait for in several ways comes by a message of 1 byte"
        self._report.approximated("dependencies", carriers, why)
        return Matrix(nodes, tuple(self._flows), tuple(self._triggers))

    def _new(self, count: int) -> int:
        number = len(self._triggers) + 1
        self._triggers.append(Trigger(number, "barrier", count) if count > 1 else Trigger(number, "oneshot"))
        return number

    def _trigger_of(self, at: int) -> int:
        """The trigger that a flow alone fires."""
        if at not in self._own:
            self._fires(at, self._new(1))
        return self._own[at]

    def _fires(self, at: int, number: int) -> None:
        self._own[at] = number
        self._flows[at] = replace(self._flows[at], send_done=number)

    def _carry(self, at: int, number: int) -> None:
        """A carrier that starts when a flow is done, and counts for a set when it is done itself."""
        flow, started = self._flows[at], self._trigger_of(at)
        self._flows.append(
            HtsimConnection(
                flow.src, flow.dst, CARRIER_BYTES, len(self._flows) + 1, trigger=started, send_done=number
            )
        )


def _reduced(waits: Sequence[_Waits]) -> list[_Waits]:
    """Without those that another one waits for already, so that fewer flows have several waiters."""
    depth = _depths(waits)
    known: dict[_Waits, _Waits] = {}
    for needed in waits:
        if needed not in known:
            known[needed] = needed - _implied(needed, waits, depth) if len(needed) > 1 else needed
    return [known[needed] for needed in waits]


def _implied(needed: _Waits, waits: Sequence[_Waits], depth: Sequence[int]) -> set[int]:
    """Those before some of ``needed``, no further back than the first of them."""
    first = min(depth[at] for at in needed)
    seen: set[int] = set()
    stack = list(needed)
    while stack:
        for before in waits[stack.pop()]:
            if before not in seen and depth[before] >= first:
                seen.add(before)
                stack.append(before)
    return seen


def _depths(waits: Sequence[_Waits]) -> list[int]:
    """Most flows on a way to each: those that it waits for have less."""
    depth = [0] * len(waits)
    left = [len(needed) for needed in waits]
    after: dict[int, list[int]] = defaultdict(list)
    for at, needed in enumerate(waits):
        for before in needed:
            after[before].append(at)
    ready = [at for at, count in enumerate(left) if not count]
    for at in ready:  # grows while it is read
        for later in after[at]:
            depth[later] = max(depth[later], depth[at] + 1)
            left[later] -= 1
            if not left[later]:
                ready.append(later)
    assert len(ready) == len(waits), "messages that wait for themselves"
    return depth
