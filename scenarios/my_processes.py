"""A trainer and a controller as SimPy processes, for drivers.yaml and controller.yaml."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from pydantic import Field
from simpy.events import Event

from cosim.plugins import Context, DrivenRanks, Driver, ProcessSpec, Simulation, SizeBytes, TimePs, draw


class ParameterServer(Driver):
    """Workers that push gradients and pull weights when they like; a worker waits when it is too far ahead"""

    workers: int = Field(ge=1, description="how many; the server is the last rank")
    size: SizeBytes = Field(description="of gradients, and of weights")
    compute: TimePs = Field(description="of a step, half as long to twice as long")
    steps: int = Field(ge=1, description="of each worker")
    ahead: int = Field(2, ge=0, description="steps that the fastest may be ahead of the slowest")

    def num_ranks(self) -> int:
        return self.workers + 1

    def drive(self, sim: Simulation, job: DrivenRanks, context: Context) -> Generator[Event, Any, Any]:
        done, moved = [0] * self.workers, [sim.event()]

        def worker(rank: int) -> Generator[Event, Any, Any]:
            for step in range(self.steps):
                while step - min(done) > self.ahead:
                    yield moved[0]
                times = 512 + draw(context.seed, rank, step) % 1536  # of 1024
                yield job.compute(rank, self.compute * times // 1024)
                yield job.transfer(rank, self.workers, self.size, name="push")
                yield job.transfer(self.workers, rank, self.size, name="pull")
                done[rank] = step + 1
                moved[0].succeed()
                moved[0] = sim.event()

        yield sim.all_of([sim.process(worker(rank)) for rank in range(self.workers)])


class Reconnect(ProcessSpec):
    """Gives the one of two circuits that is asked for more the whole of the ports, after looking at both"""

    changes_links = True

    one: str = Field(description="a link")
    other: str = Field(description="another")
    every: TimePs = Field(gt=0, description="how often it looks")
    moves: TimePs = Field(ge=0, description="how long a circuit is dark when it moves")

    def live(self, sim: Simulation, context: Context) -> Generator[Event, Any, Any]:
        up, down = self.one, self.other
        sim.change(down, up=False)
        while True:
            yield sim.timeout(self.every)
            if sim.link(up).use > 0.0:
                continue
            sim.change(up, up=False)
            yield sim.timeout(self.moves)
            up, down = down, up
            sim.change(up, up=True)
            sim.link(up).use  # noqa: B018 - from here on
