"""Who waits for whom, in words, when nothing can happen any more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from cosim.engine import state as s
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
        job = int(engine.columns.arrays["ranks"]["job"][rank])
        lines += [(job, line) for line in list(_behind(engine, rank))[:_SHOWN]]
    return [f"{names[job]}: {line}" if len(names) > 1 else line for job, line in lines]


def _collectives(engine: Engine) -> Iterator[Line]:
    arrays = engine.columns.arrays
    under_way = []
    for comm in engine.groups.comms:
        at = int(arrays["comms"]["open"][comm.number])
        while at != s.NONE:
            under_way.append((int(arrays["rendezvous"]["serial"][at]), at, comm))
            at = int(arrays["rendezvous"]["next"][at])
    # In the order in which they began: the first of them is mostly the cause of the others.
    for _, at, comm in sorted(under_way, key=lambda one: one[0]):
        words, ranks = int(arrays["rendezvous"]["words"][at]), comm.group.ranks
        said = arrays["words"][words : words + len(ranks)].tolist()
        missing = {rank for rank, word in zip(ranks, said, strict=True) if word == s.NONE}
        if missing:
            came = set(ranks) - missing
            text = f"{_some(came)}: {engine.title(at)}: waits for {_some(missing)} to start it"
        else:
            left = {rank for rank, word in zip(ranks, said, strict=True) if word >= 0}
            text = f"{_some(left)}: {engine.title(at)}: all arrived, but its messages do not complete"
        yield comm.job, text


def unmatched(engine: Engine) -> Iterator[Line]:
    """A line for each message of which only one end was ever posted."""
    arrays = engine.columns.arrays
    for first, job, senders, receivers, tags in engine.tables.messages.channels:
        head = arrays["channels"]["head"][first : first + len(tags)]
        open_ = np.flatnonzero(head != s.NONE)
        for k in open_[np.lexsort((tags[open_], receivers[open_], senders[open_]))].tolist():
            at = int(head[k])
            while at != s.NONE:
                yield job, _one_end(engine, at, int(senders[k]), int(receivers[k]))
                at = int(arrays["messages"]["next"][at])


def _one_end(engine: Engine, message: int, sender: int, receiver: int) -> str:
    row = engine.columns.arrays["messages"][message]
    sent = row["send_rank"] != s.NONE
    rank, op = (int(row[f"{'send' if sent else 'recv'}_{name}"]) for name in ("rank", "op"))
    _, one = engine.operation(rank, op)
    what = f"op {engine.number_of(rank, op)} {one.name!r}, {format_size(one.size_bytes)}, tag {one.tag}"
    if sent:
        return f"rank {sender}: SEND {what}: rank {receiver} never posts the RECV"
    return f"rank {receiver}: RECV {what}: rank {sender} never posts the SEND"


def _behind(engine: Engine, number: int) -> Iterator[str]:
    """A rank's operations that wait for one under way: by dependency, or for its stream.

    With none under way, those that wait for each other.
    """
    arrays = engine.columns.arrays
    rank = arrays["ranks"][number]
    own, job = int(rank["number"]), engine.jobs[int(rank["job"])]
    program = job.program(own)
    row = arrays["programs"][int(rank["program"])]
    operations = program.operations
    count, slots = len(operations), job.slots.count
    cells = arrays["cells"][int(rank["cell0"]) :][: slots * count]
    opened = range(int(rank["oldest"]), int(rank["iteration"]) + 1)

    def title(op: int) -> str:
        said = f"op {op % count} {operations[op % count].name!r}"
        return said if len(opened) < 2 else f"{said} of iteration {iteration_of[op // count]}"

    iteration_of = {iteration % slots: iteration for iteration in opened}
    for stream, name in enumerate(program.streams):
        lane = arrays["lanes"][int(rank["lane0"]) + stream]
        base = int(arrays["lane_base"][int(row["lane0"]) + stream])
        for op in sorted(cells["ready"][base : base + int(lane["count"])].tolist()):
            taken = f"stream {name!r}, which {title(int(lane['busy']))} holds"
            yield f"rank {own}: {title(op)} waits for {taken}"
    # Of open iterations only: other slots hold what was reset for iterations to come.
    mine = [it % slots * count + op for it in opened for op in range(count)]
    waiting = {op for op in mine if cells["waits"][op]}
    left = {op for op in mine if cells["started"][op] != s.NONE} or waiting
    for op in sorted(waiting, key=lambda op: (iteration_of[op // count], op)):
        slot, one = op // count, operations[op % count]
        deps = [slot * count + dep for dep in one.deps]
        deps += [(slot - lag) % slots * count + dep for dep, lag in one.lagged]
        behind = [dep for dep in deps if dep in left]
        if behind:
            awaited = ", ".join(title(dep) for dep in behind[:_SHOWN])
            yield f"rank {own}: {title(op)} waits for {awaited}"
