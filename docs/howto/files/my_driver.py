"""A job that trains until its loss is low enough."""

from collections.abc import Generator
from typing import Any

from pydantic import Field
from simpy.events import Event

from cosim.plugins import Context, DrivenRanks, Driver, Simulation, SizeBytes, TimePs, draw


class UntilGood(Driver):
    """Steps and all-reduces until the loss is low, then sends the model to rank 0's neighbour"""

    ranks: int = Field(ge=2, description="how many")
    size: SizeBytes = Field(description="of the gradients")
    compute: TimePs = Field(description="of a step")
    loss: float = Field(0.1, gt=0, description="when it ends")
    forgets: bool = Field(False, description="to send what is waited for")

    def num_ranks(self) -> int:
        return self.ranks

    def drive(self, sim: Simulation, job: DrivenRanks, context: Context) -> Generator[Event, Any, Any]:
        loss, step = 1.0, 0
        while loss > self.loss:
            yield job.compute(range(self.ranks), self.compute)
            yield job.all_reduce(range(self.ranks), self.size, algorithm="ring" if step else "direct")
            loss, step = loss * (0.7 + draw(context.seed, step) % 256 / 1024), step + 1
        received = job.recv(1, 0, self.size, name="model")
        if not self.forgets:
            job.send(0, 1, self.size, name="model")
        yield received
