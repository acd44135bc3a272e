"""The fast path of validation is the full path's answer, where ranks are alike and nothing is contended."""

from typing import Any

import pytest

from cosim.context import HERE
from cosim.experiment.run import run
from cosim.models.catalogue.workload import ModelWorkload
from cosim.pattern.nccl import Nccl
from cosim.units import PS_PER_S
from tests.lab.validation.closed import Cluster, iteration_s

MODEL = {
    "kind": "transformer", "layers": 8, "hidden": 4096, "heads": 32, "ffn": 16384, "vocabulary": 32000,
    "sequence": 2048,
}  # fmt: skip
CLUSTER = Cluster(8, 450e9, 50e9, Nccl(system="h100").model_copy(update={"rails": 8, "network_rate": 3.2e12}))


@pytest.mark.parametrize(
    ("hosts", "more", "within"),
    [
        (1, {"parallel": {"fsdp": 8}, "framework": "pytorch"}, 0.01),
        (1, {"parallel": {"tp": 8}, "recipe": "fp8", "cuda_graphs": True}, 0.02),
        (2, {"parallel": {"fsdp": 16}, "framework": "pytorch"}, 0.03),
        (2, {"parallel": {"tp": 4, "pp": 4}, "batch": 8, "cuda_graphs": True}, 0.03),
    ],
)
def test_closed_forms_are_the_replays_answer(hosts: int, more: dict[str, Any], within: float) -> None:
    job = {"kind": "model", "model": MODEL, "gpu": "h100-sxm", "memory": "ignore", **more}
    scenario = {
        "topology": {"kind": "dgx-h100", "hosts": hosts},
        "network": "fair_share",
        "jobs": [{"workload": job}],
    }
    replayed = run(scenario).records.end_ps / PS_PER_S
    spec = {name: value for name, value in job.items() if name != "kind"}
    closed = iteration_s(ModelWorkload.model_validate(spec).build(HERE), CLUSTER)
    assert closed == pytest.approx(replayed, rel=within)
