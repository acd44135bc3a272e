"""Templates and plans against ASTRA-sim's own times on its congestion-unaware backend."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from cosim.pattern.config import CollectiveConfig
from cosim.pattern.contract import Algorithm
from cosim.pattern.direct import Direct
from cosim.pattern.double_binary_tree import DoubleBinaryTree
from cosim.pattern.halving_doubling import HalvingDoubling
from cosim.pattern.planner import Planner
from cosim.pattern.ring import RingAlgorithm
from cosim.pattern.template import Collective
from tests.inputs import find
from tests.pattern.uncontended import Network, finish_ns

REFERENCE = "reference/astra_sim_analytical.json"
SPECS: dict[str, Algorithm] = {
    "ring": RingAlgorithm(),
    "direct": Direct(),
    "halvingDoubling": HalvingDoubling(),
    "doubleBinaryTree": DoubleBinaryTree(),
}


@lru_cache(maxsize=1)
def cases(kind: str) -> list[dict[str, Any]]:
    found = json.loads(find(REFERENCE).read_text())["cases"]
    return [case for case in found if case["kind"] == kind and case["backend"] == "unaware"]


def config_of(case: dict[str, Any]) -> CollectiveConfig:
    chosen = tuple(SPECS[name] for name in case["impl"])
    return CollectiveConfig.model_validate(
        {
            "endpoint_delay": f"{case['endpoint_delay_ns']}ns",
            "reduction_rate": f"{case['local_mem_bw_GBps']}GB/s",
            "sizing": "floor",
            "optimization": {"localBWAware": "local_bw_aware"}.get(case["optimization"], "baseline"),
            "splits": case["splits"],
            "active_chunks": case["active_chunks"],
            "queues": case["queues_per_dim"],
            case["collective"]: chosen,
        }
    )


def times(case: dict[str, Any]) -> np.ndarray[Any, Any]:
    plan = Planner(config_of(case)).plan(
        Collective(case["collective"]), case["npus"], case["size_bytes"], dims=tuple(case["npus_count"])
    )
    network = Network(
        tuple(case["topology"]),
        tuple(case["npus_count"]),
        tuple(case["bandwidth_GiBps"]),
        tuple(case["latency_ns"]),
    )
    return finish_ns(plan, network)


def misses(kind: str, largest: int) -> tuple[int, list[str]]:
    checked, missed = 0, []
    for case in cases(kind):
        if case["npus"] > largest:
            continue
        checked += 1
        finish = times(case)
        got = (int(finish.max()), int(finish.min()))
        want = (case["sim_ns_max"], case["sim_ns_min"])
        each = case.get("per_npu")
        if got != want or (each and [each[str(r)] for r in range(case["npus"])] != finish.tolist()):
            missed.append(f"{case['name']}: {got} instead of {want}")
    return checked, missed


# ASTRA-sim lets the second round of a direct all-reduce go piece by piece, by whichever reductions end after
# the last arrival (its ready queue, not a dependency); on a ring, with reductions longer than a hop, that is
# earlier.
PIECEWISE = {
    "1d/Ring4/all_reduce/direct/64MB/s1a1/unaware",
    "1d/Ring16/all_reduce/direct/64MB/s1a1/unaware",
    "1d/Ring64/all_reduce/direct/64MB/s1a1/unaware",
}


def test_flat_collectives_take_astra_sims_time_to_the_nanosecond() -> None:
    checked, missed = misses("1d", 256)
    assert checked > 300
    assert {line.split(":")[0] for line in missed} <= PIECEWISE, "\n".join(missed)


@pytest.mark.parametrize(("largest", "count"), [(128, 51), pytest.param(512, 69, marks=pytest.mark.slow)])
def test_collectives_over_dimensions_take_astra_sims_time_to_the_nanosecond(largest: int, count: int) -> None:
    checked, missed = misses("nd", largest)
    assert checked == count
    assert not missed, "\n".join(missed)
