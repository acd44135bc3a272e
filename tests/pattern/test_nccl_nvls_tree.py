"""NCCL's NVLS tree between hosts: proved, chosen as NCCL chooses it, and what links and NICs allow."""

import numpy as np
import pytest

from cosim.experiment.run import run
from cosim.experiment.scenario import Scenario
from cosim.pattern.config import CollectiveConfig
from cosim.pattern.costs import Costs
from cosim.pattern.nccl import Nccl
from cosim.pattern.nccl_host import SYSTEMS
from cosim.pattern.nccl_nvls_tree import nvls_tree_template
from cosim.pattern.planner import Planner
from cosim.pattern.prove import prove
from cosim.pattern.template import Collective

LAW = SYSTEMS["h100"]


def h100s(hosts: int, **how: object) -> Nccl:
    """On hosts of eight, each with a NIC of 400 Gb/s."""
    settings = {"system": "h100", "hosts": hosts, "rails": 8, "network_rate": "3.2Tbps", **how}
    return Nccl.model_validate(settings)


@pytest.mark.parametrize(
    "shape", [(2, 8, 8), (3, 4, 4), (4, 4, 2), (5, 2, 2), (7, 3, 2), (1, 8, 8), (8, 1, 1)]
)
@pytest.mark.parametrize("size", [1 << 10, 24 << 20])
def test_any_hosts_gpus_and_heads_get_the_right_sum(shape: tuple[int, int, int], size: int) -> None:
    hosts, local, heads = shape
    prove(
        nvls_tree_template(
            hosts * local, size, hosts, heads, step_ps=1000, piece_bytes=1 << 20, costs=Costs()
        )
    )


def test_large_groups_are_proved_on_small_ones_of_the_same_algorithm() -> None:
    few = h100s(16, algorithms="nvls_tree").on_few(128, 8)
    assert few.hosts == 4
    assert few.build(Collective.ALL_REDUCE, 8, 8, Costs()).name == "nccl nvls tree"
    pat = h100s(16, algorithms="pat").on_few(16, 8)
    assert pat.build(Collective.ALL_GATHER, 8, 8, Costs()).name == "nccl pat"


@pytest.mark.parametrize(("hosts", "shares"), [(2, 1), (3, 1.5), (4, 2), (8, 2), (9, 2)])
def test_nics_carry_two_shares_or_one_between_two_hosts(hosts: int, shares: float) -> None:
    size, local = 64 << 20, 8
    template = nvls_tree_template(
        hosts * local, size, hosts, 8, step_ps=0, piece_bytes=1 << 20, costs=Costs()
    )
    crossing = template.src // local != template.dst // local
    assert (template.src[crossing] % local == template.dst[crossing] % local).all()  # on their rails
    repeat = np.repeat(template.block_repeat, np.diff(template.block_row))
    sent = np.bincount(template.src[crossing], (template.bytes * repeat)[crossing], minlength=hosts * local)
    assert sent.sum() == 2 * (hosts - 1) * size
    assert sent.max() == shares * size / 8


def bus_bytes_s(hosts: int, size: int, **how: object) -> float:
    """Bus bandwidth of an all-reduce on hosts of eight H100s and eight NICs, on rails."""
    ranks = 8 * hosts
    scenario = {
        "topology": {"kind": "dgx-h100", "hosts": hosts},
        "network": "fair_share",
        "collectives": {"all_reduce": {"algorithm": "nccl", **how}},
        "jobs": [
            {"workload": {"kind": "collective", "collective": "all_reduce", "size": size, "ranks": ranks}}
        ],
        "fold": "never",
    }
    return 2 * (ranks - 1) / ranks * size / (run(Scenario.model_validate(scenario)).records.end_ps / 1e12)


def test_between_two_hosts_nvlinks_are_the_limit_between_more_nics_are() -> None:
    size = 4 << 30
    links = LAW.link_rate * 1e6 * LAW.nvls_efficiency / (1 + 1 / 8)
    nics = 8 * 50e9 * Nccl().network_efficiency / 2
    for hosts, algorithm_rate in ((2, links), (4, nics)):
        ranks = 8 * hosts
        limit = 2 * (ranks - 1) / ranks * algorithm_rate
        assert 0.93 * limit < bus_bytes_s(hosts, size, algorithms="nvls_tree") < limit


def test_it_is_chosen_as_nccl_estimates() -> None:
    """tuning.cc of NCCL 2.27: 25 us and 41.8 us a level; of two hosts 57.7 GB/s a head, of four 45.5."""
    for hosts, head, (small, large) in ((2, 57.7e3, (256 << 10, 4 << 30)), (4, 45.5e3, (64 << 20, 8 << 30))):
        spec, ranks = h100s(hosts), 8 * hosts
        for size in (small, large):
            factor = 2 * (ranks - 1) / ranks * size
            tree = 25 + 2 * (hosts.bit_length() - 1) * 20.9 + factor / (8 * head)
            steps, between = 2 * (ranks - 1), 2 * (hosts - 1)
            ring = 1.4 * (8.4 + (steps - between) * 3.4 + between * 14) + factor / 400e3
            ring128 = 14 + (steps - between) * 1.9 + between * 4 + factor / (8 * 36.7e3)
            ring_ll = (
                6.6 + (steps - between) * 0.6 + between * 2.7 + factor / (39e3 if hosts == 2 else 20.4e3)
            )
            chosen = spec.choose(Collective.ALL_REDUCE, ranks, size)[0]
            assert (chosen == "nvls_tree") == (tree < min(ring, ring128, ring_ll))
    assert h100s(2).choose(Collective.ALL_REDUCE, 16, 4 << 30)[0] == "nvls_tree"
    assert h100s(4).choose(Collective.ALL_REDUCE, 32, 64 << 20)[0] == "nvls_tree"
    assert h100s(4).choose(Collective.ALL_REDUCE, 32, 8 << 30) == ("ring", "Simple")


@pytest.mark.parametrize(
    "how", [{"nvls": False}, {"number_bytes": 1}, {"system": "a100"}, {"rails": 1}, {"algorithms": "ring"}]
)
def test_nothing_adds_up_without_a_switch_that_does(how: dict[str, object]) -> None:
    for hosts in (2, 4):
        assert "nvls" not in h100s(hosts, **how).choose(Collective.ALL_REDUCE, 8 * hosts, 1 << 30)[0]


def test_nvls_can_be_switched_off_in_a_host() -> None:
    assert h100s(1).choose(Collective.ALL_REDUCE, 8, 1 << 30)[0] == "nvls"
    assert h100s(1, nvls=False).choose(Collective.ALL_REDUCE, 8, 1 << 30) == ("ring", "Simple")


def test_a_plan_of_two_hosts_is_one_of_an_nvls_tree() -> None:
    planner = Planner(CollectiveConfig(all_reduce=h100s(1)))
    plan = planner.plan(Collective.ALL_REDUCE, 16, 1 << 28, dims=(8, 2))
    assert plan.chunks[0][0].template.name == "nccl nvls tree"
