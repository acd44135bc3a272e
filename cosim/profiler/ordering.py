"""Who runs after whom on a GPU, as CUDA has it: streams in order, events between them, a host that may wait.

Each operation is issued on a stream and gets a number. It runs after the operation before it on its stream,
after what its stream was told to wait for, and after what the host had waited for when it was issued. What
follows from another dependency is left out, so that lists stay short.
"""

from __future__ import annotations

from collections.abc import Iterable


class Ordering:
    """Streams, events and the host; ``deps[n]`` are the operations that operation n runs after."""

    def __init__(self) -> None:
        self.deps: list[tuple[int, ...]] = []
        self.stream_of: list[str] = []
        self._last: dict[str, int] = {}
        self._known: list[dict[str, int]] = []
        """By operation: the latest operation of every other stream that has surely ended before it."""
        self._clock: dict[str, dict[str, int]] = {}
        self._waits: dict[str, set[int]] = {}
        self._events: dict[int, frozenset[int]] = {}
        self._host: set[int] = set()

    def copy(self) -> Ordering:
        """As it is now, whatever is added to this one."""
        made = Ordering()
        made.deps, made.stream_of, made._known = [*self.deps], [*self.stream_of], [*self._known]
        made._last, made._clock, made._events = {**self._last}, {**self._clock}, {**self._events}
        made._waits = {stream: {*others} for stream, others in self._waits.items()}
        made._host = {*self._host}
        return made

    def issue(self, stream: str, after: Iterable[int] = ()) -> int:
        """Add an operation to the end of a stream; its number."""
        number = len(self.deps)
        clock = self._clock.get(stream, {})
        wanted = {*self._waits.pop(stream, ()), *self._host, *after}
        deps: list[int] = []
        for other in sorted(wanted, reverse=True):  # the latest first: it often implies the others
            if self._ended(clock, stream, other):
                continue
            deps.append(other)
            clock = self._merged(clock, other)
        if stream in self._last:
            deps.append(self._last[stream])
        self._clock[stream] = clock
        self._known.append(clock)
        self._last[stream] = number
        self.stream_of.append(stream)
        self.deps.append(tuple(sorted(deps)))
        return number

    def before(self, stream: str) -> frozenset[int]:
        """What has ended once a stream gets here: its last operation, and what it waits for."""
        last = self._last.get(stream)
        return frozenset({*self._waits.get(stream, ()), *([] if last is None else [last])})

    def covers(self, stream: str, other: int) -> bool:
        """Whether the next operation of a stream runs after ``other`` anyway."""
        if self._ended(self._clock.get(stream, {}), stream, other):
            return True
        return any(
            each == other or self._ended(self._known[each], self.stream_of[each], other)
            for each in (*self._waits.get(stream, ()), *self._host)
        )

    def frontier(self) -> tuple[dict[str, int], dict[str, set[int]], set[int]]:
        """The last operation of each stream, what it waits for besides, and what the host has waited for."""
        return {**self._last}, {stream: {*others} for stream, others in self._waits.items()}, {*self._host}

    def wait(self, stream: str, others: Iterable[int]) -> None:
        """A stream goes on when these have ended."""
        self._waits.setdefault(stream, set()).update(others)

    def record(self, event: int, stream: str) -> None:
        """An event on a stream: it comes when all that the stream has so far is done."""
        self._events[event] = self.before(stream)

    def block(self, event: int, stream: str) -> None:
        """A stream waits for an event."""
        self.wait(stream, self._events.get(event, ()))

    def host_waits(self, others: Iterable[int]) -> None:
        """The host waits: all that is issued from now on runs after these."""
        self._host = {*self._host, *others}
        if len(self._host) > 1:
            newest = sorted(self._host, reverse=True)
            kept: list[int] = []
            for other in newest:
                if not any(self._ended(self._known[k], self.stream_of[k], other) for k in kept):
                    kept.append(other)
            self._host = set(kept)

    def recorded(self, event: int) -> frozenset[int]:
        """What has ended once an event comes."""
        return self._events.get(event, frozenset())

    def latest(self) -> frozenset[int]:
        """The last operation of each stream."""
        return frozenset(self._last.values())

    def _ended(self, clock: dict[str, int], stream: str, other: int) -> bool:
        home = self.stream_of[other]
        if home == stream:
            return True
        return clock.get(home, -1) >= other

    def _merged(self, clock: dict[str, int], other: int) -> dict[str, int]:
        merged = dict(clock)
        for stream, number in (*self._known[other].items(), (self.stream_of[other], other)):
            if merged.get(stream, -1) < number:
                merged[stream] = number
        return merged
