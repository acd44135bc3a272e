"""Jobs that come in bursts, as users submit a search over hyperparameters."""

from pydantic import Field

from cosim.plugins import Arrival, TimePs


class Bursts(Arrival):
    """So many at once, then nothing for a while"""

    jobs: int = Field(2, gt=0, description="in a burst")
    every: TimePs = Field(gt=0, description="from burst to burst")

    def times(self, count, context):
        return [job // self.jobs * self.every for job in range(count)]
