"""NCCL's PXN: all-to-alls between hosts stay on their receivers' rails, proved, at the NICs' rate."""

import numpy as np
import pytest

from cosim.experiment.run import run
from cosim.experiment.scenario import Scenario
from cosim.pattern.config import CollectiveConfig
from cosim.pattern.costs import Costs
from cosim.pattern.nccl import Nccl
from cosim.pattern.nccl_pxn import pxn_all_to_all
from cosim.pattern.planner import Planner
from cosim.pattern.prove import prove
from cosim.pattern.template import Collective
from tests.lab.validation.nccl_hosts import bound_gb_s, bus_gb_s

SHAPES = [(2, 8, 8), (3, 4, 4), (4, 4, 2), (5, 2, 2), (7, 3, 2), (3, 4, 1), (40, 8, 8)]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_message_arrives_by_its_receivers_rail(shape: tuple[int, int, int]) -> None:
    hosts, local, nics = shape
    ranks, size = hosts * local, hosts * local << 10
    template = pxn_all_to_all(ranks, size, hosts, nics, Costs())
    prove(template)
    between = template.src // local != template.dst // local
    rail = np.arange(local) * nics // local
    assert (rail[template.src % local] == rail[template.dst % local])[between].all()
    assert between.sum() == ranks * (ranks - local)
    sent = np.bincount(template.src[between] // local * nics + rail[template.src[between] % local])
    assert len(set(sent)) == 1 or local % nics  # NICs of as many GPUs carry as much
    assert set(template.bytes[template.src != template.dst]) == {1 << 10}


@pytest.mark.parametrize(("dims", "how", "messages"), [
    ((4, 2), {}, 8 * 7 + 8 * 3), ((4, 2), {"pxn": False}, 8 * 7), ((8, 1), {}, 8 * 7), ((1, 8), {}, 8 * 7),
])  # fmt: skip
def test_pxn_is_between_hosts_of_several_gpus(
    dims: tuple[int, int], how: dict[str, object], messages: int
) -> None:
    planner = Planner(CollectiveConfig(all_to_all=Nccl.model_validate(how)))
    plan = planner.plan(Collective.ALL_TO_ALL, 8, 8 << 20, dims=dims)
    template = plan.chunks[0][0].template
    assert template.name == "nccl direct"
    assert (template.src != template.dst).sum() == messages


@pytest.mark.parametrize("hosts", [2, 8])
def test_spines_are_of_no_account_with_pxn_and_the_limit_without(hosts: int) -> None:
    """1 GiB: with PXN at the NICs' rate, whatever the spines; else 7 of 8 messages share a quarter of it."""
    bound = bound_gb_s("all_to_all", hosts, 8, {})
    whole, quarter = (bus_gb_s("all_to_all", hosts, 8, {}, spines) for spines in (1, 4))
    assert quarter == pytest.approx(whole, rel=1e-6)
    assert 0.98 * bound < whole < bound
    crossing = bus_gb_s("all_to_all", hosts, 8, {"pxn": False}, 4)
    assert crossing == pytest.approx(bound / (7 / 8 * 4), rel=0.02)


def test_hosts_fold() -> None:
    """What one host's GPUs do, all do: every eighth GPU stands for its place."""
    scenario = {
        "topology": {"kind": "dgx-h100", "hosts": 4},
        "network": "fair_share",
        "jobs": [
            {"workload": {"kind": "collective", "collective": "all_to_all", "size": 1 << 26, "ranks": 32}}
        ],
    }
    every, folded = (run(Scenario.model_validate(scenario | {"fold": how})) for how in ("never", "always"))
    assert every.records.end_ps == folded.records.end_ps
    folding = folded.records.jobs[0].folding
    assert folding is not None
    assert folding.copies == 4


def stages_ps(pxn: bool, oversubscription: int) -> int:
    """Four stages of four GPUs on two hosts: the second's last four send to the first four of the next."""
    scenario = {
        "topology": {
            "kind": "leaf_spine", "leaves": 8, "spines": 2, "endpoints_per_leaf": 2, "latency": "500ns",
            "oversubscription": oversubscription, "routing": "dmodk",
            "hosts": {"gpus": 8, "nvlink_rate": "450GB/s", "nics": 8, "nic_rate": "400Gbps", "rails": True,
                      "pxn": pxn},
        },
        "network": "fair_share",
        "jobs": [
            {"workload": {"kind": "model", "model": {"kind": "gpt3-1.7b", "layers": 8}, "gpu": "h100-sxm",
                          "parallel": {"tp": 4, "pp": 4}, "batch": 8}}
        ],
    }  # fmt: skip
    return run(Scenario.model_validate(scenario)).records.end_ps


def test_stages_on_other_rails_need_no_spines_with_pxn() -> None:
    assert stages_ps(True, 32) == stages_ps(True, 1) <= stages_ps(False, 1) < stages_ps(False, 32)
