"""When each program ends at the earliest: its computations in order, and what it waits for across programs,
with messages and collectives that take no time.

Ranks of a program are taken for one, which they are as long as nothing slows one of them. What a program
waits for in a collective is left out, and so are messages between ranks that don't stand for their programs:
less is waited for then, and a bound stays one.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from cosim.workload.match_messages import peers
from cosim.workload.program import NO_STREAM, OpKind, Peer, Workload

MOST_OPERATIONS = 1_000_000
"""Of more, nothing is worked out: it would take longer than it spares."""

_Sends = dict[tuple[int, str, int, int], list[int]]
"""(program, axis, offset, tag) to rows of the table."""


@dataclass(frozen=True)
class _Chart:
    """Columns as lists, which a loop over single operations reads fastest."""

    first: list[int]
    duration: list[int]
    stream: list[int]
    no_stream: int
    deps: list[list[int]]
    waits: dict[int, int]
    """RECV to the SEND that it meets, rows of the table."""


def earliest_ends(workload: Workload, iterations: int) -> list[int] | None:
    """When each program ends so many iterations, picoseconds after its start; None: not worked out."""
    if len(workload.table) * iterations > MOST_OPERATIONS or workload.table.longest_lag:
        return None
    chart = _chart(workload)
    ends = [0] * (len(chart.first) - 1)
    for _ in range(iterations):
        following = _pass(chart, ends)
        if following is None:
            return None
        ends = following
    return ends


def _chart(workload: Workload) -> _Chart:
    table = workload.table
    takes_time = table.is_kind(OpKind.COMPUTE, OpKind.MEMORY)
    starts = np.repeat(table.first[:-1], np.diff(table.first))  # of each row's program
    ends, names = table.dep_first.tolist(), table.streams
    dep = (table.dep + np.repeat(starts, np.diff(table.dep_first))).tolist()
    return _Chart(
        first=table.first.tolist(),
        duration=np.where(takes_time, table.duration_ps, 0).tolist(),
        stream=table.stream.tolist(),
        no_stream=names.index(NO_STREAM) if NO_STREAM in names else -1,
        deps=[dep[ends[row] : ends[row + 1]] for row in range(len(table))],
        waits=_meetings(workload),
    )


def _meetings(workload: Workload) -> dict[int, int]:
    """The n-th RECV from a neighbour on an axis meets its n-th SEND the other way, tag by tag."""
    table = workload.table
    sent, received = _Sends(), defaultdict[tuple[int, str, int, int], list[int]](list)
    for kind, found in ((OpKind.SEND, sent), (OpKind.RECV, received)):
        for row in np.flatnonzero(table.is_kind(kind) & (table.peer < 0)).tolist():
            peer = table.prototypes[table.like[row]].peer
            if peer is not None and peer.axis is not None:
                key = (int(table.program[row]), peer.axis, peer.offset, int(table.tag[row]))
                found.setdefault(key, []).append(row)
    waits: dict[int, int] = {}
    for (program, axis, offset, tag), rows in received.items():
        other = _neighbour(workload, program, axis, offset)
        if other is not None and _neighbour(workload, other, axis, -offset) == program:
            waits |= dict(zip(rows, sent.get((other, axis, -offset, tag), []), strict=False))
    return waits


def _neighbour(workload: Workload, program: int, axis: str, offset: int) -> int | None:
    """The program of all neighbours of a program's ranks; None where they have several."""
    ranks = np.flatnonzero(workload.program_of == program)
    others = peers(workload, ranks, Peer(axis=axis, offset=offset))
    if (others < 0).any():
        return None
    programs = np.unique(workload.program_of[others])
    return int(programs[0]) if len(programs) == 1 else None


def _pass(chart: _Chart, begins: list[int]) -> list[int] | None:
    """When programs that begin at these times end an iteration; None where they wait for each other."""
    start, end = [-1] * len(chart.duration), [0] * len(chart.duration)
    at, ends = chart.first[:-1], list(begins)
    free: list[dict[int, int]] = [{} for _ in begins]
    moved = True
    while moved:
        moved = False
        for program, last in enumerate(chart.first[1:]):
            row = at[program]
            while row < last:
                meets = chart.waits.get(row)
                if meets is not None and start[meets] < 0:
                    break
                _place(chart, row, begins[program], free[program], start, end, meets)
                ends[program] = max(ends[program], end[row])
                row += 1
            moved |= row > at[program]
            at[program] = row
    return ends if at == chart.first[1:] else None


def _place(
    chart: _Chart,
    row: int,
    begin: int,
    free: dict[int, int],
    start: list[int],
    end: list[int],
    meets: int | None,
) -> None:
    """When an operation starts and ends: after what it waits for, and after its stream's last."""
    stream = chart.stream[row]
    earliest = max(begin, free.get(stream, 0), *[end[one] for one in chart.deps[row]])
    start[row] = earliest
    done = earliest + chart.duration[row]
    end[row] = done if meets is None else max(done, start[meets])
    if stream != chart.no_stream:
        free[stream] = end[row]
