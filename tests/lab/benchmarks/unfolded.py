"""Every rank simulated: ``python -m tests.lab.benchmarks.unfolded``.

Llama 3 70B on H100s, tp 8, pp 4, dp n, 16 micro-batches, on hosts of eight GPUs and eight NICs under a
leaf-spine fabric of full bisection, ECMP, ``fold: never``. ``us/op`` and ``us/instant`` are the whole run by
operations and by instants (distinct times at which an operation ended, of the ranks recorded). Each row is a
process of its own that has run a small job before, so that nothing is compiled in it; seconds are CPU-s of
building, simulating and summing up, ``replay`` of the simulation alone; ``MB`` are the peak when that has
ended, and in the end. ``405b-16384`` keeps the operations
of 64 ranks, as its scenario says.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass

FABRIC = """
topology:
  kind: leaf_spine
  leaves: {leaves}
  spines: {spines}
  endpoints_per_leaf: {ports}
  latency: 500ns
  routing: {routing}
  hosts: {{gpus: 8, nvlink_rate: 450GB/s, nvlink_latency: 300ns, nics: 8, nic_rate: 400Gbps, rails: true}}
network: {network}
collectives: {{all_reduce: ring, all_gather: ring, reduce_scatter: ring, all_to_all: direct}}
fold: {fold}
record: {{operations: {operations}{spill}}}
"""
MODEL = "{{kind: model, model: {model}, gpu: h100-sxm, parallel: {parallel}, batch: {batch}{more}}}"


@dataclass(frozen=True)
class Row:
    """One run; ``bar`` is what issue 12 hopes for."""

    name: str
    gpus: int
    bar: str = ""
    model: str = "llama3-70b"
    pp: int = 4
    network: str = "fair_share"
    fold: str = "never"
    oversubscription: int = 1
    jobs: int = 1
    more: str = ""
    placement: str = ""
    routing: str = "{kind: ecmp, seed: 1}"
    hosts_per_leaf: int = 16
    operations: str = "all"
    spilled: bool = False

    def scenario(self) -> str:
        """Its text."""
        hosts = self.gpus // 8
        per_leaf = min(hosts, self.hosts_per_leaf)
        leaves = 8 * max(1, hosts // per_leaf)
        fabric = FABRIC.format(
            leaves=leaves,
            spines=max(1, per_leaf // self.oversubscription),
            ports=per_leaf,
            network=self.network,
            fold=self.fold,
            routing=self.routing,
            operations=self.operations,
            spill=f", spill: {tempfile.gettempdir()}" if self.spilled else "",
        )
        job = self._job(self.gpus // self.jobs)
        lines = [fabric, "jobs:"]
        for number in range(self.jobs):
            lines.append(f"  - name: job{number}\n    workload: {job}")
            if self.placement and number:
                lines.append(f"    {self.placement}")
        return "\n".join(lines) + "\n"

    def _job(self, gpus: int) -> str:
        if self.pp == 0:  # sharded data parallelism alone
            parallel, batch = f"{{fsdp: {gpus}}}", gpus
        else:
            dp = gpus // (8 * self.pp)
            parallel, batch = f"{{tp: 8, pp: {self.pp}, dp: {dp}}}", 16 * dp
        return MODEL.format(model=self.model, parallel=parallel, batch=batch, more=self.more)


SHARDED = ", sharded_optimizer: true, gradient_dtype: bf16"
DCTCP = "{model: congestion, control: dctcp}"
HYBRID = "{model: hybrid, scale_up: fair_share, scale_out: fair_share}"
HYBRID_DCTCP = "{model: hybrid, scale_up: congestion_unaware, scale_out: " + DCTCP + "}"
ROWS = (
    *(
        Row(f"{gpus}", gpus, bar)
        for gpus, bar in ((64, ""), (128, ""), (256, ""), (512, ""), (1024, "20 s, 1 GB"))
    ),
    Row("512-spilled", 512, spilled=True),
    Row("4096", 4096, "120 s, 4 GB"),
    Row("64-hybrid", 64, network=HYBRID),
    Row("1024-hybrid", 1024, network=HYBRID),
    Row("1024-unaware-dctcp", 1024, network=HYBRID_DCTCP),
    Row("64-dctcp", 64, network=DCTCP),
    Row("128-dctcp", 128, network=DCTCP),
    Row("1024-dctcp", 1024, "60 s", network=DCTCP),
    Row(
        "2x512-straggler",
        1024,
        "60 s",
        jobs=2,
        oversubscription=2,
        placement="placement: random\n    stragglers: [{factor: 1.2, ranks: [3]}]",
    ),
    Row("405b-16384", 16384, "600 s, 16 GB", model="llama3-405b", pp=16, more=SHARDED, operations="64"),
    Row(
        "131072-folded",
        131072,
        "30 s, 2 GB",
        model="llama3-405b",
        pp=16,
        fold="auto",
        more=SHARDED,
        routing="dmodk",
        hosts_per_leaf=128,
    ),
    Row("fsdp-512", 512, "20 s", model="llama2-7b", pp=0),
)
SMALL = Row("small", 64, more=", layers: 4")


def measure(row: Row) -> dict[str, object]:
    """Run one here, after a small one, and say what it took."""
    import numpy as np

    from cosim.experiment.run import run
    from cosim.experiment.scenario import loads

    fold = "never" if row.fold == "never" else "always"
    model = "{kind: llama3-70b, layers: 4}"
    run(loads(Row("small", 64, network=row.network, fold=fold, routing=row.routing, model=model).scenario()))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    cpu = time.process_time()
    done = run(loads(row.scenario()))
    simulated = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert done.summary.digest == done.records.digest  # summed up: a part of what is measured
    cpu = time.process_time() - cpu
    ops = done.records.ops
    return {
        "name": row.name,
        "gpus": row.gpus,
        "messages": done.records.num_messages,
        "operations": sum(
            len(job.workload.program(rank).operations) * job.iterations
            for job in done.records.jobs
            for rank in range(job.workload.world_size)
        ),
        "collectives": len(done.records.collectives),
        "instants": len(np.unique(ops.end_ps)),
        "cpu_s": round(cpu, 2),
        "replay_s": round(done.records.cpu_s, 2),
        "simulated_mb": round(simulated / 1024),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "before_mb": round(before / 1024),
        "digest": done.records.digest,
        "bar": row.bar,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the rows asked for, print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.benchmarks.unfolded", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    names = [row.name for row in ROWS]
    parser.add_argument(
        "rows", nargs="*", default=names[:5], help=f"of {', '.join(names)}; 64 to 1024 if none"
    )
    parser.add_argument("--here", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    by_name = {row.name: row for row in ROWS}
    if chosen.here:
        print(json.dumps(measure(by_name[chosen.here])))
        return
    print(
        "row              messages  operations  instants   CPU-s  replay   us/op  us/instant    MB  summed up"
        "  exponent"
    )
    last: tuple[int, float] | None = None
    for name in chosen.rows:
        if name not in by_name:
            parser.error(f"no row {name!r}; there are {', '.join(names)}")
        command = [sys.executable, "-m", "tests.lab.benchmarks.unfolded", "--here", name]
        found = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
        if found.returncode:
            raise SystemExit(f"{name}: its process ended with {found.returncode}")
        one = json.loads(found.stdout.splitlines()[-1])
        exponent = ""
        if last is not None and name.isdigit():
            exponent = f"{math.log(one['cpu_s'] / last[1]) / math.log(one['gpus'] / last[0]):.2f}"
        last = (one["gpus"], one["cpu_s"]) if name.isdigit() else last
        print(
            f"{name:16s} {one['messages']:9,d} {one['operations']:11,d} {one['instants']:9,d} "
            f"{one['cpu_s']:7.1f} {one['replay_s']:7.1f} {1e6 * one['cpu_s'] / one['operations']:7.2f} "
            f"{1e6 * one['cpu_s'] / max(one['instants'], 1):11.1f} {one['simulated_mb']:5d} "
            f"{one['peak_mb']:10d} {exponent:>9s}  {one['bar']}   {one['digest']}",
            flush=True,
        )


if __name__ == "__main__":
    main()
