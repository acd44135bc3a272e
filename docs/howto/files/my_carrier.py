"""Which rank adds up is decided as the run goes on: the one that comes first."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, ClassVar

import simpy

from cosim.plugins import Carried, Carrier, Collective, Simulation


class FirstAddsUp(Carrier):
    """All-reduce by the rank that comes first: it gathers what the others have, and sends them the sum"""

    name: ClassVar[str] = "first_adds_up"
    carries: ClassVar[frozenset[Collective]] = frozenset({Collective.ALL_REDUCE})
    checks_data: ClassVar[bool] = True

    def carry(self, sim: Simulation, collective: Carried) -> Generator[simpy.Event, Any, Any]:
        ranks, ends = range(collective.num_ranks), collective.endpoints
        whole = (0, collective.size_bytes)
        yield sim.any_of([collective.arrival(rank) for rank in ranks])
        first = next(rank for rank in ranks if collective.arrival(rank).triggered)
        others = [rank for rank in ranks if rank != first]

        def bring(rank: int) -> Generator[simpy.Event, Any, Any]:
            yield collective.arrival(rank)
            yield collective.send(ends[rank], ends[first], whole, adds=True)

        def give(rank: int) -> Generator[simpy.Event, Any, Any]:
            yield collective.send(ends[first], ends[rank], whole)
            collective.through(rank)

        yield sim.all_of([sim.process(bring(rank)) for rank in others])
        collective.through(first)
        yield sim.all_of([sim.process(give(rank)) for rank in others])
