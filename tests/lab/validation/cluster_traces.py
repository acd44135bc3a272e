"""A real cluster's leaves and job log: ``python -m tests.lab.validation.cluster_traces CLONE [LEAF ...]``.

CLONE is a clone of github.com/zhejianglab/Zhejiang-Lab-Cluster-Traces (2024, CC BY 4.0): octets of each port
of 20 leaf switches, twice a second for an hour, and the log of Llama 2 7B on 32 A100s (DeepSpeed's ZeRO,
stage 1). A row for each leaf that is named: ports, those over 1 Gbps, terabytes in and out outside gaps, how
much these differ, gaps in seconds, and jobs as ports at so many Gbps. Then the job's iteration and NCCL's
rings, here and there. The log doesn't say whether activations are recomputed.
"""

from __future__ import annotations

import csv
import re
import sys
import tempfile
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np

import cosim
from cosim.captures.read import read_capture
from cosim.experiment.traffic import rings_of
from cosim.results.traffic.ports import PortAnalysis, analyse_ports
from cosim.results.traffic.rings import analyse_communicators, rings_beside

_HOUR_MS = 1_716_480_000_000
JOB = """
topology:
  {{kind: leaf_spine, leaves: 1, spines: 1, endpoints_per_leaf: 32, latency: 1us,
    hosts: {{gpus: 8, nvlink_rate: 2.4Tbps, nvlink_latency: 300ns, nics: 4, nic_rate: 200Gbps}}}}
network: fair_share
jobs:
  - workload:
      {{kind: model, model: {{kind: llama2-7b, sequence: 4096}}, gpu: a100-80gb, memory: ignore,
        framework: pytorch, recompute: {recompute}, micro_batch: 1, batch: 1024, parallel: {{dp: 32}}}}
"""


def leaf(folder: Path) -> PortAnalysis:
    """A leaf's ports, of its CSV files."""
    ports: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for path in sorted(folder.glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                time = int(row["SaveTimeUTC"]) - _HOUR_MS
                ports[row["PortName"]].append((time, int(row["InOctets"]), int(row["OutOctets"])))
    with tempfile.TemporaryDirectory() as place:
        arrays = {name: np.array(rows, np.int64).T for name, rows in ports.items()}
        np.savez(Path(place) / "leaf.npz", **arrays)  # type: ignore[arg-type]
        return analyse_ports(read_capture(Path(place) / "leaf.npz").ports)


def iterations_s(log: str) -> list[float]:
    """Seconds of an iteration, between the log's checkpoints of 500 iterations."""
    times = {int(at): (int(h) * 60 + int(m)) * 60 + int(s)
             for at, h, m, s in re.findall(r"\b(\d+)/2436 \[(?:(\d+):)(\d\d):(\d\d)<", log)}  # fmt: skip
    marks = [at for at in (500, 1000, 1500, 2000) if at in times]
    return [(times[b] - times[a]) / (b - a) for a, b in pairwise(marks)]


def main(clone: Path, leaves: list[int]) -> None:
    """Print the tables."""
    root = clone / "cluster_2000_A100"
    if leaves:
        print("leaf  ports  busy  TB in  TB out  apart      gaps  jobs")
    for number in leaves:
        (folder,) = (root / "trafficinfo").glob(f"*/*-Leaf-{number}_GPU_*")
        found = leaf(folder)
        into = int(found.in_bytes.sum()) - found.gap_bytes[0]
        out = int(found.out_bytes.sum()) - found.gap_bytes[1]
        jobs = ", ".join(f"{len(one.ports)} at {one.in_bps / 1e9:.1f}" for one in found.groups[:3])
        gaps = " ".join(f"{gap / 1e12:.0f}" for gap in found.gap_ps)
        print(
            f"{number:4} {len(found.names):6} {found.num_busy:5} {into / 1e12:6.1f} {out / 1e12:7.1f} "
            f"{abs(into / out - 1):8.5%} {gaps:>6}  {jobs}",
            flush=True,
        )
    (log,) = (root / "taskinfo").rglob("*-master.log")
    measured = iterations_s(log.read_text(encoding="utf-8", errors="replace"))
    print(f"an iteration: {', '.join(f'{one:.2f}' for one in measured)} s in the log")
    for recompute in ("none", "full"):
        ours = cosim.run(cosim.loads(JOB.format(recompute=recompute))).records.end_ps / 1e12
        print(f"  recompute: {recompute}: {ours:.2f} s ({ours / measured[-1] - 1:+.1%})")
    logged = read_capture(log).communicators
    expected = rings_of(cosim.loads(JOB.format(recompute="full")), logged)
    rings = rings_beside(analyse_communicators(expected), analyse_communicators(logged))
    print(f"rings, a: expected, b: the log: {rings.sentence}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(text) for text in sys.argv[2:]])
