"""Published jobs by the full path, on the hosts that they ran on, beside the closed forms that judge them.

``python -m tests.lab.validation.replayed [fsdp|megatron] [--most=64]``: each different job of up to so many
GPUs, with the fewest micro-batches that ``training`` works its time out from; seconds by closed forms and by
the replay, as `cosim run` has it, and what the replay takes more. Hosts are on rails, NCCL is what hosts have
by themselves, links have presets' latencies (300 ns to an NVSwitch, 500 ns in the fabric). Jobs whose ranks
aren't alike take hours with 256 GPUs: DeepSeek-V3 on two stages of two racks each, over a billion messages.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cosim.context import HERE
from cosim.experiment.run import run
from cosim.models.catalogue.workload import ModelWorkload
from cosim.units import PS_PER_S
from tests.lab.validation import fsdp_jobs, megatron_jobs
from tests.lab.validation.closed import Cluster, iteration_s
from tests.lab.validation.training import Row, cluster

MOST = 64
"""GPUs of a job, where nothing is said."""


def stated(table: str, most: int) -> Iterator[tuple[Row, dict[str, Any]]]:
    """Rows that can be stated, and their workloads' settings, each once."""
    known: set[str] = set()
    every: Sequence[Row] = fsdp_jobs.rows() if table == "fsdp" else megatron_jobs.rows()
    for row in every:
        if int(row.job["gpus"]) > most or (isinstance(row, megatron_jobs.Row) and row.why_not()):
            continue
        if isinstance(row, megatron_jobs.Row):
            few = min(row.micro_batches, max(2 * row.number("pp"), 2))
            settings = megatron_jobs.settings(row, few)
        else:
            settings = fsdp_jobs.settings(row, 1)
        if str(settings) not in known:
            known.add(str(settings))
            yield row, settings


def fabric(gpus: int, where: Cluster) -> dict[str, Any]:
    """Hosts on a leaf-spine without oversubscription, NIC j of each on leaf j."""
    hosts = -(-gpus // where.gpus)
    return {
        "kind": "leaf_spine",
        "leaves": where.gpus,
        "spines": hosts,
        "endpoints_per_leaf": hosts,
        "latency": "500ns",
        **({"routing": "dmodk"} if hosts > 1 else {}),
        "hosts": {
            "gpus": where.gpus,
            "nvlink_rate": f"{where.link_rate / 1e9:g}GB/s",
            "nvlink_latency": "300ns",
            "nics": where.gpus,
            "nic_rate": f"{where.nic_rate / 1e9:g}GB/s",
            "rails": True,
        },
    }


def replayed_s(row: Row, settings: dict[str, Any]) -> float:
    """Seconds until the last rank has ended."""
    where = cluster(row)
    host = {"kind": "per_npu", "rate": f"{where.host_rate / 1e9:g}GB/s"} if settings.get("offload") else None
    scenario = {
        "topology": fabric(int(row.job["gpus"]), where),
        "network": "fair_share",
        "memory": host,
        "jobs": [{"workload": {"kind": "model", **settings}}],
    }
    return run(scenario).records.end_ps / PS_PER_S


def main(arguments: Sequence[str]) -> None:
    """Print each job, and each table's mean and largest difference."""
    named = [one.removeprefix("--most=") for one in arguments if one.startswith("--most=")]
    most = int(named[-1]) if named else MOST
    for table in [one for one in arguments if not one.startswith("--")] or ["fsdp", "megatron"]:
        differences = []
        for row, settings in stated(table, most):
            closed = iteration_s(ModelWorkload.model_validate(settings).build(HERE), cluster(row))
            full = replayed_s(row, settings)
            differences.append(full / closed - 1)
            name = f"{row.group:22s} {row.job['gpus']:>4s}  {row.job['model']}"
            print(f"{name:60s} {closed:9.4f} s {full:9.4f} s {differences[-1]:+6.1%}", flush=True)
        off = np.array(differences)
        print(
            f"{table}: {len(off)} jobs, the replay takes {off.mean():+.2%} (mean of absolutes "
            f"{np.abs(off).mean():.2%}, at most {off[np.abs(off).argmax()]:+.1%})"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
