"""In-network aggregation against each chunk's own recurrence, and against closed forms."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

import cosim
from cosim.network.fair_share import FairShareNetwork
from cosim.plugins import Capabilities, Context, ForwardingNetwork, NetworkSimulator, NetworkSpec

KIB = 1024
S = 10**12


def world(
    ranks: int = 4,
    size: int | str = "10MB",
    *,
    latency: str = "1us",
    endpoints: int = 0,
    network: Any = "fair_share",
    rate: str = "100Gbps",
    **settings: Any,
) -> dict[str, Any]:
    """An all-reduce of ranks under one switch."""
    return {
        "topology": {"kind": "switch", "endpoints": endpoints or ranks, "rate": rate, "latency": latency},
        "network": network,
        "collectives": {"all_reduce": {"algorithm": "in_network", **settings}},
        "jobs": [job(ranks, size)],
    }


def job(ranks: int, size: int | str, **more: Any) -> dict[str, Any]:
    work = {"kind": "collective", "collective": "all_reduce", "ranks": ranks, "size": size}
    return {"workload": work, **more}


def took_ps(run: cosim.Run, number: int = 0) -> int:
    [one] = [one for one in run.records.collectives if one.job == number]
    return one.end_ps - one.start_ps


@pytest.mark.parametrize(("ranks", "ring_ms"), [(4, 12.0), (8, 14.0), (16, 15.0), (32, 15.5)])
def test_a_ring_grows_with_its_ranks_and_switches_that_add_up_do_not(ranks: int, ring_ms: float) -> None:
    ring = world(ranks, "100MB", latency="0ns") | {"collectives": {"all_reduce": "ring"}}
    assert took_ps(cosim.run(ring)) == pytest.approx(ring_ms * 1e9, rel=1e-6)
    # 100 MB over 100 Gbps, one chunk on its way down, and two links' latency.
    run = cosim.run(world(ranks, "100MB", slots=4096))
    assert took_ps(run) == pytest.approx(8 * S // 1000 + 1024 * 80 + 2_000_000, abs=1000)


def test_a_window_limits_the_rate_to_slots_over_the_round_trip() -> None:
    # Both ways 24.91808 us and one chunk's 81.92 ns: 50 us from a chunk's first bit to its result.
    size = 381 * 256 * KIB
    run = cosim.run(world(4, size, latency="24.91808us", slots=256, slot_size="1KiB"))
    rate = 256 * KIB * 8 / 50e-6
    assert rate == pytest.approx(41.94e9, rel=1e-4)
    assert size * 8 * S / took_ps(run) == pytest.approx(rate, rel=0.01)
    # To the picosecond: 381 windows, of which the last ends with all its chunks.
    assert took_ps(run) == pytest.approx(381 * 50_000_000 + 255 * 81_920, abs=2000)


def test_two_jobs_with_half_the_slots_each_are_both_bound_by_them() -> None:
    size = 64 * 128 * KIB
    both = world(4, size, latency="24.91808us", endpoints=8, slots=128)
    both["jobs"] = [job(4, size, name="one"), job(4, size, name="two")]
    run = cosim.run(both)
    # Half the slots of 41.94 Gbps; a window is through in 50 us, the last one with all its chunks.
    wanted = 64 * 50_000_000 + 127 * 81_920
    assert [took_ps(run, number) for number in (0, 1)] == pytest.approx([wanted] * 2, abs=2000)


def taken(**settings: Any) -> dict[str, Any]:
    """A job whose last rank is late holds its slots; another one comes meanwhile."""
    one = {"name": "sum", "kind": "collective", "collective": "all_reduce", "size": "10MB"}
    late = {"name": "late", "kind": "compute", "duration": "20ms"}
    programs = [
        {"ranks": [0, 1, 2], "operations": [one]},
        {"ranks": [3], "operations": [late, one | {"deps": ["late"]}]},
    ]
    work = {"kind": "operations", "world_size": 4, "programs": programs}
    jobs = [{"name": "waits", "workload": work}, job(4, "10MB", name="other", start="1ms")]
    return world(4, "10MB", endpoints=9, **settings) | {"jobs": jobs}


def test_where_one_job_has_all_slots_the_other_goes_at_the_speed_of_the_server() -> None:
    run = cosim.run(taken(pool=256))
    # Four ranks into the server's one link of 100 Gbps, then one chunk down two links of each way.
    wanted = 4 * 800_000_000 + 2 * 81_920 + 4 * 1_000_000
    assert took_ps(run, 1) == pytest.approx(wanted, rel=2e-4)
    assert took_ps(cosim.run(taken(pool=256, fallback="npu8")), 1) == took_ps(run, 1)
    # With slots of its own it does not see the other.
    alone = took_ps(cosim.run(taken()), 1)
    assert alone == pytest.approx(800_000_000 + 81_920 + 2_000_000, abs=1000)
    # Half the pool is held: half of the chunks find their slot taken, and go to the server.
    assert took_ps(cosim.run(taken(pool=512)), 1) == pytest.approx((wanted - 4e6) / 2, rel=0.01)


def test_jobs_in_step_share_a_pool_at_no_cost() -> None:
    """A slot is held for as long as the last chunk is behind the first: of ranks in step, for no time."""
    both = world(4, "10MB", endpoints=9, slots=256, pool=256)
    both["jobs"] = [job(4, "10MB", name="one"), job(4, "10MB", name="two", start="40.5us")]
    run = cosim.run(both)
    alone = 800_000_000 + 81_920 + 2_000_000
    assert [took_ps(run, number) for number in (0, 1)] == pytest.approx([alone] * 2, rel=0.02)


@pytest.mark.parametrize("network", ["fair_share", {"model": "congestion", "control": "dctcp"}])
def test_two_levels_and_several_trees(network: Any) -> None:
    topology = {
        "kind": "leaf_spine", "leaves": 2, "spines": 2, "endpoints_per_leaf": 4, "rate": "100Gbps",
        "latency": "1us", "uplink_rate": "100Gbps", "uplink_latency": "1us",
    }  # fmt: skip
    for trees in (1, 2):
        run = cosim.run(world(8, "10MB", network=network, trees=trees) | {"topology": topology})
        # One chunk more at each switch on the way, and the latency of four links.
        assert took_ps(run) == pytest.approx(800_000_000 + 3 * 81_920 + 4_000_000, rel=1e-3)
        sent = run.records.links.link_bytes
        names = [run.records.topology.link_name(link) for link in range(len(sent))]
        up = {
            name: int(size) for name, size in zip(names, sent, strict=True) if name.startswith("leaf0 -> s")
        }
        # What a leaf adds up goes up once, over the spines of the trees.
        assert sum(up.values()) == pytest.approx(10_000_000, rel=0.1)
        assert sum(size > 0 for size in up.values()) == trees


def test_a_message_below_a_slot_is_one_chunk() -> None:
    assert took_ps(cosim.run(world(4, 100, slot_size="1MiB"))) == 2 * 8_000 + 2_000_000


RING = {"kind": "ring", "endpoints": 4, "rate": "1Gbps", "latency": 0}


@pytest.mark.parametrize(
    ("settings", "more", "says"),
    [
        ({"slots": 0}, {}, r"collectives.all_reduce.slots: .*greater than or equal to 1"),
        ({"slot_size": 0}, {}, r"collectives.all_reduce.slot_size: .*greater than 0"),
        ({"trees": 0}, {}, r"collectives.all_reduce.trees: .*greater than or equal to 1"),
        ({"trees": 2}, {}, r"trees: 2, but Switch\(4\) has 1 switches .*switch0\n.*trees: 1 or less"),
        ({"slot": 5}, {}, r"unknown key 'slot'; did you mean 'slot_size' or 'slots'"),
        ({}, {"topology": RING}, r"Ring\(4\) has no switch that npu0, npu1, npu2, npu3 reach\n.*leaf_spine"),
        ({"pool": 8}, {}, r"no endpoint is left for the server: jobs are on all 4 of Switch\(4\)"),
        ({"pool": 8, "fallback": "npu9"}, {}, r"fallback: Switch\(4\) has no endpoint 'npu9'"),
        ({"pool": 8, "fallback": "npu2"}, {}, r"fallback: a rank of the group is on npu2"),
    ],
)
def test_what_cannot_be_is_said(settings: dict[str, Any], more: dict[str, Any], says: str) -> None:
    with pytest.raises(cosim.CosimError, match=says):
        cosim.run(world(4, "1MB", **settings) | more)


def test_other_collectives_need_another_algorithm() -> None:
    given = world() | {"collectives": {"all_gather": {"algorithm": "in_network"}}}
    work = {"kind": "collective", "collective": "all_gather", "ranks": 4, "size": "1MB"}
    with pytest.raises(cosim.CosimError, match=r"in_network can't carry all_gather\n.*carried by: .*ring"):
        cosim.run(given | {"jobs": [{"workload": work}]})


class OnlyEndpoints(ForwardingNetwork):
    def describe(self) -> Capabilities:
        return replace(self.inner.describe(), name="plain", switch_ends=False)


class Plain(NetworkSpec):
    """A network whose flows begin and end at endpoints"""

    def build(self, context: Context) -> NetworkSimulator:
        del context
        return OnlyEndpoints(FairShareNetwork())


def test_a_network_without_flows_at_switches_is_named() -> None:
    with pytest.raises(cosim.CosimError, match=r"plain takes flows between endpoints, .* at switch0"):
        cosim.run(cosim.Scenario(**world(4, "1MB", network=Plain())))


def test_a_fallback_without_a_pool_is_idle() -> None:
    [said] = cosim.run(world(4, "1MB", fallback="npu0")).warnings
    assert "collectives.all_reduce.fallback: has no effect: each job has slots of its own" in said


class Links:
    """What is sent over links one after another, each chunk as it comes: exact fractions of seconds."""

    def __init__(self, rate_bps: int, latency_ps: int) -> None:
        self.rate, self.latency = rate_bps, latency_ps
        self.free = Fraction(0)

    def send(self, ready: Fraction, size: int) -> Fraction:
        self.free = max(self.free, ready) + Fraction(size * 8 * S, self.rate)
        return self.free + self.latency


def by_chunks(
    chunks: list[int], slots: int, begins: list[int], leaves: list[int], rates: tuple[int, int], latency: int
) -> list[Fraction]:
    """When each rank has its last result, where every chunk is sent by itself (SwitchML's rule)."""
    low, high = rates
    up, down = ([Links(low, latency) for _ in begins] for _ in range(2))
    many = len({*leaves}) > 1
    top_up, top_down = ({leaf: Links(high, latency) for leaf in leaves} for _ in range(2))
    results: list[list[Fraction]] = []
    for k, size in enumerate(chunks):
        ready = [Fraction(begin) for begin in begins]
        if k >= slots:
            ready = [max(begin, back) for begin, back in zip(ready, results[k - slots], strict=True)]
        come = [link.send(at, size) for link, at in zip(up, ready, strict=True)]
        there = {
            leaf: max(at for at, own in zip(come, leaves, strict=True) if own == leaf) for leaf in leaves
        }
        if many:
            added = max(top_up[leaf].send(at, size) for leaf, at in there.items())
            there = {leaf: top_down[leaf].send(added, size) for leaf in there}
        results.append([link.send(there[leaf], size) for link, leaf in zip(down, leaves, strict=True)])
    return results[-1]


def check_world(seed: int) -> None:
    draw = random.Random(seed)
    levels, per_leaf = draw.choice([1, 1, 2]), draw.randint(2, 4)
    ranks = per_leaf * (1 if levels == 1 else draw.randint(2, 3))
    leaves = [rank // per_leaf for rank in range(ranks)]
    slots, slot_size = draw.choice([1, 2, 3, 8, 32]), draw.choice([256, 1024, 4096])
    size = draw.randint(1, 80 * slot_size)
    latency = draw.choice([0, 100, 3000, 20000]) * 1000
    low = draw.choice([10, 100])
    high = low * draw.choice([1, 1, 2, 4])
    begins = [draw.choice([0, draw.randint(0, 5000) * 1000]) for _ in range(ranks)]
    chunks = [slot_size] * (size // slot_size) + [size % slot_size] * (size % slot_size > 0)
    topology = {
        "kind": "leaf_spine", "leaves": max(leaves) + 1, "spines": 1, "endpoints_per_leaf": per_leaf,
        "rate": f"{low}Gbps", "latency": f"{latency}ps",
    }  # fmt: skip
    if levels == 2:
        topology |= {"uplink_rate": f"{high}Gbps", "uplink_latency": f"{latency}ps"}
    sim = cosim.open(
        {"topology": topology, "network": "fair_share",
         "collectives": {"all_reduce": {"algorithm": "in_network", "slots": slots, "slot_size": slot_size}}}
    )  # fmt: skip
    ends: dict[int, int] = {}

    def rank_of(rank: int) -> Any:
        yield sim.timeout(begins[rank])
        yield sim.all_reduce(range(ranks), size, rank=rank)
        ends[rank] = sim.now

    for rank in range(ranks):
        sim.process(rank_of(rank))
    sim.run()
    wanted = by_chunks(chunks, slots, begins, leaves, (low * 10**9, high * 10**9), latency)
    # A message's end is rounded up to a picosecond, and each may follow one that was.
    assert [ends[rank] for rank in range(ranks)] == pytest.approx(
        [*map(float, wanted)], abs=6 * len(chunks) + 20
    )


@pytest.mark.parametrize("seed", range(60))
def test_trains_end_when_chunks_one_by_one_would(seed: int) -> None:
    check_world(seed)
