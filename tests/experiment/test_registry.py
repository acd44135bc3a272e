"""Names by entry point: another package's too, one at a time, and what is wrong with them is said."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint, EntryPoints, entry_points

import pytest

from cosim import registry
from cosim.errors import ScenarioError
from cosim.experiment.catalog import list_group
from cosim.experiment.scenario import loads

GPU = "cosim.gpus"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[EntryPoint]]:
    points = [point for group in registry.GROUPS for point in entry_points(group=group)]
    monkeypatch.setattr(registry, "entry_points", lambda: EntryPoints(points))
    registry._all.cache_clear()
    yield points
    registry._all.cache_clear()


def test_another_package_adds_a_name(installed: list[EntryPoint]) -> None:
    installed.append(EntryPoint("mine", "cosim.gpu.catalogue:A100_80GB", GPU))
    assert "mine" in registry.names(GPU)
    assert registry.find(GPU, "mine").name == "A100-SXM4-80GB"


def test_two_packages_with_one_name_are_refused(installed: list[EntryPoint]) -> None:
    installed.append(EntryPoint("b200", "elsewhere:B200", GPU))
    with pytest.raises(ValueError, match=r"two packages offer the gpu 'b200': .*elsewhere:B200"):
        registry.names(GPU)


def test_a_broken_package_is_a_mistake_with_a_place(installed: list[EntryPoint]) -> None:
    installed.append(EntryPoint("broken", "package_that_is_not_there:Thing", "cosim.topologies"))
    with pytest.raises(ScenarioError, match=r"x\.yaml:1: topology.*'broken' can't be imported: No module"):
        loads("topology: broken\nnetwork: fair_share\njobs: []\n", name="x.yaml")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (
            "tests.plugins.wrong:Nothing",
            "AttributeError: module 'tests.plugins.wrong' has no attribute 'Nothing'",
        ),
        ("tests.plugins.breaks:Thing", "ZeroDivisionError: division by zero"),
    ],
)
def test_a_package_that_breaks_is_listed_with_its_error(
    installed: list[EntryPoint], value: str, said: str
) -> None:
    installed.append(EntryPoint("broken", value, "cosim.topologies"))
    lines = dict(line.split(maxsplit=1) for line in list_group("topology").splitlines()[1:])
    assert lines["broken"] == f"(the topology 'broken' can't be imported: {said})"
    assert lines["leaf_spine"].startswith("Leaf and spine switches")


def test_a_ready_made_one_can_be_changed() -> None:
    named = registry.Named(GPU)
    changed = named.resolve({"kind": "a100-80gb", "memory_rate": "1TB/s"})
    usual = named.resolve("a100-80gb")
    assert changed.memory_rate == 8e12
    assert changed.peak_flops == usual.peak_flops
    assert usual.memory_rate != changed.memory_rate


def test_only_what_is_named_is_imported() -> None:
    code = (
        "import sys; from cosim.registry import find, names; names('cosim.networks');"
        "find('cosim.gpus', 'b200'); print([m for m in sys.modules if m.startswith('cosim.')])"
    )
    imported = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert "cosim.gpu.gpus" in imported
    assert "cosim.network" not in imported


def test_ready_made_ones_are_listed_by_what_they_are() -> None:
    networks, gpus, models = (list_group(kind) for kind in ("network", "gpu", "model"))
    assert "ns3                 A network simulator behind gRPC" in networks
    assert re.search(r"h200-sxm +H200-SXM, NVIDIA H200 datasheet \(2024\)", gpus)
    assert re.search(r"bert-base +BERT base, 109.5 M parameters, Devlin et al.", models)
