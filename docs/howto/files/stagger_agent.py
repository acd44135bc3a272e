"""An agent says when a job starts, and sees how long iterations are."""

from typing import Any

import gymnasium
import numpy as np

import cosim


class Stagger(gymnasium.Env[Any, Any]):
    """One decision an episode: when the second job starts, 0 to 20 ms after the first"""

    action_space = gymnasium.spaces.Box(0.0, 20.0, (1,), np.float32)
    observation_space = gymnasium.spaces.Box(1.0, 4.0, (1,), np.float32)

    def __init__(self, scenario: str) -> None:
        free = {"jobs[1].start": "us", "topology.rate": "Gbps"}
        self.prepared = cosim.prepare(scenario, free)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.rate = round(float(self.np_random.uniform(100, 400)), 1)
        return np.array([self.rate / 100], np.float32), {}

    def step(self, action: Any) -> Any:
        start = round(1000 * float(action[0]))
        run = self.prepared.run({"jobs[1].start": start, "topology.rate": self.rate})
        slowest = max(run.iteration_ps)
        return np.array([self.rate / 100], np.float32), -slowest / 1e9, True, False, {}
