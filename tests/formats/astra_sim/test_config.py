"""ASTRA-sim's input says what the scenario says: read back by what reads ASTRA-sim's files here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import cosim
from cosim.context import HERE, Context
from cosim.experiment.build import build
from cosim.formats.astra_sim.topology import AstraSim
from cosim.formats.chakra.read import ChakraWorkload
from cosim.pattern.config import CollectiveConfig
from tests.lab.validation.astra_sim_case import scenario_of

SCENARIO = """
topology:
  {kind: astra_sim, topology: [Ring, Switch], npus_count: [4, 2], bandwidth: [50, 12.5], latency: [500, 20]}
network: congestion_unaware
collectives:
  sizing: floor
  endpoint_delay: 7ns
  reduction_rate: 1600GB/s
  splits: 8
  active_chunks: 3
  queues: 2
  optimization: baseline
  all_reduce: [ring, direct]
  all_gather: [halving_doubling, ring]
  reduce_scatter: {algorithm: direct, window: 2}
  all_to_all: [{algorithm: direct, window: 3}, direct]
jobs:
  - workload:
      kind: operations
      mesh: {a: 2, b: 4}
      programs:
        - operations:
            - {name: sum, kind: collective, collective: all_reduce, size: 64KiB}
            - {name: pairs, kind: collective, collective: all_gather, size: 64KiB, axes: [a], deps: [sum]}
"""


def translated(text: str, out: Path, **options: Any) -> Any:
    return cosim.translate(cosim.loads(text), {"kind": "astra-sim", **options}, out)


def test_every_setting_comes_back(tmp_path: Path) -> None:
    scenario = cosim.loads(SCENARIO)
    done = translated(SCENARIO, tmp_path)
    assert done.report.is_lossless, str(done.report)
    script = (tmp_path / "run.sh").read_text()
    case = {
        "name": "back",
        "network_yml": (tmp_path / "network.yml").read_text(),
        "system_json": json.loads((tmp_path / "system.json").read_text()),
        "queues_per_dim": int(script.split("--num-queues-per-dim=")[1].split('"')[0]),
        "backend": "unaware" if "Congestion_Unaware" in script else "aware",
        "workload": str(tmp_path),
    }
    back, notes = scenario_of(case, tmp_path)
    assert notes == []
    again = cosim.loads(yaml.safe_dump(back))
    for field in CollectiveConfig.model_fields:
        if field not in ("broadcast", "barrier", "send_recv"):
            assert getattr(again.collectives, field) == getattr(scenario.collectives, field), field
    one, two = build(scenario), build(again)
    for column in ("link_src", "link_dst", "link_rate_bps", "link_latency_ps"):
        assert getattr(one.topology, column).tolist() == getattr(two.topology, column).tolist()
    assert cosim.run(scenario).records.end_ps == cosim.run(again).records.end_ps


def test_a_network_file_is_read_as_the_same_topology(tmp_path: Path) -> None:
    translated(SCENARIO, tmp_path)
    found = AstraSim(file=str(tmp_path / "network.yml")).build(HERE)
    assert found.dims == (4, 2)
    assert found.link_rate_bps.max() == 50 * 2**33


@pytest.mark.parametrize("kind", ["ring", "fully_connected", "switch"])
def test_topologies_in_our_units_too(kind: str, tmp_path: Path) -> None:
    text = f"""
topology: {{kind: {kind}, endpoints: 8, rate: 400Gbps, latency: 500ns, routing: shortest}}
network: congestion_aware
collectives: {{sizing: floor}}
jobs: [{{workload: {{kind: collective, collective: all_reduce, size: 1MiB, ranks: 8}}}}]
"""
    done = translated(text, tmp_path)
    assert done.report.is_lossless, str(done.report)
    network = yaml.safe_load((tmp_path / "network.yml").read_text())
    assert network["topology"] == [
        {"ring": "Ring", "fully_connected": "FullyConnected", "switch": "Switch"}[kind]
    ]
    assert network["bandwidth"][0] * 2**33 == 400e9
    assert "Congestion_Aware" in (tmp_path / "run.sh").read_text()


def test_what_astra_sim_has_not_is_reported(tmp_path: Path) -> None:
    text = """
topology: {kind: leaf_spine, leaves: 2, spines: 2, endpoints_per_leaf: 4, rate: 400Gbps, latency: 1us}
network: fair_share
collectives: {all_reduce: {algorithm: ring, channels: 2}, endpoint_delay: 500ps}
jobs:
  - workload:
      kind: operations
      world_size: 8
      rendezvous: true
      programs:
        - operations:
            - {name: a, kind: compute, duration: 1500ns}
            - {name: b, kind: collective, collective: all_reduce, size: 1001, deps: [a]}
            - {name: c, kind: collective, collective: barrier, deps: [b]}
            - {name: d, kind: collective, collective: broadcast, size: 8, root: 1, stream: side, deps: [c]}
"""
    done = translated(text, tmp_path)
    found = {entry.what: entry.count for entry in done.report.entries("lost", "approximated")}
    assert found == {
        "roots other than the first rank": 8,
        "barriers": 8,
        "broadcasts": 8,
        "algorithm ring of all_reduce": 8,
        "operations on other streams": 8,
        "durations": 8,
        "topology": 1,
        "network model": 1,
        "endpoint delay": 8,
        "collectives of uneven size": 8,
    }
    assert "--rendezvous-protocol=true" in (tmp_path / "run.sh").read_text()
    work = ChakraWorkload(path=str(tmp_path / "trace")).build(Context(tmp_path))
    assert [op.collective for op in work.programs[0].operations] == ["", "all_reduce", "", "broadcast"]


def test_memory_accesses_get_a_latency_and_a_bandwidth(tmp_path: Path) -> None:
    from dataclasses import replace

    import numpy as np

    from cosim.formats.astra_sim.memory import memory_of
    from cosim.translation.loss_report import LossReport
    from cosim.workload.program import DeviceMesh, Operation, OpKind, Program, Workload

    scenario = cosim.loads(SCENARIO)
    done = cosim.translate(scenario, "astra-sim", tmp_path)
    loads = [
        Operation(str(size), OpKind.MEMORY, "comm", duration_ps=100_000 + size * 20, bytes_moved=size)
        for size in (1000, 50_000, 10**6)
    ]
    work = Workload("m", DeviceMesh({"rank": 1}), (Program("p", tuple(loads)),), np.zeros(1, np.int32))
    info = replace(done.source.jobs[0], workload=work, endpoints=np.zeros(1, np.int32))
    report = LossReport()
    found = memory_of(replace(done.source, jobs=(info,)), report)
    assert found == {
        "memory-type": "PER_NPU_MEMORY_EXPANSION", "remote-mem-latency": 100, "remote-mem-bw": 50.0,
    }  # fmt: skip
    assert report.is_lossless


@pytest.mark.parametrize(
    ("memory", "written"),
    [
        ({"kind": "pool"}, {"memory-type": "MEMORY_POOL"}),
        ({"kind": "per_npu"}, {"memory-type": "PER_NPU_MEMORY_EXPANSION"}),
        (
            {"kind": "per_node", "npus": 3},
            {"memory-type": "PER_NODE_MEMORY_EXPANSION", "num-nodes": 2, "num-npus-per-node": 3},
        ),
    ],
)
def test_the_scenarios_memory_is_written_by_astra_sims_name(
    tmp_path: Path, memory: dict[str, object], written: dict[str, object]
) -> None:
    from cosim.formats.chakra.et_def_pb2 import NodeType
    from cosim.formats.chakra.file import read_trace

    load = {"name": "load", "kind": "memory", "size": "1GB", "stream": "comm"}
    store = {
        "name": "store",
        "kind": "memory",
        "size": 7,
        "access": "store",
        "stream": "comm",
        "deps": ["load"],
    }
    scenario = {
        "topology": {"kind": "ring", "endpoints": 4, "rate": "80Gbps", "latency": "0ns"},
        "network": "congestion_aware",
        "memory": {**memory, "latency": "1us", "rate": "100GB/s"},
        "jobs": [
            {"workload": {"kind": "operations", "world_size": 4, "programs": [{"operations": [load, store]}]}}
        ],
    }
    done = cosim.translate(cosim.Scenario.model_validate(scenario), "astra-sim", tmp_path / "out")
    assert json.loads((tmp_path / "out" / "memory.json").read_text()) == {
        **written, "remote-mem-latency": 1000, "remote-mem-bw": 100,
    }  # fmt: skip
    assert not done.report.entries("lost")
    nodes = read_trace(tmp_path / "out" / "trace.0.et")[1]
    kinds = [NodeType.Name(node.type) for node in nodes]
    assert kinds[-2:] == ["MEM_LOAD_NODE", "MEM_STORE_NODE"]
    # And back: the traces alone, timed by the same memory, end when they did.
    back = {**scenario, "jobs": [{"workload": {"kind": "chakra", "path": str(tmp_path / "out")}}]}
    ends = [cosim.run(one).records.finish_ps[0].tolist() for one in (scenario, back)]
    late = {a - b for a, b in zip(ends[1], ends[0], strict=True)}
    assert len(late) == 1
    assert late <= {0, 1000}  # ASTRA-sim wants a first node, of 1 ns


def test_a_rate_that_astra_sim_would_cut_off_is_rounded_and_said(tmp_path: Path) -> None:
    load = {"name": "load", "kind": "memory", "size": "1GB"}
    scenario = {
        "topology": {"kind": "ring", "endpoints": 2, "rate": "80Gbps", "latency": "0ns"},
        "network": "congestion_aware",
        "memory": {"kind": "pool", "rate": "12.5GB/s"},
        "jobs": [{"workload": {"kind": "operations", "world_size": 2, "programs": [{"operations": [load]}]}}],
    }
    done = cosim.translate(cosim.Scenario.model_validate(scenario), "astra-sim", tmp_path / "out")
    assert json.loads((tmp_path / "out" / "memory.json").read_text())["remote-mem-bw"] == 12
    assert "rate of memory" in {entry.what for entry in done.report.entries("approximated")}
