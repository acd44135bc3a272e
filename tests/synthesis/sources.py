"""Traces that tests learn from: a model of the catalogue, translated to Chakra."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import cosim
from cosim.context import HERE
from cosim.engine.records import JobInfo
from cosim.engine.replay import replay
from cosim.network.fair_share import FairShareNetwork
from cosim.pattern.config import CollectiveConfig
from cosim.pattern.planner import Planner
from cosim.topology.regular import Switch
from cosim.workload.program import Workload

SCENARIO = """
topology: {{kind: ring, endpoints: 8, rate: 100Gbps, latency: 1us}}
network: fair_share
jobs:
  - workload:
      kind: model
      model:
        {{kind: transformer, layers: {layers}, hidden: 2048, heads: 16, ffn: 8192, sequence: 1024,
          vocabulary: 50000}}
      gpu: a100-80gb
      batch: 16
      sequence: 1024
      micro_batch: 2
      parallel: {{dp: 4, tp: 2}}
"""


def traces(out: Path, layers: int = 6) -> Path:
    """A folder of eight ranks' traces: dp 4, tp 2."""
    cosim.translate(cosim.loads(SCENARIO.format(layers=layers)), "chakra", out)
    return out


def iteration_ps(workload: Workload, rate: str = "100Gbps") -> int:
    """How long one iteration takes on a switch."""
    endpoints = np.arange(workload.world_size, dtype=np.int32)
    links = {"endpoints": len(endpoints), "rate": rate, "latency": "1us"}
    topology = Switch.model_validate(links).build(HERE)
    job = JobInfo("job", workload, endpoints, 1, 0)
    return replay(topology, FairShareNetwork(), [job], Planner(CollectiveConfig())).end_ps
