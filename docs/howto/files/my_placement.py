"""Every other free endpoint, so that two jobs meet on every switch."""

from pydantic import Field

from cosim.plugins import Placement


class Strided(Placement):
    """Every n-th free endpoint, beginning again where they end"""

    step: int = Field(2, gt=0, description="endpoints from one rank to the next")

    def choose(self, wanted):
        wanted.check_enough()
        free = wanted.free
        order = [k for first in range(self.step) for k in range(first, len(free), self.step)]
        return free[order[: wanted.num_ranks]]
