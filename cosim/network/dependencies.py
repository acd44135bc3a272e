"""Following dependencies, compiled: times that become known go to the flows that wait for them.

Inside, a flow is (handle, repetition, row): repetitions are numbered through all blocks of a table, rows
through all tables. What is stored per flow (how many dependencies are left, the latest of them) lives in
*pages*, one for each repetition of each group, made at its first touch and given back when its last flow
is released: memory follows what is in flight. Tables without repeats get
their pages when opened.

Times flow ahead: as soon as a completion *time* is certain it is passed to the dependents, even if the
clock has not reached it. That is sound because it is only ever used in max(dependencies) + delay.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cosim.network.calendar import Records
from cosim.network.flows import I8, I32, I64
from cosim.network.jit import compiled, inlined

WORK_N, OUT_N, POOL_TOP, MAX_PAGE = range(4)
"""Scalars in ``Store.counts``."""
COMPLETED, STARTED = 0, 1
DRAINED, NEED_WORK, NEED_OUT, NEED_POOL = range(4)
_NONE = -1

ROW = np.dtype(
    [
        ("size", "i8"),
        ("delay", "i8"),
        ("reaction", "i8"),
        ("first", "i4"),
        ("middle", "i4"),
        ("last", "i4"),
        ("src", "i4"),
        ("dst", "i4"),
        ("waits", "i4"),
    ]
)
"""A row of a table. Successors [first, middle) wait for its completion, [middle, last) for its start."""
SUCCESSOR = np.dtype([("row", "i4"), ("rep", "i4"), ("low", "i4"), ("high", "i4")])
"""``rep`` repetitions later; holds where the successor's repetition in its table is in [low, high]."""
REPETITION = np.dtype([("base", "i8"), ("row", "i4"), ("rows", "i4")])
"""First flow number and first row of a repetition, and how many."""
GROUP = np.dtype(
    [
        ("key_high", "i8"),
        ("key_low", "i8"),
        ("left", "i8"),
        ("path", "i8"),
        ("page", "i8"),
        ("rep", "i4"),
        ("reps", "i4"),
        ("release", "i8"),
    ]
)
"""``path`` + row finds the row's links, ``page`` + repetition its page; ``left`` flows to complete;
``reps`` repetitions from ``rep`` on, 0 where nothing is open."""
PAGE = np.dtype([("cell", "i8"), ("left", "i8")])
"""Where a repetition's cells start, and how many of its flows are not released yet."""
CELL = np.dtype([("ready", "i8"), ("waits", "i8")])
"""The latest dependency so far, and how many are left."""
WORK = np.dtype([("time", "i8"), ("handle", "i4"), ("rep", "i4"), ("row", "i4"), ("kind", "i4")])
OUT = np.dtype(
    [("start", "i8"), ("cause", "i8"), ("handle", "i4"), ("rep", "i4"), ("row", "i4"), ("pad", "i4")]
)


class Store(NamedTuple):
    """The arrays, in the order in which :func:`drain` takes them."""

    counts: I64
    rows: Records
    successors: Records
    reps: Records
    groups: Records
    pages: Records
    cells: Records
    unused: I64
    work: Records
    out: Records


@inlined
def _size_class(rows: int) -> int:
    size = 0
    while (1 << size) < rows:
        size += 1
    return size


@inlined
def _give_page(cells: Records, unused: I64, first: int, rows: int) -> None:
    """Give a run of cells back, to the free list of its size."""
    size = _size_class(rows)
    cells[first].ready = unused[size]
    unused[size] = first


@compiled
def touch_page(
    count: I64,
    rows: Records,
    reps: Records,
    pages: Records,
    cells: Records,
    unused: I64,
    page: int,
    rep: int,
) -> None:
    """Make the page of a repetition (absolute number). The caller saw to the room."""
    size = _size_class(reps[rep].rows)
    first = int(unused[size])
    if first != _NONE:
        unused[size] = cells[first].ready
    else:
        first = count[POOL_TOP]
        count[POOL_TOP] = first + (1 << size)
    row = reps[rep].row
    for k in range(reps[rep].rows):
        cells[first + k].waits = rows[row + k].waits
        cells[first + k].ready = 0
    pages[page].cell = first
    pages[page].left = reps[rep].rows


@compiled
def find_flows(groups: Records, reps: Records, handle: I32, index: I64, rep: I32, row: I32) -> int:
    """Absolute repetition and row of flows; -1, or the number of the first that is not there."""
    for k in range(len(handle)):
        if not 0 <= handle[k] < len(groups):
            return k
        group = groups[handle[k]]
        low = int(group.rep)
        high = low + group.reps
        flow = index[k]
        if low == high or not 0 <= flow < reps[high - 1].base + reps[high - 1].rows:
            return k
        while high - low > 1:
            middle = (low + high) >> 1
            if reps[middle].base <= flow:
                low = middle
            else:
                high = middle
        rep[k] = low
        row[k] = reps[low].row + flow - reps[low].base
    return _NONE


@compiled
def drop_pages(
    reps: Records, pages: Records, cells: Records, unused: I64, page: int, rep: int, num_reps: int
) -> None:
    """Give back what a finished group still holds."""
    for k in range(num_reps):
        if pages[page + k].cell != _NONE:
            _give_page(cells, unused, pages[page + k].cell, reps[rep + k].rows)
            pages[page + k].cell = _NONE


@inlined
def note(count: I64, work: Records, handle: int, rep: int, row: int, time: int, kind: int) -> None:
    """Remember that a flow completed or started at ``time``, for :func:`drain`."""
    n = count[WORK_N]
    one = work[n]
    one.time = time
    one.handle = handle
    one.rep = rep
    one.row = row
    one.kind = kind
    count[WORK_N] = n + 1


@inlined
def drain(
    count: I64,
    rows: Records,
    successors: Records,
    reps: Records,
    groups: Records,
    pages: Records,
    cells: Records,
    unused: I64,
    work: Records,
    out: Records,
) -> int:
    """Pass noted times to dependents; flows whose last dependency that was go to ``out``.

    Returns :data:`DRAINED`, or what must grow before it is called again.
    """
    while count[WORK_N] > 0:
        n = count[WORK_N] - 1
        known = work[n]
        row = rows[known.row]
        if known.kind == COMPLETED:
            first = row.first
            last = row.middle
        else:
            first = row.middle
            last = row.last
        if count[OUT_N] + last - first > len(out):
            return NEED_OUT
        if n + last - first > len(work):
            return NEED_WORK
        if count[POOL_TOP] + (last - first) * count[MAX_PAGE] > len(cells):
            return NEED_POOL
        handle = known.handle
        rep = known.rep
        time = known.time
        count[WORK_N] = n
        page0 = groups[handle].page
        rep0 = groups[handle].rep
        for at in range(first, last):
            successor = successors[at]
            to_rep = rep + successor.rep
            in_table = to_rep - rep0
            if in_table < successor.low or in_table > successor.high:
                continue
            page = pages[page0 + in_table]
            if page.cell == _NONE:
                touch_page(count, rows, reps, pages, cells, unused, page0 + in_table, to_rep)
            mine = cells[page.cell + successor.row - reps[to_rep].row]
            if mine.ready < time:
                mine.ready = time
            mine.waits -= 1
            if mine.waits == 0:
                to_row = rows[successor.row]
                start = mine.ready + to_row.delay
                one = out[count[OUT_N]]
                one.start = start
                one.cause = mine.ready
                one.handle = handle
                one.rep = to_rep
                one.row = successor.row
                count[OUT_N] += 1
                if to_row.middle < to_row.last:
                    note(count, work, handle, to_rep, successor.row, start, STARTED)
                page.left -= 1
                if page.left == 0:
                    _give_page(cells, unused, page.cell, reps[to_rep].rows)
                    page.cell = _NONE
    return DRAINED


@compiled
def turn_round(
    row0: int,
    block_row: I64,
    block_repeat: I64,
    block_base: I64,
    dep_ptr: I64,
    dep_distance: I64,
    dep_kind: I8,
    ptr: I64,
    mid: I64,
    successors: Records,
) -> int:
    """Turn dependencies round. With no ``successors``: count per row into ptr and mid; else fill."""
    num_blocks = len(block_repeat)
    fill = len(successors) > 0
    total = 0
    first_rep = 0
    for block in range(num_blocks):
        rows = block_row[block + 1] - block_row[block]
        for row in range(block_row[block], block_row[block + 1]):
            local = row - block_row[block]
            for dep in range(dep_ptr[row], dep_ptr[row + 1]):
                # Repetitions whose dependency lies in an earlier block are taken one by one, the rest,
                # if any, in one entry: there, rows and repetitions differ by the same numbers.
                back = local - dep_distance[dep]
                crossing = 0 if back >= 0 else -((back) // rows)
                singles = min(crossing, block_repeat[block])
                for k in range(singles + (1 if singles < block_repeat[block] else 0)):
                    flow = block_base[block] + k * rows + back
                    source_block = block
                    source_rep = first_rep
                    while block_base[source_block] > flow:
                        source_block -= 1
                        source_rep -= block_repeat[source_block]
                    source_rows = block_row[source_block + 1] - block_row[source_block]
                    offset = flow - block_base[source_block]
                    source_row = block_row[source_block] + offset % source_rows
                    source_rep += offset // source_rows
                    total += 1
                    if not fill:
                        ptr[source_row] += 1
                        if dep_kind[dep] == COMPLETED:
                            mid[source_row] += 1
                        continue
                    at = 0
                    if dep_kind[dep] == COMPLETED:
                        at = mid[source_row]
                        mid[source_row] += 1
                    else:
                        at = ptr[source_row]
                        ptr[source_row] += 1
                    successors[at].row = row0 + row
                    successors[at].rep = first_rep + k - source_rep
                    successors[at].low = first_rep + k
                    successors[at].high = (
                        first_rep + k if k < singles else first_rep + block_repeat[block] - 1
                    )
        first_rep += block_repeat[block]
    return total
