"""What matters, against closed forms: a time that is made of rates and times moves with each by its share."""

from __future__ import annotations

from typing import Any

import pytest

import cosim
from cosim.context import Context
from cosim.profiler.workload import ProfileWorkload
from cosim.registry import find
from tests.inputs import ROOT

RING = """
topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 5us}
network: congestion_aware
jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 400kB}}]
"""


def tried(source: Any) -> dict[str, dict[str, float]]:
    found = cosim.study("what_matters", source)
    return {one.setting: dict(one.of_job) for one in found.tried}


def test_a_ring_moves_with_rate_and_latency_by_their_shares() -> None:
    found = tried(RING)  # 6 steps of 100 kB at 10 bytes/ns, 10 us, and 5 us
    assert found["topology.rate"]["job0"] == pytest.approx(-10 / 15, rel=0.01)
    assert found["topology.latency"]["job0"] == pytest.approx(5 / 15, rel=0.01)


def test_of_an_incast_it_is_the_receivers_link() -> None:
    found = tried(
        {
            "topology": {"kind": "switch", "endpoints": 3, "rate": "80Gbps", "latency": "0ns"},
            "network": "fair_share",
            "jobs": [
                {
                    "workload": {
                        "kind": "periodic",
                        "compute": "0ns",
                        "size": "1MB",
                        "communication": "incast",
                        "ranks": 3,
                    }
                }
            ],
        }
    )
    links = {name: each["job0"] for name, each in found.items() if name.startswith("link ")}
    assert sorted(round(each, 2) for each in links.values()) == [-1, 0, 0]
    assert found["topology.rate"]["job0"] == pytest.approx(-1, rel=1e-3)


def test_a_gpus_rates_and_times_make_up_its_iteration() -> None:
    found = tried(
        {
            "topology": {"kind": "ring", "endpoints": 1, "rate": "80Gbps", "latency": "0ns"},
            "network": "fair_share",
            "jobs": [
                {"workload": {"kind": "model", "model": "bert-base", "gpu": "a100-80gb", "micro_batch": 4}}
            ],
        }
    )
    efficiency = {name.rpartition(".")[2]: each["job0"] for name, each in found.items() if ".gpu." in name}
    rates = efficiency["memory_peak"] + efficiency["sustained_clock"]
    times = sum(each for name, each in efficiency.items() if name.endswith("_time"))
    assert times - rates == pytest.approx(1, abs=0.01)
    assert efficiency["matmul_peak"] + efficiency["attention_peak"] == pytest.approx(
        efficiency["sustained_clock"], abs=0.01
    )


@pytest.mark.slow
def test_a_profiles_own_gpu_is_among_what_matters() -> None:
    profile = ROOT / "scenarios" / "profiles" / "llama-3d.yaml"
    workload = ProfileWorkload(path=str(profile))
    assert workload.runs_on(Context()) == find("cosim.gpus", "h100-sxm")  # as the file says
    found = tried(
        {
            "topology": {"kind": "switch", "endpoints": 64, "rate": "400Gbps", "latency": "1us"},
            "network": "fair_share",
            "jobs": [{"workload": {"kind": "profile", "path": str(profile)}}],
        }
    )
    assert found["jobs[0].workload.gpu.efficiency.matmul_peak"]["job0"] < -0.05


def test_rates_that_only_a_data_sheet_says_are_tried_by_kind_of_link() -> None:
    # two GPUs on the same rail of two hosts, 200 Gb/s: one message of 25 MB each way is 1 ms
    found = tried(
        {
            "topology": {"kind": "dgx-a100", "hosts": 2, "latency": "0ns", "nvlink_latency": "0ns"},
            "network": "fair_share",
            "collectives": {"all_gather": "ring"},
            "jobs": [
                {
                    "workload": {
                        "kind": "collective",
                        "collective": "all_gather",
                        "ranks": 2,
                        "size": "25MB",
                    },
                    "placement": {"kind": "explicit", "endpoints": [0, 8]},
                }
            ],
        }
    )
    every = {name: each["job0"] for name, each in found.items() if name.startswith("all ")}
    assert every == {
        "all 32 scale-up links": pytest.approx(0, abs=1e-6),
        "all 96 links": pytest.approx(-1, rel=1e-3),
    }


def test_a_page_has_what_moves_most_first_and_counts_the_rest() -> None:
    lines = str(cosim.study("what_matters", RING)).splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("what matters"))
    assert lines[at + 1].split()[:3] == ["topology.rate", "80", "Gbps"]
    assert lines[at + 1].endswith("-0.67 %")


def test_a_host_that_is_named_is_what_matters_where_it_is_waited_for() -> None:
    sizes = {"layers": 2, "hidden": 256, "heads": 2, "ffn": 512, "vocabulary": 64, "sequence": 64}
    model = {"kind": "transformer", **sizes}
    workload = {"kind": "model", "model": model, "gpu": "a100-80gb", "host": "pytorch-2026"}
    found = tried(
        {
            "topology": {"kind": "ring", "endpoints": 1, "rate": "80Gbps", "latency": "0ns"},
            "network": "fair_share",
            "jobs": [{"workload": workload}],
        }
    )
    host = "jobs[0].workload.host.operator_time"
    assert found[host]["job0"] == pytest.approx(1, abs=0.02)
    assert not any(".gpu.host." in name for name in found)
    assert all(each["job0"] <= 0.02 for name, each in found.items() if name != host)
