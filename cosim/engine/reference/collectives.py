"""Collectives: who meets whom, and a collective's chunks, phases and queues on each of its ranks.

The n-th collective that a program has on a group meets the n-th that every other member has on it. A rank
brings its chunks in order; each waits in the queue that its phase names, and at most ``active`` phases run
in a queue of a rank at once. There is one order on all ranks: that in which each phase first came to the
queue on any of them. A phase that comes may begin while there is a place for it and for each one before it
that has yet to come. Where ranks are in step, or there are places enough, this is first come, first served,
as in ASTRA-sim; elsewhere, first come on each rank could have chunks wait for each other in a circle.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from cosim.engine.plans import flow_table_of
from cosim.engine.programs import Group, Naming
from cosim.engine.reference.flows import OpenFlows
from cosim.engine.reference.ranks import Rank, RankStep
from cosim.errors import AlgorithmError, MismatchError
from cosim.network.flows import FlowTable, pack_key
from cosim.pattern.plan import FIRST, Phase, Plan, Turn
from cosim.pattern.template import Template
from cosim.units import format_size
from cosim.workload.operation import Operation

if TYPE_CHECKING:
    from cosim.engine.reference.replay import ReferenceReplay


Met = tuple[Group, Naming, int, int]
"""Where ranks meet: their group, how they name it, which of their collectives on it, and the iteration."""


@dataclass(eq=False)
class PlacedPhase:
    """A phase of a chunk: ``where[position]`` is a rank's sub-group and its place in that."""

    phase: Phase
    where: dict[int, tuple[int, int]]


class Meeting:
    """One collective of one group under way. ``number`` is its operation's in flow keys; ranks go by
    position.
    """

    def __init__(self, key: Met, first: tuple[Rank, RankStep], plan: Plan, number: int) -> None:
        self.key, self.first, self.plan, self.number = key, first, plan, number
        self.job, self.group = first[0].job, key[0]
        self.start_ps = first[0].clock.now_ps
        self.ready_ps = -1
        self.came: dict[int, RankStep] = {}
        self.left: set[int] = set()
        self.chunks_left = [len(plan.chunks)] * plan.num_ranks
        self.flows: dict[tuple[int, int], OpenFlows] = {}  # by part and sub-group
        self.order: list[list[int]] = [[] for _ in range(plan.num_queues)]
        """The parts of each queue, in the order of all ranks."""
        self.waiting: set[tuple[int, int]] = set()  # (position, part)
        self.begun: set[tuple[int, int]] = set()
        self.running: dict[tuple[int, int], int] = {}  # (position, queue) -> parts
        self.num_messages = plan.num_messages

    @property
    def operation(self) -> Operation:
        """As who came first has it."""
        rank, step = self.first
        return rank.operation(step)

    def title(self) -> str:
        """``all_reduce 'grads', 64 MiB (iteration 0)``."""
        one = self.operation
        size = format_size(one.size_bytes)
        return f"{one.collective} {one.name!r}, {size} (iteration {self.first[1].iteration})"


class Collectives:
    """All collectives of a run that are under way."""

    def __init__(self, run: ReferenceReplay) -> None:
        self._run = run
        self.under_way: dict[Met, Meeting] = {}
        self._turns: dict[Group, tuple[int, Turn]] = {}
        self._parts: dict[Plan, list[PlacedPhase]] = {}
        self._tables: dict[Template, FlowTable] = {}

    # -- who meets whom ------------------------------------------------------------------------------

    def come(self, rank: Rank, step: RankStep) -> None:
        """A rank starts its part of a collective.

        Raises
        ------
        MismatchError
            Who came first has another collective, size or root.
        """
        one = rank.operation(step)
        group = rank.job.group(rank.number, one)
        met = group, rank.program.naming[step.op], rank.program.occurrence[step.op], step.iteration
        if met not in self.under_way:
            self.under_way[met] = self._meet(rank, step, met)
        meeting = self.under_way[met]
        if _what(rank, step) != _what(*meeting.first):
            raise MismatchError(_disagree(meeting, rank, step, met[2]))
        position = group.position[rank.number]
        meeting.came[position] = step
        if len(meeting.came) == len(group.ranks):
            meeting.ready_ps = rank.clock.now_ps
        if meeting.plan.carrier is None:
            self._bring(meeting, position)
        else:
            self._run.carrier_waits(meeting, position)

    def of(self, rank: Rank, step: RankStep) -> Meeting:
        """What a rank that has come has under way."""
        group = rank.job.group(rank.number, rank.operation(step))
        met = group, rank.program.naming[step.op], rank.program.occurrence[step.op], step.iteration
        return self.under_way[met]

    def _meet(self, rank: Rank, step: RankStep, met: Met) -> Meeting:
        """A group's first rank comes: the collective begins."""
        group, naming, occurrence, iteration = met
        # Turns go on within an iteration, and begin again with the next: all iterations fare alike.
        of_iteration, turn = self._turns.get(group, (-1, FIRST))
        plan = self._run.plans.whole(
            rank.operation(step),
            group,
            turn if of_iteration == iteration else FIRST,
            rank.algorithm(step),
        )
        self._turns[group] = iteration, plan.turn
        # A stable operation number: that of the group's lowest rank, which all members agree on.
        lowest = rank.job.program(min(group.ranks))
        number = lowest.collective.get((naming, occurrence), step.op)
        return Meeting(met, (rank, step), plan, number)

    def leave(self, meeting: Meeting, position: int, cause_ps: int) -> None:
        """A rank is done with all its chunks.

        Raises
        ------
        AlgorithmError
            It has not even come.
        """
        number = meeting.group.ranks[position]
        if position not in meeting.came:
            raise AlgorithmError(
                f"rank {number} is done with {meeting.title()} before it came: the algorithm that carries "
                "it must let each rank's exit wait for its entry"
            )
        rank = self._run.ranks[meeting.job.number][number]
        rank.leave(meeting.came[position], cause_ps, meeting.num_messages)
        meeting.left.add(position)
        if len(meeting.left) == len(meeting.group.ranks):
            self._run.recorder.collective(meeting, rank.clock.now_ps)
            del self.under_way[meeting.key]

    # -- chunks, phases and queues -------------------------------------------------------------------

    def _bring(self, meeting: Meeting, position: int) -> None:
        """A rank is here, with its chunks."""
        phases = len(meeting.plan.chunks[0])
        firsts = range(0, len(self._parts_of(meeting.plan)), phases)
        for part in firsts:
            self._queue(meeting, part, position)
        for part in firsts:
            self._fill(meeting, self._queue_of(meeting, part), position)

    def _queue_of(self, meeting: Meeting, part: int) -> int:
        return self._parts_of(meeting.plan)[part].phase.queue

    def _queue(self, meeting: Meeting, part: int, position: int) -> None:
        """A rank's part comes to its queue; the first rank that brings it gives it its place on all of
        them.
        """
        order = meeting.order[self._queue_of(meeting, part)]
        if part not in order:
            order.append(part)
        meeting.waiting.add((position, part))

    def _fill(self, meeting: Meeting, queue: int, position: int) -> None:
        """Begin what has come to a queue of a rank, while places are left for all that come before it."""
        taken = meeting.running.get((position, queue), 0)
        for part in meeting.order[queue]:
            if (position, part) in meeting.begun:
                continue
            if taken >= meeting.plan.active:
                return
            taken += 1  # if it has yet to come, for it
            if (position, part) in meeting.waiting:
                meeting.waiting.discard((position, part))
                meeting.begun.add((position, part))
                meeting.running[position, queue] = meeting.running.get((position, queue), 0) + 1
                self._enter(meeting, part, position)

    def _enter(self, meeting: Meeting, part: int, position: int) -> None:
        """A rank begins a part: its arrival starts, among flows that the first one to come opens for all."""
        phase, where = self._parts_of(meeting.plan)[part].phase, self._parts_of(meeting.plan)[part].where
        sub, place = where[position]
        if (part, sub) not in meeting.flows:
            iteration, ranks = meeting.first[1].iteration, meeting.group.ranks
            lowest = min(ranks[member] for member in phase.groups[sub].tolist())
            # Its name says what it is, not when it was opened: digests and ties go by names.
            key = pack_key(meeting.job.number, iteration, meeting.number, lowest, part)
            meeting.flows[part, sub] = self._run.flows.open(
                self._table(phase.template),
                meeting.group.endpoints[phase.participants[sub]],
                key,
                meeting.job,
                meeting.first[0].traits(meeting.first[1]),
                partial(self._exit, meeting, part, sub),
                told_from=phase.template.exit_base,
            )
        self._run.flows.start(meeting.flows[part, sub], place, self._run.clock.now_ps)

    def _exit(self, meeting: Meeting, part: int, sub: int, place: int, cause_ps: int) -> None:
        """A rank is done with a part: on to its next phase, and let the next chunk in."""
        parts, phases = self._parts_of(meeting.plan), len(meeting.plan.chunks[0])
        position = int(parts[part].phase.groups[sub][place])
        queue = parts[part].phase.queue
        is_last = (part + 1) % phases == 0
        if is_last:
            meeting.chunks_left[position] -= 1
            if not meeting.chunks_left[position]:
                self.leave(meeting, position, cause_ps)
                return
        meeting.running[position, queue] -= 1
        if not is_last:  # as ASTRA-sim: into the next queue first, then the freed place is filled
            self._queue(meeting, part + 1, position)
        self._fill(meeting, queue, position)
        if not is_last:
            self._fill(meeting, parts[part + 1].phase.queue, position)

    # -- plans ---------------------------------------------------------------------------------------

    def _parts_of(self, plan: Plan) -> list[PlacedPhase]:
        """A plan's parts, chunk by chunk, phase by phase."""
        if plan not in self._parts:
            self._parts[plan] = [
                PlacedPhase(
                    phase,
                    {
                        position: (sub, place)
                        for sub, members in enumerate(phase.groups.tolist())
                        for place, position in enumerate(members)
                    },
                )
                for chunk in plan.chunks
                for phase in chunk
            ]
        return self._parts[plan]

    def _table(self, template: Template) -> FlowTable:
        """A template's messages as flows; somebody waits for its exits only."""
        if template not in self._tables:
            self._tables[template] = flow_table_of(template)
        return self._tables[template]


def _what(rank: Rank, step: RankStep) -> tuple[object, ...]:
    one = rank.operation(step)
    return one.collective, one.size_bytes, one.root, rank.algorithm(step), rank.traits(step)


def _disagree(meeting: Meeting, rank: Rank, step: RankStep, occurrence: int) -> str:
    """Who wants what, in words."""
    first, at = meeting.first
    one, other = meeting.operation, rank.operation(step)
    ranks = meeting.group.ranks
    said = list(ranks) if len(ranks) <= 8 else f"[{ranks[0]}, {ranks[1]}, ... {ranks[-1]}] of {len(ranks)}"
    return (
        f"ranks disagree on collective number {occurrence} of iteration {step.iteration} "
        f"of their group {said}:\n"
        f"  rank {first.number}: op {at.op} {one.name!r}: {one.collective} of {one.size_bytes} bytes, "
        f"root {one.root}\n"
        f"  rank {rank.number}: op {step.op} {other.name!r}: {other.collective} of {other.size_bytes} bytes, "
        f"root {other.root}{', by another algorithm or of another priority' * (one == other)}"
    )
