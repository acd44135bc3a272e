"""Kernels and computations on units, beside closed forms of waves."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import cosim
from cosim.errors import CosimError, StallError
from cosim.network.device.network import DeviceNetwork
from cosim.network.device.settings import DeviceSpec
from cosim.network.flows import COMPUTATION, FlowGroup, flat_table
from cosim.protocol.server import Server
from cosim.protocol.session import ServerConfig
from cosim.testing.strategies.traffic import Traffic
from tests.network.test_peek import Peeked
from tests.network.worlds import drive, graph

US = 1_000_000
WAVE = 10 * US
BARE = (
    "hop_latency: 0ns, memory_latency: 0ns, unit_rate: 1e9GiB/s, router_rate: 1e9GiB/s, "
    "memory_rate: 1e9GiB/s, port_rate: 1e9GiB/s"
)
SETTINGS = f"gpu: {{units: 8, {BARE}}}, workgroup_time: 10us"
DEVICE = f"model: device, {SETTINGS}"


def scenario(
    operations: str, kernel: str = "", network: str = DEVICE, more: str = "", others: str = ""
) -> str:
    """Four ranks that do the same, or rank 0 and ``others``; ``kernel`` carries all-reduces."""
    programs = f"{{ranks: {'[0]' if others else 'all'}, operations: [{operations}]}}{others}"
    return f"""
topology: {{kind: switch, endpoints: 4, rate: 8GB/s, latency: 500ns}}
network: {{{network}}}
{f"collectives: {{all_reduce: {kernel}}}" if kernel else ""}
jobs:
  - workload: {{kind: operations, mesh: {{dp: 4}}, programs: [{programs}]}}
    {more}
"""


def times(text: str, **how: Any) -> dict[int, tuple[int, int]]:
    """When rank 0 began and ended each operation, in picoseconds."""
    ops = cosim.run(text, **how).records.ops
    rows = zip(ops.rank.tolist(), ops.op.tolist(), ops.start_ps.tolist(), ops.end_ps.tolist(), strict=True)
    return {op: (start, end) for rank, op, start, end in rows if rank == 0}


def oneshot(blocks: int) -> str:
    return f"{{algorithm: oneshot_multicast, blocks: {blocks}, threads: 1024}}"


REDUCE = "{name: r, kind: collective, collective: all_reduce, size: 1MiB}"
LONG = REDUCE.replace("1MiB", "4MiB")
FIRST = "{name: w, kind: memory, duration: 1us, stream: other}"
"""What a computation waits for while kernels begin; it is on no unit."""


@pytest.mark.parametrize("duration_ps", [1, 9_999_999, WAVE, WAVE + 1, 123_456_789])
def test_a_computation_alone_takes_its_time(duration_ps: int) -> None:
    found = times(scenario(f"{{name: c, kind: compute, duration: {duration_ps}ps}}"))
    assert found[0] == (0, duration_ps)


@pytest.mark.parametrize("blocks", [1, 3, 4, 7])
@pytest.mark.parametrize("waves", [1, 2, 5])
def test_workgroups_take_the_units_that_a_kernel_leaves(blocks: int, waves: int) -> None:
    compute = f"{{name: c, kind: compute, duration: {10 * waves}us, deps: [w]}}"
    found = times(scenario(f"{LONG}, {FIRST}, {compute}", oneshot(blocks)))
    alone = times(scenario(LONG, oneshot(blocks)))
    assert found[0] == alone[0]
    start, end = found[2]
    assert end < alone[0][1]
    assert end - start == -(-8 * waves // (8 - blocks)) * WAVE


def test_a_kernel_of_all_units_has_computations_wait() -> None:
    compute = "{name: c, kind: compute, duration: 1us, deps: [w]}"
    found = times(scenario(f"{REDUCE}, {FIRST}, {compute}", oneshot(8)))
    assert found[2][1] == found[0][1] + US


@pytest.mark.parametrize("begun_us", [1, 9, 12, 25])
def test_a_kernel_waits_for_the_wave_at_hand(begun_us: int) -> None:
    wait = f"{{name: w, kind: memory, duration: {begun_us}us}}"
    compute, reduce = "{name: c, kind: compute, duration: 30us}", REDUCE.replace("1MiB", "1KiB, deps: [w]")
    start, end = times(scenario(f"{wait}, {compute}, {reduce}", oneshot(1)))[2]
    alone = times(scenario(f"{wait}, {reduce}", oneshot(1)))[1]
    assert end - start == alone[1] - alone[0] + -start % WAVE
    assert start == alone[0]


def test_computations_of_two_streams_share_units() -> None:
    two = "{name: a, kind: compute, duration: 50us}, {name: b, kind: compute, duration: 20us, stream: other}"
    assert {end for _, end in times(scenario(two)).values()} == {50 * US, 70 * US}


def test_a_message_has_its_workgroups_units_until_it_is_through() -> None:
    send = "{name: s, kind: send, peer: 1, size: 1MiB}"
    receive = send.replace("send, peer: 1", "recv, peer: 0")
    others = f", {{ranks: [1], operations: [{receive}]}}, {{ranks: [2, 3], operations: [{FIRST}]}}"
    compute = "{name: c, kind: compute, duration: 50us, deps: [w]}"
    found = times(scenario(f"{send}, {FIRST}, {compute}", network=f"{DEVICE}, workgroups: 4", others=others))
    assert found[2][1] - found[2][0] == 100 * US
    assert found[0][1] > 100 * US


def test_a_kernel_whose_peer_waits_for_a_computation_behind_it_stands_still() -> None:
    compute = "{name: c, kind: compute, duration: 1us, deps: [w]}"
    send = "{name: s, kind: send, peer: 1, size: 1KB, deps: [c], stream: sends}"
    receive = f"{{name: m, kind: recv, peer: 0, size: 1KB}}, {REDUCE[:-1]}, deps: [m]}}"
    others = f", {{ranks: [1], operations: [{receive}]}}, {{ranks: [2, 3], operations: [{REDUCE}]}}"
    with pytest.raises(StallError, match="rank"):
        cosim.run(scenario(f"{REDUCE}, {FIRST}, {compute}, {send}", oneshot(8), others=others))


SPEC = DeviceSpec.model_validate(yaml.safe_load(f"{{{SETTINGS}}}"))
BOTH = f"{REDUCE}, {FIRST}, {{name: c, kind: compute, duration: 77us, deps: [w]}}"


@pytest.mark.parametrize("kernel", [oneshot(3), "{algorithm: twoshot_multicast}", "ring"])
def test_engines_and_servers_agree(kernel: str, tmp_path: Path) -> None:
    text = scenario(BOTH, kernel, more="iterations: 3")
    digest = cosim.run(text).digest
    assert cosim.run(text, engine="reference").digest == digest
    assert cosim.run(text, set={"release": "engine"}).digest == digest
    with Server(ServerConfig(lambda: DeviceNetwork(SPEC)), f"unix:{tmp_path / 'device'}") as server:
        served = cosim.run(text, set={"network": {"model": "remote", "address": server.address}})
    assert served.digest == digest


@pytest.mark.parametrize("seed", range(5))
def test_where_time_is_cut_and_peeked_at_changes_nothing(seed: int) -> None:
    # Two computations on each of two GPUs, and two messages between them, which all begin within a wave.
    sizes = [30 * US, 7 * US, 25 * US, 44 * US, 1 << 20, 1 << 19]
    channel = [COMPUTATION] * 4 + [0, 0]
    table = flat_table([0, 0, 1, 1, 0, 1], [0, 0, 1, 1, 1, 0], sizes, channel=channel)
    group = FlowGroup(0, table, np.arange(2, dtype=np.int32), (0, 0))
    given = {flow: (flow * US, flow * US) for flow in range(6)}
    two = graph(2, 2, [(0, 1, 64e9, 500_000), (1, 0, 64e9, 500_000)])
    world = Traffic(two, (group,), (given,))
    whole = drive(DeviceNetwork(SPEC), world)
    assert drive(Peeked(DeviceNetwork(SPEC)), world, cuts=random.Random(seed)) == whole
    assert {end - start for start, end in whole.values()}.isdisjoint(sizes[:4])


def test_a_hybrid_has_them_in_its_scale_up_part() -> None:
    hosts = "{gpus: 4, nvlink_rate: 64Gbps, nvlink_latency: 500ns, nics: 4, nic_rate: 100Gbps}"
    leaves = "leaves: 2, spines: 1, endpoints_per_leaf: 4"
    fabric = f"{{kind: leaf_spine, {leaves}, latency: 500ns, hosts: {hosts}}}"
    text = scenario(BOTH.replace("1MiB", "1MiB, axes: [tp]"), oneshot(4)).replace("dp: 4", "dp: 2, tp: 4")
    text = text.replace("{kind: switch, endpoints: 4, rate: 8GB/s, latency: 500ns}", fabric)
    text = text.replace(DEVICE, f"model: hybrid, scale_up: {{{DEVICE}}}, scale_out: {{model: fair_share}}")
    start, end = times(text)[2]
    assert end - start == 2 * 77 * US  # four of eight units


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"network": {"model": "device", "workgroup_time": "0us"}}, "workgroup_time"),
        ({"jobs.0.jitter": 0.1}, "stragglers, jitter or events"),
    ],
)
def test_what_can_not_be_is_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(CosimError, match=says):
        cosim.run(scenario(BOTH, oneshot(4)), set=wrong)
