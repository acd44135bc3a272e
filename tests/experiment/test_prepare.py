"""Prepared runs: the same digests as cosim.run's, at any values; and what is refused."""

import math
from typing import Any

import numpy as np
import pytest

import cosim
from cosim.engine.prepared import RunCopy

RING = "topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 500ns}"
TREE = (
    "topology: {kind: leaf_spine, leaves: 4, spines: 2, endpoints_per_leaf: 2, rate: 100Gbps, "
    "latency: 500ns, oversubscription: 2}"
)
JOBS = """
jobs:
  - {workload: {kind: collective, collective: all_reduce, ranks: 4, size: 1MB}, iterations: 2}
"""
TWO = f"""{JOBS}
  - workload: {{kind: collective, collective: all_to_all, ranks: 4, size: 2MB}}
    iterations: 2
    start: 5us
"""
UNITS = {"topology.rate": "Gbps", "topology.latency": "ns", "jobs[0].start": "us", "jobs[1].start": "us"}


def same_as_run(scenario: cosim.Scenario, prepared: Any, table: dict[str, list[Any]], units: Any) -> None:
    runs = prepared.run_many(table, threads=2)
    assert not runs.failed
    for row in range(len(runs)):
        given = {path: column[row] for path, column in table.items()}
        full = cosim.run(scenario, {path: f"{one!r}{units[path]}" for path, one in given.items()})
        one = prepared.run(given)
        assert one.digest == runs[row].digest == runs.digests[row] == full.records.digest
        assert one.end_ps == runs.end_ps[row] == full.records.end_ps
        assert one.num_messages == full.records.num_messages
        means = [job.iteration_mean_ps for job in full.summary.jobs]
        assert [*one.iteration_ps] == runs.iteration_ps[row].tolist() == means
        for mine, ends in zip(one.iteration_ends_ps, full.records.iteration_end_ps, strict=True):
            np.testing.assert_array_equal(mine, ends.max(axis=1))


@pytest.mark.parametrize("topology", [RING.replace("4,", "8,"), TREE])
@pytest.mark.parametrize("network", ["fair_share", "congestion_aware", "congestion_unaware"])
def test_rates_latencies_and_starts(topology: str, network: str) -> None:
    scenario = cosim.loads(f"{topology}\nnetwork: {network}\n{TWO}")
    prepared = cosim.prepare(scenario, UNITS)
    assert prepared.quick == tuple(UNITS)
    draws = np.random.default_rng(3)
    table = {
        "topology.rate": draws.uniform(5, 400, 4).tolist(),
        "topology.latency": draws.integers(0, 3000, 4).tolist(),
        "jobs[0].start": np.round(draws.uniform(0, 50, 4), 3).tolist(),
        "jobs[1].start": np.round(draws.uniform(0, 50, 4), 3).tolist(),
    }
    same_as_run(scenario, prepared, table, UNITS)


def test_parameters_of_a_control() -> None:
    scenario = cosim.loads(f"{TREE}\nnetwork: {{model: congestion, control: dctcp}}\n{TWO}")
    units = {"network.control.g": "", "jobs[1].start": "us"}
    prepared = cosim.prepare(scenario, units)
    assert prepared.quick == tuple(units)
    same_as_run(scenario, prepared, {"network.control.g": [0.01, 0.5], "jobs[1].start": [3.5, 0]}, units)


def test_what_is_made_anew() -> None:
    """The rate decides what a congestion control's connections are, and a size how long a job takes."""
    scenario = cosim.loads(f"{TREE}\nnetwork: {{model: congestion, control: swift}}\n{TWO}")
    units = {"topology.rate": "Gbps", "jobs[0].workload.size": "kB", "jobs[1].start": "us"}
    prepared = cosim.prepare(scenario, units)
    assert prepared.quick == ("jobs[1].start",)
    table = {"topology.rate": [40, 40], "jobs[0].workload.size": [500, 500], "jobs[1].start": [1, 2]}
    same_as_run(scenario, prepared, table, units)


def test_a_rate_that_decides_on_an_algorithm() -> None:
    """NCCL's way depends on what NICs carry: such a rate is not put into links alone."""
    text = """
topology: {kind: leaf_spine, leaves: 2, spines: 2, endpoints_per_leaf: 4, latency: 500ns,
  hosts: {gpus: 2, nics: 1, nvlink_rate: 900Gbps, nic_rate: 100Gbps}}
network: fair_share
"""
    scenario, units = cosim.loads(text + JOBS), {"topology.hosts.nic_rate": "Gbps"}
    prepared = cosim.prepare(scenario, units)
    assert prepared.quick == ()
    same_as_run(scenario, prepared, {"topology.hosts.nic_rate": [1, 400]}, units)


def test_texts_rows_and_defaults() -> None:
    prepared = cosim.prepare(f"{RING}\nnetwork: fair_share\n{JOBS}", ["topology.rate", "jobs[0].start"])
    own = prepared.run()
    assert own.digest == prepared.run({"topology.rate": "80Gbps"}).digest
    runs = prepared.run_many([{"topology.rate": "80Gbps"}, {"topology.rate": "40Gbps"}])
    assert runs[0].digest == own.digest != runs[1].digest
    assert [one.values for one in runs] == [{"topology.rate": "80Gbps"}, {"topology.rate": "40Gbps"}]


def test_one_that_stalls_is_named_and_others_are_kept() -> None:
    scenario = cosim.loads(
        f"{RING}\nnetwork: fair_share\n{JOBS}"
        "events: [{link: npu0 -> npu1, at: 1ms, down: true}, {link: npu1 -> npu0, at: 1ms, down: true},"
        " {link: npu0 -> npu3, at: 1ms, down: true}, {link: npu3 -> npu0, at: 1ms, down: true}]\n"
    )
    prepared = cosim.prepare(scenario, {"jobs[0].start": "us"})
    runs = prepared.run_many({"jobs[0].start": [0, 5000, 1]})
    assert [*runs.failed] == [1]
    assert "row 1 (jobs[0].start=5000us): " in str(runs.failed[1])
    assert runs[0].digest == cosim.run(scenario).records.digest
    assert runs.digests[1] == ""
    assert runs.end_ps[1] == 0 < runs.end_ps[2]
    with pytest.raises(cosim.StallError):
        runs[1]
    with pytest.raises(cosim.StallError):
        prepared.run({"jobs[0].start": 5000})


@pytest.mark.parametrize(
    ("free", "says"),
    [
        (["jobs[0].workload.ranks"], "changes the number of ranks"),
        (["jobs[0].count"], "changes the number of ranks"),
        (["topology.rat"], "has no 'rat'; did you mean 'rate'"),
        (["jobs[3].start"], "there are 1"),
        ([], "name settings"),
        ("topology.rate", "name settings"),
    ],
)
def test_what_can_not_be_free(free: Any, says: str) -> None:
    with pytest.raises(cosim.ScenarioError, match=says.replace("[", r"\[")) as said:
        cosim.prepare(f"{RING}\nnetwork: fair_share\n{JOBS}", free)
    if "ranks" in says:
        assert "jobs[0].start, topology.rate" in str(said.value)


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"topology.rate": [80, math.nan]}, "row 1: topology.rate: 'nanGbps' is not a rate"),
        ({"topology.rate": [80, -1]}, "row 1: topology.rate: '-1Gbps' is not a rate above zero"),
        ({"topology.rate": ["80Gbps", "80ns"]}, "row 1: topology.rate: '80ns' needs a rate unit"),
        ({"jobs[0].start": [1.5]}, "row 0: jobs.0..start: 1.5 needs a time unit"),
        ({"jobs[0].start": ["1us"], "topology.rate": [80, 90]}, "different lengths"),
        ({"topology.latency": [1]}, "'topology.latency' is not free"),
        ([{"topology.rate": 80}, {}], "row 1 has"),
    ],
)
def test_tables_that_are_refused(table: Any, says: str) -> None:
    free = {"topology.rate": "Gbps", "jobs[0].start": ""}
    prepared = cosim.prepare(f"{RING}\nnetwork: fair_share\n{JOBS}", free)
    with pytest.raises(cosim.InputError, match=says):
        prepared.run_many(table)


@pytest.mark.parametrize("scenario", [{"jobs": [], "nowhere": 1}, "axes: {}\nscenario: x\n", 3])
def test_what_is_no_scenario(scenario: Any) -> None:
    with pytest.raises(cosim.InputError):
        cosim.prepare(scenario, ["topology.rate"])


def test_messages_ask_nothing_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = cosim.loads(
        f"""{RING}
network: fair_share
jobs:
  - workload:
      kind: operations
      world_size: 2
      programs:
        - {{ranks: [0], operations: [{{name: a, kind: send, peer: 1, size: 4MB}}]}}
        - {{ranks: [1], operations: [{{name: a, kind: recv, peer: 0, size: 4MB}}]}}
    iterations: 2
"""
    )
    prepared = cosim.prepare(scenario, ["topology.rate"])
    found, run = list[int](), RunCopy.run

    def told(copy: RunCopy, starts: Any, numbers: Any) -> Any:
        outcomes = run(copy, starts, numbers)
        found.extend(outcomes.status.tolist())
        return outcomes

    monkeypatch.setattr(RunCopy, "run", told)
    runs = prepared.run_many({"topology.rate": ["80Gbps", "40Gbps"]})
    assert found == [0, 0]
    assert runs.digests[1] == cosim.run(scenario, {"topology.rate": "40Gbps"}).digest
