"""A search finds what running everything finds."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import cosim
from cosim.cli import app
from cosim.errors import InputError
from cosim.experiment.search.bound import lower_bound
from cosim.experiment.search.search import search
from tests.inputs import ROOT


def design(chance: random.Random) -> cosim.Sweep:
    """A small space: what is computed, how much is sent, how fast, by which algorithm; some don't fit."""
    count = chance.randint(2, 4)
    computes = [f"{chance.randint(1, 40)}us" for _ in range(count)]
    splits: dict[str, dict[str, Any]] = {
        f"split {k}": {
            "jobs.0.workload.compute": compute,
            "jobs.0.workload.size": f"{chance.randint(1, 300)}kB",
        }
        for k, compute in enumerate(computes)
    }
    if chance.random() < 0.5:
        splits["too many"] = {"jobs.0.workload.ranks": 9}
    rates = chance.sample([25, 50, 100, 200, 400], chance.randint(1, 3))
    axes: dict[str, Any] = {"split": splits, "rate": {"topology.rate": [f"{rate}Gbps" for rate in rates]}}
    if chance.random() < 0.5:
        axes["second"] = {"alone": {}, "shared": {"share_endpoints": True, "jobs.1.workload": PERIODIC}}
    return cosim.Sweep(
        scenario={
            "topology": {"kind": "switch", "endpoints": 8, "latency": "500ns", "rate": "100Gbps"},
            "network": "fair_share",
            "jobs": [{"workload": {**PERIODIC, "ranks": 4}, "iterations": chance.randint(1, 3)}],
        },
        axes=axes,
        measures=(chance.choice(["iteration", "slowest", "makespan"]),),
    )


PERIODIC = {"kind": "periodic", "compute": "10us", "size": "50kB"}


@pytest.mark.parametrize(("seed", "spaces"), [(0, 5), pytest.param(1, 200, marks=pytest.mark.slow)])
def test_a_search_finds_what_running_everything_finds(seed: int, spaces: int) -> None:
    chance, spared = random.Random(seed), 0
    for _ in range(spaces):
        sweep = design(chance)
        found = search(sweep)
        every = search(sweep, optimizer="all")
        assert found.proven
        assert found.best is not None
        assert every.best is not None
        assert found.best.value == every.best.value
        assert all(one.bound <= one.value for one in every.tried)
        assert found.refused == every.refused
        assert len(every.tried) + len(every.refused) == sweep.num_runs
        spared += len(every.tried) - len(found.tried)
    assert spared > 0


def test_the_value_is_the_mean_over_seeds_of_the_sweep() -> None:
    sweep = design(random.Random(3)).with_settings({"seeds": 2, "scenario.jobs[0].jitter": 0.1})
    table = cosim.run(sweep.with_settings({"only": {"split": [f"split {k}" for k in range(2)]}}))
    found = search(sweep, optimizer="all")
    for one in found.tried:
        if one.labels in {trial.labels for trial in table.runs}:
            assert one.value == pytest.approx(table.cell(one.labels, sweep.measures[0]).mean)
    assert all(one.bound == 0 for one in found.tried)  # computations may take less than they say


@pytest.mark.parametrize("name", ["quickstart", "two-jobs", "ring-all-reduce"])
def test_no_run_is_below_its_bound(name: str) -> None:
    scenario = cosim.load(ROOT / "scenarios" / f"{name}.yaml")
    bound = lower_bound(scenario, "slowest")
    assert 0 <= bound <= max(job.iteration_mean_ps or 0 for job in cosim.run(scenario).summary.jobs)


def pipeline(stages: int, micro_batches: int) -> cosim.Scenario:
    return cosim.loads(
        f"""
topology: {{kind: switch, endpoints: {stages}, rate: 100Tbps, latency: 0ns}}
network: fair_share
jobs:
- workload:
    kind: model
    model: {{kind: gpt3-1.7b, layers: 24}}
    gpu: a100-80gb
    parallel: {{pp: {stages}}}
    batch: {micro_batches}
"""
    )


@pytest.mark.parametrize(("stages", "micro_batches"), [(2, 4), (4, 8), (4, 1)])
def test_a_bound_knows_how_stages_wait_for_each_other(stages: int, micro_batches: int) -> None:
    """A pipeline over links that take next to nothing takes what its bound says, bubbles and all."""
    scenario = pipeline(stages, micro_batches)
    mean = cosim.run(scenario).summary.jobs[0].iteration_mean_ps
    assert mean is not None
    bound = lower_bound(scenario, "iteration")
    assert 0.99 * mean < bound <= mean
    alone = cosim.run(scenario).summary.jobs[0].free_communication_iteration_ps
    assert alone is not None
    assert bound > 1.05 * alone  # more than what the busiest rank computes


def test_what_was_run_is_in_the_store_and_a_search_goes_on(tmp_path: Path) -> None:
    sweep = design(random.Random(8))
    part = search(sweep, runs=1, store=tmp_path)
    assert len(part.tried) == 1
    whole = search(sweep, optimizer="all", store=tmp_path)
    assert [one.labels for one in whole.tried if one.stored] == [part.tried[0].labels]
    again = search(sweep, optimizer="all", store=tmp_path)
    assert all(one.stored for one in again.tried)
    assert again.best == whole.best or again.best.value == whole.best.value  # type: ignore[union-attr]


def test_optuna_finds_it_too_where_it_may_run_everything() -> None:
    sweep = design(random.Random(5))
    every = search(sweep, optimizer="all")
    found = search(sweep, optimizer="optuna")
    assert found.best is not None
    assert every.best is not None
    assert found.best.value == every.best.value
    assert [one.labels for one in search(sweep, optimizer="optuna", runs=3).tried] == [
        one.labels for one in found.tried[:3]
    ]


DESIGN = """
scenario:
  topology: {kind: switch, endpoints: 4, rate: 80Gbps, latency: 0ns}
  network: fair_share
  jobs: [{workload: {kind: periodic, compute: 1ms, size: 10MB, ranks: 4}}]
axes:
  rate: {topology.rate: [80Gbps, 40Gbps]}
  ranks: {jobs.0.workload.ranks: [4, 5]}
"""


def test_the_command(tmp_path: Path) -> None:
    path = tmp_path / "design.yaml"
    path.write_text(DESIGN)
    result = CliRunner().invoke(app, ["search", str(path)])
    assert result.exit_code == 0, result.output
    assert "4 points: 2 run (0 from the store), 2 refused, 0 not needed" in result.stdout
    assert "80Gbps / 5: " in result.stdout
    told = json.loads(CliRunner().invoke(app, ["search", str(path), "--json", "--runs", "1"]).stdout)
    assert told["proven"] is False
    assert len(told["tried"]) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--objective", "iterations"], "there is no measure 'iterations'; did you mean 'iteration'"),
        (["--optimizer", "bound"], "there is no optimizer 'bound'; did you mean 'bounds'"),
        (["--set", "axes.ranks={jobs.0.workload.ranks: [5, 6]}"], "no point of design can be"),
    ],
)
def test_mistakes_are_said(tmp_path: Path, arguments: list[str], message: str) -> None:
    path = tmp_path / "design.yaml"
    path.write_text(DESIGN)
    result = CliRunner().invoke(app, ["search", str(path), *arguments])
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)
