"""Optical circuits between endpoints, which a process moves while a run goes on.

Each endpoint has so many ports; a circuit takes one at either end and carries ``rate`` both ways. A circuit
that is moved is dark for ``reconfiguration``, and messages wait for it: endpoints don't forward. A schedule
that is given begins with its first circuits up, and is gone round for ever. ``auto`` looks every so often at
who has something to send: ports of circuits that carry nothing go to pairs without a circuit, by
maximum-weight matchings as far as ports are free; a pair that has c circuits weighs 1 / (c + 1). Circuits
that carry something stay.

Source: G. Wang et al., "c-Through: Part-time Optics in Data Centers", SIGCOMM 2010,
doi:10.1145/1851182.1851222 (matchings by demand); W. M. Mellette et al., "RotorNet", SIGCOMM 2017,
doi:10.1145/3098822.3098838 (schedules). Not modelled: traffic that goes over an electrical network, or by way
of other endpoints, meanwhile.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Generator, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

import networkx as nx
import numpy as np
from pydantic import Field, model_validator
from simpy.events import Event

from cosim.context import Context
from cosim.errors import WorkloadError
from cosim.processes.contract import ProcessSpec
from cosim.processes.simulation import Simulation
from cosim.spec import Spec, TimePs
from cosim.topology.builder import Builder
from cosim.topology.contract import Latency, Rate, TopologySpec
from cosim.topology.direct_connect import Pair
from cosim.topology.graph import Topology

Circuits = Mapping[tuple[int, int], int]
"""How many circuits each pair has, the lower endpoint first."""


class Slot(Spec):
    """One entry of a schedule."""

    circuits: list[Pair] = Field(description="[a, b] each: endpoints with a circuit; as often as listed.")
    hold: TimePs | None = Field(None, gt=0, description="How long; omitted: for ever.")

    def counted(self) -> Counter[tuple[int, int]]:
        """How many circuits each pair has."""
        return Counter((min(pair), max(pair)) for pair in self.circuits)


class CircuitFabric(TopologySpec):
    """Endpoints with optical circuits between them, which move to where they are wanted, or by a schedule"""

    endpoints: int = Field(ge=2, le=512, description="Endpoints (GPUs, or servers).")
    ports: int = Field(1, ge=1, le=64, description="Circuits that an endpoint can have at once.")
    rate: Rate = Field(description="Rate of a circuit, per direction.")
    latency: Latency = Field(description="Latency of a circuit.")
    reconfiguration: Annotated[TimePs, Field(ge=0)] = Field(
        description="How long a circuit that moves is dark."
    )
    schedule: Literal["auto"] | Annotated[list[Slot], Field(min_length=1)] = Field(
        "auto", description="auto (by who has something to send), or [{circuits: [[0, 1]], hold: 1ms}, ...]."
    )
    look: Annotated[TimePs, Field(gt=0)] = Field(10_000_000, description="auto: how often it looks.")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for number, slot in enumerate(self._slots):
            for a, b in slot.circuits:
                if a == b or max(a, b) >= self.endpoints:
                    last = self.endpoints - 1
                    raise ValueError(
                        f"schedule[{number}] has [{a}, {b}]; it should be two endpoints from 0 to {last}"
                    )
            ends = Counter(end for pair in slot.circuits for end in pair)
            for end, count in ends.most_common(1):
                if count > self.ports:
                    raise ValueError(
                        f"schedule[{number}] gives endpoint {end} {count} circuits, and it has {self.ports} "
                        f"port{'s' if self.ports > 1 else ''}"
                    )
            if slot.hold is None and number < len(self._slots) - 1:
                raise ValueError(f"schedule[{number}] has no hold, so that those after it never come")
        return self

    @property
    def _slots(self) -> list[Slot]:
        return [] if isinstance(self.schedule, str) else self.schedule

    def size_about(self) -> int:
        """See :class:`~cosim.topology.contract.TopologySpec`."""
        return self.endpoints * (self.endpoints - 1)

    def build(self, context: Context) -> Topology:
        """Every circuit that could be, as fast as all of an endpoint's ports; the process sets rates."""
        n = self.endpoints
        builder = Builder(f"gpu{i}" for i in range(n))
        one, other = np.triu_indices(n, 1)
        builder.connect(one, other, self.rate * self.ports, self.latency)
        return builder.topology(f"circuits {n}x{self.ports}", self.routing, context)

    def process(self) -> ProcessSpec:
        """Who moves the circuits."""
        return MovedCircuits(fabric=self)

    def idle_settings(self) -> list[tuple[str, str]]:
        """Settings of a schedule that is given, and the routing."""
        idle = self.idle_routing("each pair of endpoints has one path only")
        if self._slots and "look" in self.model_fields_set:
            idle.append(("look", "the schedule is given"))
        return idle


class MovedCircuits(ProcessSpec):
    """Moves the circuits of a fabric"""

    changes_links: ClassVar[bool] = True

    fabric: CircuitFabric = Field(description="whose they are")

    def live(self, sim: Simulation, context: Context) -> Generator[Event, Any, Any]:
        """See :class:`~cosim.processes.contract.ProcessSpec`."""
        del context
        panel = _Panel(sim, self.fabric)
        slots = self.fabric._slots
        if not slots:
            yield from self._by_demand(sim, panel)
        for number, slot in enumerate(itertools.cycle(slots)):
            yield from panel.move(slot.counted(), dark=number > 0)
            if slot.hold is None:
                return
            yield sim.timeout(f"{slot.hold}ps")
            self._check_served(sim)

    def _check_served(self, sim: Simulation) -> None:
        """Refuse a schedule that leaves somebody waiting for ever.

        Raises
        ------
        WorkloadError
            It has no circuit for two who have something to send.
        """
        ever = {pair for slot in self.fabric._slots for pair in slot.counted()}
        for a, b in sim.senders():
            if (min(a, b), max(a, b)) not in ever:
                raise WorkloadError(
                    f"gpu{a} has something to send to gpu{b}, and no circuit of the schedule is between them",
                    hint=f"add [{a}, {b}] to a slot, or take schedule: auto",
                )

    def _by_demand(self, sim: Simulation, panel: _Panel) -> Generator[Event, Any, Any]:
        while True:
            wanted = {(min(pair), max(pair)) for pair in sim.senders()}
            if wanted - {pair for pair, count in panel.up.items() if count}:
                yield from panel.move(assigned(panel.up, wanted, self.fabric.ports))
            yield sim.timeout(f"{self.fabric.look}ps")


class _Panel:
    """The circuits that are up."""

    def __init__(self, sim: Simulation, fabric: CircuitFabric) -> None:
        self.sim, self.fabric = sim, fabric
        self.up: Counter[tuple[int, int]] = Counter()
        for a in range(fabric.endpoints):
            for b in range(a + 1, fabric.endpoints):
                self._set((a, b), 0)

    def move(self, to: Circuits, *, dark: bool = True) -> Generator[Event, Any, Any]:
        """Have these circuits: those that go are dark at once, those that come after a while, if ``dark``."""
        pairs = sorted({*self.up, *to})
        changed = [pair for pair in pairs if self.up[pair] != to.get(pair, 0)]
        for pair in changed:
            self._set(pair, min(self.up[pair], to.get(pair, 0)))
        if changed and dark and self.fabric.reconfiguration:
            yield self.sim.timeout(f"{self.fabric.reconfiguration}ps")
        for pair in changed:
            self._set(pair, to.get(pair, 0))

    def _set(self, pair: tuple[int, int], count: int) -> None:
        if self.up[pair] == count and pair in self.up:
            return
        self.up[pair] = count
        for a, b in (pair, pair[::-1]):
            name = f"gpu{a} -> gpu{b}"
            if count:
                self.sim.change(name, rate=self.fabric.rate * count)
            else:
                self.sim.change(name, up=False)


def assigned(up: Circuits, wanted: set[tuple[int, int]], ports: int) -> Counter[tuple[int, int]]:
    """Circuits for those who want some: who has some keeps them, who has none shares the other ports."""
    to = Counter({pair: count for pair, count in up.items() if count and pair in wanted})
    used = Counter(end for pair, count in to.items() for end in pair for _ in range(count))
    waiting = sorted(wanted - set(to))
    while True:
        free = [pair for pair in waiting if all(used[end] < ports for end in pair)]
        if not free:
            return to
        graph: nx.Graph[int] = nx.Graph()
        graph.add_weighted_edges_from((*pair, 1 / (to[pair] + 1)) for pair in free)
        for a, b in sorted(nx.max_weight_matching(graph)):
            to[min(a, b), max(a, b)] += 1
            used.update((a, b))
