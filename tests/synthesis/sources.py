"""Traces that tests learn from: a model of the catalogue, translated to Chakra."""

from __future__ import annotations

from pathlib import Path

import cosim
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


def iteration_ps(workload: Workload | dict[str, str], rate: str = "100Gbps") -> int:
    """How long one iteration takes on a switch."""
    endpoints = workload.world_size if isinstance(workload, Workload) else 8
    topology = {"kind": "switch", "endpoints": endpoints, "rate": rate, "latency": "1us"}
    done = cosim.run({"topology": topology, "network": "fair_share", "jobs": [{"workload": workload}]})
    return done.records.end_ps
