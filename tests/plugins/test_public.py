"""``cosim.plugins``: the list of what plug-ins may rely on, and that it is enough to write one."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cosim.plugins
from cosim.registry import GROUPS

PUBLIC = """
Advance Algorithm AlgorithmError Arrival Block Builder COMM_STREAM COMPLETION COMPUTE_STREAM COPY
Calibration Capabilities Collective Completions Context Control Costs Count DType DataParallelModel
DeviceMesh Dimension Efficiency Exchange F64 Fabric FlowBatch FlowGroup FlowTable Format ForwardingNetwork
Framework Gpu GpuSpec I32 I64 ImportReport InputError JobInfo Kernel KernelKind Latency Layer Location
LossReport Megatron Model ModelJob ModelWorkload NO_DATA NO_STREAM Named NetworkError NetworkSimulator
NetworkSpec NetworkStatistics OpKind Operation Parallel Paths Peer Piece Placement Program Progress REDUCE
Rate RateBps Records RoutingSpec START Says SizeBytes Source Spec Template TimePs Topology TopologyError
TopologySpec TransformerModel TranslationError Wanted Workload WorkloadError WorkloadSpec assemble draw
entries exits exponential fused_attention matmul matmul_backward memory
"""
"""Whoever changes this list changes what other people's plug-ins may rely on: CHANGELOG says so."""

BASES = [group.load_base() for group in GROUPS.values()]


def test_the_list_is_what_was_promised() -> None:
    assert sorted(cosim.plugins.__all__) == sorted(PUBLIC.split())
    tree = ast.parse(Path(cosim.plugins.__file__).read_text())
    seen = {name.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for name in node.names}
    assert seen - {"annotations", "import_module", "TYPE_CHECKING", "Any"} == {*cosim.plugins.__all__}


@pytest.mark.parametrize("name", PUBLIC.split())
def test_each_is_there_and_says_what_it_is(name: str) -> None:
    found = getattr(cosim.plugins, name)
    if inspect.isclass(found) or inspect.isfunction(found):
        assert inspect.getdoc(found)
        assert found.__doc__ != getattr(found.__base__, "__doc__", None) if inspect.isclass(found) else True


def test_every_group_has_its_base_here() -> None:
    assert {base.__name__ for base in BASES} <= {*cosim.plugins.__all__}
    assert {getattr(cosim.plugins, base.__name__) for base in BASES} == {*BASES}


@pytest.mark.parametrize(
    "base", [*BASES, cosim.plugins.NetworkSimulator, cosim.plugins.Paths], ids=lambda base: base.__name__
)
def test_the_types_that_methods_are_given_and_give_are_here(base: type) -> None:
    own = {n: m for n, m in vars(base).items() if inspect.isfunction(m) and not n.startswith("_")}
    named = {
        word
        for method in own.values()
        for word in re.findall(r"[A-Z]\w+", " ".join(map(str, inspect.get_annotations(method).values())))
    }
    usual = {"None", "Any", "Callable", "Mapping", "Path", "Sequence", "Iterator"}
    arrays = {"I32", "I64", "F64"}  # numpy's, under short names
    assert named - usual - arrays <= {*cosim.plugins.__all__}


def test_a_name_costs_only_its_own_room() -> None:
    code = "import sys; from cosim.plugins import Placement; print(*sorted(sys.modules))"
    modules = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert "cosim.cluster.contract" in modules
    assert not {m for m in modules if m.startswith(("cosim.network", "cosim.pattern", "cosim.models"))}
