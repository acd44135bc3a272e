"""A controller that keeps one link free."""

from collections.abc import Generator
from typing import Any, ClassVar

from pydantic import Field
from simpy.events import Event

from cosim.plugins import Context, ProcessSpec, RateBps, Simulation, TimePs


class KeepFree(ProcessSpec):
    """Slows a link down while another is busy"""

    changes_links: ClassVar[bool] = True

    busy: str = Field(description="the link that is looked at")
    slow: str = Field(description="the link that is slowed down")
    rate: RateBps = Field(gt=0, description="what that one has meanwhile")
    every: TimePs = Field(gt=0, description="how often it looks")

    def live(self, sim: Simulation, context: Context) -> Generator[Event, Any, Any]:
        is_slow = False
        while True:
            yield sim.timeout(self.every)
            is_busy = sim.link(self.busy).use > 0.5
            if is_busy and not is_slow:
                sim.change(self.slow, rate=self.rate)
            elif is_slow and not is_busy:
                sim.change(self.slow, up=True)
            is_slow = is_busy
