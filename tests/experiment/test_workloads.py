"""Workloads that trials share: the same tables, byte for byte, as where each is built anew."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cosim
from cosim.context import Context
from cosim.experiment import workloads
from cosim.experiment.build import new_workloads
from cosim.experiment.prepare import prepare
from cosim.experiment.workloads import KEPT, KeptWorkloads
from cosim.files.reads import reading
from cosim.plugins import WorkloadSpec

FOLDED = """
topology:
  kind: leaf_spine
  leaves: 4
  spines: 2
  endpoints_per_leaf: 2
  latency: 500ns
  routing: dmodk
  hosts: {gpus: 2, nvlink_rate: 450GB/s, nvlink_latency: 300ns, nics: 2, nic_rate: 400Gbps, rails: true}
network: fair_share
fold: always
jobs:
  - workload: {kind: transformer, layers: 2, hidden: 1024, heads: 8, vocabulary: 5000, sequence: 256,
      micro_batch: 1, tensor_parallel: 2, data_parallel: 4, gpu: h100-sxm}
    iterations: 2
"""
TWO = """
topology: {kind: leaf_spine, leaves: 4, spines: 2, endpoints_per_leaf: 4, rate: 100Gbps, latency: 500ns,
  oversubscription: 2, routing: ecmp}
network: fair_share
jobs:
  - {workload: {kind: collective, collective: all_reduce, ranks: 4, size: 1MB}, iterations: 3, count: 2}
  - {workload: {kind: background, ranks: 4, load: 0.2, rate: 100Gbps, size: 20kB, duration: 200us}}
"""
SWEEPS: list[tuple[str, dict[str, Any]]] = [
    (FOLDED, {"latency": {"topology.latency": ["500ns", "2us"]}, "spines": {"topology.spines": [2, 4]}}),
    (FOLDED, {"workload": {"jobs.0.workload.layers": [2, 3]}}),
    (FOLDED, {"network": {"network": ["fair_share", "congestion_unaware"]}}),
    (TWO, {"workload": {"jobs.0.workload.size": ["1MB", "2MB"]}, "count": {"jobs.0.count": [1, 2]}}),
    (TWO, {"network": {"network": ["fair_share", "congestion_aware"]}}),
    (TWO, {"placement": {"jobs.0.placement": ["packed", "random"]}}),
]


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KEPT, "_entries", {})


@pytest.mark.parametrize(("scenario", "axes"), SWEEPS)
def test_a_sweep_has_the_same_table(
    scenario: str, axes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    measures = ["iteration", "exposed", "slowest"]
    kept = cosim.sweep(cosim.loads(scenario), axes, seeds=2, measures=measures)
    monkeypatch.setattr(KeptWorkloads, "of", lambda _, *given: new_workloads(*given))
    anew = cosim.sweep(cosim.loads(scenario), axes, seeds=2, measures=measures)
    assert not kept.failed
    assert len({*kept.trials.digest.tolist()}) > 1
    assert kept.trials_csv() == anew.trials_csv()
    assert str(kept) == str(anew)
    assert kept.figure_csv() == anew.figure_csv()
    single = cosim.run(cosim.loads(scenario), dict(first_settings(axes)))
    assert single.digest == kept.trials.digest[0]


def first_settings(axes: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Those of the first trial."""
    for choices in axes.values():
        for path, values in choices.items():
            yield path, values[0]


def test_trials_searches_and_prepared_runs_share_one_workload(monkeypatch: pytest.MonkeyPatch) -> None:
    built = 0

    def counted(*given: Any) -> Any:
        nonlocal built
        built += 1
        return new_workloads(*given)

    monkeypatch.setattr(workloads, "new_workloads", counted)
    scenario, rates = cosim.loads(TWO), {"rate": {"topology.rate": ["100Gbps", "200Gbps"]}}
    cosim.sweep(scenario, rates)
    assert built == 2  # one of each job
    cosim.search(cosim.Design(scenario=scenario, axes=rates, objective="iteration"))
    prepare(scenario, ["topology.rate"])
    assert built == 2
    cosim.sweep(scenario, rates, seeds=[1])
    assert built == 3  # only the background traffic draws


class FromFile(WorkloadSpec):
    """Computes as long as a file says"""

    file: str

    def build(self, context: Context) -> cosim.Workload:
        path = context.base / self.file
        (found,) = path.parent.glob("file*")
        duration = int(found.read_text())
        step = cosim.Operation("step", cosim.OpKind.COMPUTE, duration_ps=duration)
        mesh = cosim.DeviceMesh({"rank": 2})
        return cosim.Workload("mine", mesh, (cosim.Program("all", (step,)),), np.zeros(2, np.int32))


def scenario_with(workload: Any) -> cosim.Scenario:
    return cosim.Scenario.model_validate(
        {
            "topology": {"kind": "ring", "endpoints": 4, "rate": "80Gbps", "latency": "0ns"},
            "network": "fair_share",
            "jobs": [{"workload": workload}],
        }
    )


def duration(scenario: cosim.Scenario, kept: KeptWorkloads) -> int:
    return kept.of(scenario, 0)[0].programs[0].operations[0].duration_ps


def test_a_file_that_was_read_is_looked_at_again(tmp_path: Path) -> None:
    path, kept = tmp_path / "file", KeptWorkloads()
    path.write_text("5")
    os.utime(path, (1, 1))
    scenario = scenario_with(FromFile(file=str(path)))
    first = kept.of(scenario, 0)
    with reading() as read:
        assert kept.of(scenario, 0)[0] is first[0]
    assert {str(path), str(tmp_path)} <= {*read.states(Path())}  # who asks has read them, too
    path.write_text("7")
    second = kept.of(scenario, 0)
    assert second[0].programs[0].operations[0].duration_ps == 7
    (tmp_path / "another").touch()
    assert kept.of(scenario, 0)[0] is not second[0]


def test_a_class_of_the_same_name_is_another() -> None:
    def made(duration_ps: int) -> WorkloadSpec:
        class Mine(WorkloadSpec):
            """Computes"""

            def build(self, context: Context) -> cosim.Workload:  # noqa: ARG002 - as its base has it
                step = cosim.Operation("step", cosim.OpKind.COMPUTE, duration_ps=duration_ps)
                mesh = cosim.DeviceMesh({"rank": 1})
                return cosim.Workload("mine", mesh, (cosim.Program("all", (step,)),), np.zeros(1, np.int32))

        return Mine()

    kept = KeptWorkloads()
    assert [duration(scenario_with(made(one)), kept) for one in (3, 4)] == [3, 4]


def test_those_asked_for_last_are_kept_up_to_a_number_of_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = KeptWorkloads()
    some = [cosim.loads(FOLDED.replace("layers: 2,", f"layers: {layers},")) for layers in (1, 2, 3)]
    first, second, third = (kept.of(one, 0)[0] for one in some)
    monkeypatch.setattr(workloads, "MOST_OPERATIONS", len(second.table) + len(third.table))
    assert kept.of(some[2], 0)[0] is third
    assert kept.of(some[1], 0)[0] is second
    assert kept.of(some[0], 0)[0] is not first
    monkeypatch.setattr(workloads, "MOST_OPERATIONS", 1)
    last = kept.of(some[2], 0)[0]
    assert kept.of(some[2], 0)[0] is last
    assert kept.num_operations == len(last.table)


def test_what_was_let_through_is_refused_where_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario, rates = cosim.loads(FOLDED), {"rate": {"topology.spines": [2]}}
    monkeypatch.setattr("cosim.experiment.sizes.memory_bytes", lambda: 1 << 10)
    cosim.sweep(scenario, rates, allow_large=True)
    with pytest.raises(cosim.InputError, match="of memory"):
        cosim.sweep(scenario, rates)
