"""An agent says, millisecond by millisecond, which of two jobs goes first."""

from typing import Any

import gymnasium
import numpy as np

import cosim

STEP_PS = 1_000_000_000


class WhoGoesFirst(gymnasium.Env[Any, Any]):
    """Observes how busy a link was and how far the jobs are; its reward are iterations that end"""

    action_space = gymnasium.spaces.Discrete(2)
    observation_space = gymnasium.spaces.Box(0.0, 1.0, (3,), np.float32)

    def __init__(self, scenario: str, link: str) -> None:
        self.scenario, self.link, self.sim = scenario, link, None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.close()
        later = f"{self.np_random.integers(1000)}us"
        self.sim = cosim.open(self.scenario, {"jobs[1].start": later})
        self.jobs = [*self.sim.jobs.values()]
        self.iterations = [job.iterations for job in self.sim.so_far().scenario.jobs]
        return self.look(), {}

    def step(self, action: Any) -> Any:
        before = sum(job.iterations_done for job in self.jobs)
        for number, job in enumerate(self.jobs):
            job.change(priority=int(number != action))
        self.sim.run(until=self.sim.now + STEP_PS)
        ended = sum(job.iterations_done for job in self.jobs) - before
        return self.look(), float(ended), all(job.is_through for job in self.jobs), False, {}

    def look(self) -> Any:
        done = [job.iterations_done / most for job, most in zip(self.jobs, self.iterations, strict=True)]
        return np.array([min(1.0, self.sim.link(self.link).use), *done], np.float32)

    def close(self) -> None:
        if self.sim is not None:
            self.sim.close()
