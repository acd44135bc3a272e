"""In-network aggregation against each chunk's own recurrence, and against closed forms."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest

import cosim
from cosim.errors import CosimError

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
        there = {leaf: max(at for at, own in zip(come, leaves, strict=True) if own == leaf) for leaf in leaves}
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
    assert [ends[rank] for rank in range(ranks)] == pytest.approx([*map(float, wanted)], abs=6 * len(chunks) + 20)


@pytest.mark.parametrize("seed", range(60))
def test_trains_end_when_chunks_one_by_one_would(seed: int) -> None:
    check_world(seed)
