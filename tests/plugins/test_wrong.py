"""A wrong plug-in of each kind is refused in a line that says what it should be."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pathlib import Path

import pytest

import cosim
from cosim import registry
from cosim.errors import InputError
from cosim.experiment.build import build
from cosim.experiment.scenario import from_document, loads
from cosim.files.located_yaml import Document

CONTEXT = "build(self, context: Context) ->"
WRONG = {
    "cosim.networks": ("Network", f"{CONTEXT} NetworkSimulator, which it lacks"),
    "cosim.controls": ("CongestionControl", "update(self, c), which it lacks"),
    "cosim.balancers": ("ABalancer", "choose(self, c), which it lacks"),
    "cosim.topologies": ("Topology", f"{CONTEXT} Topology, which it lacks"),
    "cosim.routings": (
        "Routing",
        "build(self, fabric: Fabric, context: Context) -> Paths, and has build(self, fa",
    ),
    "cosim.workloads": ("Workload", f"{CONTEXT} Workload, which it lacks"),
    "cosim.models": ("AModel", ", which it lacks"),
    "cosim.gpus": ("AGpu", f"{CONTEXT} Gpu, which it lacks"),
    "cosim.hosts": ("AHost", f"{CONTEXT} Host, which it lacks"),
    "cosim.communications": ("ALibrary", "kind(self, kernel: str) -> str | None, which it lacks"),
    "cosim.frameworks": ("AFramework", ", which it lacks"),
    "cosim.collectives": ("Collective", "and carries: ClassVar[frozenset[Collective]], which it lacks"),
    "cosim.placements": ("APlacement", "choose(self, wanted: Wanted) -> I32, which it lacks"),
    "cosim.arrivals": (
        "AnArrival",
        "times(self, count: int, context: Context) -> list[int], and has times(self",
    ),
    "cosim.schedulers": (
        "AScheduler",
        "decide(self, jobs: Sequence[Placed], topology: Topology) -> Decision, which it lacks",
    ),
    "cosim.formats": (
        "AFormat",
        "write(self, source: Source, out: Path, report: LossReport, progress: Progress)",
    ),
    "cosim.memories": ("AMemory", "devices(self, topology: Topology) -> I32, which it lacks"),
    "cosim.processes": ("AProcess", "live(self, sim: Simulation, context: Context)"),
    "cosim.executors": (
        "AnExecutor",
        "run(self, calls: Sequence[RunCall]) -> Iterator[tuple[int, RunResult]]",
    ),
    "cosim.capture_formats": (
        "ACaptureFormat",
        "refuses(self, start: bytes, path: Path) -> str | None, which it lacks",
    ),
    "cosim.topology_formats": (
        "ATopologyFormat",
        "refuses(self, start: str, path: Path) -> str | None, which it lacks",
    ),
    "cosim.studies": ("AStudy", "ask(self, scenario: Scenario) -> StudyRounds, which it lacks"),
    "cosim.optimizers": ("AnOptimizer", "start(self, space: DesignSpace) -> AskTell, which it lacks"),
}


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[EntryPoint]]:
    points = [point for group in registry.GROUPS for point in entry_points(group=group)]
    monkeypatch.setattr(registry, "entry_points", lambda: EntryPoints(points))
    registry._all.cache_clear()
    yield points
    registry._all.cache_clear()


def refusal(group: str, kind: str, installed: list[EntryPoint]) -> str:
    installed.append(EntryPoint("mine", f"tests.plugins.wrong:{kind}", group))
    with pytest.raises(ValueError, match="mine") as caught:
        registry.find(group, "mine")
    return str(caught.value)


@pytest.mark.parametrize("group", registry.GROUPS)
def test_one_without_its_methods_is_told_which(group: str, installed: list[EntryPoint]) -> None:
    kind, wanted = WRONG[group]
    said = refusal(group, kind, installed)
    assert said.startswith(f"the {registry.GROUPS[group].noun} 'mine', tests.plugins.wrong:{kind}, needs ")
    assert wanted in said
    assert "\n" not in said


@pytest.mark.parametrize("group", registry.GROUPS)
def test_one_of_another_base_is_told_which(group: str, installed: list[EntryPoint]) -> None:
    said = refusal(group, "Plain", installed)
    base = registry.GROUPS[group].base_name
    noun = registry.GROUPS[group].noun
    one = f"an {base}" if base in ("Algorithm", "Arrival", "Executor", "Optimizer") else f"a {base}"
    start = f"the {noun} 'mine', tests.plugins.wrong:Plain, is not {one}: write class Plain({base}) with "
    assert said.startswith(start)
    assert said.endswith(f"; {base} is in cosim.plugins")
    assert "\n" not in said


def test_a_simulator_without_its_spec_is_shown_the_lines_to_write(installed: list[EntryPoint]) -> None:
    first, *lines = refusal("cosim.networks", "Bare", installed).splitlines()
    assert (
        first == "the network 'mine', tests.plugins.wrong:Bare, is not a NetworkSpec: it is what build gives"
    )
    assert [line.strip() for line in lines if line] == [
        "from cosim.plugins import NetworkSpec",
        "class BareSpec(NetworkSpec):",
        '"""What it is, in a line"""',
        "def build(self, context):",
        "return Bare()",
    ]


def test_a_scenario_says_where_it_names_the_wrong_one(installed: list[EntryPoint]) -> None:
    installed.append(EntryPoint("mine", "tests.plugins.wrong:OldNetwork", "cosim.networks"))
    with pytest.raises(
        InputError, match=r"x\.yaml:2: network.*'mine'.* needs build\(self, context: Context\)"
    ):
        loads("topology: {kind: ring}\nnetwork: mine\njobs: []\n", name="x.yaml")


def test_what_build_gives_is_looked_at(tmp_path: Path) -> None:
    text = """
topology: {kind: ring, endpoints: 4, rate: 1Gbps, latency: 0ns}
network: wrong.py:NothingNetwork
jobs: [{workload: {kind: collective, collective: barrier, ranks: 4}}]
"""
    (tmp_path / "wrong.py").write_text(Path(__file__).with_name("wrong.py").read_text())
    with pytest.raises(
        InputError, match=r"NothingNetwork\.build gave None; it should give a NetworkSimulator"
    ):
        build(loads(text, base=tmp_path))


def test_an_object_of_another_kind_is_no_network() -> None:
    from cosim.cluster.placement import Packed

    with pytest.raises(ValueError, match="a Packed is not a network: it is no NetworkSpec"):
        registry.Named("cosim.networks").resolve(Packed())


EXITS = """
import sys
import cosim.plugins
{first}
class Star(cosim.plugins.TopologySpec):
    def build(self, context):
        {then}
"""


@pytest.mark.parametrize("at", ["first", "then"])
def test_one_that_ends_the_process_is_refused(tmp_path: Path, at: str) -> None:
    """With code 0 it would look as if all were well."""
    lines = {"first": "", "then": "pass"} | {at: "sys.exit(0)"}
    (tmp_path / "mine.py").write_text(EXITS.format(**lines))
    scenario = {
        "topology": {"plugin": str(tmp_path / "mine.py") + ":Star"},
        "network": "fair_share",
        "jobs": [{"workload": {"kind": "collective", "collective": "all_reduce", "ranks": 4, "size": "4MB"}}],
    }
    with pytest.raises(InputError, match=r"SystemExit: 0|mine.py:7: build: calls sys.exit\(0\)"):
        cosim.run(scenario)


ANSWERS = """
import numpy as np
from cosim.plugins import Arrival, Placement, TopologySpec

class Arrive(Arrival):
    def times(self, count, context):
        return {0}

class Place(Placement):
    def choose(self, wanted):
        return {0}

class Star(TopologySpec):
    def build(self, context):
        return {0}
"""


@pytest.mark.parametrize(
    ("key", "kind", "answer", "said"),
    [
        ("jobs[0].arrival", "Arrive", "None", "Arrive.times gave None; it should give a list of 2 whole"),
        ("jobs[0].arrival", "Arrive", "[0]", "Arrive.times gave"),
        ("jobs[0].arrival", "Arrive", "[0, -1]", "Arrive.times gave"),
        ("jobs[0].arrival", "Arrive", "[0, '1us']", "Arrive.times gave"),
        ("jobs[0].arrival", "Arrive", "[0, 10**30]", "Arrive.times gave"),
        (
            "jobs[0].placement",
            "Place",
            "None",
            "Place.choose gave None; it should give an int32 array of 2",
        ),
        ("jobs[0].placement", "Place", "np.zeros(2)", "Place.choose gave"),
        ("jobs[0].placement", "Place", "np.zeros(2, int)", "Place.choose gave"),
        ("jobs[0].placement", "Place", "np.array([0, 99])", "Place.choose gave"),
        ("jobs[0].placement", "Place", "1 / 0", r"mine.py:11: choose: ZeroDivisionError"),
        ("jobs[0].arrival", "Arrive", "1 / 0", r"mine.py:7: times: ZeroDivisionError"),
        ("topology", "Star", "1 / 0", r"mine.py:15: build: ZeroDivisionError"),
    ],
)
def test_an_answer_that_can_not_be_is_refused(
    tmp_path: Path, key: str, kind: str, answer: str, said: str
) -> None:
    (tmp_path / "mine.py").write_text(ANSWERS.format(answer))
    scenario = {
        "topology": {"kind": "switch", "endpoints": 4, "rate": "1Gbps", "latency": "0ns"},
        "network": "fair_share",
        "jobs": [
            {
                "workload": {"kind": "collective", "collective": "all_reduce", "ranks": 2, "size": "4MB"},
                "count": 2,
            }
        ],
    }
    with pytest.raises(InputError, match=said):
        build(
            from_document(
                Document("x", scenario), tmp_path, "x", {key: {"plugin": f"{tmp_path / 'mine.py'}:{kind}"}}
            )
        )
