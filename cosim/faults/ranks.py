"""Events of ranks: how much slower they compute, and from when on."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from cosim.engine.records import Slowdown
from cosim.errors import WorkloadError
from cosim.faults.event import Event
from cosim.faults.occasions import occasions
from cosim.units import NEVER

_MILLION = 1_000_000


def ranks_of(event: Event, world_size: int) -> list[int]:
    """The ranks that an event happens to, each by itself.

    Raises
    ------
    WorkloadError
        The job has none like that.
    """
    if event.rank == "*":
        return list(range(world_size))
    if not isinstance(event.rank, int):
        raise WorkloadError(f"{event.rank!r} is not a rank; write its number, or '*' for each one")
    if not 0 <= event.rank < world_size:
        raise WorkloadError(f"there is no rank {event.rank}; the job has ranks 0 to {world_size - 1}")
    return [event.rank]


_Edge = tuple[int, bool, int, int, int]
"""When, whether it begins, what (each its own number), whom, and how much slower in millionths."""


@dataclass(frozen=True, eq=False)
class EventsOfRanks:
    """Every event of a job's ranks, as slowdowns; may be iterated again. Several at once multiply."""

    events: Sequence[tuple[int, Event, Sequence[int]]]
    seed: int

    def __iter__(self) -> Iterator[Slowdown]:
        """Slowdowns in order of (time, rank)."""
        streams = []
        for number, event, ranks in self.events:
            streams += [self._edges(event, number, rank) for rank in ranks]
        under_way: dict[int, dict[int, int]] = {}
        for time, edges in groupby(heapq.merge(*streams), key=lambda edge: edge[0]):
            touched = set()
            for _, begins, what, rank, millionths in edges:
                here = under_way.setdefault(rank, {})
                touched.add(rank)
                if begins:
                    here[what] = millionths
                else:
                    del here[what]
            for rank in sorted(touched):
                product = _MILLION
                for _, millionths in sorted(under_way[rank].items()):
                    product = product * millionths // _MILLION
                yield Slowdown(time, rank, product)

    def _edges(self, event: Event, number: int, rank: int) -> Iterator[_Edge]:
        assert event.slow is not None
        what = number << 32 | rank
        for begin, end in occasions(event, self.seed, number, rank):
            yield begin, True, what, rank, round(event.slow * _MILLION)
            if end < NEVER:
                yield end, False, what, rank, 0
