"""Measured runs as scenarios: DGX A100s, Megatron-DeepSpeed's and Megatron-LM's jobs, nccl-tests.

The cluster is that of vTrain (Bang et al., arXiv 2312.12391, section V): hosts of 8 A100s, 600 GB/s of NVLink
to each (300 GB/s a direction), four 200 Gbit/s InfiniBand NICs to a host, a fabric without oversubscription.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cosim.experiment.scenario import Scenario
from cosim.workload.program import (
    COMM_STREAM,
    CPU_STREAM,
    DeviceMesh,
    Operation,
    OpKind,
    Program,
    Workload,
)

GPUS = 8
"""In a host."""
NCCL = {
    kind: {"algorithm": "nccl", "system": "none"} for kind in ("all_reduce", "all_gather", "reduce_scatter")
}
"""That of 2022, as it was measured on such a cluster; current NCCL's numbers are ``system: a100``."""
LAUNCH_PS = 11_600_000
"""nccl-tests drives all GPUs from one thread, which issues the collective on one after another: of each."""
VOCABULARY = 51200
"""GPT-2's, padded as Megatron-LM pads it for eight tensor-parallel ranks."""
UNPADDED = 50257


def dgx_a100(gpus: int) -> dict[str, Any]:
    """Hosts on one switch: a fabric that blocks nobody."""
    hosts = {
        "gpus": GPUS,
        "nvlink_rate": "300GB/s",
        "nvlink_latency": "0ns",
        "nics": 4,
        "nic_rate": "200Gbps",
    }
    return {
        "kind": "leaf_spine",
        "leaves": 1,
        "spines": 1,
        "endpoints_per_leaf": -(-gpus // GPUS) * GPUS,
        "latency": "1us",
        "hosts": hosts,
    }


def scenario(workload: Any, gpus: int) -> Scenario:
    """A job alone on as many hosts as it needs."""
    return Scenario.model_validate(
        {
            "topology": dgx_a100(gpus),
            "network": "fair_share",
            "collectives": NCCL if gpus > 1 else {},
            "jobs": [{"workload": workload}],
            "fold": "always" if gpus > GPUS else "never",
        }
    )


def megatron(row: Mapping[str, int]) -> dict[str, Any]:
    """A job of Megatron-DeepSpeed: what its logs and code say that the tables don't.

    Half precision, gradients exchanged in half precision after the last backward (DeepSpeed's pipeline
    engine), attention of several kernels, 1F1B, timers that wait for the GPU after each pass. The many-host
    runs must have recomputed activations (GPT-3 would need 110 GB on its first stage otherwise), the others
    can't have (up to 134 TFLOP/s at a hidden size of 2048).

    The table of one host can't be 720 independent measurements: without data parallelism its times are linear
    in layers and in micro-batches to the last digit (residuals of 1e-15), with slopes that depend on hidden
    size, tensor parallelism and micro-batch only. It is composed of 32 measured layers; all-reduces are added
    to them, so nothing hides one (``synchronous_exchanges``), and what isn't layers takes as long, where one
    rank holds all of the vocabulary, as products of odd rows do: GPT-2's vocabulary, unpadded.
    """
    one_host = row["gpus"] <= GPUS
    return {
        "kind": "transformer",
        "layers": row["layers"],
        "hidden": row["hidden"],
        "heads": row["heads"],
        "vocabulary": UNPADDED // row["tp"] * row["tp"] if one_host else VOCABULARY,
        "sequence": row["sequence"],
        "micro_batch": row["micro_batch"],
        "micro_batches": row["global_batch"] // (row["dp"] * row["micro_batch"]),
        "tensor_parallel": row["tp"],
        "data_parallel": row["dp"],
        "pipeline_parallel": row["pp"],
        "attention": "unfused",
        "recompute": "none" if one_host else "full",
        "dtype": "fp16",
        "gradient_dtype": "fp16",
        "overlap_gradients": False,
        "synchronous_passes": True,
        "synchronous_exchanges": one_host,
        "gpu": "a100-80gb",
    }


def nccl_tests(gpus: int, sizes: list[int]) -> Workload:
    """All-reduces one after another, each with the launches of the next beside it, as a loop has them."""
    operations: list[Operation] = []
    before: tuple[int, ...] = ()
    for size in sizes:
        operations.append(
            Operation("launch", OpKind.COMPUTE, CPU_STREAM, before, duration_ps=gpus * LAUNCH_PS)
        )
        operations.append(
            Operation(
                f"{size}", OpKind.COLLECTIVE, COMM_STREAM, before, collective="all_reduce", size_bytes=size
            )
        )
        before = (len(operations) - 2, len(operations) - 1)
    mesh = DeviceMesh({"rank": gpus})
    return Workload("nccl-tests", mesh, (Program("gpu", tuple(operations)),), np.zeros(gpus, np.int32))
