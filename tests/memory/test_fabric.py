"""Memory nodes as endpoints: accesses are messages, sharing links with each other and with collectives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cosim

MB = 10**6
NS = 1000
LINK = 100_000_000_000 / 8  # bytes a second
NETWORKS = ("fair_share", "congestion_aware", "congestion_unaware")


def scenario(operations: list[dict[str, Any]], ranks: int = 1, **more: Any) -> dict[str, Any]:
    """Ranks on a switch whose last endpoints are memory nodes."""
    return {
        "topology": {"kind": "switch", "endpoints": 6, "rate": "100Gbps", "latency": "500ns"},
        "network": "fair_share",
        "memory": {"kind": "fabric", "endpoints": [4, 5], "latency": "2us", "request": 1250},
        "jobs": [
            {
                "workload": {
                    "kind": "operations",
                    "world_size": ranks,
                    "programs": [{"operations": operations}],
                }
            }
        ],
        **more,
    }


def access(name: str = "load", size: int = MB, **more: Any) -> dict[str, Any]:
    return {"name": name, "kind": "memory", "size": size, **more}


def ends(found: cosim.Run) -> list[int]:
    """When each operation ended, by rank and number."""
    ops = found.records.ops
    return [int(ops.end_ps[at]) for at in np.lexsort((ops.op, ops.rank))]


def run(given: dict[str, Any], **changes: Any) -> cosim.Run:
    found = cosim.run({**given, **changes})
    assert isinstance(found, cosim.Run)
    return found


@pytest.mark.parametrize("kind", ["load", "store"])
def test_an_access_is_there_and_back(kind: str) -> None:
    found = run(scenario([access(access=kind)]))
    # 1,250 bytes one way and a megabyte the other, each over two links of 500 ns; 2 us at the node.
    bytes_ps = (1250 + MB) / LINK * 1e12
    assert ends(found) == [pytest.approx(bytes_ps + 4 * 500 * NS + 2000 * NS, abs=2)]
    assert found.records.num_messages == 2
    assert found.summary.jobs[0].memory is not None
    assert found.summary.jobs[0].memory.alone.share == 1
    assert found.summary.jobs[0].memory.queued.max_ps == 0


@pytest.mark.parametrize("network", NETWORKS)
def test_who_releases_messages_makes_no_difference(network: str) -> None:
    operations = [
        access("weights", 3 * MB),
        {"name": "work", "kind": "compute", "duration": "50us", "deps": ["weights"]},
        {"name": "sum", "kind": "collective", "collective": "all_reduce", "size": "2MB", "deps": ["work"]},
        access("states", 2 * MB, access="store", deps=["work"]),
        access("next", MB, deps=["work"], stream=""),
    ]
    given = {**scenario(operations, 4), "network": network}
    given["jobs"][0]["iterations"] = 2
    one, other = (run(given, release=release) for release in ("network", "engine"))
    recorded = cosim.run(cosim.Scenario.model_validate(given), messages=True)
    assert one.digest == other.digest == recorded.digest
    assert ends(one) == ends(other)


def test_ranks_share_the_link_of_their_node() -> None:
    alone = run(scenario([access()], 1)).records.end_ps
    # Ranks 0 and 2 have their memory at endpoint 4, rank 1 at 5.
    done = run(scenario([access()], 3)).records.finish_ps[0].tolist()
    assert done[1] == alone
    late = MB / LINK * 1e12
    assert done[0] == done[2]
    assert done[0] == pytest.approx(alone + late, rel=0.002)


def test_accesses_and_collectives_slow_each_other() -> None:
    load = access("load", 20 * MB)
    reduce = {"name": "sum", "kind": "collective", "collective": "all_reduce", "size": "20MB"}
    both = run(scenario([load, reduce], 4)).records.end_ps
    apart = [run(scenario([one], 4)).records.end_ps for one in (load, reduce)]
    assert both > max(apart)
    per_npu = {"kind": "per_npu", "rate": "1GB/s"}
    beside = run({**scenario([load, reduce], 4), "memory": per_npu})
    assert beside.records.end_ps == pytest.approx(max(apart[1], 20 * 10**9), abs=1)


def test_two_accesses_at_once_of_a_rank_share_its_link() -> None:
    two = [access("a", stream=""), access("b", access="store", stream="")]
    found = ends(run(scenario(two)))
    one = run(scenario([access()])).records.end_ps
    # One comes and one goes: full duplex, but for requests and acknowledgements.
    assert max(found) == pytest.approx(one, rel=0.005)


def test_bytes_between_ranks_and_nodes_are_counted() -> None:
    found = run(scenario([access("a"), access("b", access="store")], 2))
    pairs = {
        (int(src), int(dst)): int(size)
        for src, dst, size in zip(
            found.records.traffic.src,
            found.records.traffic.dst,
            found.records.traffic.size_bytes.sum(axis=0),
            strict=True,
        )
    }
    assert pairs == {
        (0, 4): 1250 + MB, (4, 0): MB + 1250, (1, 5): 1250 + MB, (5, 1): MB + 1250,
    }  # fmt: skip


def test_a_load_of_nothing_is_there_and_back_too() -> None:
    found = run(scenario([access(size=0)]))
    assert ends(found) == [pytest.approx(1250 / LINK * 1e12 + 4 * 500 * NS + 2000 * NS, abs=2)]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"memory": {"kind": "fabric", "endpoints": []}}, "endpoints"),
        ({"memory": {"kind": "fabric", "endpoints": [6]}}, "memory node 6 is beyond the 6 endpoints"),
        ({"memory": {"kind": "fabric", "endpoints": [0]}}, "endpoint 0 is a memory node, but a rank"),
        ({"queue": {}}, "a queue might seat ranks on memory nodes"),
        ({"fold": "always"}, "memory nodes are in the fabric"),
    ],
)
def test_what_can_not_be_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(cosim.InputError) as caught:
        run({**scenario([access()], 4), "network": "congestion_unaware"}, **changes)
    assert said in str(caught.value)


def test_a_rate_of_nodes_has_no_effect_and_is_named() -> None:
    given = scenario([access()])
    found = run(given, memory={**given["memory"], "rate": "1GB/s"})
    assert any("memory.rate: has no effect" in warning for warning in found.warnings)


def test_nodes_have_room_for_what_jobs_keep_there() -> None:
    job = {
        "kind": "model",
        "model": {"kind": "gpt3-1.7b", "layers": 1},
        "gpu": "a100-80gb",
        "parallel": {"dp": 4},
        "offload": {"optimizer": "remote"},
    }
    given = {**scenario([]), "jobs": [{"workload": job}]}
    kept = run(given).records.jobs[0].workload.remote_bytes
    run(given, memory={**given["memory"], "capacity": 2 * kept})
    with pytest.raises(cosim.InputError, match="remote memory 4 has"):
        run(given, memory={**given["memory"], "capacity": 2 * kept - 1})
