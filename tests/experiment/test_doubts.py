"""What is doubtful stands above the answer, wherever an answer is printed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import cosim
from cosim.plugins import Doubt
from cosim.results.search import TriedPoint

CLOS = "{kind: leaf_spine, leaves: 2, spines: 2, endpoints_per_leaf: 2, rate: 100Gbps, latency: 1us}"
SCENARIO = f"""
topology: {CLOS}
network: {{model: congestion, control: dcqcn, balancer: spray}}
jobs: [{{workload: {{kind: collective, collective: all_reduce, ranks: 4, size: 1MB}}}}]
"""
"""Sprayed packets under a transport that goes back: the network doubts it."""
AXES = {"control": {"network.control": ["dcqcn", "dctcp"]}}
SIZES = {"jobs[0].workload.size": ["10kB", "1MB"]}
WHY = "go-back-N"


def nothing() -> cosim.Workload:
    operation = cosim.Operation("aten::mm", cosim.OpKind.COMPUTE, duration_ps=0)
    program = cosim.Program("all ranks", (operation,) * 3)
    return cosim.Workload("nothing", cosim.DeviceMesh({"dp": 2}), (program,), np.zeros(2, np.int32))


def test_an_answer_about_nothing_is_doubtful() -> None:
    ring = {"kind": "ring", "endpoints": 2, "rate": "80Gbps", "latency": "0ns"}
    run = cosim.run(
        {"topology": ring, "network": "fair_share", "jobs": [{"name": "idle", "workload": nothing()}]}
    )
    (doubt,) = run.summary.doubts
    assert doubt.what == "job idle"
    assert "nothing is timed: an iteration takes 0 ps (3 operations" in doubt.why
    page = str(run).splitlines()
    assert page.index("doubtful:") < next(k for k, line in enumerate(page) if line.startswith("job (means)"))


@pytest.mark.parametrize(("dtype", "doubtful"), [("bf16", False), ("fp32", True)])
def test_a_number_type_that_a_gpu_was_not_calibrated_in_is_doubtful(dtype: str, doubtful: bool) -> None:
    workload = {
        "kind": "model",
        "model": {"kind": "bert-base", "layers": 2},
        "gpu": "a100-80gb",
        "dtype": dtype,
    }
    fabric = {"kind": "switch", "endpoints": 2, "rate": "100Gbps", "latency": "0ns"}
    job = {"workload": {**workload, "parallel": {"dp": 2}}}
    run = cosim.run({"topology": fabric, "network": "fair_share", "jobs": [job]})
    assert ["uncalibrated for fp32" in doubt.why for doubt in run.doubts] == [True] * doubtful


def test_it_is_on_the_page_in_json_and_in_the_report(tmp_path: Path) -> None:
    run = cosim.run(SCENARIO, out=tmp_path / "run")
    assert WHY in str(run).partition("doubtful:")[2].partition("job (means)")[0]
    (doubt,) = json.loads(json.dumps(run.to_json()))["doubts"]
    assert {*doubt} == {"what", "why", "instead"}
    assert WHY in doubt["why"]
    stored = cosim.load_run(tmp_path / "run")
    assert stored.summary.doubts == run.summary.doubts == (Doubt(**doubt),)
    assert str(stored.summary).count("doubtful:") == 1


def test_a_run_without_doubts_has_no_block() -> None:
    run = cosim.run(SCENARIO, {"network.control": "dctcp"})
    assert run.doubts == ()
    assert "doubtful" not in str(run)


def test_a_sweep_marks_the_point_and_a_store_keeps_it(tmp_path: Path) -> None:
    scenario = cosim.loads(SCENARIO)
    done = cosim.sweep(scenario, AXES, store=tmp_path / "store", out=tmp_path / "out")
    text = str(done)
    assert "? dcqcn: " in text.partition("doubtful:")[2].partition("mean iteration")[0]
    marked = [line for line in text.splitlines() if line.startswith("  dcqcn")]
    assert [line for line in marked if " ?" in line]
    assert not [line for line in text.splitlines() if line.startswith("  dctcp") and "?" in line]
    (one,) = done.to_json()["doubtful"]
    assert one["labels"] == ["dcqcn"]
    again = cosim.sweep(scenario, AXES, store=tmp_path / "store")
    assert str(again) == text
    written = (tmp_path / "out" / "trials.csv").read_text()
    assert written == again.trials_csv()
    assert WHY in written


def test_a_search_says_when_its_winner_is_doubtful() -> None:
    design = {"scenario": cosim.loads(SCENARIO).as_written(), "axes": {"size": SIZES}}
    done = cosim.search(design)
    assert str(done).startswith("doubtful:")
    assert "the best, 10kB, is doubtful" in str(done)
    assert all(WHY in one["doubtful"] for one in done.to_json()["tried"])


def test_a_search_marks_points_that_do_not_win() -> None:
    tried = (TriedPoint(("a",), {"iteration": 2e9}, doubtful="it"), TriedPoint(("b",), {"iteration": 1e9}))
    found = cosim.SearchRun("mine", (("axis", ("a", "b")),), ("iteration",), tried, (), 2, True)
    text = str(found)
    assert text.startswith("doubtful:\n  ? a: it\n")
    assert "is doubtful" not in text
    assert [line.split()[:2] for line in text.splitlines() if line.startswith(("a ", "b "))] == [
        ["b", "1"],
        ["a", "?"],
    ]


def test_networks_and_comparisons_say_it() -> None:
    networks = [{"model": "congestion", "control": "dcqcn", "balancer": "spray"}, "fair_share"]
    both = cosim.study({"kind": "networks", "networks": networks}, SCENARIO)
    assert str(both).startswith("doubtful:")
    assert len(both.to_json()["doubtful"]) == 1
    run = cosim.run(SCENARIO)
    other = cosim.run(SCENARIO, {"network.control": "dctcp"})
    compared = cosim.compare(run, other)
    assert [name for name, _ in compared.doubtful] == ["a"]
    assert str(compared).startswith("doubtful:")
