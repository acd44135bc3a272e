"""The collectives under way that code carries: who tells carriers what happened, and does what they ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cosim.engine.programs import COLLECTIVES
from cosim.errors import AlgorithmError, NetworkError
from cosim.processes.carrier import Carried, Carrier
from cosim.processes.waiting import WorkEvent

if TYPE_CHECKING:
    from cosim.engine.replay import Replay
    from cosim.processes.simulation import Simulation
    from cosim.topology.graph import Topology


class Carrying:
    """All of a run."""

    def __init__(self, sim: Simulation, replay: Replay, topology: Topology) -> None:
        self.sim, self.topology = sim, topology
        self.shared: dict[object, Any] = {}
        """What carriers keep for the whole run."""
        self._engine, self._driver = replay.engine, replay.driver
        there = replay.network.describe()
        self._network_name, self._switch_ends = there.name, there.switch_ends
        self._engine.groups.carries = True
        self._under_way: dict[int, Carried] = {}

    def arrived(self, met: int, position: int) -> None:
        """A rank has come to a collective; the first of its group begins it."""
        carried = self._under_way.get(met)
        if carried is None:
            carried = self._under_way[met] = self._begin(met)
        carried.came(position)

    def _begin(self, met: int) -> Carried:
        engine, sim = self._engine, self.sim
        row = engine.columns.rendezvous[met]
        comm = engine.groups.comms[int(row["comm"])]
        plan = engine.groups.planned[int(row["plan"])].plan
        _, operation = engine.numbered(int(row["rank"]), int(row["op"]))
        carrier = plan.carrier
        assert isinstance(carrier, Carrier)
        carried = Carried(
            self,
            met,
            carrier,
            COLLECTIVES[operation.collective],
            plan.size_bytes,
            operation.root,
            comm.job,
            int(row["iteration"]),
            comm.group.ranks,
            tuple(comm.group.endpoints.tolist()),
        )
        process = carrier.carry(sim, carried)
        if not hasattr(process, "throw"):
            raise AlgorithmError(
                f"{type(carrier).__name__}.carry gave {str(process)[:60]}, no process",
                hint="a process yields events",
            )
        sim.process(process)
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
        self._driver.carry((of.job, src, dst, channel), met, size, min(of.ranks), of.num_messages, event)
        return event

    def through(self, of: Carried, met: int, position: int) -> None:
        """A rank is done with a collective now."""
        if of.is_over:
            del self._under_way[met]
            self._engine.groups.count_carried(met, of.num_messages)
        self._engine.leave_carried(met, position)
