"""GPUs with several NICs: closed forms of bytes over all of them, on several fabrics and routings."""

from typing import Any

import pytest

from cosim.experiment.run import run
from cosim.experiment.scenario import Scenario
from cosim.pattern.nccl import Nccl

SIZE = 1_000_000_000
RATE = "50GB/s"
RINGS = ("all_reduce", "all_gather", "reduce_scatter")


def link(one: str, two: str, **more: Any) -> dict[str, Any]:
    return {"from": one, "to": two, "rate": RATE, "latency": "500ns", **more}


def planes(gpus: int, count: int) -> dict[str, Any]:
    """A switch for each NIC."""
    return {
        "kind": "graph",
        "endpoints": [f"g{g}" for g in range(gpus)],
        "switches": [f"p{p}" for p in range(count)],
        "links": [link(f"g{g}", f"p{p}") for g in range(gpus) for p in range(count)],
    }


def one_switch(gpus: int, count: int) -> dict[str, Any]:
    """All NICs on one switch."""
    links = [link(f"g{g}", "s") for g in range(gpus) for _ in range(count)]
    return {"kind": "graph", "endpoints": [f"g{g}" for g in range(gpus)], "switches": ["s"], "links": links}


def two_tors(gpus: int, _: int) -> dict[str, Any]:
    """Two NICs, on two leaves of a group of four GPUs; two groups, as many spines as uplinks."""
    leaves = [f"l{group}{side}" for group in range(gpus // 4) for side in "ab"]
    spines = [f"s{k}" for k in range(4)]
    links = [link(f"g{g}", f"l{g // 4}{side}") for g in range(gpus) for side in "ab"]
    links += [link(leaf, spine) for leaf in leaves for spine in spines]
    return {
        "kind": "graph",
        "endpoints": [f"g{g}" for g in range(gpus)],
        "switches": [*leaves, *spines],
        "links": links,
    }


def hosts(gpus: int, count: int) -> dict[str, Any]:
    """Hosts of four GPUs on an NVSwitch, and so many NICs on planes of each GPU."""
    made = planes(gpus, count)
    switches = [f"n{h}" for h in range(gpus // 4)]
    inner = [link(f"g{g}", f"n{g // 4}", rate="450GB/s", scale_up=True) for g in range(gpus)]
    for each in inner:
        each["rate"] = "450GB/s"
    return made | {"switches": made["switches"] + switches, "links": made["links"] + inner}


def took(topology: dict[str, Any], kind: str, gpus: int, **how: Any) -> float:
    scenario = {
        "topology": topology,
        "network": "fair_share",
        "collectives": {kind: {"algorithm": "nccl", **how}},
        "jobs": [{"workload": {"kind": "collective", "collective": kind, "size": SIZE, "ranks": gpus}}],
    }
    return int(run(Scenario.model_validate(scenario)).records.end_ps) / 1e12


@pytest.mark.parametrize("routing", ["shortest", "ecmp", "by_channel", "dmodk"])
@pytest.mark.parametrize(("fabric", "count"), [(planes, 2), (planes, 4), (one_switch, 2), (one_switch, 3)])
def test_a_ring_uses_all_nics_of_a_gpu(fabric: Any, count: int, routing: str) -> None:
    carried = 2 * 7 / 8 * SIZE / Nccl().network_efficiency
    time = took(
        fabric(8, count) | {"routing": routing}, "all_reduce", 8, algorithms="ring", protocol="Simple"
    )
    assert time == pytest.approx(carried / (count * 50e9), rel=0.06)


@pytest.mark.parametrize(
    ("fabric", "kind"),
    [
        *((fabric, kind) for fabric in (planes, one_switch) for kind in (*RINGS, "all_to_all")),
        *((two_tors, kind) for kind in RINGS),
    ],
)
def test_whatever_the_collective_both_nics_carry_it(kind: str, fabric: Any) -> None:
    sent = {"all_reduce": 2 * 7 / 8, "all_gather": 7, "reduce_scatter": 7 / 8, "all_to_all": 7 / 8}[kind]
    time = took(fabric(8, 2), kind, 8, protocol="Simple", algorithms="ring")
    assert time == pytest.approx(sent * SIZE / Nccl().network_efficiency / 100e9, rel=0.08)


def test_trees_use_all() -> None:
    two, four = (took(planes(8, n), "all_reduce", 8, algorithms="tree", protocol="Simple") for n in (2, 4))
    assert 1.8 < two / four < 2.2


def test_a_message_takes_both() -> None:
    time = took(planes(2, 2), "send_recv", 2, protocol="Simple")
    assert time == pytest.approx(SIZE / Nccl().network_efficiency / 100e9, rel=0.02)


@pytest.mark.parametrize(("channels", "nics"), [(1, 1), (2, 2), (4, 2)])
def test_channels_are_rings(channels: int, nics: int) -> None:
    time = took(planes(8, 2), "all_reduce", 8, algorithms="ring", protocol="Simple", channels=channels)
    assert time == pytest.approx(2 * 7 / 8 * SIZE / Nccl().network_efficiency / (nics * 50e9), rel=0.06)


SWITCHED = {"kind": "leaf_spine", "leaves": 2, "spines": 2, "endpoints_per_leaf": 4, "rate": RATE,
            "latency": "500ns"}  # fmt: skip


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("switched", [False, True])
def test_plain_algorithms_take_one_path_and_the_doubt_names_what_takes_all(
    count: int, switched: bool
) -> None:
    """35 ms over one plane, 35 / count over all, by each setting that the doubt names."""

    def ran(algorithm: Any, balancer: str | None = None) -> tuple[float, list[str]]:
        done = run(
            {
                "topology": SWITCHED | {"planes": count} if switched else planes(8, count),
                "network": {"model": "fair_share"} | ({"balancer": balancer} if balancer else {}),
                "collectives": {"all_reduce": algorithm},
                "jobs": [
                    {"workload": {"kind": "collective", "collective": "all_reduce", "size": SIZE, "ranks": 8}}
                ],
            }
        )
        return done.records.end_ps / 1e9, [doubt.instead for doubt in done.doubts]

    took_ms, (instead,) = ran("ring")
    assert took_ms == pytest.approx(35, rel=0.002)
    assert instead == (
        f"collectives of nccl, or {{algorithm: ring, channels: {count}}}; or network.balancer: spray"
    )
    for algorithm, balancer, data, more in (
        ({"algorithm": "ring", "channels": count}, None, 1.0, 0.003),
        ("ring", "spray", 1.0, 0.003),
        ("nccl", None, Nccl().network_efficiency, 0.06),
    ):
        took_ms, doubts = ran(algorithm, balancer)
        assert took_ms == pytest.approx(35 / count / data, rel=more)
        assert not doubts
