"""The patterns of ``astra_sim_patterns``: scenarios that ASTRA-sim can be told without loss.

Durations are whole microseconds, sizes what ASTRA-sim makes of them (``sizing: floor``), topologies have one
dimension: ASTRA-sim's congestion-aware backend takes no more.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

ONE_INSTANT = (
    "two operations of a rank end in one instant: of what may start then we take the lowest, "
    "ASTRA-sim what the first of the two events let go"
)
GROUP_REDUCES = (
    "of a process group, ASTRA-sim's direct all-reduce charges a reduction in its second half as well: "
    "3 x int(163.84) ns (AllToAll::get_non_zero_latency_packets)"
)


@dataclass(frozen=True)
class Pattern:
    """A scenario, and why its times are not all the same, where that is known."""

    name: str
    scenario: dict[str, Any]
    why: str = ""


def one_dimension(kind: str, npus: int, bandwidth: float = 50.0, latency: float = 500.0) -> dict[str, Any]:
    """A topology in ASTRA-sim's notation."""
    return {
        "kind": "astra_sim",
        "topology": [kind],
        "npus_count": [npus],
        "bandwidth": [bandwidth],
        "latency": [latency],
    }


def collective(
    kind: str, npus: int, name: str, algorithm: str, size: str, splits: int = 1, active: int = 1, **more: Any
) -> Pattern:
    """One collective over all ranks, as ASTRA-sim sizes and delays it."""
    why = more.pop("why", "")
    config = {
        "sizing": "floor",
        "endpoint_delay": "10ns",
        "reduction_rate": "1600GB/s",
        "splits": splits,
        "active_chunks": active,
        name: algorithm,
        **more,
    }
    shown = f"{name} {algorithm}, {kind} {npus}, {size}, {splits} chunks, {active} active"
    return Pattern(
        shown,
        {
            "name": shown,
            "topology": one_dimension(kind, npus),
            "collectives": config,
            "jobs": [{"workload": {"kind": "collective", "collective": name, "size": size, "ranks": npus}}],
        },
        why,
    )


def written(
    name: str, topology: dict[str, Any], programs: list[dict[str, Any]], why: str = "", **collectives: Any
) -> Pattern:
    """A job written as operations."""
    workload = {"kind": "operations", "world_size": topology["npus_count"][0], "programs": programs}
    config = {"sizing": "floor", "endpoint_delay": "10ns", **collectives} if collectives else None
    scenario = {"name": name, "topology": topology, "jobs": [{"workload": workload}]}
    return Pattern(name, scenario | ({"collectives": config} if config else {}), why)


def incast(kind: str, npus: int, size: str, stagger_us: int = 0) -> Pattern:
    """All ranks but 0 send to 0, each ``stagger_us`` after the one before."""
    programs: list[dict[str, Any]] = [
        {
            "ranks": [0],
            "operations": [
                {"name": f"r{k}", "kind": "recv", "peer": k, "size": size, "tag": k} for k in range(1, npus)
            ],
        }
    ]
    for k in range(1, npus):
        operations: list[dict[str, Any]] = []
        if stagger_us:
            operations = [{"name": "c", "kind": "compute", "duration": f"{stagger_us * k}us"}]
        send: dict[str, Any] = {"name": "s", "kind": "send", "peer": 0, "size": size, "tag": k}
        send["deps"] = ["c"] if stagger_us else []
        programs.append({"ranks": [k], "operations": [*operations, send]})
    late = f", {stagger_us} us apart" if stagger_us else ""
    return written(f"incast, {kind} {npus}, {size}{late}", one_dimension(kind, npus), programs)


def pipeline(
    kind: str, stages: int, micro_batches: int, size: str, forward_us: int, backward_us: int
) -> Pattern:
    """GPipe: all forward passes, then all backward, activations and gradients sent between stages."""
    programs = []
    for stage in range(stages):
        ops: list[dict[str, Any]] = []

        def message(way: str, peer: int, batch: int, deps: list[str], into: list[dict[str, Any]]) -> str:
            name = f"{way} {batch} {peer}"
            backward = "grad" in way
            tag = 2 * batch + backward
            into.append(
                {"name": name, "kind": way.split()[0], "peer": peer, "size": size, "tag": tag, "deps": deps}
            )
            return name

        last = stage == stages - 1
        for batch in range(micro_batches):
            deps = [message("recv act", stage - 1, batch, [], ops)] if stage else []
            ops.append({"name": f"f{batch}", "kind": "compute", "duration": f"{forward_us}us", "deps": deps})
            if not last:
                message("send act", stage + 1, batch, [f"f{batch}"], ops)
        for batch in range(micro_batches):
            deps = [f"f{micro_batches - 1}"]
            if not last:
                deps.append(message("recv grad", stage + 1, batch, [], ops))
            ops.append({"name": f"b{batch}", "kind": "compute", "duration": f"{backward_us}us", "deps": deps})
            if stage:
                message("send grad", stage - 1, batch, [f"b{batch}"], ops)
        programs.append({"ranks": [stage], "operations": ops})
    name = (
        f"pipeline, {kind} {stages}, {micro_batches} micro-batches of {size}, {forward_us} + {backward_us} us"
    )
    return written(name, one_dimension(kind, stages), programs)


def overlapped(
    kind: str, npus: int, layers: int, size: str, compute_us: int, algorithm: str, **more: Any
) -> Pattern:
    """A backward pass: each layer computes, then reduces its gradients while the next computes."""
    ops: list[dict[str, Any]] = []
    for k in range(layers):
        deps = [f"b{k - 1}"] if k else []
        ops.append({"name": f"b{k}", "kind": "compute", "duration": f"{compute_us}us", "deps": deps})
        ops.append(
            {
                "name": f"g{k}",
                "kind": "collective",
                "collective": "all_reduce",
                "size": size,
                "deps": [f"b{k}"],
            }
        )
    name = f"backward pass, {kind} {npus}, {layers} layers of {size}, {algorithm}, {compute_us} us"
    shown = "".join(f", {key} {value}" for key, value in more.items())
    return written(
        name + shown, one_dimension(kind, npus), [{"operations": ops}], all_reduce=algorithm,
        reduction_rate="1600GB/s", **more,
    )  # fmt: skip


def straggling(kind: str, npus: int, name: str, algorithm: str, seed: int, **more: Any) -> Pattern:
    """Three rounds of computations of any length, then a collective that has to wait for the last."""
    dice = random.Random(seed)
    programs = []
    for rank in range(npus):
        ops: list[dict[str, Any]] = []
        for k in range(3):
            compute = {"name": f"c{k}", "kind": "compute", "duration": f"{dice.randint(1, 60)}us"}
            ops.append(compute | {"deps": [f"g{k - 1}"] if k else []})
            meet = {"name": f"g{k}", "kind": "collective", "collective": name, "size": "1MiB"}
            ops.append(meet | {"deps": [f"c{k}"]})
        programs.append({"ranks": [rank], "operations": ops})
    shown = f"stragglers, {kind} {npus}, {name} {algorithm}, seed {seed}"
    config = {name: algorithm, "reduction_rate": "1600GB/s", **more}
    return written(shown, one_dimension(kind, npus), programs, **config)


def shuffle(kind: str, npus: int, rounds: int, seed: int, why: str = "") -> Pattern:
    """Rounds in which each rank sends to another, drawn anew, and computes on what came."""
    dice = random.Random(seed)
    ops: list[list[dict[str, Any]]] = [[] for _ in range(npus)]
    for k in range(rounds):
        to = list(range(npus))
        dice.shuffle(to)
        sizes = [dice.choice([4096, 65536, 100000, 1 << 20]) for _ in range(npus)]
        for rank, peer in enumerate(to):
            if peer != rank:
                sent = {"size": sizes[rank], "tag": k}
                deps = [f"c{k - 1}"] if k else []
                ops[rank].append({"name": f"s{k}", "kind": "send", "peer": peer, "deps": deps, **sent})
                ops[peer].append({"name": f"r{k}", "kind": "recv", "peer": rank, **sent})
        for rank in range(npus):
            deps = [f"r{k}"] if any(op["name"] == f"r{k}" for op in ops[rank]) else []
            ops[rank].append(
                {"name": f"c{k}", "kind": "compute", "duration": f"{dice.randint(1, 9)}us", "deps": deps}
            )
    programs = [{"ranks": [rank], "operations": mine} for rank, mine in enumerate(ops)]
    return written(
        f"shuffle, {kind} {npus}, {rounds} rounds, seed {seed}", one_dimension(kind, npus), programs, why
    )


def grouped(kind: str, npus: int, algorithm: str, why: str = "", **more: Any) -> Pattern:
    """Computations, then all-reduces among halves, then between them."""
    ops = [
        {"name": "c", "kind": "compute", "duration": "10us"},
        *(
            {
                "name": axis,
                "kind": "collective",
                "collective": "all_reduce",
                "size": "1MiB",
                "axes": [axis],
                "deps": [after],
            }
            for axis, after in (("tp", "c"), ("dp", "tp"))
        ),
    ]
    name = f"process groups, {kind} {npus}, all_reduce {algorithm}"
    mesh = {"dp": 2, "tp": npus // 2}
    config = {"endpoint_delay": "10ns", "reduction_rate": "1600GB/s", "all_reduce": algorithm, **more}
    workload = {"kind": "operations", "mesh": mesh, "programs": [{"operations": ops}]}
    scenario = {
        "name": name,
        "topology": one_dimension(kind, npus),
        "collectives": {"sizing": "floor", **config},
        "jobs": [{"workload": workload}],
    }
    return Pattern(name, scenario, why)


def patterns() -> Iterator[Pattern]:
    """All of them."""
    for kind, npus in (("Ring", 8), ("Switch", 8), ("FullyConnected", 8), ("Ring", 16)):
        for name in ("all_reduce", "all_gather", "reduce_scatter"):
            yield collective(kind, npus, name, "ring", "1MiB", splits=4)
    for kind in ("Ring", "Switch", "FullyConnected"):
        yield collective(kind, 8, "all_reduce", "halving_doubling", "1MiB", splits=2)
        yield collective(kind, 8, "all_gather", "halving_doubling", "256KiB")
        yield collective(kind, 8, "reduce_scatter", "halving_doubling", "1MiB")
        yield collective(kind, 16, "all_to_all", "direct", "1MiB")
        yield collective(kind, 8, "all_reduce", "direct", "1MiB", splits=2)
        yield collective(kind, 8, "all_reduce", "double_binary_tree", "1MiB", splits=2)
    for kind in ("Ring", "Switch", "FullyConnected"):
        yield collective(kind, 8, "all_reduce", "ring", "1MiB", splits=4, active=2)
        yield collective(kind, 8, "all_to_all", "direct", "1MiB", splits=4, active=2)
        yield collective(kind, 8, "all_gather", "halving_doubling", "1MiB", splits=4, active=2)
        yield collective(kind, 8, "reduce_scatter", "direct", "1MiB", splits=4, active=2)
    yield collective("Switch", 64, "all_reduce", "ring", "16MiB", splits=4, active=2)
    yield collective("Switch", 64, "all_to_all", "direct", "4MiB")
    for kind in ("Ring", "Switch", "FullyConnected"):
        yield incast(kind, 8, "1MiB")
        yield incast(kind, 9, "64KiB", stagger_us=1)
        yield pipeline(kind, 4, 4, "2MiB", 50, 100)
        yield pipeline(kind, 8, 6, "4MiB", 20, 30)
    for kind in ("Ring", "Switch"):
        yield overlapped(kind, 8, 6, "4MiB", 40, "ring", splits=2)
        yield overlapped(kind, 8, 6, "4MiB", 40, "ring", splits=4, active_chunks=2)
        yield overlapped(kind, 8, 4, "1MiB", 10, "halving_doubling")
    for kind in ("Ring", "Switch", "FullyConnected"):
        for seed in range(3):
            yield straggling(kind, 8, "all_reduce", "ring", seed, splits=4, active_chunks=2)
            yield straggling(kind, 8, "all_to_all", "direct", seed)
            yield shuffle(kind, 8, 6, seed)
            yield shuffle(kind, 16, 10, seed, ONE_INSTANT)
    for kind in ("Ring", "Switch", "FullyConnected"):
        yield grouped(kind, 8, "ring")
        yield grouped(kind, 8, "halving_doubling", splits=2)
        yield grouped(kind, 8, "direct", GROUP_REDUCES)
