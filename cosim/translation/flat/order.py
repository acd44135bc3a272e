"""Streams made edges: which operation goes before which on a stream of a rank.

Of the operations that could start on a free stream, the engine starts the lowest-numbered. Where dependencies
put all operations of a stream into one order, that is the engine's, whatever the times. Elsewhere which
of two is ready first depends on the times; fixed here is the order of a list schedule: operations in
topological order, the lowest number first; or, where a run is at hand, the order in which it started them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import pairwise

from cosim.engine.programs import ReadyProgram


@dataclass(frozen=True, slots=True)
class Order:
    """``sequence`` has each operation after all that it waits for; ``before[op]`` must have ended for the
    stream's sake, -1 where dependencies see to that; ``open`` operations have a place that was fixed here.
    """

    sequence: tuple[int, ...]
    before: tuple[int, ...]
    open: int


def order_of(program: ReadyProgram, start_ps: Sequence[int] | None = None) -> Order:
    """The order of a program's operations; ``start_ps`` says when a run started each of them."""
    sequence = _sequence(program)
    if start_ps is not None:  # of those that started at once, one may still wait for another
        sequence.sort(key=start_ps.__getitem__)
    before, fixed = [-1] * len(program.operations), 0
    for stream in range(len(program.streams)):
        mine = [op for op in sequence if program.stream[op] == stream]
        depth = _depths(program, sequence, stream)
        times = Counter(depth[op] for op in mine)
        # All depths differ: dependencies alone put them in order, and an edge more would say nothing.
        if len(times) == len(mine):
            continue
        fixed += sum(count for count in times.values() if count > 1)
        for earlier, later in pairwise(mine):
            before[later] = earlier
    return Order(tuple(sequence), tuple(before), fixed)


def _sequence(program: ReadyProgram) -> list[int]:
    """Topological order, the lowest number first."""
    waits = list(program.waits)
    ready = [op for op, count in enumerate(waits) if not count]
    heapify(ready)
    sequence = []
    while ready:
        op = heappop(ready)
        sequence.append(op)
        for after in program.successors[op]:
            waits[after] -= 1
            if waits[after] == 0:
                # The lowest number of those that are ready, as the engine takes them where several could
                # start.
                heappush(ready, after)
    return sequence


def _depths(program: ReadyProgram, sequence: list[int], stream: int) -> list[int]:
    """Most operations of the stream on a way that ends here: all different, where one order is possible."""
    depth = [0] * len(program.operations)
    for op in sequence:
        depth[op] += program.stream[op] == stream
        for after in program.successors[op]:
            depth[after] = max(depth[after], depth[op])
    return depth
