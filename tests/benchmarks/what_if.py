"""Which (tp, pp, dp) for GPT-3 175B on 1,024 A100s? ``python -m tests.benchmarks.what_if [BATCH]``.

Every cut of 1,024 GPUs with tensor parallelism inside a host that divides 96 layers and the batch, through
the full path: 128 hosts of 8 A100s, four 200 Gbit/s NICs each, 1F1B, activations recomputed in full, a batch
of 512 sequences of 2,048 tokens (or BATCH). Memory is not checked. The uncertainty is the compute model's on
this GPU; cuts within it of the best are marked: that they differ is not certain.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor

from cosim.experiment.run import run
from cosim.experiment.scenario import Scenario
from cosim.units import PS_PER_S
from cosim.workload.gpus import A100_80GB

GPUS = 1024
LAYERS = 96
MICRO_BATCH = 2


def seconds(tp: int, pp: int, dp: int, batch: int) -> float:
    """An iteration's."""
    scenario = Scenario.model_validate(
        {
            "topology": {
                "kind": "leaf_spine", "leaves": 1, "spines": 1, "endpoints_per_leaf": GPUS, "latency": "1us",
                "hosts": {"gpus": 8, "nvlink_rate": "300GB/s", "nics": 4, "nic_rate": "200Gbps"},
            },
            "network": "fair_share",
            "collectives": {"all_reduce": "nccl", "all_gather": "nccl"},
            "fold": "always",
            "jobs": [
                {
                    "workload": {
                        "kind": "transformer", "layers": LAYERS, "hidden": 12288, "heads": 96,
                        "vocabulary": 51200, "sequence": 2048, "micro_batch": MICRO_BATCH,
                        "micro_batches": batch // (dp * MICRO_BATCH), "tensor_parallel": tp,
                        "pipeline_parallel": pp, "data_parallel": dp, "attention": "unfused",
                        "recompute": "full", "dtype": "fp16", "gradient_dtype": "fp16",
                        "overlap_gradients": False, "gpu": "a100-80gb",
                    }
                }
            ],
        }
    )  # fmt: skip
    return int(run(scenario).records.iteration_end_ps[0].max()) / PS_PER_S


def main() -> None:
    """Rank every cut."""
    batch = int(sys.argv[1]) if len(sys.argv) > 1 else 512
    cuts = [
        (tp, pp, GPUS // tp // pp)
        for tp in (2, 4, 8)
        for pp in (4, 8, 16, 32)
        if batch % (GPUS // tp // pp * MICRO_BATCH) == 0 and tp * pp >= 16
    ]
    started = time.perf_counter()
    with ProcessPoolExecutor() as pool:
        took = list(pool.map(seconds, *zip(*cuts, strict=True), [batch] * len(cuts)))
    best = min(took)
    assert A100_80GB.calibration is not None
    sure = A100_80GB.calibration.uncertainty
    for each, (tp, pp, dp) in sorted(zip(took, cuts, strict=True)):
        near = "" if each > best * (1 + sure) else "  within the uncertainty of the best"
        print(f"tp {tp:2}  pp {pp:2}  dp {dp:3}: {each:7.3f} s +-{sure * each:.3f}{near}", flush=True)
    print(f"{len(cuts)} cuts in {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
