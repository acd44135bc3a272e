"""Who waits for whom, in words, when nothing can happen any more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from cosim.engine.meeting import Meeting
from cosim.engine.programs import ReadyJob
from cosim.engine.rank import Rank

_SHOWN = 4
"""Operations shown of one rank."""


def _some(ranks: Iterable[int]) -> str:
    chosen = sorted(ranks)
    text = ", ".join(str(rank) for rank in chosen[:8])
    more = f" and {len(chosen) - 8} more" if len(chosen) > 8 else ""
    return f"rank{'s' if len(chosen) > 1 else ''} {text}{more}"


def waits(
    jobs: Iterable[ReadyJob],
    ranks: Iterable[Rank],
    meetings: Mapping[object, Meeting],
    unmatched: Iterable[tuple[int, str]],
) -> list[str]:
    """A line for each collective that lacks ranks, each message with one end, each operation behind those.

    ``unmatched`` are (number of the job, line). With several jobs each line begins with its job's name.
    """
    names = [job.info.name for job in jobs]
    lines = [*_meetings(meetings.values()), *unmatched]
    for rank in ranks:
        lines += [(rank.job.number, line) for line in list(_behind(rank))[:_SHOWN]]
    return [f"{names[job]}: {line}" if len(names) > 1 else line for job, line in lines]


def _meetings(meetings: Iterable[Meeting]) -> Iterator[tuple[int, str]]:
    for meeting in meetings:
        missing = set(meeting.group.ranks) - meeting.arrived
        if missing:
            text = f"{_some(meeting.arrived)}: {meeting.title}: waits for {_some(missing)} to start it"
        else:
            left = set(meeting.group.ranks) - meeting.left
            text = f"{_some(left)}: {meeting.title}: all arrived, but its messages do not complete"
        yield meeting.first.job.number, text


def _behind(rank: Rank) -> Iterator[str]:
    """A rank's operations that wait for one under way: by dependency, or for its stream.

    With none under way, those that wait for each other.
    """
    operations = rank.program.operations

    def title(op: int) -> str:
        return f"op {op} {operations[op].name!r}"

    for stream, ready in enumerate(rank.ready):
        for op in sorted(ready):
            taken = f"stream {rank.program.streams[stream]!r}, which {title(rank.busy[stream])} holds"
            yield f"rank {rank.number}: {title(op)} waits for {taken}"
    for op, count in enumerate(rank.waits):
        left = rank.started or {dep for dep, waits in enumerate(rank.waits) if waits}
        behind = [dep for dep in operations[op].deps if dep in left] if count else []
        if behind:
            awaited = ", ".join(title(dep) for dep in behind[:_SHOWN])
            yield f"rank {rank.number}: {title(op)} waits for {awaited}"
