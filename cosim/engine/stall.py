"""Who waits for whom, in words, when nothing can happen any more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from cosim.engine.columns import NONE
from cosim.engine.engine import Engine
from cosim.units import format_size

_SHOWN = 4
"""Operations shown of one rank."""

Line = tuple[int, str]
"""Number of the job, and what is said."""


def _some(ranks: Iterable[int]) -> str:
    chosen = sorted(ranks)
    text = ", ".join(str(rank) for rank in chosen[:8])
    more = f" and {len(chosen) - 8} more" if len(chosen) > 8 else ""
    return f"rank{'s' if len(chosen) > 1 else ''} {text}{more}"


def waits(engine: Engine, stuck: Iterable[int], unmatched: Iterable[Line]) -> list[str]:
    """A line for each collective that lacks ranks, each message with one end, each operation behind those.

    ``stuck`` are ranks that have not finished. With several jobs each line begins with its job's name.
    """
    names = [job.info.name for job in engine.jobs]
    lines = [*_collectives(engine), *unmatched]
    for rank in stuck:
        job = int(engine.columns.ranks["job"][rank])
        lines += [(job, line) for line in list(_behind(engine, rank))[:_SHOWN]]
    return [f"{names[job]}: {line}" if len(names) > 1 else line for job, line in lines]


def _collectives(engine: Engine) -> Iterator[Line]:
    columns = engine.columns
    under_way = []
    for comm in engine.groups.comms:
        at = int(columns.comms["open"][comm.number])
        while at != NONE:
            under_way.append((int(columns.rendezvous["serial"][at]), at, comm))
            at = int(columns.rendezvous["next"][at])
    # In the order in which they began: the first of them is mostly the cause of the others.
    for _, at, comm in sorted(under_way, key=lambda one: one[0]):
        words, ranks = int(columns.rendezvous["words"][at]), comm.group.ranks
        said = columns.words[words : words + len(ranks)].tolist()
        missing = {rank for rank, word in zip(ranks, said, strict=True) if word == NONE}
        if missing:
            came = set(ranks) - missing
            text = f"{_some(came)}: {engine.title(at)}: waits for {_some(missing)} to start it"
        else:
            left = {rank for rank, word in zip(ranks, said, strict=True) if word >= 0}
            text = f"{_some(left)}: {engine.title(at)}: all arrived, but its messages do not complete"
        yield comm.job, text


def unmatched(engine: Engine) -> Iterator[Line]:
    """A line for each message of which only one end was ever posted."""
    columns = engine.columns
    for first, job, senders, receivers, tags in engine.tables.messages.channels:
        head = columns.channels["head"][first : first + len(tags)]
        open_ = np.flatnonzero(head != NONE)
        for k in open_[np.lexsort((tags[open_], receivers[open_], senders[open_]))].tolist():
            at = int(head[k])
            while at != NONE:
                yield job, _one_end(engine, at, int(senders[k]), int(receivers[k]))
                at = int(columns.messages["next"][at])


def _one_end(engine: Engine, message: int, sender: int, receiver: int) -> str:
    row = engine.columns.messages[message]
    sent = row["send_rank"] != NONE
    rank, op = (int(row[f"{'send' if sent else 'recv'}_{name}"]) for name in ("rank", "number"))
    _, one = engine.numbered(rank, op)
    what = f"op {op} {one.name!r}, {format_size(one.size_bytes)}, tag {one.tag}"
    if sent:
        return f"rank {sender}: SEND {what}: rank {receiver} never posts the RECV"
    return f"rank {receiver}: RECV {what}: rank {sender} never posts the SEND"


def _behind(engine: Engine, number: int) -> Iterator[str]:
    """A rank's operations that wait for one under way: by dependency, or for its stream.

    With none under way, those that wait for each other.
    """
    columns = engine.columns
    rank = columns.ranks[number]
    own, job = int(rank["number"]), engine.jobs[int(rank["job"])]
    program = job.program(own)
    row = columns.programs[int(rank["program"])]
    operations = program.operations
    count, slots = len(operations), job.slots.count
    cells = columns.cells[int(rank["cell0"]) :][: slots * count]
    opened = range(int(rank["oldest"]), int(rank["iteration"]) + 1)

    def title(op: int) -> str:
        said = f"op {op % count} {operations[op % count].name!r}"
        return said if len(opened) < 2 else f"{said} of iteration {iteration_of[op // count]}"

    iteration_of = {iteration % slots: iteration for iteration in opened}
    for stream, name in enumerate(program.streams):
        lane = columns.lanes[int(rank["lane0"]) + stream]
        base = int(columns.lane_base[int(row["lane0"]) + stream])
        for op in sorted(cells["ready"][base : base + int(lane["count"])].tolist()):
            taken = f"its turn on stream {name!r}"
            if lane["busy"] != NONE:
                taken = f"stream {name!r}, which {title(int(lane['busy']))} holds"
            yield f"rank {own}: {title(op)} waits for {taken}"
    # Of open iterations only: other slots hold what was reset for iterations to come.
    mine = [it % slots * count + op for it in opened for op in range(count)]
    waiting = {op for op in mine if cells["waits"][op]}
    left = {op for op in mine if cells["started"][op] != NONE} or waiting
    for op in sorted(waiting, key=lambda op: (iteration_of[op // count], op)):
        slot, one = op // count, operations[op % count]
        deps = [slot * count + dep for dep in one.deps]
        deps += [(slot - lag) % slots * count + dep for dep, lag in one.lagged]
        behind = [dep for dep in deps if dep in left]
        if behind:
            awaited = ", ".join(title(dep) for dep in behind[:_SHOWN])
            yield f"rank {own}: {title(op)} waits for {awaited}"
