"""A process."""

from collections.abc import Generator
from typing import Any

from pydantic import Field
from simpy.events import Event

from cosim.plugins import Context, ProcessSpec, Simulation, TimePs


class Looks(ProcessSpec):
    """Wakes every so often"""

    every: TimePs = Field(gt=0, description="how often")

    def live(self, sim: Simulation, context: Context) -> Generator[Event, Any, Any]:
        while True:
            yield sim.timeout(self.every)
