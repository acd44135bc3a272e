"""Ranks that fail, as :mod:`cosim.faults.training` takes them."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cosim.faults.event import Event
from cosim.faults.occasions import occasions
from cosim.faults.training import Failure


@dataclass(frozen=True, eq=False)
class Failures:
    """Every failure of a job's ranks, of events with their numbers and ranks; may be iterated again."""

    events: Sequence[tuple[int, Event, Sequence[int]]]
    seed: int
    lasts_ps: int

    def __iter__(self) -> Iterator[Failure]:
        """In order of (time, rank)."""
        streams = [
            self._stream(number, event, rank) for number, event, ranks in self.events for rank in ranks
        ]
        return iter(heapq.merge(*streams))

    def mtbf_ps(self) -> float | None:
        """Mean time between failures of any rank; None: there are none."""
        rate = 0.0
        for _, event, ranks in self.events:
            each = event.mtbf or event.every or self.lasts_ps
            rate += len(ranks) / each
        return 1 / rate if rate else None

    def _stream(self, number: int, event: Event, rank: int) -> Iterator[Failure]:
        cause = event.cause or f"event {number}"
        for begin, _ in occasions(event, self.seed, number, rank, self.lasts_ps):
            yield Failure(begin, rank, cause, event.repair or 0)
