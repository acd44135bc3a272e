"""Who waits for whom, in words, when nothing can happen any more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from cosim.engine.reference.collectives import Meeting
from cosim.engine.reference.messages import Channel, RankMessage
from cosim.engine.reference.ranks import Rank, RankStep
from cosim.units import format_size

if TYPE_CHECKING:
    from cosim.engine.reference.replay import ReferenceReplay

_SHOWN = 4
"""Operations shown of one rank."""


def waits(run: ReferenceReplay, stuck: Iterable[Rank]) -> list[str]:
    """A line for each collective that lacks ranks, each message with one end, each operation behind those.

    With several jobs each line begins with its job's name.
    """
    lines = [(one.job.number, _lacks(one)) for one in run.collectives.under_way.values()]
    lines += [(channel[0], _one_end(channel, message)) for channel, message in run.messages.unmatched()]
    lines += [(rank.job.number, line) for rank in stuck for line in islice(_behind(rank), _SHOWN)]
    if len(run.jobs) == 1:
        return [line for _, line in lines]
    return [f"{run.jobs[job].info.name}: {line}" for job, line in lines]


def _some(ranks: Iterable[int]) -> str:
    chosen = sorted(ranks)
    text = ", ".join(str(rank) for rank in chosen[:8])
    more = f" and {len(chosen) - 8} more" if len(chosen) > 8 else ""
    return f"rank{'s' if len(chosen) > 1 else ''} {text}{more}"


def _lacks(one: Meeting) -> str:
    ranks = one.group.ranks
    came = [ranks[position] for position in one.came]
    if len(came) < len(ranks):
        return f"{_some(came)}: {one.title()}: waits for {_some({*ranks} - {*came})} to start it"
    here = [ranks[position] for position in one.came if position not in one.left]
    return f"{_some(here)}: {one.title()}: all arrived, but its messages do not complete"


def _one_end(channel: Channel, message: RankMessage) -> str:
    _, sender, receiver, tag = channel
    end = message.send or message.recv
    assert end is not None
    one = end[0].operation(end[1])
    what = f"op {end[1].op} {one.name!r}, {format_size(one.size_bytes)}, tag {tag}"
    if message.send:
        return f"rank {sender}: SEND {what}: rank {receiver} never posts the RECV"
    return f"rank {receiver}: RECV {what}: rank {sender} never posts the SEND"


def _behind(rank: Rank) -> Iterator[str]:
    """A rank's operations that wait for one under way: by dependency, or for its stream.

    With none under way, those that wait for each other.
    """
    open_ = range(rank.oldest, rank.iteration + 1)

    def title(step: RankStep) -> str:
        said = f"op {step.op} {rank.operation(step).name!r}"
        return said if len(open_) < 2 else f"{said} of iteration {step.iteration}"

    for stream, name in enumerate(rank.program.streams):
        for _, step in sorted(rank.ready[stream]):
            taken = f"its turn on stream {name!r}"
            if stream in rank.busy:
                taken = f"stream {name!r}, which {title(rank.busy[stream])} holds"
            yield f"rank {rank.number}: {title(step)} waits for {taken}"
    steps = (RankStep(iteration, op) for iteration in open_ for op in range(len(rank.program.operations)))
    waiting = [step for step in steps if rank.waiting.get(step, 1)]
    left = rank.started.keys() or {*waiting}
    for step in waiting:
        one = rank.operation(step)
        before = [
            RankStep(step.iteration - lag, dep) for dep, lag in (*((d, 0) for d in one.deps), *one.lagged)
        ]
        behind = [other for other in before if other in left]
        if behind:
            awaited = ", ".join(title(other) for other in behind[:_SHOWN])
            yield f"rank {rank.number}: {title(step)} waits for {awaited}"
