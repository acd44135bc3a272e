"""What would take more memory than there is, or hours, is refused before it is built."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

import cosim
from cosim.errors import InputError
from cosim.experiment import sizes
from cosim.experiment.build import build
from cosim.experiment.run import read_source
from cosim.experiment.scenario import loads
from tests.calls import calls

TEXT = """
topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
network: fair_share
jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}]
"""
TREE = "topology: {kind: fat_tree, k: 4, rate: 80Gbps, latency: 0ns}"
SPINE = (
    "topology: {kind: leaf_spine, leaves: 4, spines: 2, endpoints_per_leaf: 4, rate: 80Gbps, latency: 0ns}"
)
MODEL = (
    "{kind: transformer, layers: 4, hidden: 64, heads: 4, vocabulary: 100, sequence: 16, "
    "data_parallel: 4, micro_batches: 1, gpu: h100-sxm}"
)
WRITTEN = "{kind: operations, SIZE, programs: [{operations: [{name: a, kind: compute, duration: 1us}]}]}"
NOISE = "{kind: background, ranks: 4, duration: 1000s"


@pytest.mark.parametrize(
    "setting",
    [
        "topology.endpoints=1000000000",
        "topology={kind: switch, endpoints: 1000000000, rate: 1Gbps, latency: 0ns}",
        "topology={kind: fully_connected, endpoints: 100000, rate: 1Gbps, latency: 0ns}",
        f"{TREE.replace('topology: ', 'topology=').replace('k: 4', 'k: 1000')}",
        f"{SPINE.replace('topology: ', 'topology=').replace('spines: 2', 'spines: 1000000000')}",
        "topology={kind: dgx-h100, hosts: 1000000007}",
        "topology={kind: gb200-nvl72, hosts: 32, spines: 1000000000}",
        "jobs[0].workload.ranks=1000000000",
        "jobs[0].workload.repeat=1000000000",
        f"jobs[0].workload={WRITTEN.replace('SIZE', 'world_size: 1000000000')}",
        f"jobs[0].workload={WRITTEN.replace('SIZE', 'mesh: {dp: 100000, tp: 100000}')}",
        f"jobs[0].workload={NOISE}, size: 1B, rate: 1Tbps}}",
        f"jobs[0].workload={NOISE}, size: 1MB, rate: 1Tbps, pattern: on_off, on: 1ns}}",
        f"jobs[0].workload={NOISE}, size: 1B, pattern: incast, every: 1ns}}",
        "jobs[0].workload={kind: periodic, ranks: 4, steps: 1000000000, size: 1MB, compute: 1us}",
        f"jobs[0].workload={MODEL.replace('data_parallel: 4', 'data_parallel: 1000000000')}",
        f"jobs[0].workload={MODEL.replace('micro_batches: 1', 'micro_batches: 1000000000')}",
        pytest.param(
            f"jobs[0].workload={MODEL.replace('micro_batches: 1', f'micro_batches: {10**400}')}",
            id="401 digits",
        ),
    ],
)
def test_a_size_beyond_memory_is_refused_before_anything_is_built(setting: str) -> None:
    def refused() -> InputError:
        with pytest.raises(
            InputError, match=r"would take about .* of memory and .*: this machine has"
        ) as one:
            build(loads(TEXT, [setting]))
        return one.value

    error = refused()  # imports what it needs
    assert error.location is not None
    assert "--allow-large" in str(error)
    tracemalloc.start()
    try:
        assert calls(refused) < 10_000
        assert tracemalloc.get_traced_memory()[1] < 1_000_000  # bytes, at most
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("layers", [10**6 + 1, 10**9])
def test_no_model_has_so_many_layers(layers: int) -> None:
    with pytest.raises(InputError, match="at most 1000000"):
        build(loads(TEXT, [f"jobs[0].workload={MODEL.replace('layers: 4', f'layers: {layers}')}"]))


def test_operations_of_all_iterations_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "memory_bytes", lambda: 1 << 20)
    with pytest.raises(InputError, match=r"about 8e\+03 operations would take about 1\.2 MB"):
        cosim.run(TEXT, {"jobs[0].iterations": 2000})
    done = cosim.run(TEXT, {"jobs[0].iterations": 2000}, allow_large=True)
    assert len(done.iterations.duration_ps) == 2000
    assert not sizes.is_large_allowed()


def test_a_sweep_passes_it_on_to_its_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "memory_bytes", lambda: 1)
    axes: dict[str, Any] = {"rate": {"topology.rate": ["80Gbps", "40Gbps"]}}
    with pytest.raises(InputError, match="--allow-large"):
        cosim.sweep(TEXT, axes)
    assert not cosim.sweep(TEXT, axes, allow_large=True).failed
    with pytest.raises(InputError, match="1000000000 seeds are more than"):
        read_source({"scenario": TEXT, "axes": axes, "seeds": 10**9})
