"""Queues made edges: which phase of a chunk waits for the end of which other on a rank.

At most ``active`` phases run in a queue of a rank, in the order in which they first came to it
(:mod:`cosim.engine.chunks`). Fixed here: the n-th of a queue begins when the one ``active`` places before
has ended. With one active chunk that is what the engine does. With more, the engine lets the next in when
*any* has ended: the same where they end in order.

In which order phases come to a queue that several phases share depends on the times; it is taken
from a run of one rank in which each phase takes as long as it has bytes.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from heapq import heappop, heappush

from cosim.pattern.plan import Plan


@dataclass(frozen=True, slots=True)
class Gates:
    """Parts of a plan (chunk * phases + step): ``sequence``, each after those it waits for; ``gate[part]``,
    whose end it waits for besides its own chunk's step before, or -1; how many were let in ``early``
    (several active), how many have a ``guessed`` place in their queue.
    """

    sequence: tuple[int, ...]
    gate: tuple[int, ...]
    early: int
    guessed: int


def gates_of(plan: Plan) -> Gates:
    """The gates of a plan; in time that grows with its chunks, not with its ranks."""
    steps = len(plan.chunks[0])
    parts = len(plan.chunks) * steps
    queue = [phase.queue for chunk in plan.chunks for phase in chunk]
    sequence, order = _model(plan, queue, steps)
    gate, early, guessed = [-1] * parts, 0, 0
    for mine in order:
        if len(mine) <= plan.active:
            continue
        for place in range(plan.active, len(mine)):
            # The first `active` of a queue wait for nobody.
            gate[mine[place]] = mine[place - plan.active]
        early += (len(mine) - plan.active) if plan.active > 1 else 0
        later = {part % steps for part in mine} - {0}
        guessed += sum(1 for part in mine if part % steps) if len(later) > 1 else 0
    return Gates(tuple(sequence), tuple(gate), early, guessed)


def _model(plan: Plan, queue: list[int], steps: int) -> tuple[list[int], list[list[int]]]:
    """Parts in the order in which they come to any queue, and for each queue."""
    # A byte takes one unit; one more, so that a phase without bytes ends after it began.
    took = [phase.template.total_bytes // plan.num_ranks + 1 for chunk in plan.chunks for phase in chunk]
    came: list[int] = []
    order: list[list[int]] = [[] for _ in range(plan.num_queues)]
    waiting: list[deque[int]] = [deque() for _ in range(plan.num_queues)]
    running = [0] * plan.num_queues
    ends: list[tuple[int, int, int]] = []

    def come(part: int) -> None:
        came.append(part)
        order[queue[part]].append(part)
        waiting[queue[part]].append(part)

    def begin(number: int, now: int) -> None:
        while waiting[number] and running[number] < plan.active:
            part = waiting[number].popleft()
            running[number] += 1
            heappush(ends, (now + took[part], len(came), part))

    for chunk in range(len(plan.chunks)):
        come(chunk * steps)
        begin(queue[chunk * steps], 0)
    while ends:
        now, _, part = heappop(ends)
        running[queue[part]] -= 1
        following = part + 1 if (part + 1) % steps else -1
        if following >= 0:
            come(following)
        # The place that is free goes to who waited before the next phase of this chunk comes anywhere.
        begin(queue[part], now)
        if following >= 0:
            begin(queue[following], now)
    return came, order
