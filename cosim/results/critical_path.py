"""The critical path of an iteration: what followed what, without a gap, from its beginning to its end.

It is found backwards. The last operation to end did so because a computation took its time, or because a
message came; it began because another one of its rank had ended, or because its stream was free. So every
picosecond of the iteration belongs to exactly one step, and the steps add up to its time.

Where the run kept its messages, a collective is as many steps as messages led to its end. Elsewhere it is
one step, from the last arrival of a rank that came before it was over; that rank goes on backwards.
(Whether another rank's earlier arrival was what counted, because its messages took longer, only messages
can tell.) A step shortened by a picosecond shortens the iteration by at most one: a second path may be as
long, and on a shared network less of one thing may mean more of another.

Of operations that ended at one instant, those that were waited for as dependencies come first, then the
stream's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cosim.engine.records import Records
from cosim.errors import InputError
from cosim.results.one_iteration import I64, UNKNOWN, OneIteration, Place, rows_of, rows_of_each
from cosim.units import format_size
from cosim.workload.program import COMMUNICATION, Operation, OpKind

if TYPE_CHECKING:
    from cosim.results.hops import Hops

COMPUTE, MEMORY, COLLECTIVE, SEND, WAIT, REMOTE = KINDS = (
    "compute", "memory", "collective", "send", "wait", "remote"
)  # fmt: skip
"""What a step is: of an operation, its kind; a message of a send; or a wait for what was not recorded."""


class PathStep(NamedTuple):
    """``rank`` ended operation ``op`` with it; ``what`` is the same for operations alike: a phase, or a
    collective and its size. ``src`` and ``dst`` are endpoints of a message, -1 elsewhere; equal ones are
    what an endpoint did between two messages of a collective.
    """

    kind: str
    rank: int
    op: int
    name: str
    what: str
    src: int
    dst: int
    start_ps: int
    end_ps: int

    @property
    def duration_ps(self) -> int:
        """End less start."""
        return self.end_ps - self.start_ps


@dataclass(frozen=True)
class CriticalPath:
    """Steps of one iteration of a job, in order of time, without a gap; ``by_message`` says whether
    collectives are steps by message.
    """

    job: int
    iteration: int
    steps: tuple[PathStep, ...]
    by_message: bool

    @property
    def length_ps(self) -> int:
        """All steps together: the time of the iteration."""
        return sum(step.duration_ps for step in self.steps)


def critical_path(records: Records, job: int = 0, iteration: int | None = None) -> CriticalPath:
    """The critical path of an iteration; of the last one that ended, if none is named.

    Raises
    ------
    InputError
        There is no such job, or its ranks did not all end such an iteration.
    """
    if not 0 <= job < len(records.jobs):
        raise InputError(f"there is no job {job}; there are {len(records.jobs)}, from 0")
    done = len(records.iteration_end_ps[job])
    chosen = done - 1 if iteration is None else iteration
    if not 0 <= chosen < done:
        raise InputError(
            f"job {records.jobs[job].name!r} ended {done} iterations, so that there is no iteration "
            f"{0 if iteration is None else iteration}"
        )
    messages = None if records.messages is None else rows_of(records.messages, job, chosen)
    return _path(records, job, chosen, rows_of(records.ops, job, chosen), messages)


def last_critical_paths(records: Records, *, by_message: bool = True) -> list[CriticalPath]:
    """The path of the last iteration that each job ended; jobs that ended none have none.

    Without ``by_message`` collectives are one step each, whether the run kept its messages or not.
    """
    last = np.array([len(ends) - 1 for ends in records.iteration_end_ps], np.int64)
    if not len(last):
        return []
    rows = rows_of_each(records.ops, last)
    messages: list[I64] | list[None] = [None] * len(last)
    if by_message and records.messages is not None:
        messages = rows_of_each(records.messages, last)
    return [
        _path(records, job, int(last[job]), rows[job], messages[job])
        for job in range(len(last))
        if records.iteration_end_ps[job].size
    ]


def _path(records: Records, job: int, iteration: int, rows: I64, messages: I64 | None) -> CriticalPath:
    it = OneIteration(records, job, iteration, rows)
    hops = None
    if messages is not None and records.messages is not None:
        from cosim.results.hops import Hops

        hops = Hops(records.messages, messages, it.info)
    return CriticalPath(job, iteration, _Walk(it, hops).steps(), hops is not None)


class _Walk:
    """From the end of an iteration to its beginning."""

    def __init__(self, it: OneIteration, hops: Hops | None) -> None:
        self._it = it
        self._hops = hops
        self._back: list[PathStep] = []
        self._other_ways: list[tuple[int, Place]] = []
        self._seen: set[Place] = set()

    def steps(self) -> tuple[PathStep, ...]:
        """In order of time, cut to the iteration."""
        it = self._it
        ranks = np.flatnonzero(it.rank_ends == it.end_ps).tolist()
        self._offer([place for rank in ranks for place in it.ending_at(rank, it.end_ps)])
        back, at = self._back, it.end_ps
        longest, along = list[PathStep](), 0  # with ``along``, it is the first so many steps of this way
        while at > it.start_ps and self._other_ways:
            length, place = self._other_ways.pop()
            # Another way came through here: what lies before it was walked already.
            if place in self._seen:
                continue
            self._seen.add(place)
            if along > length:
                longest, along = back[:along], 0
            del back[length:]
            begun = self._cross(place)
            at = it.began(begun)
            # A way may end where nothing recorded explains what came before; that which leads furthest back
            # is kept.
            furthest = back[along - 1 : along] or longest[-1:]
            if back and (not furthest or back[-1].start_ps <= furthest[0].start_ps):
                along = len(back)
            if at > it.start_ps:
                self._offer(it.before(begun))
        return tuple(self._whole(back[:along] if along else longest))

    def _offer(self, places: Sequence[Place]) -> None:
        """Ways to go on from here, the first to be taken first."""
        self._other_ways += [(len(self._back), place) for place in reversed(places)]

    def _whole(self, back: Sequence[PathStep]) -> Iterator[PathStep]:
        """From the beginning on; what nothing recorded explains is a wait of the rank that follows."""
        it = self._it
        at = it.start_ps
        for step in reversed(back):
            if step.start_ps > at:
                yield PathStep(WAIT, step.rank, step.op, step.name, WAIT, -1, -1, at, step.start_ps)
                at = step.start_ps
            if step.end_ps > at:
                yield step if step.start_ps == at else step._replace(start_ps=at)
                at = step.end_ps
        if at < it.end_ps:
            rank = int(it.rank_ends.argmax())
            yield PathStep(WAIT, rank, -1, "not recorded", WAIT, -1, -1, at, it.end_ps)

    def _cross(self, place: Place) -> Place:
        """Add the steps that led to an operation's end; the operation whose beginning they go back to."""
        operation = self._it.operation(place)
        kind = operation.kind
        if kind is OpKind.COLLECTIVE:
            return self._collective(place)
        if kind is OpKind.SEND:
            return self._message(place, place)
        if kind is OpKind.RECV and self._it.ended(place) > self._it.began(place):
            sent = self._it.other_end(place)
            if sent is not None:
                return self._message(place, sent)
        what = {OpKind.COMPUTE: COMPUTE, OpKind.MEMORY: MEMORY}.get(kind, WAIT)
        if operation.phase == COMMUNICATION:
            what = COLLECTIVE
        self._add(REMOTE if operation.access else what, place, self._it.began(place))
        return place

    def _message(self, place: Place, sent: Place) -> Place:
        """A message left when its send began or, with rendezvous, when its receiver was ready."""
        it = self._it
        begun = sent
        if it.workload.rendezvous and (received := it.other_end(sent)) is not None:
            left = -1 if self._hops is None else self._hops.left_at(sent, it.ended(sent))
            asked = left > it.began(sent) if left >= 0 else it.began(received) > it.began(sent)
            begun = received if asked else sent
        peer = place if place != sent else it.other_end(sent)
        ends = it.info.endpoints
        dst = -1 if peer is None else int(ends[peer[0]])
        self._add(SEND, place, it.began(begun), int(ends[sent[0]]), dst)
        return begun

    def _collective(self, place: Place) -> Place:
        it = self._it
        if self._hops is not None:
            hops, begun = self._hops.back(it, place)
            for hop in hops:
                self._add(COLLECTIVE, place, hop.start_ps, hop.src, hop.dst)
            return begun
        end = it.ended(place)
        came = [(it.began(one), one == place, one) for one in it.members(place)]
        last = max(one for one in came if UNKNOWN < one[0] <= end)
        self._add(COLLECTIVE, place, last[0])
        return last[2]

    def _add(self, kind: str, place: Place, start_ps: int, src: int = -1, dst: int = -1) -> None:
        end = self._back[-1].start_ps if self._back else self._it.end_ps
        if start_ps < end:
            operation = self._it.operation(place)
            what = _what(kind, operation)
            self._back.append(PathStep(kind, *place, operation.name, what, src, dst, start_ps, end))


def _what(kind: str, operation: Operation) -> str:
    if kind == REMOTE:
        return f"{operation.access} of {format_size(operation.size_bytes)}"
    if kind in (COMPUTE, MEMORY):
        return operation.phase or kind
    if operation.kind is OpKind.COMPUTE:
        return "communication as measured"
    return f"{operation.collective or SEND} {format_size(operation.size_bytes)}"
