"""A thread's measured time as a sequence: stretches of one operator's own time, and what lies between."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

from cosim.formats.pytorch.kineto import HostEvent, blocks, makes_wait

AUTOGRAD = "autograd::engine::"
HOST = "between operators"


class What(Enum):
    """What an item is."""

    RUN = 0
    """The thread works, in ``call`` itself (not in what it calls), or between operators."""
    BLOCK = 1
    """A call that waits for the GPU."""
    LAUNCH = 2
    """``call`` hands work to the GPU."""
    STREAM_WAIT = 3
    """``call`` makes a stream wait."""
    COMM = 4
    """A communication begins, or is waited for: ``call.comm``."""
    HAND_OVER = 5
    """Other threads begin ``bursts``."""
    TAKE_BACK = 6
    """The thread stands still until ``bursts`` end."""


@dataclass(slots=True, eq=False)
class Burst:
    """A time in which another thread works for one that stands still."""

    begin: int
    end: int


@dataclass(slots=True)
class Item:
    """``inside`` is the call around it that communicates, if any."""

    begin: int
    end: int
    what: What
    call: HostEvent | None
    inside: HostEvent | None = None
    bursts: list[Burst] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The operator's, for reports."""
        return HOST if self.call is None else self.call.name


def items(
    calls: Sequence[HostEvent], begin: int, end: int, launches: set[int], copies_back: set[int]
) -> list[Item]:
    """A thread's calls, in order of their beginning, as items from ``begin`` to ``end``.

    ``launches`` are correlations of calls that hand work to the GPU, ``copies_back`` of those that return
    only after it. Other CUDA calls count as time of the operator around them.
    """
    return list(_items(calls, begin, end, launches, copies_back))


def _items(
    calls: Sequence[HostEvent], begin: int, end: int, launches: set[int], copies_back: set[int]
) -> Iterator[Item]:
    stack: list[tuple[int, HostEvent]] = []
    now = begin

    def until(time: int) -> Iterator[Item]:
        nonlocal now
        if time > now:
            call = stack[-1][1] if stack else None
            inside = next((c for _, c in reversed(stack) if c.comm), None)
            waits = call is not None and (
                blocks(call.name) or (call.runtime and call.correlation in copies_back)
            )
            yield Item(now, time, What.BLOCK if waits else What.RUN, call, inside)
            now = time

    def close(time: int) -> Iterator[Item]:
        while stack and stack[-1][0] <= time:
            yield from until(stack[-1][0])
            stack.pop()

    for call in calls:
        launch = call.runtime and call.correlation in launches
        if call.runtime and not launch and not blocks(call.name) and not makes_wait(call.name):
            continue
        yield from close(call.begin)
        yield from until(call.begin)
        inside = next((c for _, c in reversed(stack) if c.comm), None)
        if launch:
            yield Item(call.begin, call.begin, What.LAUNCH, call, inside)
        elif makes_wait(call.name):
            yield Item(call.begin, call.begin, What.STREAM_WAIT, call, inside)
        elif call.comm is not None:
            yield Item(call.begin, call.begin, What.COMM, call)
        stack.append((min(call.end, stack[-1][0] if stack else end), call))
    yield from close(end)
    yield from until(end)


def hand_over(main: list[Item], other: Sequence[HostEvent]) -> list[Burst]:
    """The times in which autograd's thread works for ``main``; none where the thread does its own.

    PyTorch's engine runs backward on threads of its own, while the one that called it stands still (but for
    what may run there in between). Such a time begins in a stretch of ``main``, before which an item is put
    that hands over, and ends in the same or another, which becomes one that waits.
    """
    places = [place for place, item in enumerate(main) if item.end > item.begin]
    begins = [main[place].begin for place in places]
    bursts: list[Burst] = []
    homes: list[tuple[int, int]] = []
    for call in _outermost(other):
        at = bisect.bisect_right(begins, call.begin) - 1
        until = max(bisect.bisect_left(begins, call.end) - 1, at)
        if at < 0 or main[places[at]].what is not What.RUN:
            return []
        if bursts and (homes[-1][1] >= at or not call.name.startswith(AUTOGRAD)):
            bursts[-1].end = max(bursts[-1].end, call.end)
            homes[-1] = homes[-1][0], max(until, homes[-1][1])
        elif call.name.startswith(AUTOGRAD):
            bursts.append(Burst(call.begin, call.end))
            homes.append((at, until))
        else:
            return []
    if any(main[places[until]].what is not What.RUN for _, until in homes):
        return []
    for (_, until), burst in zip(homes, bursts, strict=True):
        main[places[until]].what = What.TAKE_BACK
        main[places[until]].bursts.append(burst)
    for (at, _), burst in reversed(list(zip(homes, bursts, strict=True))):
        begin = begins[at]
        main.insert(places[at], Item(begin, begin, What.HAND_OVER, None, bursts=[burst]))
    return bursts


def _outermost(calls: Sequence[HostEvent]) -> list[HostEvent]:
    found: list[HostEvent] = []
    end = -1
    for call in calls:
        if call.begin >= end or not found:
            found.append(call)
            end = call.end
        else:
            end = max(end, call.end)
    return found
