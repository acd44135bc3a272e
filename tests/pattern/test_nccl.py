import itertools
from math import ceil

import numpy as np
import pytest

from cosim.experiment.run import run
from cosim.experiment.scenario import Scenario
from cosim.pattern.config import CollectiveConfig
from cosim.pattern.nccl import Nccl
from cosim.pattern.nccl_rings import ring_orders
from cosim.pattern.nccl_tree import rank_parents
from cosim.pattern.planner import Planner
from cosim.pattern.prove import prove
from cosim.pattern.template import Collective, Template

KINDS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send_recv")


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
    orders = ring_orders(3, 8, 4, alternate=False)
    assert all(sorted(order) == list(range(24)) for order in orders.tolist())
    assert [[rank // 8 for rank in order] for order in orders.tolist()] == [[0] * 8 + [1] * 8 + [2] * 8] * 4
    assert {int(order[0]) for order in orders} == {0, 2, 4, 6}


@pytest.mark.parametrize(
    ("hosts", "nics", "alternate", "crossing"),
    [(2, 8, True, 0), (4, 8, True, 0), (3, 8, True, 1), (5, 8, True, 1), (3, 4, True, 0), (3, 4, False, 0)],
)
def test_rings_stay_on_their_rails(hosts: int, nics: int, alternate: bool, crossing: int) -> None:
    """What leaves a host by a NIC comes into the next by the same; but for odd hosts' last one."""
    orders = ring_orders(hosts, 8, nics, alternate=alternate).tolist()
    for number, order in enumerate(orders):
        hops = [(a, b) for a, b in zip(order, order[1:] + order[:1], strict=True) if a // 8 != b // 8]
        assert len(hops) == hosts
        assert sum(a % 8 * nics // 8 != b % 8 * nics // 8 for a, b in hops) == crossing
        assert order[0] % 8 * nics // 8 == number


@pytest.mark.parametrize("hosts", [4, 6])
def test_pairs_of_hosts_on_rails_fold_at_the_nics_rate(hosts: int) -> None:
    """Every NIC carries an eighth of a ring's bytes, all the time; spines carry nothing."""
    ranks, size = 8 * hosts, 4 << 30
    scenario = {
        "topology": {
            "kind": "leaf_spine",
            "leaves": 8,
            "spines": 8,
            "endpoints_per_leaf": hosts,
            "latency": "500ns",
            "routing": "dmodk",
            "hosts": {
                "gpus": 8,
                "nvlink_rate": "450GB/s",
                "nics": 8,
                "nic_rate": "400Gbps",
                "rails": True,
            },
        },
        "network": "fair_share",
        "jobs": [
            {"workload": {"kind": "collective", "collective": "all_reduce", "size": size, "ranks": ranks}}
        ],
    }
    every, folded = (run(Scenario.model_validate(scenario | {"fold": how})) for how in ("never", "always"))
    assert every.records.end_ps == folded.records.end_ps
    folding = folded.records.jobs[0].folding
    assert folding is not None
    assert folding.copies == hosts // 2
    carried = 2 * (ranks - 1) / ranks * size / Nccl().network_efficiency
    assert every.records.end_ps / 1e12 == pytest.approx(carried / (8 * 50e9), rel=0.005)


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
            "collectives": {"all_reduce": {"algorithm": "nccl", "system": "none", "protocol": "Simple"}},
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


def alone(kind: str, size: int, ranks: int, **how: object) -> int:
    """Picoseconds of one collective on an NVSwitch of 300 GB/s a GPU."""
    scenario = {
        "topology": {
            "kind": "leaf_spine",
            "leaves": 1,
            "spines": 1,
            "endpoints_per_leaf": -(-ranks // 8) * 8,
            "latency": "1us",
            "hosts": {"gpus": 8, "nvlink_rate": "300GB/s", "nics": 4, "nic_rate": "200Gbps"},
        },
        "network": "fair_share",
        "collectives": {kind: {"algorithm": "nccl", "system": "none", **how}},
        "jobs": [{"workload": {"kind": "collective", "collective": kind, "size": size, "ranks": ranks}}],
    }
    return int(run(Scenario.model_validate(scenario)).records.iteration_end_ps[0].max())


@pytest.mark.parametrize("dims", [(8, 1), (7, 1), (4, 3), (1, 5)])
@pytest.mark.parametrize("kind", [Collective.ALL_TO_ALL, Collective.BROADCAST])
def test_all_to_alls_go_straight_and_broadcasts_down_a_chain(kind: Collective, dims: tuple[int, int]) -> None:
    ranks = dims[0] * dims[1]
    made = template(kind, ranks, ranks << 20, dims)
    assert made.name == ("nccl direct" if kind is Collective.ALL_TO_ALL else "nccl ring")
    assert made.num_ranks == ranks


@pytest.mark.parametrize("root", range(0, 12, 5))
def test_a_broadcast_enters_each_host_once_for_each_nic(root: int) -> None:
    nccl = Nccl(hosts=3, network_efficiency=1.0)
    made = nccl.build(Collective.BROADCAST, 12, 64 << 20, CollectiveConfig().costs, root=root)
    prove(made)
    repeat = np.repeat(made.block_repeat, np.diff(made.block_row))
    crossing = made.src // 4 != made.dst // 4
    came = np.bincount(made.dst[crossing] // 4, (made.bytes * repeat)[crossing], minlength=3)
    others = [host for host in range(3) if host != root // 4]
    assert came[others].tolist() == [64 << 20] * 2
    # Chains that don't begin at the host's first or last GPU come back to it for the rest.
    assert came[root // 4] <= 64 << 20


def test_an_all_to_all_of_large_messages_takes_its_closed_form() -> None:
    size, spec = 80 << 20, Nccl()
    wire = 7 * ceil((size // 8) / spec.nvlink_efficiency) / 300e9 * 1e12
    assert alone("all_to_all", size, 8) == pytest.approx(spec.latency + 3_400_000 + wire, rel=1e-6)


@pytest.mark.parametrize("kind", ["all_to_all", "broadcast", "send_recv", "all_reduce", "all_gather"])
def test_nothing_is_faster_than_its_kernel_starts(kind: str) -> None:
    ranks = 2 if kind == "send_recv" else 8
    took = [alone(kind, size, ranks) for size in (8 * ranks, 4096 * ranks, 1 << 20, 16 << 20)]
    least = Nccl().least_latency
    assert least < took[0] < 3 * least  # 8 steps of an all-gather, 14 of an all-reduce: 0.6 us each
    assert took == sorted(took)


def test_more_channels_start_later_up_to_all() -> None:
    spec = Nccl()
    starts = [spec.start_ps("ring", "LL", 8, size) for size in (0, 32 << 10, 393216, 786432, 1 << 30)]
    assert starts[0] == spec.least_latency
    assert starts[1] - starts[0] == pytest.approx((spec.latency - spec.least_latency) / 24, rel=1e-6)
    assert starts[2] == pytest.approx((spec.latency + spec.least_latency) / 2, rel=1e-6)
    assert starts[3] == starts[4] == spec.latency


def test_on_one_host_of_nvlinks_no_tree_is_taken_above_a_megabyte() -> None:
    # nccl-tests on 2, 4 and 8 A100s show no dip where a tree would begin or end.
    spec = Nccl()
    for ranks in range(2, 9):
        assert {spec.choose(Collective.ALL_REDUCE, ranks, size << 20)[0] for size in range(1, 1025)} == {
            "ring"
        }


@pytest.mark.parametrize("size", [32 << 20, 128 << 20, 1 << 30])
def test_groups_of_any_size_on_a_host_fall_between_their_neighbours(size: int) -> None:
    """Bus bandwidth of 2 to 8 ranks, powers of two or not, grows with them; steps are of the protocol."""
    bus = [2 * (n - 1) / n * size / alone("all_reduce", size, n) * 1e3 for n in range(2, 9)]
    assert all(later > 0.96 * before for before, later in itertools.pairwise(bus))
    assert bus[-1] > bus[0]
