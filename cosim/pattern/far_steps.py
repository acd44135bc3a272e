"""Latency of messages between hosts: what waits for one waits for so much longer, and nothing else does.

A message's ``delay_ps`` keeps its sender from its next message as well. A network's latency doesn't: several
messages are under way at once. So a row that takes time and carries nothing follows each such message at its
receiver, and what waited for the message's end waits for that row.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cosim.pattern.assemble import COMPLETION
from cosim.pattern.template import I64, NO_DATA, Template


def with_steps(template: Template, far: NDArray[np.bool_], step_ps: int) -> Template:
    """The template with ``step_ps`` between each message that is ``far`` (bool[rows]) and what waits for it.

    Raises
    ------
    ValueError
        A repeated block whose repetitions wait for rows of unlike blocks.
    """
    if step_ps == 0 or not far.any():
        return template
    rows, first = len(template.src), template.block_row
    parts = np.where(far, 2, 1)
    at = np.concatenate([[0], np.cumsum(parts)])
    """Where each row comes to lie; its pause is behind it."""
    block_row = at[first]
    base = np.concatenate([[0], np.cumsum(np.diff(block_row) * template.block_repeat)])
    degree = np.diff(template.dep_ptr)
    waiting = np.repeat(np.arange(rows), degree)
    block = np.repeat(np.arange(len(template.block_repeat)), np.diff(first))
    distance = _distances(template, far, at, base, waiting, block, 0)
    for turn in (1, 2):
        later = template.block_repeat[block[waiting]] > turn
        if (_distances(template, far, at, base, waiting, block, turn)[later] != distance[later]).any():
            raise ValueError(f"{template.name}: its repeated steps wait for unlike ones")
    old = np.repeat(np.arange(rows), parts)
    pause = np.concatenate([[False], old[1:] == old[:-1]])
    new_degree = np.where(pause, 1, degree[old])
    ptr = np.concatenate([[0], np.cumsum(new_degree)])
    new_distance, kind = np.ones(ptr[-1], np.int64), np.full(ptr[-1], COMPLETION, np.int8)
    kept = np.repeat(~pause, new_degree)
    new_distance[kept], kind[kept] = distance, template.dep_kind
    return replace(
        template,
        src=np.where(pause, template.dst[old], template.src[old]),
        dst=template.dst[old],
        bytes=np.where(pause, 0, template.bytes[old]),
        channel=template.channel[old],
        delay_ps=np.where(pause, step_ps, template.delay_ps[old]),
        dep_ptr=ptr,
        dep_distance=new_distance,
        dep_kind=kind,
        block_row=block_row,
        chunk=np.where(pause, 0, template.chunk[old]).astype(np.int32),
        chunk_step=np.where(pause, 0, template.chunk_step[old]).astype(np.int32),
        chunk_count=np.where(pause, 0, template.chunk_count[old]).astype(np.int32),
        action=np.where(pause, NO_DATA, template.action[old]).astype(np.int8),
        shift=np.where(pause, 0, template.shift[old]).astype(np.int32),
    )


def _distances(
    template: Template,
    far: NDArray[np.bool_],
    at: I64,
    base: I64,
    waiting: I64,
    block: I64,
    turn: int,
) -> I64:
    """How far back each dependency lies now, in a block's repetition ``turn``."""
    first, size = template.block_row, np.diff(template.block_row)
    new_size = np.diff(at[first])
    own = block[waiting]
    target = template.block_base[own] + turn * size[own] + waiting - first[own] - template.dep_distance
    there = np.searchsorted(template.block_base, target, side="right") - 1
    there = np.minimum(there, len(size) - 1)
    lap, row = np.divmod(target - template.block_base[there], size[there])
    row = row + first[there]
    place = base[there] + lap * new_size[there] + at[row] - at[first[there]]
    place = place + (far[row] & (template.dep_kind == COMPLETION))
    mine = base[own] + turn * new_size[own] + at[waiting] - at[first[own]]
    distance: I64 = (mine - place).astype(np.int64)
    return distance
