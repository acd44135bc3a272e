"""The environment on the reference engine's clock: its ranks and the user's processes are SimPy's alike."""

from __future__ import annotations

from cosim.engine.reference.clock import Clock, Deliver
from cosim.network.simulator import NetworkSimulator
from cosim.processes.simulation import ENDED, Simulation
from cosim.processes.waiting import Outcome, WorkEvent


class ReferenceSimulation(Clock, Simulation):
    """See :class:`~cosim.processes.simulation.Simulation`."""

    def __init__(self, network: NetworkSimulator, deliver: Deliver) -> None:
        Simulation.__init__(self, lambda _: None, lambda *_: self.granted_ps)  # the clock does that
        Clock.__init__(self, network, deliver)

    def happened(self, event: WorkEvent) -> None:
        """Have an event happen now."""
        event._ok = True
        event._value = Outcome(event.began_ps, self.now_ps, event.times, event.messages)
        self.schedule(event, ENDED)
