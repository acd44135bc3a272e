"""A chain's flow table: the templates of its collectives in a row, with computations as delays between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cosim.network.flows import I64, FlowTable
from cosim.network.store import COMPLETED
from cosim.pattern.template import Template
from cosim.units import NEVER

MOST_ROWS = 1 << 16
"""Rows of a table: longer chains are cut."""


@dataclass(frozen=True, eq=False)
class ChainTable:
    """``templates`` are kept: the table is found by them. ``exits``, ``after``: as the ledger takes them."""

    templates: tuple[Template, ...]
    table: FlowTable
    react_from: int
    exits: I64
    after: int


def chain_table(
    templates: Sequence[Template], delays: Sequence[int], operations: Sequence[int], after: int
) -> ChainTable:
    """One table of templates on the same participants.

    ``delays`` are from the exit of the one before to the entry, on each rank, the first of no account (the
    entries of the first are given); ``operations`` how far each is behind the first; ``after`` is how
    long it takes from the last exit to the chain's end. Exits come last, so each
    entry waits for the flow as many before it as there are ranks. The engine hears of the last exits only.
    """
    ranks = templates[0].num_ranks
    sizes = np.array([len(one.src) for one in templates])
    blocks = [len(one.block_repeat) for one in templates]
    delay = [one.delay_ps.copy() for one in templates]
    degrees = [np.diff(one.dep_ptr) for one in templates]
    distances, kinds = [one.dep_distance for one in templates], [one.dep_kind for one in templates]
    for number in range(1, len(templates)):
        delay[number][:ranks] += delays[number]
        degrees[number][:ranks] = 1
        distances[number] = np.concatenate([np.full(ranks, ranks, np.int64), distances[number]])
        kinds[number] = np.concatenate([np.full(ranks, COMPLETED, np.int8), kinds[number]])
    reaction = np.full(int(sizes.sum()), NEVER, np.int64)
    reaction[-ranks:] = after
    exits = np.full(sum(blocks), -1, np.int64)
    exits[np.cumsum(blocks) - 1] = np.arange(len(templates)) * ranks
    first_row = np.cumsum(sizes) - sizes
    table = FlowTable(
        num_participants=templates[0].num_participants,
        src=np.concatenate([one.src for one in templates]),
        dst=np.concatenate([one.dst for one in templates]),
        size_bytes=np.concatenate([one.bytes for one in templates]),
        channel=np.concatenate([one.channel for one in templates]),
        delay_ps=np.concatenate(delay),
        reaction_ps=reaction,
        dep_ptr=np.concatenate([[0], np.cumsum(np.concatenate(degrees))]).astype(np.int64),
        dep_distance=np.concatenate(distances),
        dep_kind=np.concatenate(kinds),
        block_row=np.concatenate(
            [[0], *(first + one.block_row[1:] for first, one in zip(first_row, templates, strict=True))]
        ).astype(np.int64),
        block_repeat=np.concatenate([one.block_repeat for one in templates]),
        block_operation=np.repeat(np.array(operations, np.int64), blocks),
    )
    return ChainTable(tuple(templates), table, table.num_flows - ranks, exits, after)
