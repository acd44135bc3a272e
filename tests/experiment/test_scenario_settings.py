"""``--set``, and scenarios made and changed in Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from cosim.errors import ScenarioError
from cosim.experiment.build import build
from cosim.experiment.save import resolved_yaml
from cosim.experiment.scenario import Job, Scenario, load, loads
from cosim.network.aware import CongestionAware
from cosim.spec import Spec
from cosim.topology.regular import Ring
from cosim.units import PS_PER_MS, PS_PER_US
from cosim.workload.synthetic import Repeated
from cosim.written import plain
from tests.inputs import ROOT

TEXT = """\
topology: {kind: ring, endpoints: 8, rate: 100Gbps, latency: 1us}
network: congestion_aware
jobs:
  - workload: {kind: collective, collective: all_reduce, ranks: 4, size: 1MiB}
"""


def settings(spec: object) -> Any:
    """A spec that YAML named, whose class a type checker can't know."""
    assert isinstance(spec, Spec)
    return spec


def test_settings_change_and_make_keys() -> None:
    scenario = loads(
        TEXT,
        [
            "jobs[0].iterations=5",
            "jobs.0.start=2ms",
            "topology.latency=3us",
            "jobs[0].placement.kind=spread",
            "jobs[1].workload={kind: collective, collective: barrier, ranks: 2}",
            "collectives.all_reduce.algorithm=halving_doubling",
            "record.messages=true",
        ],
    )
    assert [job.iterations for job in scenario.jobs] == [5, 1]
    assert scenario.jobs[0].start == 2 * PS_PER_MS
    assert settings(scenario.topology).latency == 3 * PS_PER_US
    assert [job.endpoints.tolist() for job in build(scenario).jobs] == [[0, 2, 4, 6], [1, 3]]
    assert scenario.record.messages == "npz"


def test_a_name_given_short_can_get_fields() -> None:
    text = TEXT + "collectives: {all_reduce: ring}\n"
    scenario = loads(text, ["collectives.all_reduce.channels=2", "network.model=congestion_aware"])
    assert plain(scenario.collectives)["all_reduce"] == {"algorithm": "ring", "channels": 2}


def test_the_last_setting_wins() -> None:
    assert loads(TEXT, ["seed=1", "seed=2"]).seed == 2
    assert loads(TEXT, ["jobs[0].iterations=3", "jobs[0].iterations=4"]).jobs[0].iterations == 4


def test_python_values_can_be_set() -> None:
    assert loads(TEXT, {"jobs[0].iterations": 7}).jobs[0].iterations == 7
    assert loads(TEXT).with_settings({"seed": 3}).seed == 3


def test_changing_a_copy_leaves_the_scenario_as_it_was() -> None:
    scenario = loads(TEXT)
    scenario.with_settings({"topology.endpoints": 16, "jobs[0].weight": 2})
    assert settings(scenario.topology).endpoints == 8
    assert settings(loads(resolved_yaml(scenario)).topology).endpoints == 8


def test_anchors_and_merges_are_understood() -> None:
    text = TEXT.replace("workload: {", "workload: &work {") + (
        "  - workload: {<<: *work, ranks: 2}\n    iterations: 2\n  - workload: *work\n"
    )
    scenario = loads(text, ["topology.endpoints=10"])
    assert [settings(job.workload).ranks for job in scenario.jobs] == [4, 2, 4]
    assert [job.name for job in scenario.jobs] == ["job0", "job1", "job2"]


@pytest.mark.parametrize(("text", "value"), [("1e3", 1000.0), ("0x10", 16), ("1_000", 1000), (".5", 0.5)])
def test_numbers_are_read_as_people_write_them(text: str, value: float) -> None:
    assert loads(TEXT + f"    weight: {text}\n").jobs[0].weight == value


def test_the_resolved_scenario_is_the_same_scenario() -> None:
    scenario = loads(TEXT, ["jobs[0].iterations=5", "jobs[0].start=1ms"])
    again = loads(resolved_yaml(scenario))
    assert plain(again) == plain(scenario)


SHIPPED = [path for path in sorted((ROOT / "scenarios").glob("*.yaml")) if "\naxes:" not in path.read_text()]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_scenario_written_and_read_again_is_the_same(path: Path) -> None:
    scenario = load(path)
    again = loads(resolved_yaml(scenario), base=path.parent)
    assert plain(again) == plain(scenario)
    assert again.events == scenario.events


def test_a_scenario_made_in_python_is_the_one_that_yaml_makes() -> None:
    made = Scenario(
        name="scenario",
        topology=Ring.model_validate({"endpoints": 8, "rate": "100Gbps", "latency": "1us"}),
        network=CongestionAware(),
        jobs=(
            Job(workload=Repeated.model_validate({"collective": "all_reduce", "ranks": 4, "size": "1MiB"})),
        ),
    )
    read = loads(TEXT)
    assert plain(loads(yaml.safe_dump(plain(made)))) == plain(read)
    assert [job.endpoints.tolist() for job in build(made).jobs] == [[0, 1, 2, 3]]
    assert made.with_settings({"jobs[0].iterations": 2}).jobs[0].iterations == 2


def test_made_objects_pass_as_they_are() -> None:
    read = loads(TEXT)
    built = build(read)
    made = Scenario(
        topology=built.topology, network="congestion_aware", jobs=(Job(workload=built.jobs[0].workload),)
    )
    assert build(made).topology is built.topology
    assert resolved_yaml(made).startswith("#")
    for changed in (made, made.with_settings({"seed": 1}), made.with_settings({"jobs[0].iterations": 2})):
        again = changed.with_settings({"jobs[0].start": "1us"})
        assert again.topology is built.topology
        assert again.jobs[0].workload is made.jobs[0].workload
        assert (again.seed, again.jobs[0].iterations) == (changed.seed, changed.jobs[0].iterations)


def test_relative_paths_start_at_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(TEXT)
    scenario = load(tmp_path / "a.yaml")
    assert scenario.base == tmp_path
    assert scenario.name == "a"
    assert scenario.with_settings({"seed": 1}).base == tmp_path


def test_importing_cosim_imports_next_to_nothing() -> None:
    heavy = "numpy torch pydantic simpy yaml typer rich networkx"
    code = f"import sys, cosim; print([m for m in '{heavy}'.split() if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


@pytest.mark.parametrize("path", ["jobs.²", "jobs[²]", f"jobs.{'9' * 5000}", f"jobs[{'9' * 5000}]"])
def test_an_index_is_a_number_that_a_list_can_have(path: str) -> None:
    with pytest.raises(ScenarioError, match=r"is a list of 1, which has no|is not a path"):
        loads(TEXT, [f"{path}=1"])
