"""Following dependencies, compiled: times that become known go to the flows that wait for them.

Inside, a flow is (handle, repetition, row): repetitions are numbered through all blocks of a table, rows
through all tables. A flow that waits for one other starts when that is told. What is stored per flow that
waits for several (how many are left, the latest of them) lives in *pages*, one for each repetition of each
group, made at its first touch and given back when its last such flow is released: memory follows what is in
flight. Tables without repeats get their pages when opened; those of which no flow waits for several have
none.

Times flow ahead: as soon as a completion *time* is certain it is passed to the dependents, even if the
clock has not reached it. That is sound because it is only ever used in max(dependencies) + delay.
"""

from __future__ import annotations

import numpy as np

from cosim.network.arrays import Arrays
from cosim.network.calendar import Records
from cosim.network.flows import I8, I32, I64
from cosim.network.jit import compiled, inlined, once

COMPLETED, STARTED = 0, 1
DRAINED, NEED_WORK, NEED_OUT, NEED_POOL, NEED_PAGES, NEED_GROUPS = range(6)
_NONE = -1

STATE = np.dtype(
    [("num_work", "i8"), ("num_out", "i8"), ("cells_used", "i8"), ("max_page", "i8"), ("pages_used", "i8")]
)
"""Entries of ``work`` and ``out``; cells and pages that were ever used; the cells of the largest page."""
TABLE = np.dtype(
    [
        ("flows", "i8"),
        ("cells", "i8"),
        ("free", "i8"),
        ("rep", "i4"),
        ("reps", "i4"),
        ("pages", "i4"),
        ("row", "i4"),
    ]
)
"""A table: its repetitions from ``rep``, its rows from ``row`` on; each group has ``pages``: one for each
repetition, or none. ``free``: where the list of pages that its groups gave back begins. Those of a table that
has ``cells`` (so many, of all its pages) are made when a group is opened."""
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
        ("table", "i4"),
        ("traits", "i4"),
    ]
)
"""``traits``: the model's own number of what the group says of its job. ``path`` + row finds the row's links,
``page`` + repetition its page; ``left`` flows to complete; ``reps`` repetitions from ``rep`` on, 0 where
nothing is open."""
PAGE = np.dtype([("cell", "i8"), ("left", "i8")])
"""Where a repetition's cells start, and how many of its flows that wait for several are not released yet."""
CELL = np.dtype([("ready", "i8"), ("waits", "i8")])
"""The latest dependency so far, and how many are left."""
WORK = np.dtype([("time", "i8"), ("handle", "i4"), ("rep", "i4"), ("row", "i4"), ("kind", "i4")])
OUT = np.dtype(
    [("start", "i8"), ("cause", "i8"), ("handle", "i4"), ("rep", "i4"), ("row", "i4"), ("pad", "i4")]
)


class Store(Arrays):
    """The arrays; ``state`` is one record. ``unused``: where the free list of each size of page begins."""

    state: Records
    tables: Records
    rows: Records
    successors: Records
    reps: Records
    groups: Records
    pages: Records
    cells: Records
    unused: I64
    work: Records
    out: Records


@once
def _size_class(rows: int) -> int:
    size = 0
    while (1 << size) < rows:
        size += 1
    return size


@inlined
def _give_page(store: Store, first: int, rows: int) -> None:
    """Give a run of cells back, to the free list of its size."""
    size = _size_class(rows)
    store.cells[first].ready = store.unused[size]
    store.unused[size] = first


@compiled
def touch_page(store: Store, page: int, rep: int) -> None:
    """Make the page of a repetition (absolute number). The caller saw to the room."""
    state = store.state[0]
    cells = store.cells
    place = store.reps[rep]
    size = _size_class(place.rows)
    first = int(store.unused[size])
    if first != _NONE:
        store.unused[size] = cells[first].ready
    else:
        first = state.cells_used
        state.cells_used = first + (1 << size)
    left = 0
    for k in range(place.rows):
        waits = store.rows[place.row + k].waits
        cells[first + k].waits = waits
        cells[first + k].ready = 0
        left += int(waits > 1)
    store.pages[page].cell = first
    store.pages[page].left = left


@compiled
def open_group(
    store: Store, handle: int, table: int, key_high: int, key_low: int, path: int, traits: int, release: bool
) -> int:
    """Make a group known; :data:`DRAINED`, or what must grow first."""
    state = store.state[0]
    known = store.tables[table]
    if handle >= len(store.groups):
        return NEED_GROUPS
    if known.free == _NONE and state.pages_used + known.pages > len(store.pages):
        return NEED_PAGES
    if release and state.cells_used + known.cells > len(store.cells):
        return NEED_POOL
    page = int(known.free)
    if page == _NONE:
        page = state.pages_used
        state.pages_used += known.pages
    else:
        known.free = store.pages[page].left
    group = store.groups[handle]
    group.key_high = key_high
    group.key_low = key_low
    group.left = known.flows
    group.path = path
    group.page = page
    group.rep = known.rep
    group.reps = known.reps
    group.release = 1 if release else 0
    group.table = table
    group.traits = traits
    # Repetitions get cells when a dependency reaches them: a group of millions costs what is under way.
    for k in range(known.pages):
        store.pages[page + k].cell = _NONE
        if release and known.cells > 0:
            touch_page(store, page + k, known.rep + k)
    return DRAINED


@compiled
def close_group(store: Store, handle: int) -> None:
    """Forget a group whose flows have all completed: give back what it still holds."""
    group = store.groups[handle]
    known = store.tables[group.table]
    for k in range(known.pages):
        one = store.pages[group.page + k]
        if one.cell != _NONE:
            _give_page(store, one.cell, store.reps[group.rep + k].rows)
            one.cell = _NONE
    if known.pages > 0:
        store.pages[group.page].left = known.free
        known.free = group.page
    group.reps = 0


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


@inlined
def note(store: Store, handle: int, rep: int, row: int, time: int, kind: int) -> None:
    """Remember that a flow completed or started at ``time``, for :func:`drain`."""
    state = store.state[0]
    one = store.work[state.num_work]
    one.time = time
    one.handle = handle
    one.rep = rep
    one.row = row
    one.kind = kind
    # A stack, not recursion: a chain of marks may be as long as a job, and compiled code has a small stack.
    state.num_work += 1


@once
def _let_start(store: Store, handle: int, rep: int, row: int, ready: int) -> None:
    """A flow whose last dependency was met goes to ``out``, and those that wait for its start are told."""
    state = store.state[0]
    start = ready + store.rows[row].delay
    one = store.out[state.num_out]
    one.start = start
    one.cause = ready
    one.handle = handle
    one.rep = rep
    one.row = row
    state.num_out += 1
    if store.rows[row].middle < store.rows[row].last:
        note(store, handle, rep, row, start, STARTED)


@once
def _tell(store: Store, handle: int, page_number: int, rep: int, row: int, time: int) -> None:
    """One dependency of a flow was met at ``time``; the last one lets it start.

    Cells of a repetition are there from the first that is told until the last of its flows that need one is
    released: what is under way, not the size of the group, is what takes memory.
    """
    if store.rows[row].waits == 1:
        _let_start(store, handle, rep, row, time)
        return
    page = store.pages[page_number]
    if page.cell == _NONE:
        touch_page(store, page_number, rep)
    mine = store.cells[page.cell + row - store.reps[rep].row]
    if mine.ready < time:
        mine.ready = time
    mine.waits -= 1
    if mine.waits > 0:
        return
    _let_start(store, handle, rep, row, mine.ready)
    page.left -= 1
    if page.left == 0:
        _give_page(store, page.cell, store.reps[rep].rows)
        page.cell = _NONE


@once
def drain(store: Store) -> int:
    """Pass noted times to dependents; flows whose last dependency that was go to ``out``.

    Returns :data:`DRAINED`, or what must grow before it is called again.
    """
    state = store.state[0]
    while state.num_work > 0:
        n = state.num_work - 1
        known = store.work[n]
        row = store.rows[known.row]
        if known.kind == COMPLETED:
            first = row.first
            last = row.middle
        else:
            first = row.middle
            last = row.last
        # Nothing is taken that could not be finished: who grows an array calls again, and goes on here.
        if state.num_out + last - first > len(store.out):
            return NEED_OUT
        if n + last - first > len(store.work):
            return NEED_WORK
        if state.cells_used + (last - first) * state.max_page > len(store.cells):
            return NEED_POOL
        handle = known.handle
        rep = known.rep
        time = known.time
        # Only now is it taken: from here on nothing can be short of room.
        state.num_work = n
        page0 = store.groups[handle].page
        rep0 = store.groups[handle].rep
        for at in range(first, last):
            successor = store.successors[at]
            in_table = rep + successor.rep - rep0
            # A dependency may reach out of the repetitions of its block: there is nobody to tell.
            if successor.low <= in_table <= successor.high:
                _tell(store, handle, page0 + in_table, rep + successor.rep, successor.row, time)
    return DRAINED


@once
def _place(
    flow: int, block: int, first_rep: int, block_row: I64, block_repeat: I64, block_base: I64
) -> tuple[int, int]:
    """Row and repetition of a flow that lies in a block, whose first repetition is given, or before it."""
    while block_base[block] > flow:
        block -= 1
        first_rep -= block_repeat[block]
    rows = block_row[block + 1] - block_row[block]
    offset = flow - block_base[block]
    return block_row[block] + offset % rows, first_rep + offset // rows


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
                    source_row, source_rep = _place(
                        flow, block, first_rep, block_row, block_repeat, block_base
                    )
                    total += 1
                    if not fill:
                        ptr[source_row] += 1
                        if dep_kind[dep] == COMPLETED:
                            mid[source_row] += 1
                        continue
                    places = mid if dep_kind[dep] == COMPLETED else ptr
                    at = places[source_row]
                    places[source_row] = at + 1
                    successors[at].row = row0 + row
                    successors[at].rep = first_rep + k - source_rep
                    successors[at].low = first_rep + k
                    successors[at].high = (
                        first_rep + k if k < singles else first_rep + block_repeat[block] - 1
                    )
        first_rep += block_repeat[block]
    return total
