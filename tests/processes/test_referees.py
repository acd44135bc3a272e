"""What processes have ranks do is what the scenario's own form of it does, to the last bit."""

from __future__ import annotations

import random
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import simpy

import cosim
from cosim.network.fair_share import FairShareNetwork
from cosim.protocol.server import Server
from cosim.protocol.session import ServerConfig

Proc = Generator[simpy.Event, Any, Any]
CONGESTION = {"model": "congestion", "control": "dctcp"}
NETWORKS: list[Any] = ["congestion_unaware", "congestion_aware", "fair_share", CONGESTION]


def scenario(network: object = "fair_share", endpoints: int = 8, **more: object) -> dict[str, Any]:
    topology = {"kind": "ring", "endpoints": endpoints, "rate": "80Gbps", "latency": "500ns"}
    return {"topology": topology, "network": network, **more}


def processes(world: dict[str, Any], *made: Any) -> cosim.Run:
    """The run of processes, each made of the simulation."""
    with cosim.open(world) as sim:
        for one in made:
            sim.process(one(sim))
        run: cosim.Run = sim.run()
        return run


def programs(world: dict[str, Any], each: list[list[dict[str, Any]]]) -> cosim.Run:
    """The run of a program for each rank."""
    written = [{"ranks": [rank], "operations": operations} for rank, operations in enumerate(each)]
    workload = {"kind": "operations", "world_size": len(each), "programs": written}
    return cosim.run({**world, "jobs": [{"workload": workload}]})


def same(one: cosim.Run, other: cosim.Run) -> None:
    assert one.digest == other.digest
    assert one.records.end_ps == other.records.end_ps
    assert one.records.num_messages == other.records.num_messages


@pytest.mark.parametrize("release", ["network", "engine"])
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("kind", ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast"])
def test_a_collective(kind: str, network: Any, release: str) -> None:
    world = scenario(network, release=release, collectives={"splits": 3})
    workload = {"kind": "collective", "collective": kind, "ranks": 8, "size": "4MB"}

    def process(sim: Any) -> Proc:
        yield getattr(sim, kind)(range(8), "4MB")

    same(processes(world, process), cosim.run({**world, "jobs": [{"workload": workload}]}))


def test_when_each_rank_has_what_goes_along_a_chain_and_in_how_many_messages(tmp_path: Path) -> None:
    """80 Gbps take 25 us for each of 4 pieces of 1 MB: the k-th behind the root has the first after k hops,
    and the last 3 pieces later. Whoever runs it, and where the network is.
    """
    group = [5, 4, 3, 2]
    found: list[cosim.Outcome] = []

    def process(sim: Any) -> Proc:
        for number in range(2):
            done = yield sim.broadcast(group, "1MB", algorithm="ring", name=f"copy {number}")
            found.append(done)

    with Server(ServerConfig(FairShareNetwork), f"unix:{tmp_path / 'served'}") as server:
        for network in ("fair_share", "congestion_aware", {"address": server.address}):
            for release in ("network", "engine"):
                for engine in ("kernel", "reference"):
                    with cosim.open(scenario(network, release=release), engine=engine) as sim:
                        sim.process(process(sim))
                        for cut in range(1, 9):
                            sim.run(until=f"{cut * 13}us")
                        sim.run()
    hops = [0, *(k * (25_000_000 + 500_000) + 75_000_000 for k in (1, 2, 3))]
    first = 0, hops[-1], tuple(hops), 3 * 4
    assert found[::2] == [first] * 12
    assert found[1::2] == [(hops[-1], 2 * hops[-1], tuple(hops[-1] + at for at in hops), 3 * 4)] * 12


def test_the_messages_of_a_collective_are_rows_of_the_run() -> None:
    found: list[cosim.Outcome] = []

    def process(sim: Any) -> Proc:
        for number in range(3):
            done = yield sim.all_reduce(range(number, 8), "1MB", name=f"sum {number}")
            found.append(done)

    run = processes(scenario(record={"messages": "npz"}), process)
    made, messages = run.collectives, run.messages
    for number, done in enumerate(found):
        (at,) = (made.name == f"sum {number}").nonzero()[0]
        mine = messages.operation == made.operation[at]
        assert (made.start_ps[at], made.end_ps[at]) == done[:2]
        assert max(done.times) == done.ended_ps == messages.end_ps[mine].max()
        assert done.messages == made.messages[at] == mine.sum()
    assert sum(done.messages for done in found) == run.records.num_messages


def test_a_collective_whose_ranks_come_by_themselves() -> None:
    each: list[list[dict[str, Any]]] = [
        [
            {"name": "late", "kind": "compute", "duration": f"{rank + 1}us"},
            {
                "name": "sum",
                "kind": "collective",
                "collective": "all_reduce",
                "size": "1MB",
                "deps": ["late"],
            },
        ]
        for rank in range(8)
    ]

    def rank_of(rank: int) -> Any:
        def process(sim: Any) -> Proc:
            yield sim.compute(rank, f"{rank + 1}us")
            yield sim.all_reduce(range(8), "1MB", rank=rank)

        return process

    same(processes(scenario(), *map(rank_of, range(8))), programs(scenario(), each))


@pytest.mark.parametrize("network", NETWORKS)
def test_a_pipeline(network: Any) -> None:
    stages, parts = 4, 5
    each = []
    for stage in range(stages):
        operations: list[dict[str, Any]] = []
        if stage:
            receive = {"kind": "recv", "peer": stage - 1, "size": "1MB"}
            operations += [{"name": f"r{k}", "tag": k, **receive} for k in range(parts)]
        for k in range(parts):
            deps = [f"r{k}"] * bool(stage) + [f"c{k - 1}"] * bool(k)
            operations.append({"name": f"c{k}", "kind": "compute", "duration": "70us", "deps": deps})
            if stage < stages - 1:
                send = {"kind": "send", "peer": stage + 1, "size": "1MB", "tag": k, "stream": ""}
                operations.append({"name": f"s{k}", "deps": [f"c{k}"], **send})
        each.append(operations)

    def stage_of(stage: int) -> Any:
        def process(sim: Any) -> Proc:
            received = [sim.recv(stage, stage - 1, "1MB", tag=k) for k in range(parts)] if stage else []
            for k in range(parts):
                if stage:
                    yield received[k]
                yield sim.compute(stage, "70us")
                if stage < stages - 1:
                    sim.send(stage, stage + 1, "1MB", tag=k)

        return process

    world = scenario(network)
    same(processes(world, *map(stage_of, range(stages))), programs(world, each))


@pytest.mark.parametrize("network", ["fair_share", CONGESTION])
def test_the_overlap_of_fsdp(network: Any) -> None:
    """Layers are gathered ahead while others compute; a gather waits for the one before."""
    layers, ranks = 4, 4
    operations: list[dict[str, Any]] = []
    for k in range(layers):
        gather = {"name": f"g{k}", "kind": "collective", "collective": "all_gather", "size": "2MB"}
        operations.append({**gather, "deps": [f"g{k - 1}"] * bool(k)})
        step = {"name": f"c{k}", "kind": "compute", "duration": "300us"}
        operations.append({**step, "deps": [f"g{k}"] + [f"c{k - 1}"] * bool(k)})

    def rank_of(rank: int) -> Any:
        def process(sim: Any) -> Proc:
            gathered = sim.all_gather(range(ranks), "2MB", rank=rank)
            before: list[simpy.Event] = []
            for k in range(layers):
                yield gathered
                computed = sim.process(compute(sim, before))
                if k < layers - 1:
                    gathered = sim.all_gather(range(ranks), "2MB", rank=rank)
                before = [computed]
            yield before[0]

        def compute(sim: Any, before: list[simpy.Event]) -> Proc:
            yield from before
            yield sim.compute(rank, "300us")

        return process

    world = scenario(network)
    run, own = processes(world, *map(rank_of, range(ranks))), programs(world, [operations] * ranks)
    assert run.records.end_ps == own.records.end_ps
    assert sorted(run.records.ops.end_ps.tolist()) == sorted(own.records.ops.end_ps.tolist())


def test_served_and_in_process_are_the_same(tmp_path: Path) -> None:
    def process(sim: Any) -> Proc:
        for size in (1, 4096, 1_000_000, 5, 1_000_000):
            yield (
                sim.transfer(0, 3, size)
                & sim.transfer(1, 5, 2 * size, priority=1)
                & sim.all_reduce(range(8), size)
            )
            yield sim.timeout("3us")

    here = processes(scenario("fair_share"), process)
    same(here, processes(scenario("fair_share", release="engine"), process))
    with Server(ServerConfig(FairShareNetwork), f"unix:{tmp_path / 'served'}") as server:
        for release in ("network", "engine"):
            there = scenario({"model": "remote", "address": server.address}, release=release)
            same(here, processes(there, process))


@pytest.mark.parametrize("network", NETWORKS)
def test_a_run_may_be_cut_anywhere(network: Any) -> None:
    def process(sim: Any, seed: int) -> Proc:
        draw = random.Random(seed)
        for _ in range(20):
            src, dst = draw.sample(range(8), 2)
            yield sim.transfer(src, dst, draw.randrange(1, 100_000), channel=draw.randrange(3))
            yield sim.timeout(draw.randrange(0, 10**6))

    whole = processes(scenario(network), *[lambda sim, seed=seed: process(sim, seed) for seed in range(6)])
    with cosim.open(scenario(network)) as sim:
        for seed in range(6):
            sim.process(process(sim, seed))
        for cut in range(1, 40):
            sim.run(until=f"{cut * 7}us")
        same(sim.run(), whole)


def random_programs(draw: random.Random, ranks: int) -> list[list[dict[str, Any]]]:
    """A program for each rank, of which each operation waits for the one before; nobody waits in a circle."""
    each: list[list[dict[str, Any]]] = [[] for _ in range(ranks)]
    for number in range(draw.randrange(4, 30)):
        kind = draw.choice(["compute", "message", "collective"])
        size = draw.choice([1, 4096, draw.randrange(1, 300_000)])
        told: dict[int, dict[str, Any]]
        operation: dict[str, Any]
        if kind == "compute":
            operation = {"kind": kind, "duration": f"{draw.randrange(0, 40_000)}ns"}
            told = {draw.randrange(ranks): operation}
        elif kind == "message":
            src, dst = draw.sample(range(ranks), 2)
            end: dict[str, Any] = {"size": size, "tag": draw.randrange(2)}
            told = {src: {"kind": "send", "peer": dst, **end}, dst: {"kind": "recv", "peer": src, **end}}
        else:
            group = sorted(draw.sample(range(ranks), draw.randrange(2, ranks + 1)))
            name = draw.choice(["all_reduce", "all_gather", "reduce_scatter", "all_to_all"])
            operation = {"kind": kind, "collective": name, "ranks": group, "size": size}
            told = dict.fromkeys(group, operation)
        for rank, operation in told.items():
            deps = [each[rank][-1]["name"]] if each[rank] else []
            each[rank].append({"name": f"{kind}{number}", "deps": deps, **operation})
    return each


def in_turn(rank: int, operations: list[dict[str, Any]]) -> Any:
    def process(sim: Any) -> Proc:
        for one in operations:
            if one["kind"] == "compute":
                yield sim.compute(rank, one["duration"])
            elif one["kind"] == "send":
                yield sim.send(rank, one["peer"], one["size"], tag=one["tag"])
            elif one["kind"] == "recv":
                yield sim.recv(rank, one["peer"], one["size"], tag=one["tag"])
            else:
                yield sim.collective(one["collective"], one["ranks"], one["size"], rank=rank)

    return process


@pytest.mark.parametrize("network", ["congestion_aware", "fair_share"])
@pytest.mark.parametrize(
    "seed", [*range(15), *[pytest.param(k, marks=pytest.mark.slow) for k in range(15, 115)]]
)
def test_random_programs(seed: int, network: str) -> None:
    draw = random.Random(seed)
    each = random_programs(draw, 5)
    world = scenario(network, endpoints=5)
    own = programs(world, [one or [{"name": "none", "kind": "compute", "duration": "0ns"}] for one in each])
    run = processes(world, *[in_turn(rank, operations) for rank, operations in enumerate(each) if operations])
    busy = [rank for rank in range(5) if each[rank]]
    mine = own.records.ops

    def rows(ops: Any) -> list[tuple[int, ...]]:
        columns = ops.rank, ops.op, ops.start_ps, ops.end_ps
        return sorted(row for row in zip(*(one.tolist() for one in columns), strict=True) if row[0] in busy)

    assert rows(run.records.ops) == rows(mine)
    assert run.records.num_messages == own.records.num_messages
    if len(busy) == 5 and all(one["kind"] != "collective" for operations in each for one in operations):
        assert run.digest == own.digest
