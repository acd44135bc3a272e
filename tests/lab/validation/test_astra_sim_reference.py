"""Against times that ASTRA-sim's analytical backends gave, and the script that compares with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.inputs import BESIDE, find, needs
from tests.lab.validation.astra_sim import Outcome, main, read, replay, replay_all
from tests.lab.validation.astra_sim_case import Case, scenario_of

FILE = find("reference/astra_sim_analytical.json")

# ring reduce-scatter of 1 MiB in 4 chunks on Ring(4): 4 (e + 3 (t + e + R)), t = 1720, e = 10, R = 120 ns.
REDUCE_SCATTER: dict[str, Any] = {
    "name": "hand/reduce_scatter",
    "kind": "1d",
    "topology": ["Ring"],
    "npus_count": [4],
    "bandwidth_GiBps": [50.0],
    "latency_ns": [500.0],
    "collective": "reduce_scatter",
    "impl": ["ring"],
    "size_bytes": 1 << 20,
    "splits": 4,
    "backend": "unaware",
    "sim_ns_max": 22240,
    "sim_ns_min": 22240,
    "exposed_max": 22240,
    "per_npu": {"2": 22240},
}


def picked(kind: str, backend: str) -> list[Case]:
    """A few small cases of each sort, some sixty in all."""
    every = {"1d": 24, "nd": 6, "p2p": 2, "example": 2}[kind]
    cases = [
        case
        for case in read(FILE)
        if case["kind"] == kind and case["backend"] == backend and case.get("npus", 1) <= 64
    ]
    return cases[::every]


def misses(cases: list[Case], folder: Path) -> list[str]:
    outcomes = [replay(case, [folder]) for case in cases]
    return [str(outcome) for outcome in outcomes if not outcome.matches]


@pytest.mark.parametrize(
    ("kind", "backend"),
    [
        ("1d", "aware"),
        ("1d", "unaware"),
        ("nd", "unaware"),  # ASTRA-sim's aware backend has one dimension
        *[(kind, backend) for kind in ("p2p", "example") for backend in ("aware", "unaware")],
    ],
)
def test_times_are_those_of_astra_sim(small_traces: Path, kind: str, backend: str) -> None:
    cases = picked(kind, backend)
    assert len(cases) >= 5
    assert misses(cases, small_traces) == []


@needs("chakra/custom_ring_allreduce_8npus_1MB")
@pytest.mark.slow
def test_at_least_99_percent_of_the_reference_match(small_traces: Path) -> None:
    outcomes = list(replay_all(read(FILE), [small_traces, BESIDE], "network", 1))
    missed = [outcome.name for outcome in outcomes if not outcome.matches]
    assert len(outcomes) - len(missed) >= 0.99 * len(outcomes)
    # Direct all-reduce where a rank's messages arrive apart: see cosim/pattern/direct.py.
    assert all("/all_reduce/direct/" in name and "/Ring" in name for name in missed), missed


@pytest.mark.parametrize("release", ["network", "engine"])
def test_a_hand_checked_case_matches(release: str, tmp_path: Path) -> None:
    outcome = replay(REDUCE_SCATTER, [tmp_path], release)
    assert outcome.matches
    assert outcome.messages == 4 * 4 * 3


def test_a_computation_before_the_collective_is_not_exposed(tmp_path: Path) -> None:
    times = {"sim_ns_max": 24240, "sim_ns_min": 24240, "exposed_max": 22240, "per_npu": None}
    assert replay({**REDUCE_SCATTER, "start_comp_us": 2, **times}, [tmp_path]).matches


def test_the_script_lists_misses_and_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = {**REDUCE_SCATTER, "name": "hand/wrong", "sim_ns_max": 22242, "per_npu": {"2": 22241}}
    file = tmp_path / "reference" / "cases.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"cases": [REDUCE_SCATTER, wrong]}))
    assert main([str(file)]) == 1
    out = capsys.readouterr().out
    assert "hand/wrong: sim_ns_max: ours 22240.000, theirs 22242 ns\n" in out
    assert "hand/wrong: rank 2" not in out  # 1 ns is near enough
    assert "96 messages simulated" in out
    assert out.endswith("matched 1 of 2 within 1 ns\n")
    assert main([str(file), "--only", "reduce", "--jobs", "2"]) == 0
    assert main([str(file), "--limit", "1", "--slowest", "1"]) == 0


def test_a_case_that_cannot_run_is_a_miss_that_says_why(tmp_path: Path) -> None:
    outcome = replay({**REDUCE_SCATTER, "impl": ["doubleBinaryTree"]}, [tmp_path])
    assert not outcome.matches
    assert "double_binary_tree can't carry reduce_scatter" in str(outcome)


def test_what_of_system_json_is_not_simulated_is_said(tmp_path: Path) -> None:
    system = {
        "scheduling-policy": "FIFO",
        "preferred-dataset-splits": 4,
        "all-reduce-implementation": ["oneRing", "ring"],
        "all-to-all-implementation": ["direct2", "ring"],
        "roofline-enabled": 1,
        "peak-perf": 900,
        "inter-dimension-scheduling": "themis",
    }
    network = (
        "topology: [ Ring, Switch ]\nnpus_count: [2, 4]\nbandwidth: [50, 25]  # GB/s\nlatency: [500, 0.25]\n"
    )
    case = {
        "name": "files",
        "system_json": system,
        "network_yml": network,
        "backend": "aware",
        "workload": "chakra/here",
        "rendezvous": True,
        "comm_groups": {"1": [0, 1]},
    }
    scenario, notes = scenario_of(case, tmp_path)
    assert notes == [
        "no local-mem-bw: reductions take no time",
        "roofline-enabled is on, which is not simulated",
        "inter-dimension-scheduling is not simulated",
    ]
    assert scenario["topology"]["latency"] == [500, 0.25]
    assert scenario["collectives"] == {
        "sizing": "floor",
        "endpoint_delay": "10ns",
        "splits": 4,
        "active_chunks": 1,
        "queues": 1,
        "optimization": "baseline",
        "all_reduce": "ring",
        "all_to_all": ["direct2", "ring"],
    }
    assert scenario["jobs"][0]["workload"] == {
        "kind": "chakra",
        "path": str(tmp_path / "chakra" / "here"),
        "comm_groups": {"1": [0, 1]},
        "rendezvous": True,
    }


def test_an_outcome_within_a_nanosecond_matches() -> None:
    assert Outcome("x").matches
    assert not Outcome("x", differences=(("sim_ns_max", 3.0, 1.0),)).matches
