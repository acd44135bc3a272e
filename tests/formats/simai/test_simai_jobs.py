"""Two jobs of measured computation times on one oversubscribed fabric: each slows the other down."""

from __future__ import annotations

import cosim
from cosim.experiment.alone import run_alone
from cosim.experiment.scenario import loads
from tests.inputs import find, needs

SCENARIO = """
topology:
  kind: leaf_spine
  leaves: 2
  spines: 1
  endpoints_per_leaf: 4
  rate: 100Gbps
  latency: 1us
  oversubscription: 4
network: {model: congestion, control: dctcp}
jobs:
  - name: llama
    workload: {kind: simai, path: L7B-D1-C02_Llama7B_deepspeed_zero3_A100.txt, gpus: 4}
    placement: {kind: explicit, endpoints: [0, 1, 4, 5]}
  - name: micro
    workload: {kind: simai, path: microAllReduce.txt, gpus: 8}
    placement: {kind: explicit, endpoints: [2, 3, 6, 7, 0, 1, 4, 5]}
    iterations: 80
share_endpoints: true
"""


@needs("simai")
def test_two_simai_jobs_slow_each_other_down_and_neither_is_starved() -> None:
    scenario = loads(SCENARIO, base=find("simai"))
    own = run_alone(scenario)
    summary = cosim.run(scenario).summary
    # Reduce-scatter of 1.89 GB over 4 ranks in a ring: 3/4 of it over every link, of which the narrowest has
    # 100 Gbit/s; computations of the file's lines.
    wire_ps = 1_889_785_610 * 3 / 4 * 8 / 100e9 * 1e12
    assert own["llama"] > wire_ps
    for job in summary.jobs:
        assert job.iteration_mean_ps is not None
        assert 1.0 < job.iteration_mean_ps / own[job.name] < 4
    assert summary.overlap is not None
    assert summary.overlap.last_quarter > 0.5
