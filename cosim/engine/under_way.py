"""What a rank has under way, and which ranks it waits for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from cosim.engine.columns import NONE
from cosim.engine.engine import Engine
from cosim.units import format_time
from cosim.workload.operation import OpKind


class Waiting(NamedTuple):
    """An operation that a rank has under way: its name, its kind, and since when.

    ``ranks`` have yet to come to it: of its group, or its peer. None: it computes, or bytes are on their way.

    Examples
    --------
    >>> from cosim import Waiting
    >>> Waiting("grads", "all_reduce", 5_000_000, (3,))
    <all_reduce 'grads' since 5 us: waits for ranks (3,)>
    """

    name: str
    kind: str
    since_ps: int
    ranks: tuple[int, ...] = ()

    def __repr__(self) -> str:
        waits = f": waits for ranks {self.ranks}" if self.ranks else ""
        return f"<{self.kind} {self.name!r} since {format_time(self.since_ps)}{waits}>"


def under_way(engine: Engine, job: int, rank: int) -> list[Waiting]:
    """What a rank of a job with programs has under way, by when it began."""
    number = engine.tables.rank0[job] + rank
    row, ready = engine.columns.ranks[number], engine.jobs[job]
    operations = ready.program(rank).operations
    cells = engine.columns.cells[int(row["cell0"]) :][: ready.slots.count * len(operations)]
    started = np.flatnonzero(cells["started"] != NONE)
    missing = dict(_to_come(engine, job, rank, number))
    found = []
    for op in started[np.argsort(cells["started"][started], kind="stable")].tolist():
        one = operations[op % len(operations)]
        kind = one.collective if one.kind is OpKind.COLLECTIVE else one.kind.value
        found.append(Waiting(one.name, kind, int(cells["started"][op]), missing.get(op, ())))
    return found


def _to_come(engine: Engine, job: int, rank: int, number: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """(Operation under way, ranks that have not come to it), of collectives and messages."""
    columns = engine.columns
    for comm in engine.groups.comms:
        if comm.job != job or rank not in comm.group.position:
            continue
        at = int(columns.comms["open"][comm.number])
        while at != NONE:
            words, ranks = int(columns.rendezvous["words"][at]), comm.group.ranks
            said = columns.words[words : words + len(ranks)].tolist()
            mine = said[comm.group.position[rank]]
            if mine >= 0:
                yield mine, tuple(one for one, word in zip(ranks, said, strict=True) if word == NONE)
            at = int(columns.rendezvous["next"][at])
    for first, of, senders, receivers, tags in engine.tables.messages.channels:
        if of != job:
            continue
        for k in np.flatnonzero((senders == rank) | (receivers == rank)).tolist():
            at = int(columns.channels["head"][first + k]) if k < len(tags) else NONE
            while at != NONE:
                one = columns.messages[at]
                for mine, other, peer in (("send", "recv", receivers[k]), ("recv", "send", senders[k])):
                    if one[f"{mine}_rank"] == number and one[f"{other}_rank"] == NONE:
                        yield int(one[f"{mine}_op"]), (int(peer),)
                at = int(one["next"])
