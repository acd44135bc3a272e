"""The collectives under way that code carries: who tells carriers what happened, and does what they ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cosim.engine.programs import COLLECTIVES
from cosim.errors import AlgorithmError, NetworkError
from cosim.processes.carrier import Carried, Carrier
from cosim.processes.waiting import WorkEvent

if TYPE_CHECKING:
    from cosim.engine.live import LiveReplay
    from cosim.processes.simulation import Simulation
    from cosim.topology.graph import Topology


class Carrying:
    """All of a run."""

    def __init__(self, sim: Simulation, replay: LiveReplay, topology: Topology) -> None:
        self.sim, self.topology = sim, topology
        self.shared: dict[object, Any] = {}
        """What carriers keep for the whole run."""
        self._replay = replay
        there = replay.network.describe()
        self._network_name, self._switch_ends = there.name, there.switch_ends
        self._under_way: dict[int, Carried] = {}

    def arrived(self, met: int, position: int) -> None:
        """A rank has come to a collective; the first of its group begins it."""
        carried = self._under_way.get(met)
        if carried is None:
            carried = self._under_way[met] = self._begin(met)
        carried.came(position)

    def _begin(self, met: int) -> Carried:
        of = self._replay.met(met)
        carrier = of.plan.carrier
        assert isinstance(carrier, Carrier)
        carried = Carried(
            self,
            met,
            carrier,
            COLLECTIVES[of.operation.collective],
            of.plan.size_bytes,
            of.operation.root,
            of.job,
            of.iteration,
            of.group.ranks,
            tuple(of.group.endpoints.tolist()),
        )
        process = carrier.carry(self.sim, carried)
        if not hasattr(process, "throw"):
            raise AlgorithmError(
                f"{type(carrier).__name__}.carry gave {str(process)[:60]}, no process",
                hint="a process yields events",
            )
        self.sim.process(process)
        return carried

    def send(self, of: Carried, met: int, src: int, dst: int, size: int, channel: int) -> WorkEvent:
        """Start a flow of a collective now.

        Raises
        ------
        NetworkError
            The network has no flows that begin or end at switches.
        """
        if max(src, dst) >= self.topology.num_endpoints and not self._switch_ends:
            switch = self.topology.node_names[max(src, dst)]
            raise NetworkError(
                f"{self._network_name} takes flows between endpoints, and one begins or ends at {switch}; "
                "the networks of this process take it"
            )
        names = self.topology.node_names
        event = self.sim.asked((size, "bytes of", of.kind.value, "from", names[src], "to", names[dst]))
        self._replay.driver.carry(
            (of.job, src, dst, channel), met, size, min(of.ranks), of.num_messages, event
        )
        return event

    def through(self, of: Carried, met: int, position: int) -> None:
        """A rank is done with a collective now."""
        if of.is_over:
            del self._under_way[met]
        self._replay.leave_carried(met, position, of.num_messages, is_last=of.is_over)
