from math import ceil

import numpy as np
import pytest

from cosim.experiment.run import run
from cosim.experiment.scenario import Scenario
from cosim.pattern.config import CollectiveConfig
from cosim.pattern.nccl import Nccl, ring_orders
from cosim.pattern.nccl_tree import rank_parents
from cosim.pattern.planner import Planner
from cosim.pattern.template import Collective, Template

KINDS = ("all_reduce", "all_gather", "reduce_scatter")


def template(
    kind: Collective, ranks: int, size: int, dims: tuple[int, ...] | None, **how: object
) -> Template:
    """Planning proves on chunk sets that every rank ends with what the collective promises."""
    planner = Planner(CollectiveConfig.model_validate({name: Nccl.model_validate(how) for name in KINDS}))
    ((phase,),) = planner.plan(kind, ranks, size, dims=dims).chunks
    return phase.template


@pytest.mark.parametrize("dims", [(8, 1), (1, 8), (2, 3), (4, 4), (8, 3), (5, 1), (1, 7)])
@pytest.mark.parametrize("algorithm", ["ring", "tree"])
def test_any_hosts_and_gpus_get_the_right_sum(dims: tuple[int, int], algorithm: str) -> None:
    ranks = dims[0] * dims[1]
    made = template(Collective.ALL_REDUCE, ranks, 1 << 20, dims, algorithms=algorithm, protocol="Simple")
    assert made.name == f"nccl {algorithm}"
    assert made.num_ranks == ranks


@pytest.mark.parametrize("kind", [Collective.ALL_GATHER, Collective.REDUCE_SCATTER])
@pytest.mark.parametrize("dims", [(8, 1), (4, 3), (1, 6)])
def test_gathers_and_scatters_are_rings(kind: Collective, dims: tuple[int, int]) -> None:
    made = template(kind, dims[0] * dims[1], 6 << 20, dims)
    assert made.name == "nccl ring"


def test_between_hosts_every_nic_carries_the_same() -> None:
    made = template(Collective.ALL_REDUCE, 16, 64 << 20, (8, 2), algorithms="ring", network_efficiency=1.0)
    crossing = made.src // 8 != made.dst // 8
    repeat = np.repeat(made.block_repeat, np.diff(made.block_row))
    sent = np.bincount(made.src[crossing] // 2, (made.bytes * repeat)[crossing], minlength=8)
    assert len(set(sent)) == 1  # each pair of GPUs has a NIC
    assert sent[0] == 2 * 15 * (64 << 20) / 16 / 4


def test_rings_go_through_each_host_once() -> None:
    orders = ring_orders(3, 8, 4)
    assert all(sorted(order) == list(range(24)) for order in orders.tolist())
    assert [[rank // 8 for rank in order] for order in orders.tolist()] == [[0] * 8 + [1] * 8 + [2] * 8] * 4
    assert {int(order[0]) for order in orders} == {0, 2, 4, 6}


@pytest.mark.parametrize("hosts", [2, 3, 4, 7, 8, 16])
def test_no_host_but_one_is_inside_both_trees(hosts: int) -> None:
    inside = []
    for tree in (0, 1):
        parents = rank_parents(hosts, 1, tree, 0)
        assert sum(parent < 0 for parent in parents) == 1
        inside.append({parent for parent in parents if parent >= 0})
    assert len(inside[0] & inside[1]) <= 1 + hosts % 2


def test_small_ones_take_ll_and_trees_large_ones_simple_and_rings() -> None:
    many = Nccl(hosts=32)
    assert many.choose(Collective.ALL_REDUCE, 256, 1 << 10) == ("tree", "LL")
    assert many.choose(Collective.ALL_REDUCE, 256, 8 << 30)[1] == "Simple"
    one = Nccl()
    assert one.choose(Collective.ALL_REDUCE, 8, 1 << 10) == ("ring", "LL")
    # nccl-tests on 8 A100s show the change of protocol as a step down between 23 and 24 MB
    assert one.choose(Collective.ALL_REDUCE, 8, 16 << 20) == ("ring", "LL128")
    assert one.choose(Collective.ALL_REDUCE, 8, 48 << 20) == ("ring", "Simple")


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_a_ring_on_an_nvswitch_takes_the_closed_form(ranks: int) -> None:
    size = 60 << 20
    scenario = Scenario.model_validate(
        {
            "topology": {
                "kind": "leaf_spine",
                "leaves": 1,
                "spines": 1,
                "endpoints_per_leaf": 8,
                "latency": "1us",
                "hosts": {"gpus": 8, "nvlink_rate": "300GB/s", "nics": 4, "nic_rate": "200Gbps"},
            },
            "network": "fair_share",
            "collectives": {"all_reduce": {"algorithm": "nccl", "protocol": "Simple"}},
            "jobs": [
                {"workload": {"kind": "collective", "collective": "all_reduce", "size": size, "ranks": ranks}}
            ],
        }
    )
    took = int(run(scenario).records.iteration_end_ps[0].max())
    spec = Nccl()
    message = ceil(ceil(size / ranks) / spec.nvlink_efficiency)
    step = 3_400_000 + message / 300e9 * 1e12
    gaps = spec.loop_gap * size / ranks / spec.buffer
    assert took == pytest.approx(spec.latency + 2 * (ranks - 1) * step + gaps, rel=1e-6)
