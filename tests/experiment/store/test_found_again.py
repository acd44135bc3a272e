"""Whatever a scenario is made of, its run is found again, by what it reads and not by what lies about."""

from __future__ import annotations

from pathlib import Path

import pytest

import cosim
from cosim.experiment.store.runs import open_store
from cosim.files.reads import reading
from cosim.protocol import adapters
from tests.adapters import ns3_worlds
from tests.inputs import ROOT


def test_sources_of_an_adapter_are_no_files_of_a_run() -> None:
    """Its build is part of the question; where its sources lie is each checkout's own."""
    with reading() as read:
        adapters.executable("ns3")
    assert any(path.endswith("CMakeLists.txt") for path in read.opened)
    assert not read.states(ROOT / "scenarios")


READ = {
    "imported": {"files/rack.infragraph.yaml", "files/two-level-all-reduce.xml"},
    "profiled-llama": {"profiles/llama-3d.yaml"},
    "closed-loop-ns3": set[str](),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * name.endswith("ns3")) for name in READ]
)
def test_a_run_is_found_again(tmp_path: Path, name: str) -> None:
    """Another checkout, machine or process has other files in places of its own: none of them counts."""
    if name.endswith("ns3"):
        ns3_worlds.ns3()
    first, second = (cosim.run(ROOT / "scenarios" / f"{name}.yaml", store=tmp_path) for _ in range(2))
    assert isinstance(second, cosim.StoredRun)
    assert second.summary.digest == first.summary.digest
    [entry] = open_store(tmp_path).entries()[0]
    assert {*entry.files} == READ[name]
