"""Folding a template: the rows of the representatives only, where it looks the same from every rank.

Group positions form a grid; translations move positions along some of its axes. A template is symmetric if
they take rows to rows of the same block (bytes, channel, delay alike) and dependencies to dependencies.
That is checked row by row. Of each orbit one row is kept, the one that a representative sends; a
dependency on another row of an orbit becomes one on the row kept, which happens at the same time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cosim.pattern.plan import Phase, Plan
from cosim.pattern.template import I32, I64, NO_DATA, Template

Mask = NDArray[np.bool_]
Grid = tuple[tuple[int, int], ...]
"""Size and step of each axis of a group's positions, the last varying fastest; step = size: not folded."""


def representatives(grid: Grid) -> I64:
    """Positions whose coordinates are below the steps, ascending; then all others: int64[N]."""
    where = _coordinates(grid)
    steps = np.array([step for _, step in grid])[:, None]
    chosen = (where < steps).all(axis=0)
    return np.concatenate([np.flatnonzero(chosen), np.flatnonzero(~chosen)])


def _coordinates(grid: Grid) -> I64:
    sizes = [size for size, _ in grid]
    return np.array(np.unravel_index(np.arange(int(np.prod(sizes))), sizes), np.int64)


def fold_plan(plan: Plan, grid: Grid) -> Plan | str:
    """The plan for representatives only; a text where the plan isn't symmetric, which says why."""
    if len(plan.chunks[0]) > 1:
        return f"{plan.algorithm} goes by topology dimension"
    chunks = []
    # Chunks share their templates: each is folded once.
    known: dict[int, Template] = {}
    for (phase,) in plan.chunks:
        folded = known.get(id(phase.template)) or fold_template(phase.template, grid)
        if isinstance(folded, str):
            return folded
        known[id(phase.template)] = folded
        # The folded template's senders are the first positions; the rest only receive, as images of the
        # first.
        everyone = np.arange(plan.num_ranks, dtype=np.int32)[None, :]
        chunks.append((Phase(folded, phase.queue, everyone[:, : folded.num_ranks], everyone),))
    count = chunks[0][0].template.num_ranks
    return Plan(
        plan.collective,
        count,
        plan.size_bytes,
        plan.algorithm,
        tuple(chunks),
        plan.active,
        plan.num_queues,
        plan.turn,
    )


def fold_template(template: Template, grid: Grid) -> Template | str:
    """The template's rows from representatives; participants are these first, then all other positions.

    A text where it isn't symmetric, or can't be numbered, which says so.
    """
    unlike = f"{template.name} of {template.size_bytes} bytes is not the same seen from every rank"
    sizes = [size for size, _ in grid]
    where = _coordinates(grid)
    keep_row = np.ones(len(template.src), np.bool_)
    image = np.arange(len(template.src))  # of each row, the row that is kept of its orbit
    for axis, (size, step) in enumerate(grid):
        # Axis by axis: translations along several axes are made up of those along one.
        if step == size:
            continue
        moved = where.copy()
        moved[axis] = (moved[axis] + step) % size
        follow = _row_map(template, np.ravel_multi_index(tuple(moved), sizes).astype(np.int32))
        if follow is None or not _keeps_dependencies(template, follow):
            return unlike
        along = where[axis][template.src]
        keep_row &= along < step
        # A row below the step is its orbit's own; any other one follows the translation until it is: one
        # step, two, four ...
        ahead = np.where(along >= step, follow, np.arange(len(follow)))
        for _ in range((size // step).bit_length()):
            ahead = ahead[ahead]
        image = ahead[image]
    return _kept(template, grid, keep_row, image)


def _block_of_row(template: Template) -> I64:
    return np.repeat(np.arange(len(template.block_repeat)), np.diff(template.block_row))


def _row_map(template: Template, position: I32) -> I64 | None:
    """The row that each row goes to where positions go to ``position[p]``; None where there is none."""
    fixed = (template.delay_ps, template.bytes, template.channel)
    block = _block_of_row(template)
    # Both orders put rows that correspond at the same place, whatever order the template has them in.
    here = np.lexsort((*fixed, template.dst, template.src, block))
    there = np.lexsort((*fixed, position[template.dst], position[template.src], block))
    columns = (*fixed, block)
    if any((column[here] != column[there]).any() for column in columns):
        return None
    if (template.src[here] != position[template.src[there]]).any():
        return None
    if (template.dst[here] != position[template.dst[there]]).any():
        return None
    follow = np.empty(len(here), np.int64)
    # lexsort is stable, so that of equal rows (two messages alike) the n-th goes to the n-th, and the map is
    # one to one.
    follow[there] = here
    return follow


def _edges(template: Template, repetition: int) -> tuple[I64, I64, I64, I64]:
    """Dependencies of the rows that have that repetition: edge, row, and the target's row and repetition."""
    block = _block_of_row(template)
    rows = np.diff(template.block_row)
    edge = np.arange(len(template.dep_distance))
    row = np.repeat(np.arange(len(template.src)), np.diff(template.dep_ptr))
    alive = template.block_repeat[block[row]] > repetition
    # Flow numbers are those of the repetition: base + repetition * rows + row within the block.
    edge, row = edge[alive], row[alive]
    of = block[row]
    flow = template.block_base[of] + repetition * rows[of] + row - template.block_row[of]
    target = flow - template.dep_distance[edge]
    to = np.searchsorted(template.block_base, target, side="right") - 1
    offset = target - template.block_base[to]
    return edge, row, template.block_row[to] + offset % rows[to], offset // rows[to]


def _repetitions(template: Template) -> int:
    """Repetitions after which dependencies stay within their own block, so that nothing new comes."""
    rows = np.repeat(np.diff(template.block_row), np.diff(template.block_row))
    of_edge = np.repeat(rows, np.diff(template.dep_ptr))
    # A dependency that reaches back over n repetitions crosses into earlier blocks for the first n of them
    # only.
    reach = int((-(-template.dep_distance // np.maximum(of_edge, 1))).max(initial=0))
    return min(int(template.block_repeat.max()), reach + 2)


def _keeps_dependencies(template: Template, follow: I64) -> bool:
    for repetition in range(_repetitions(template)):
        edge, row, target, of = _edges(template, repetition)
        kind = template.dep_kind[edge]
        # Sorted columns of edges are equal exactly where the sets are: the order of a row's dependencies says
        # nothing.
        one = np.stack([row, target, of, kind])
        two = np.stack([follow[row], follow[target], of, kind])
        if not np.array_equal(one[:, np.lexsort(one)], two[:, np.lexsort(two)]):
            return False
    return True


def _distances(
    template: Template, keep: Mask, image: I64, number: I64, block_row: I64, base: I64
) -> I64 | None:
    """How far back each dependency of a kept row reaches among the rows kept; None where that is not the same
    in all repetitions, or not back.
    """
    block, rows = _block_of_row(template), np.diff(block_row)
    distance = np.zeros(len(template.dep_distance), np.int64)
    for repetition in range(_repetitions(template)):
        edge, row, target, of = _edges(template, repetition)
        mine = keep[row]
        # The row awaited is replaced by the one kept of its orbit: both complete at the same time, by
        # induction.
        edge, row, target, of = edge[mine], row[mine], image[target[mine]], of[mine]
        here, there = block[row], block[target]
        flow = base[here] + repetition * rows[here] + number[row] - block_row[here]
        awaited = base[there] + of * rows[there] + number[target] - block_row[there]
        # A distance holds for all repetitions of a row, and points back: with fewer rows to a repetition
        # neither is certain any more.
        back = flow - awaited
        if (back < 1).any() or (repetition and (back != distance[edge])[distance[edge] > 0].any()):
            return None
        distance[edge] = back
    return distance


def _edges_needed(template: Template, rows: I64, distance: I64) -> tuple[I64, I64]:
    """The dependencies of rows, of several of a row on one flow the one that says most: on its end, for it
    has started by then; and how many each row has.
    """
    waits = np.diff(template.dep_ptr)[rows]
    of = np.repeat(np.arange(len(rows)), waits)
    edges = np.arange(len(of)) + np.repeat(template.dep_ptr[rows] - np.cumsum(waits) + waits, waits)
    order = np.lexsort((template.dep_kind[edges], distance[edges], of))  # COMPLETED before STARTED
    is_new = np.ones(len(order), np.bool_)
    is_new[1:] = (np.diff(of[order]) != 0) | (np.diff(distance[edges][order]) != 0)
    needed = np.sort(order[is_new])
    return edges[needed], np.bincount(of[needed], minlength=len(rows))


def _kept(template: Template, grid: Grid, keep: Mask, image: I64) -> Template | str:
    """The rows kept, renumbered; in their order, so that entries and exits are in that of the ranks."""
    block = _block_of_row(template)
    order = representatives(grid)
    count = int(np.prod([step for _, step in grid]))
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order))
    chosen = np.flatnonzero(keep)
    # Numbers among the rows kept, by number of all rows.
    number = np.full(len(keep), -1, np.int64)
    number[chosen] = np.arange(len(chosen))
    rows = np.bincount(block[chosen], minlength=len(template.block_repeat))
    block_row = np.concatenate([[0], np.cumsum(rows)]).astype(np.int64)
    base = np.concatenate([[0], np.cumsum(rows * template.block_repeat)]).astype(np.int64)
    distance = _distances(template, keep, image, number, block_row, base)
    if distance is None:
        return f"{template.name}: its repeated steps can't be numbered for fewer ranks"
    edges, waits = _edges_needed(template, chosen, distance)
    nothing = np.zeros(len(chosen), np.int32)
    return Template(
        name=template.name,
        collective=template.collective,
        num_ranks=count,
        size_bytes=template.size_bytes,
        # Data isn't moved: a folded template was proven, if at all, before it was folded.
        num_chunks=0,
        owner=np.zeros(0, np.int32),
        src=place[template.src[chosen]],
        dst=place[template.dst[chosen]],
        bytes=template.bytes[chosen],
        channel=template.channel[chosen],
        delay_ps=template.delay_ps[chosen],
        dep_ptr=np.concatenate([[0], np.cumsum(waits)]).astype(np.int64),
        dep_distance=distance[edges],
        dep_kind=template.dep_kind[edges],
        block_row=block_row,
        block_repeat=template.block_repeat,
        chunk=nothing,
        chunk_step=nothing,
        chunk_count=nothing,
        action=np.full(len(chosen), NO_DATA, np.int8),
        shift=nothing,
        num_participants=len(order),
    )
