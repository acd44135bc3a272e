"""When each program ends at the earliest: its operations in order, and what it waits for across programs.

Ranks of a program are taken for one, which they are as long as nothing slows one of them: none of them can be
earlier than this. What a program waits for in a collective with other programs is left out, and so are
messages between ranks that don't stand for their programs: less is waited for then, and a bound stays one.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from cosim.kernel import Columns, kernel
from cosim.workload.match_messages import peers
from cosim.workload.program import NO_STREAM, OpKind, Peer, Workload
from cosim.workload.table import I64

MOST_OPERATIONS = 20_000_000
"""Where there are more, nothing is computed: it would take longer than it spares."""

_Sends = dict[tuple[int, str, int, int], list[int]]
"""(program, axis, offset, tag) to rows of the table."""


class Chart(Columns):
    """What waits for what in a workload, as columns by rows of its table; but for how long anything takes.

    ``order`` are the rows as they can be walked through: each after what it waits for; fewer than there are
    where some wait for each other. ``meets`` is the SEND that a RECV meets, else -1.
    """


def earliest_ends(chart: Chart, takes_ps: I64, arrives_ps: I64, iterations: int) -> I64 | None:
    """When each program ends so many iterations at the earliest, picoseconds after its start.

    Parameters
    ----------
    chart
        What waits for what.
    takes_ps
        int64[rows]: what each operation takes at least.
    arrives_ps
        int64[rows]: from when a SEND starts until its message is there, at least.
    iterations
        How many, back to back.

    Returns
    -------
    int64[programs]; None: not computed.
    """
    if len(chart.order) < len(chart.stream) or len(chart.order) * iterations > MOST_OPERATIONS:
        return None
    ends = np.zeros(chart.num_programs, np.int64)
    start, end = np.zeros(len(chart.order), np.int64), np.zeros(len(chart.order), np.int64)
    for _ in range(iterations):
        free = np.repeat(ends[:, None], chart.num_streams + 1, axis=1)
        kernel.end_iteration(chart, takes_ps, arrives_ps, free, start, end, ends)
    return ends


def chart_of(workload: Workload) -> Chart | None:
    """The chart of a workload; None where its iterations overlap."""
    table = workload.table
    if table.longest_lag:
        return None
    names = table.streams
    # What is on no stream waits for nothing before it: a row of its own for each is never read again.
    loose = names.index(NO_STREAM) if NO_STREAM in names else -1
    starts = np.repeat(table.first[:-1], np.diff(table.first))  # of each row's program
    meets = _meetings(workload)
    program, stream = table.program.astype(np.int64), table.stream.astype(np.int64)
    stream[stream == loose] = len(names)
    dep = table.dep + np.repeat(starts, np.diff(table.dep_first))
    order, placed = np.zeros(len(table), np.int64), np.zeros(len(table), np.int8)
    first = np.ascontiguousarray(table.first, np.int64)
    count = kernel.order_rows(table.num_programs, first, meets, order, placed, first[:-1].copy())
    return Chart(
        program=program,
        stream=stream,
        dep_first=np.ascontiguousarray(table.dep_first, np.int64),
        dep=dep.astype(np.int64),
        meets=meets,
        order=order[:count],
        num_programs=table.num_programs,
        num_streams=len(names),
    )


def _meetings(workload: Workload) -> I64:
    """The n-th RECV from a neighbour on an axis meets its n-th SEND the other way, tag by tag."""
    table = workload.table
    sent, received = _Sends(), defaultdict[tuple[int, str, int, int], list[int]](list)
    for kind, found in ((OpKind.SEND, sent), (OpKind.RECV, received)):
        for row in np.flatnonzero(table.is_kind(kind) & (table.peer < 0)).tolist():
            peer = table.prototypes[table.like[row]].peer
            if peer is not None and peer.axis is not None:
                key = (int(table.program[row]), peer.axis, peer.offset, int(table.tag[row]))
                found.setdefault(key, []).append(row)
    meets = np.full(len(table), -1, np.int64)
    for (program, axis, offset, tag), rows in received.items():
        other = _neighbour(workload, program, axis, offset)
        if other is not None and _neighbour(workload, other, axis, -offset) == program:
            for row, met in zip(rows, sent.get((other, axis, -offset, tag), []), strict=False):
                meets[row] = met
    return meets


def _neighbour(workload: Workload, program: int, axis: str, offset: int) -> int | None:
    """The program of all neighbours of a program's ranks; None where they have several."""
    ranks = np.flatnonzero(workload.program_of == program)
    others = peers(workload, ranks, Peer(axis=axis, offset=offset))
    if (others < 0).any():
        return None
    programs = np.unique(workload.program_of[others])
    return int(programs[0]) if len(programs) == 1 else None
