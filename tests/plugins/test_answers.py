"""What a plug-in gives is held against its base's types: the handbook's, with one thing wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

import cosim
from cosim.answers import misfit
from cosim.errors import CosimError, WorkloadError
from cosim.experiment.build import build
from tests.inputs import ROOT


@dataclass
class Leaf:
    count: int
    share: float = 0.0
    of: Leaf | None = None


@dataclass
class Tree:
    name: str
    leaves: tuple[Leaf, ...] = ()
    pair: tuple[int, str] = (0, "")
    by: dict[str, int] = field(default_factory=dict)
    column: NDArray[np.int32] = field(default_factory=lambda: np.zeros(1, np.int32))
    kind: Literal["a", "b"] = "a"
    made: type[Leaf] = Leaf
    anything: Any = None


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (Tree("x", (Leaf(1), Leaf(np.int64(2), 3, Leaf(4)))), ""),  # type: ignore[arg-type]
        (Tree("x", anything=object(), column=np.zeros(0, np.int64)), ""),
        (None, " is None, no Tree"),
        (Tree(1), ".name is an int, no str"),  # type: ignore[arg-type]
        (Tree("x", (Leaf(1.5),)), ".leaves[0].count is a float, no int"),  # type: ignore[arg-type]
        (Tree("x", (Leaf(1, of=Leaf("1")),)), ".leaves[0].of.count is a str, no int"),  # type: ignore[arg-type]
        (Tree("x", (Leaf(1, of=np),)), ".leaves[0].of is a module, no Leaf or None"),  # type: ignore[arg-type]
        (Tree("x", [Leaf(1)]), ".leaves is a list, no tuple"),  # type: ignore[arg-type]
        (Tree("x", pair=(1, "a", 2)), ".pair has 3 items, not 2"),  # type: ignore[arg-type]
        (Tree("x", by={"k": "v"}), ".by['k'] is a str, no int"),  # type: ignore[dict-item]
        (Tree("x", by={1: 1}), ".by's key is an int, no str"),  # type: ignore[dict-item]
        (Tree("x", column=np.zeros(1)), ".column is an array of float64, not of whole numbers"),  # type: ignore[arg-type]
        (Tree("x", column=[1]), ".column is a list, no numpy array"),  # type: ignore[arg-type]
        (Tree("x", kind="c"), ".kind is 'c', none of ('a', 'b')"),  # type: ignore[arg-type]
        (Tree("x", made=int), ".made is a type, no type"),  # type: ignore[arg-type]
    ],
)
def test_a_value_of_another_type_is_named_by_where_it_is(value: object, said: str) -> None:
    assert misfit(value, Tree) == said


@pytest.mark.parametrize(
    ("kind", "right", "wrong", "said"),
    [
        ("workload", "OpKind.RECV, w", "np, w", "ParameterServer.build gave a Workload whose programs[0]"),
        ("workload", "duration_ps=self.compute", "duration_ps=10**30", "duration_ps is beyond 64 bits"),
        (
            "topology",
            'f"dragonfly {groups}x{a}x{p}"',
            "[]",
            "Dragonfly.build gave a Topology whose name is",
        ),
        ("collective", "num_chunks=1", "num_chunks=-1", "has 8 ranks and -1 chunks"),
        ("framework", "return ", "return model, ", "EightBit.job gave a tuple; it should give a ModelJob"),
        ("gpu", "return ", "return '', ", "Clocked.build gave a tuple; it should give a Gpu"),
        (
            "model",
            "return made",
            "return [made]",
            "layers gave a list whose [0] is a list, no Layer",
        ),
        (
            "model",
            "return batch *",
            "return 'x' + str(batch) *",
            "activation_bytes gave a str; it should",
        ),
        ("network", "super().__init__(inner)", "super().__init__(self)", "it should be another network"),
        ("network", "super().__init__(inner)", "pass", "__init__ left it in front of no network"),
        ("network", "return replace(self", "return [] and replace(self", "describe gave a list; it sh"),
        ("network", "return replace(self", "return super().describe; replace(self", "describe gave a method"),
        ("network", 'name=f"slowed', 'peek=[], name=f"slowed', "whose peek is a list, no bool"),
        ("scheduler", "Decision(", "Decision(shifts=5, ", "whose shifts is an int, no Sequence"),
        (
            "scheduler",
            "{job.number: at",
            "{job.number: 10**30 + at",
            "it should be a whole number from 0 to",
        ),
        ("scheduler", "{job.number: at", "{job: at", "Decision whose priorities's key is a Placed, no int"),
        ("routing", "return RoundRobinPaths()", "return {}", "is {}; it should be a Paths"),
        ("routing", "return ptr, np.array(", "return ptr, np.array(0) if 1 else (", "1 and 0 dimensions"),
        ("routing", "[link_of[hop]", "[0 * link_of[hop]", "RoundRobinPaths.paths gave no path from"),
    ],
)
def test_what_a_plug_in_gives_is_refused_where_it_is_wrong(
    tmp_path: Path, kind: str, right: str, wrong: str, said: str
) -> None:
    folder = ROOT / "docs" / "howto" / "files"
    text = (folder / f"my_{kind}.py").read_text()
    assert right in text
    (tmp_path / f"my_{kind}.py").write_text(text.replace(right, wrong))
    (tmp_path / "x.yaml").write_text((folder / f"my-{kind}.yaml").read_text())
    with pytest.raises(CosimError) as caught:
        cosim.run(tmp_path / "x.yaml")
    assert said in str(caught.value)


def test_a_workload_made_in_a_script_is_looked_at_too() -> None:
    program = cosim.Program("p", (cosim.Operation("step", "compute"),))  # type: ignore[arg-type]
    work = cosim.Workload("mine", cosim.DeviceMesh({"dp": 2}), (program,), np.zeros(2, np.int32))
    ring = {"kind": "ring", "endpoints": 2, "rate": "80Gbps", "latency": "0ns"}
    with pytest.raises(WorkloadError, match=r"programs\[0\]\.operations\[0\]\.kind is a str, no OpKind"):
        cosim.run({"topology": ring, "network": "fair_share", "jobs": [{"workload": work}]})


def test_a_name_that_no_file_can_have_is_no_file() -> None:
    with pytest.raises(CosimError, match="there is no file"):
        cosim.loads(f"topology: {{plugin: '{'x' * 300}.py:Mine'}}\nnetwork: fair_share\njobs: []\n")


def test_one_in_front_of_a_simulator_elsewhere_is_looked_at_when_that_is_started(tmp_path: Path) -> None:
    folder = ROOT / "docs" / "howto" / "files"
    text = (folder / "my_network.py").read_text()
    describes = "    def describe(self):\n"
    text = text.replace(describes, f"    elsewhere = True\n\n{describes}        return []\n")
    (tmp_path / "my_network.py").write_text(text)
    (tmp_path / "x.yaml").write_text((folder / "my-network.yaml").read_text())
    scenario = cosim.load(tmp_path / "x.yaml")
    build(scenario).network.close()  # not asked yet
    with pytest.raises(CosimError, match=r"x\.yaml:2: network: SlowedNetwork\.describe gave a list; it shou"):
        cosim.run(scenario)


def test_a_part_of_a_hybrid_is_looked_at_too(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "howto" / "files" / "my_network.py").read_text()
    (tmp_path / "mine.py").write_text(text.replace("return replace(self", "return [] and replace(self"))
    mine = {"plugin": f"{tmp_path / 'mine.py'}:Slowed", "of": "fair_share"}
    scenario = {
        "topology": {"kind": "dgx-h100", "hosts": 2},
        "network": {"model": "hybrid", "scale_up": "fair_share", "scale_out": mine},
        "jobs": [{"workload": {"kind": "collective", "collective": "barrier", "ranks": 16}}],
    }
    with pytest.raises(CosimError, match=r"network: SlowedNetwork\.describe gave a list; it should give a C"):
        cosim.run(scenario)
