"""Happens-before on small templates, in full: sets of flows as Python integers, a bit for each flow."""

from __future__ import annotations

from collections import defaultdict

from cosim.errors import AlgorithmError
from cosim.pattern.template import NO_DATA, REDUCE, Collective, FlowNames, Template

RACE_LIMIT = 4096
"""Flows up to which the whole relation is computed."""

EXIT_LIMIT = 1 << 16
"""Flows up to which each exit is followed back to the arrivals that it waits for."""


def _rows(template: Template) -> list[tuple[int, int]]:
    """(row, repetition) of every flow."""
    t = template
    return [
        (row, repetition)
        for block in range(len(t.block_repeat))
        for repetition in range(int(t.block_repeat[block]))
        for row in range(int(t.block_row[block]), int(t.block_row[block + 1]))
    ]


def check_races(template: Template, tell: FlowNames) -> None:
    """Refuse two accesses of a rank's chunk that nothing orders, unless both read or both reduce.

    Raises
    ------
    AlgorithmError
        Names the rank, the chunk and both messages.
    """
    t = template
    places = _rows(t)
    ptr, distance, kind = t.dep_ptr.tolist(), t.dep_distance.tolist(), t.dep_kind.tolist()
    started: list[int] = []  # flows whose start happens before, or is, this flow's start
    completed: list[int] = []  # flows whose completion happens before this flow's start
    reads: defaultdict[tuple[int, int], int] = defaultdict(int)
    writes: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for flow, (row, repetition) in enumerate(places):
        start, complete = 1 << flow, 0
        for d in range(ptr[row], ptr[row + 1]):
            before = flow - distance[d]
            start |= started[before]
            complete |= completed[before]
            if kind[d] == 0:
                complete |= 1 << before
        started.append(start)
        completed.append(complete)
        if t.action[row] == NO_DATA:
            continue
        first = int(t.chunk[row]) + repetition * int(t.chunk_step[row])
        for chunk in range(first, first + int(t.chunk_count[row])):
            reads[int(t.src[row]), chunk % t.num_places] |= 1 << flow
            writes[int(t.dst[row]), (chunk + int(t.shift[row])) % t.num_places].append(flow)
    for (rank, chunk), writers in writes.items():
        read_by = reads.get((rank, chunk), 0)
        for number, write in enumerate(writers):
            bit = 1 << write
            after = read_by & ~started[write]
            while after:
                read = (after & -after).bit_length() - 1
                after &= after - 1
                if not completed[read] & bit:
                    _refuse(tell, rank, chunk, read, write, "reads it", "writes it")
            for other in writers[:number]:
                reduces = t.action[places[write][0]] == REDUCE and t.action[places[other][0]] == REDUCE
                if not reduces and not (completed[write] >> other) & 1 and not completed[other] & bit:
                    _refuse(tell, rank, chunk, other, write, "writes it", "writes it")


def _refuse(tell: FlowNames, rank: int, chunk: int, one: int, two: int, does: str, also: str) -> None:
    raise AlgorithmError(
        f"{tell.name}: a race for {tell.chunk(chunk)} at rank {rank}: {tell.flow(one)} {does}, "
        f"{tell.flow(two)} {also}, and no dependency says which comes first"
    )


def check_exits(template: Template, tell: FlowNames) -> None:
    """Refuse a template that lets a rank go before it arrived, or from a barrier before all have.

    Raises
    ------
    AlgorithmError
        Names the rank, and one that it doesn't wait for.
    """
    t, n = template, template.num_ranks
    barrier = t.collective is Collective.BARRIER
    ptr, distance = t.dep_ptr.tolist(), t.dep_distance.tolist()
    heard: list[int] = []
    for flow, (row, _) in enumerate(_rows(t)):
        of = 1 << flow if flow < n else 0
        for d in range(ptr[row], ptr[row + 1]):
            of |= heard[flow - distance[d]]
        heard.append(of)
    everyone = (1 << n) - 1
    for rank in range(n):
        missing = (everyone if barrier else 1 << rank) & ~heard[t.exit_base + rank]
        if missing:
            other = (missing & -missing).bit_length() - 1
            raise AlgorithmError(
                f"{tell.name}: rank {rank} leaves without waiting for "
                + ("its own arrival; " if other == rank else f"rank {other}'s arrival; ")
                + f"{tell.flow(t.exit_base + rank)} doesn't depend on it"
            )
