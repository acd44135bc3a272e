"""One collective under way: chunks, phases and queues on each of its ranks.

A rank brings its chunks in order; each waits in the queue that its phase names. At most ``active`` phases
run in a queue of a rank at once. There is one order on all ranks: that in which each phase first came to the
queue on any of them. A phase that comes may begin while there is a place for it and for each one before it
that has yet to come. Where ranks are in step, or there are places enough, this is first come, first served,
as in ASTRA-sim; elsewhere, first come on each rank could have chunks wait for each other in a circle. A
phase's flows exist from its first rank's arrival to its last one's exit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from cosim.engine.desk import Desk
from cosim.network.flows import I32, pack_key
from cosim.pattern.plan import Plan


@dataclass(eq=False, slots=True)
class _Instance:
    """A phase on one sub-group: its handle, and how many of its ranks have yet to exit."""

    run: CollectiveRun
    part: int
    number: int
    left: int
    handle: int = -1

    def arrived(self, index: int, now: int, cause: int) -> None:
        """A rank of the sub-group exits."""
        self.left -= 1
        if self.left == 0:
            self.run.desk.finish(self.handle)
        self.run.exited(self, index, now, cause)


@dataclass(eq=False)
class CollectiveRun:
    """Runs a plan for one group. ``done`` is called with a rank's position when all its chunks are."""

    plan: Plan
    endpoints: I32
    ranks: tuple[int, ...]
    key: tuple[int, int, int]
    """Job, iteration, operation."""
    traits: dict[str, object]
    desk: Desk
    done: Callable[[int, int, int], None]
    _where: list[tuple[I32, I32]] = field(default_factory=list)
    _instances: dict[tuple[int, int], _Instance] = field(default_factory=dict)

    def __post_init__(self) -> None:
        plan = self.plan
        self._phases = len(plan.chunks[0])
        self._chunks_left = [len(plan.chunks)] * plan.num_ranks
        self._simple = len(plan.chunks) == 1 and self._phases == 1
        if not self._simple:
            queues = plan.num_queues
            self._running = [[0] * queues for _ in range(plan.num_ranks)]
            self._order: list[list[int]] = [[] for _ in range(queues)]
            self._ordered: set[int] = set()
            self._begun = [[0] * queues for _ in range(plan.num_ranks)]
            self._waiting: list[set[int]] = [set() for _ in range(plan.num_ranks)]
            self._ahead: list[set[int]] = [set() for _ in range(plan.num_ranks)]
        # For each phase number: the sub-group of a position, and its place in it.
        for phase in plan.chunks[0]:
            group, place = np.empty(plan.num_ranks, np.int32), np.empty(plan.num_ranks, np.int32)
            for number, members in enumerate(phase.groups):
                group[members] = number
                place[members] = np.arange(len(members))
            self._where.append((group, place))

    def waits(self) -> list[tuple[int, int, list[int]]]:
        """Of each phase under way: chunk, phase, and positions that have not arrived or not left."""
        return [
            (
                *divmod(part, self._phases),
                self.plan.chunks[part // self._phases][part % self._phases].groups[number].tolist(),
            )
            for (part, number) in sorted(self._instances)
        ]

    def arrive(self, position: int, now: int) -> None:
        """A rank is here, with its chunks."""
        if self._simple:
            self._enter(0, position, now)
            return
        for chunk in range(len(self.plan.chunks)):
            self._pump(self._queue(chunk * self._phases, position), position, now)

    def _queue(self, part: int, position: int) -> int:
        """A rank's part comes to its queue; which one that is."""
        chunk, step = divmod(part, self._phases)
        queue = self.plan.chunks[chunk][step].queue
        self._waiting[position].add(part)
        if part not in self._ordered:
            self._ordered.add(part)
            self._order[queue].append(part)
        return queue

    def _pump(self, queue: int, position: int, now: int) -> None:
        """Begin what has come to a queue of a rank, while places are left for all that come before it."""
        order, waiting, ahead = self._order[queue], self._waiting[position], self._ahead[position]
        running, begun = self._running[position], self._begun[position]
        at, kept = begun[queue], 0
        while at < len(order) and running[queue] + kept < self.plan.active:
            part = order[at]
            if part in waiting:
                waiting.remove(part)
                ahead.add(part)
                running[queue] += 1
                self._enter(part, position, now)
            elif part not in ahead:
                kept += 1
            at += 1
        while begun[queue] < len(order) and order[begun[queue]] in ahead:
            ahead.remove(order[begun[queue]])
            begun[queue] += 1

    def _enter(self, part: int, position: int, now: int) -> None:
        chunk, step = divmod(part, self._phases)
        groups, places = self._where[step]
        number = int(groups[position])
        instance = self._instances.get((part, number))
        if instance is None:
            phase = self.plan.chunks[chunk][step]
            members = phase.groups[number]
            lowest = min(self.ranks[position] for position in members.tolist())
            where = self.endpoints[phase.participants[number]]
            key = pack_key(*self.key, lowest, part)
            instance = self._instances[part, number] = _Instance(self, part, number, len(members))
            instance.handle = self.desk.open_template(instance, phase.template, where, key, **self.traits)
        self.desk.start(instance.handle, int(places[position]), now, now)

    def exited(self, instance: _Instance, index: int, now: int, cause: int) -> None:
        """A rank of an instance exits: on to its next phase, and let the next chunk in."""
        part, number = instance.part, instance.number
        chunk, step = divmod(part, self._phases)
        phase = self.plan.chunks[chunk][step]
        if instance.left == 0:
            del self._instances[part, number]
        position = int(phase.groups[number][index])
        last = step + 1 == self._phases
        if not self._simple:
            self._running[position][phase.queue] -= 1
            if last:
                self._pump(phase.queue, position, now)
            else:
                # As ASTRA-sim: into the next queue first, then the freed place is filled.
                following = self._queue(part + 1, position)
                self._pump(phase.queue, position, now)
                self._pump(following, position, now)
        if last:
            self._chunks_left[position] -= 1
            if self._chunks_left[position] == 0:
                self.done(position, now, cause)
