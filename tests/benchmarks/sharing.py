"""Jobs that share a fabric: ``python -m tests.benchmarks.sharing [simai]``.

``simai``: two jobs of SimAI's workload files, whose computation was measured on A100s: GPT-13B (Megatron,
tensor parallel within hosts, two replicas) and Llama-7B (DeepSpeed ZeRO-3 on 16 GPUs), each on two hosts
under two leaves of one oversubscribed leaf-spine; iterations by themselves and together, under each control.
The files are among the shared inputs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cosim
from cosim.experiment.alone import alone
from cosim.experiment.scenario import Scenario, loads
from cosim.results.measures import jain, slowdown
from cosim.results.terminal import align

SIMAI = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "simai"
CONTROLS: dict[str, Any] = {
    "dctcp": "dctcp",
    "dcqcn": "dcqcn",
    "swift": "swift",
    "hpcc": "hpcc",
    "mltcp": {"kind": "mltcp", "over": "dctcp"},
}
_SCENARIO = """
topology:
  kind: leaf_spine
  leaves: 2
  spines: 2
  endpoints_per_leaf: 16
  latency: 1us
  oversubscription: 4
  hosts: {gpus: 8, nvlink_rate: 2.4Tbps, nics: 8, nic_rate: 200Gbps}
network: {model: congestion, control: dctcp}
jobs:
  - name: gpt-13b
    workload: {kind: simai, path: G13B-M1-C01_GPT13B_megatron_tp8_pp1_mbs1_A100.txt, gpus: 16}
    placement: {kind: explicit, endpoints: [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23]}
  - name: llama-7b
    workload: {kind: simai, path: L7B-D1-C02_Llama7B_deepspeed_zero3_A100.txt, gpus: 16}
    placement: {kind: explicit, endpoints: [8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31]}
"""


def simai_scenario(iterations: int = 4) -> Scenario:
    """Both jobs on the fabric."""
    settings = {f"jobs[{n}].iterations": iterations for n in range(2)}
    return loads(_SCENARIO, settings, base=SIMAI, name="simai")


def simai() -> str:
    """A row for each control."""
    rows = [["control", "gpt-13b", "alone", "slowdown", "llama-7b", "alone", "slowdown", "Jain", "CPU-s"]]
    messages = 0
    for name, control in CONTROLS.items():
        scenario = simai_scenario().with_settings({"network.control": control})
        summary, own = cosim.run(scenario).summary, alone(scenario)
        cells = [name]
        for job in summary.jobs:
            assert job.iteration_mean_ps is not None
            times = (job.iteration_mean_ps, own[job.name])
            cells += [*(f"{time / 1e9:.1f} ms" for time in times), f"{slowdown(job, own):.3f}"]
        fair = jain([1 / slowdown(job, own) for job in summary.jobs])
        rows.append([*cells, f"{fair:.4f}", f"{summary.cpu_s:.1f}"])
        messages = summary.num_messages
    return "\n".join([f"{messages:,} messages a run; mean of 4 iterations", *align(rows)])


SECTIONS = {"simai": simai}


def main(names: Sequence[str]) -> None:
    """Print the sections asked for, or all."""
    unknown = [name for name in names if name not in SECTIONS]
    if unknown:
        sys.exit(f"no section {unknown[0]}; there are: {', '.join(SECTIONS)}")
    if not SIMAI.is_dir():
        sys.exit(f"{SIMAI} is not here: the shared inputs lie beside the checkout")
    for name in names or SECTIONS:
        print(f"== {name}\n\n{SECTIONS[name]()}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
