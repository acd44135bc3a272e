"""A search finds what running everything finds."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

import cosim
from cosim.cli import app
from cosim.errors import InputError
from cosim.experiment.search.bound import Bounds
from cosim.experiment.search.design import Design, read_design
from cosim.experiment.sweep import OF_A_DESIGN
from cosim.protocol import adapters
from cosim.results.report.sweep_data import load_sweep
from tests.adapters import ns3_worlds
from tests.experiment.search.spaces import small_space
from tests.inputs import ROOT


@pytest.mark.parametrize(("seed", "spaces"), [(0, 5), pytest.param(1, 200, marks=pytest.mark.slow)])
def test_a_search_finds_what_running_everything_finds(seed: int, spaces: int) -> None:
    chance, spared = random.Random(seed), 0
    for _ in range(spaces):
        space = small_space(chance)
        found = cosim.search(space)
        every = cosim.search(space, optimizer="all")
        assert found.proven
        assert found.best is not None
        assert every.best is not None
        assert found.best.values == every.best.values
        name = space.objectives[0]
        assert all(one.bounds[name] <= one.values[name] for one in every.tried)
        assert found.refused == every.refused
        assert len(every.tried) + len(every.refused) == space.num_runs
        spared += len(every.tried) - len(found.tried)
    assert spared > 0


def test_the_value_is_the_mean_over_seeds_of_the_sweep() -> None:
    space = small_space(random.Random(3)).with_settings({"seeds": 2, "scenario.jobs[0].jitter": 0.1})
    name = space.objectives[0]
    sweep = cosim.Sweep(
        scenario=space.scenario,
        axes=space.axes,
        seeds=2,
        measures=(name,),
        only={"split": [f"split {k}" for k in range(2)]},
    )
    table = cosim.sweep(sweep)
    found = cosim.search(space, optimizer="all")
    for one in found.tried:
        if one.labels in {trial.labels for trial in table.runs}:
            assert one.values[name] == pytest.approx(table.cell(one.labels, name).mean)
    assert not any(one.bounds for one in found.tried)  # computations may take less than they say


@pytest.mark.parametrize("name", ["quickstart", "two-jobs", "ring-all-reduce", "llama3-70b"])
def test_no_run_is_below_its_bound(name: str) -> None:
    scenario = cosim.load(ROOT / "scenarios" / f"{name}.yaml")
    bounds = Bounds()
    bound = bounds.lower_bound(scenario, bounds.build(scenario), "slowest")
    assert 0 <= bound <= max(job.iteration_mean_ps or 0 for job in cosim.run(scenario).summary.jobs)


ALGORITHMS = {
    "all_reduce": ("ring", "direct", "halving_doubling", "double_binary_tree"),
    "all_gather": ("ring", "direct", "halving_doubling"),
    "reduce_scatter": ("ring", "direct", "halving_doubling"),
    "all_to_all": ("ring", "direct"),
}
TOPOLOGIES = (
    "{kind: ring, endpoints: 8, rate: 80Gbps, latency: 500ns}",
    "{kind: switch, endpoints: 8, rate: 100Gbps, latency: 1us}",
    "{kind: leaf_spine, leaves: 2, spines: 2, endpoints_per_leaf: 4, latency: 500ns, "
    "hosts: {gpus: 4, nvlink_rate: 300GB/s, nvlink_latency: 300ns, nics: 4, nic_rate: 200Gbps}}",
)


@pytest.mark.parametrize("network", ["fair_share", "congestion_aware"])
def test_no_collective_is_below_its_bound(network: str) -> None:
    """Any algorithm anywhere, on all ranks and on a part of them, large and small."""
    chance = random.Random(1)
    tight = 0
    for collective, algorithms in ALGORITHMS.items():
        for algorithm in algorithms:
            topology, size = chance.choice(TOPOLOGIES), chance.choice(["1kB", "64kB", "20MB"])
            scenario = cosim.loads(
                f"""
topology: {topology}
network: {network}
collectives: {{{collective}: {algorithm}}}
jobs:
- workload: {{kind: collective, collective: {collective}, ranks: {chance.choice([2, 4, 8])}, size: {size}}}
"""
            )
            bounds = Bounds()
            bound = bounds.lower_bound(scenario, bounds.build(scenario), "iteration")
            took = cosim.run(scenario).summary.jobs[0].iteration_mean_ps
            assert took is not None
            assert 0 < bound <= took, (topology, collective, algorithm, size)
            tight += bound > 0.9 * took
    assert tight >= 4


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
    bounds = Bounds()
    bound = bounds.lower_bound(scenario, bounds.build(scenario), "iteration")
    assert 0.99 * mean < bound <= mean
    alone = cosim.run(scenario).summary.jobs[0].free_communication_iteration_ps
    assert alone is not None
    assert bound > 1.05 * alone  # more than what the busiest rank computes


def test_what_only_a_run_refuses_ends_no_search() -> None:
    """Stages of a pipeline can't be folded, ranks of data parallelism can."""
    cuts = {"dp": {"jobs.0.workload.parallel": {"dp": 4}}, "pp": {"jobs.0.workload.parallel": {"pp": 4}}}
    design = cosim.Design(
        scenario=pipeline(4, 8).with_settings({"fold": "always"}), axes={"cut": cuts}, optimizer="all"
    )
    found = cosim.search(design)
    dp, pp = found.tried
    assert found.best == dp
    assert "no ranks can be folded" in pp.error


def test_what_was_run_is_in_the_store_and_a_search_goes_on(tmp_path: Path) -> None:
    space = small_space(random.Random(8))
    part = cosim.search(space, runs=1, store=tmp_path)
    assert len(part.tried) == 1
    whole = cosim.search(space, optimizer="all", store=tmp_path)
    assert [one.labels for one in whole.tried if one.stored] == [part.tried[0].labels]
    again = cosim.search(space, optimizer="all", store=tmp_path)
    assert all(one.stored for one in again.tried)
    assert again.best is not None
    assert whole.best is not None
    assert again.best.values == whole.best.values


def test_optuna_finds_it_too_where_it_may_run_everything() -> None:
    space = small_space(random.Random(5))
    every = cosim.search(space, optimizer="all")
    found = cosim.search(space, optimizer="optuna")
    assert found.best is not None
    assert every.best is not None
    assert found.best.values == every.best.values
    assert [one.labels for one in cosim.search(space, optimizer="optuna", runs=3).tried] == [
        one.labels for one in found.tried[:3]
    ]


def test_optuna_s_journal_goes_on_where_it_was(tmp_path: Path) -> None:
    space = small_space(random.Random(5))
    optimizer = {"kind": "optuna", "journal": str(tmp_path / "study.journal")}
    part = cosim.search(space, optimizer=optimizer, runs=2, store=tmp_path / "store")
    more = cosim.search(space, optimizer=optimizer, runs=4, store=tmp_path / "store")
    assert [one.labels for one in more.tried[:2]] == [one.labels for one in part.tried]
    assert [one.stored for one in more.tried] == [True, True, False, False]
    assert len({one.labels for one in more.tried}) == 4


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
    assert "4 points: 1 run (0 from the store), 2 refused, 1 not needed" in result.stdout
    assert "80Gbps / 5: " in result.stdout
    told = json.loads(CliRunner().invoke(app, ["search", str(path), "--json", "--optimizer", "all"]).stdout)
    assert told["proven"] is True
    assert [one["values"]["iteration"] for one in told["tried"]] == [2e9, 3e9]


RATES = {"rate": {"topology.rate": [f"{rate}Gbps" for rate in (20, 40, 60, 80, 100)]}}
LINEAR = """
scenario:
  topology: {kind: switch, endpoints: 4, rate: 80Gbps, latency: 0ns}
  network: fair_share
  jobs: [{workload: {kind: periodic, compute: 1ms, size: 10MB, ranks: 4}}]
cost:
  endpoint: {price: 1000, power: 500}
  ports: {rate: 100Gbps, price: 100, power: 10}
  cables: {rate: 100Gbps, price: 50, power: 1}
"""


def rates(**more: object) -> cosim.Design:
    """A star of 4: (endpoints' 4,000 $, 2 kW) and by rate (4 ports and 4 cables: 600 $, 44 W at 100 Gbps)."""
    return read_design(LINEAR + "axes: {}\n", {"axes": RATES, **more})


def test_a_front_is_what_no_other_beats() -> None:
    found = cosim.search(rates(objective=["iteration", "price"]))
    assert found.proven
    # 1 ms and 10 MB at the link's rate, against a price that is linear in it: each rate is on the front.
    for one, rate in zip(found.front, (100, 80, 60, 40, 20), strict=True):
        assert one.values["iteration"] == pytest.approx(1e9 + 8e19 / (rate * 1e9))
        assert one.values["price"] == pytest.approx(4000 + 6 * rate)
    again = cosim.search(rates(objective=["iteration", "energy"]), optimizer="all")
    energy = {
        rate: (2000 + 0.44 * rate) * (1e-3 + 8e7 / (rate * 1e9)) for rate in (20, 40, 60, 80, 100)
    }  # falls with the rate all along: the quickest beats all
    assert min(energy, key=lambda rate: energy[rate]) == 100
    assert [one.labels for one in again.front] == [("100Gbps",)]
    assert again.front[0].values["energy"] == pytest.approx(energy[100])


def test_constraints_are_kept_before_and_after_a_run() -> None:
    found = cosim.search(rates(constraints={"price": 4400, "power": "2.03k"}))
    assert found.best is not None
    assert found.best.labels == ("60Gbps",)
    assert dict(found.refused)[("80Gbps",)] == "price is 4.48 k$, not <= 4.4 k$"
    # Of a network about which nothing is known, only a run says how long it takes.
    blind = rates(constraints={"iteration": "2ms"}, **{"scenario.network": "congestion_unaware"})
    every = cosim.search(blind, optimizer="all", objective="price")
    assert every.best is not None
    assert every.best.labels == ("80Gbps",)
    assert [one.error for one in every.tried][:2] == [
        "iteration is 5 ms, not <= 2 ms",
        "iteration is 3 ms, not <= 2 ms",
    ]


def test_what_a_cluster_costs() -> None:
    """Two hosts of two H100s under two leaves and two spines, part by part."""
    design = read_design(
        """
scenario:
  topology:
    kind: leaf_spine
    leaves: 2
    spines: 2
    endpoints_per_leaf: 2
    latency: 500ns
    hosts: {gpus: 2, nvlink_rate: 450GB/s, nics: 2, nic_rate: 200Gbps}
  network: fair_share
  jobs:
  - workload: {kind: model, model: {kind: gpt3-1.7b, layers: 4}, gpu: h100-sxm, parallel: {tp: 2, dp: 2}}
axes: {micro-batch: {jobs.0.workload.micro_batch: [1]}}
cost:
  gpus: {h100-sxm: {price: 30000, power: 1000}}
  ports: {rate: 200Gbps, price: 1000, power: 10}
  cables: {rate: 200Gbps, price: 100, power: 0}
  optics: {rate: 200Gbps, price: 500, power: 5}
""",
        {"objective": ["price", "power", "memory", "tokens_per_s_per_dollar"]},
    )
    [one] = cosim.search(design).tried
    # Down: a port and a cable for each NIC. Up: a port and optics at each end of four links.
    up = 2 * 2 * 2
    assert one.values["price"] == pytest.approx(4 * 30000 + 4 * (1000 + 100) + up * (1000 + 500))
    assert one.values["power"] == pytest.approx(4 * 1000 + 4 * 10 + up * (10 + 5))
    run = cosim.run(design.trial(("1",), {}))
    iteration = run.summary.jobs[0].iteration_mean_ps
    assert iteration is not None
    assert one.values["tokens_per_s_per_dollar"] == pytest.approx(
        2 * 2048 / (iteration / 1e12) / one.values["price"]
    )
    assert f"{one.values['memory'] / 1e9:.1f}"[:3] in str(run.summary.jobs[0].read)


def test_fidelity_rises_where_it_matters(tmp_path: Path) -> None:
    """Only what is near the best without congestion is run with it, and what counts is what came then."""
    levels = [
        {"settings": {"network": "congestion_unaware"}, "within": 0.6},
        {"settings": {"network": "fair_share"}},
    ]
    found = cosim.search(rates(fidelity=levels))
    assert {one.labels[0]: one.level for one in found.tried} == {
        "20Gbps": 0, "40Gbps": 0, "60Gbps": 1, "80Gbps": 1, "100Gbps": 1,
    }  # fmt: skip
    assert found.best is not None
    assert found.best.labels == ("100Gbps",)
    assert len(found.able) == 3
    assert "if congestion_unaware ranks as what comes after it does, to 60 %" in str(found)


def _levels_up_to_ns3() -> list[dict[str, object]]:
    networks = ["fair_share", {"model": "congestion", "control": "dctcp"}, "ns3"]
    return [{"settings": {"network": one}, "within": 0.04} for one in networks]


def test_ns3_is_the_last_level() -> None:
    """1 ms and 80 us of 100 Gbps: closed forms spare three rates, the others are simulated three times."""
    ns3_worlds.ns3()
    found = cosim.search(rates(fidelity=_levels_up_to_ns3(), **{"scenario.jobs[0].workload.size": "1MB"}))
    assert {one.labels[0]: one.level for one in found.tried} == {"80Gbps": 2, "100Gbps": 2}
    assert found.best is not None
    assert found.best.labels == ("100Gbps",)
    design = rates(**{"scenario.network": "ns3", "scenario.jobs[0].workload.size": "1MB"})
    [alone] = cosim.run(design.trial(("100Gbps",), {"topology.rate": "100Gbps"})).summary.jobs
    assert found.best.values["iteration"] == alone.iteration_mean_ps


def test_without_ns3_its_level_is_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(adapters, "missing_packages", lambda _: ("libns3-dev",))
    with pytest.raises(InputError, match=r"fidelity\[2\]: the ns3 adapter .*: missing libns3-dev"):
        cosim.search(rates(fidelity=_levels_up_to_ns3()), store=tmp_path / "store")
    assert not (tmp_path / "store").exists()


def test_run_and_search_name_each_other(tmp_path: Path) -> None:
    assert {*Design.model_fields} - {*cosim.Sweep.model_fields} == {*OF_A_DESIGN}
    with pytest.raises(InputError, match=r"it says objective[\s\S]*`cosim search scenario`"):
        cosim.sweep(LINEAR + "axes: {}\nobjective: [price]\n")
    with pytest.raises(InputError, match=r"has nothing to choose[\s\S]*`cosim run`"):
        cosim.search({"network": "fair_share"})


def test_within_a_tolerance_fewer_runs_are_needed() -> None:
    exact = cosim.search(rates(objective="energy"))
    assert exact.proven
    loose = cosim.search(rates(objective=["iteration", "price"], tolerance=0.9))
    assert loose.proven
    assert len(loose.tried) < 5


def test_points_that_are_run_together_are_the_same(tmp_path: Path) -> None:
    one = cosim.search(rates(objective=["iteration", "price"]))
    several = cosim.search(rates(objective=["iteration", "price"], at_once=3))
    assert several.front == one.front


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--objective", "iterations"], "there is no measure 'iterations'; did you mean 'iteration'"),
        (["--objective", "price"], "what an endpoint of job0 costs is not known: its workload names no GPU"),
        (["--objective", "tokens_per_s"], "tokens of the job job0 is not known"),
        (["--optimizer", "bound"], "there is no optimizer 'bound'; did you mean 'bounds'"),
        (["--set", "axes.ranks={jobs.0.workload.ranks: [5, 6]}"], "no point of design can be"),
        (
            ["--set", "constraints={iteration: 1us}"],
            "no point of design keeps iteration <= 1 us: the nearest",
        ),
        (["--set", "constraints={price: cheap}"], "'cheap' is not a number; write 10e6, or 10M"),
        (["--set", "constraints={prize: 1}"], "there is no measure 'prize'; did you mean 'price'"),
        (["--set", "cost={gpu: {}}"], "unknown key 'gpu'; did you mean 'gpus'"),
        (["--set", "cost=missing.yaml"], "missing.yaml"),
        (["--set", "fidelity=[{}, {settings: {network: congestion}}]"], "fidelity[1]"),
        (["--set", "fidelity=[{}, {settings: {network: fairshare}}]"], "there is no network 'fairshare'"),
        (["--set", "tolerance=1"], "tolerance"),
        (
            ["--optimizer", "{kind: optuna, journal: /nowhere/there}"],
            "the journal /nowhere/there can't be used",
        ),
    ],
)
def test_mistakes_are_said(tmp_path: Path, arguments: list[str], message: str) -> None:
    path = tmp_path / "design.yaml"
    path.write_text(DESIGN)
    result = CliRunner().invoke(app, ["search", str(path), *arguments])
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)


def test_what_a_gpu_costs_has_to_be_known() -> None:
    design = read_design(
        """
scenario:
  topology: {kind: switch, endpoints: 2, rate: 80Gbps, latency: 0ns}
  network: fair_share
  jobs: [{workload: {kind: model, model: {kind: gpt3-1.7b, layers: 2}, gpu: mi300x, parallel: {dp: 2}}}]
axes: {rate: {topology.rate: [80Gbps]}}
objective: price
"""
    )
    with pytest.raises(InputError, match=r"what the GPU .* costs is not known; cost.gpus has v100-sxm2"):
        cosim.search(design)


TRAINING = """
topology: {kind: switch, endpoints: 8, rate: 400Gbps, latency: 1us}
network: fair_share
jobs:
- {workload: {kind: model, model: llama3-8b, gpu: h100-sxm, parallel: {tp: 8}, batch: 2, sequence: 1024}}
"""


def test_a_run_a_sweep_and_a_search_mean_the_same_by_tokens_per_s() -> None:
    axes = {"rate": {"topology.rate": ["400Gbps", "200Gbps"]}}
    swept = cosim.sweep(TRAINING, axes, measures=["tokens_per_s"])
    found = cosim.search({"scenario": yaml.safe_load(TRAINING), "axes": axes, "objective": "tokens_per_s"})
    assert found.best is not None
    assert found.best.values["tokens_per_s"] == pytest.approx(
        swept.cell(found.best.labels, "tokens_per_s").mean
    )
    [job] = cosim.run(TRAINING).summary.jobs
    assert job.tokens_per_gpu_s is not None
    assert swept.cell(("400Gbps",), "tokens_per_s").mean == pytest.approx(8 * job.tokens_per_gpu_s)
    assert job.iteration_mean_ps is not None
    assert 8 * job.tokens_per_gpu_s == pytest.approx(2 * 1024 / (job.iteration_mean_ps / 1e12))


COSTS = {"ports": {"rate": "400Gbps", "price": 5000, "power": 10}}
ASKED = ["price", "power", "energy", "tokens_per_s_per_dollar", "tokens_per_joule", "endpoint_rate", "memory"]


def test_a_run_a_sweep_and_a_search_mean_the_same_by_what_a_cluster_costs() -> None:
    axes = {"rate": {"topology.rate": ["400Gbps", "200Gbps"]}}
    sweep = {"scenario": yaml.safe_load(TRAINING), "axes": axes, "cost": COSTS}
    swept = cosim.sweep({**sweep, "measures": ASKED, "seeds": 2})
    assert isinstance(swept, cosim.SweepRun)
    found = cosim.search({**sweep, "objective": ASKED, "optimizer": "all"})
    run = cosim.run(TRAINING, {"topology.rate": "200Gbps"})
    for name in ASKED:
        cell = swept.cell(("200Gbps",), name)
        [tried] = [one for one in found.tried if one.labels == ("200Gbps",)]
        assert cell.mean == pytest.approx(tried.values[name]) == pytest.approx(run.measure(name, COSTS))
        assert cell.count == 2
    # By hand: a port of 200 Gb/s costs half of one of 400, and so does each GPU's half of a cable.
    free = {**COSTS, "cables": {"rate": "400Gbps", "price": 0, "power": 0}}
    cables = run.measure("price", COSTS) - run.measure("price", free)
    dearer = swept.cell(("400Gbps",), "price").mean - swept.cell(("200Gbps",), "price").mean
    assert dearer == pytest.approx(8 * 2500 + cables)


def test_a_sweep_of_prices_is_stored_and_read_back(tmp_path: Path) -> None:
    axes = {"rate": {"topology.rate": ["400Gbps", "200Gbps"]}}
    sweep = {"scenario": yaml.safe_load(TRAINING), "axes": axes, "measures": ["price", "iteration"]}
    first = cosim.sweep(sweep, out=tmp_path / "out", store=tmp_path / "store")
    again = cosim.sweep(sweep, store=tmp_path / "store")
    assert isinstance(first, cosim.SweepRun)
    assert isinstance(again, cosim.SweepRun)
    assert first.trials_csv() == again.trials_csv()
    assert first.trials_csv().startswith("rate,seed,price_usd,iteration_ps,doubtful,digest,error\n")
    assert load_sweep(tmp_path / "out").cells.to_pandas().equals(first.cells.to_pandas())


def test_a_measure_that_is_not_known_says_why() -> None:
    ring = {"kind": "ring", "endpoints": 4, "rate": "80Gbps", "latency": "0ns"}
    workload = {"kind": "collective", "collective": "all_reduce", "ranks": 4, "size": "4MB"}
    run = cosim.run({"topology": ring, "network": "fair_share", "jobs": [{"workload": workload}]})
    with pytest.raises(InputError, match="what an endpoint of job0 costs is not known"):
        run.measure("price")
    with pytest.raises(InputError, match=r"ports\.rate"):
        run.measure("price", {"ports": {"rate": "fast", "price": 1, "power": 1}})
    with pytest.raises(InputError, match="slowdown is held against each job by itself"):
        run.measure("slowdown")
    with pytest.raises(InputError, match="did you mean 'price'"):
        run.measure("prize")
