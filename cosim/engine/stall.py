"""Who waits for whom, in words, when nothing can happen any more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from cosim.engine.meeting import Meeting
from cosim.engine.rank import Rank
from cosim.workload.program import OpKind


def _some(ranks: Iterable[int]) -> str:
    chosen = sorted(ranks)
    text = ", ".join(str(rank) for rank in chosen[:8])
    more = f" and {len(chosen) - 8} more" if len(chosen) > 8 else ""
    return f"rank{'s' if len(chosen) > 1 else ''} {text}{more}"


def waits(
    ranks: Iterable[Rank], meetings: Mapping[object, Meeting], unmatched: Iterable[str]
) -> Iterator[str]:
    """A line for each collective that lacks ranks, each unmatched message, and each rank that is stuck."""
    for meeting in meetings.values():
        missing = set(meeting.group.ranks) - meeting.arrived
        arrived = _some(meeting.arrived)
        if missing:
            yield f"{arrived}: {meeting.title}: waits for {_some(missing)} to start it"
        else:
            left = set(meeting.group.ranks) - meeting.left
            yield f"{_some(left)}: {meeting.title}: all arrived, but its messages do not complete"
    yield from unmatched
    for rank in ranks:
        if rank.is_done or rank.started:
            continue
        held = [op for op, count in enumerate(rank.waits) if count > 0]
        for op in held[:4]:
            operation = rank.program.operations[op]
            needs = [d for d in operation.deps if rank.waits[d] >= 0]
            names = ", ".join(f"op {d} {rank.program.operations[d].name!r}" for d in needs[:4])
            yield f"rank {rank.number}: op {op} {operation.name!r} waits for {names}"


def running(ranks: Iterable[Rank]) -> Iterator[str]:
    """A line for each operation under way, point-to-point and collectives apart."""
    for rank in ranks:
        for op in sorted(rank.started):
            operation = rank.program.operations[op]
            if operation.kind in (OpKind.COMPUTE, OpKind.MEMORY):
                yield f"rank {rank.number}: op {op} {operation.name!r} is computing"
