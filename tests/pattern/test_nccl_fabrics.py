"""Fabrics between hosts: what NCCL chooses on them, and what their messages take."""

from __future__ import annotations

import numpy as np
import pytest

from cosim.experiment.build import build
from cosim.experiment.run import run
from cosim.experiment.scenario import Scenario
from cosim.pattern.assemble import COMPLETION, entries
from cosim.pattern.costs import Costs
from cosim.pattern.far_steps import with_steps
from cosim.pattern.nccl import Nccl
from cosim.pattern.nccl_host import SYSTEMS
from cosim.pattern.prove import prove
from cosim.pattern.ring import RingAlgorithm
from cosim.pattern.template import Collective
from cosim.spec import Spec
from cosim.topology.host_shape import FABRICS
from cosim.topology.systems import DgxA100, DgxH100

US = 1_000_000
_RINGS = {kind.value: "ring" for kind in Collective if kind in RingAlgorithm.carries} | {
    "send_recv": "send_recv"
}
MIB = 1 << 20


def nccl(hosts: int, fabric: str, nics: int = 8, nic: str = "400Gbps", system: str = "h100") -> Nccl:
    """On hosts of eight GPUs."""
    rate = float(nic.removesuffix("Gbps")) * nics
    settings = {"system": system, "hosts": hosts, "rails": nics, "network_rate": f"{rate}Gbps"}
    return Nccl.model_validate({**settings, "fabric": fabric})


@pytest.mark.parametrize(
    ("size", "way"),
    [
        (4 * MIB, ("tree", "LL128")),
        (16 * MIB, ("tree", "LL128")),
        (128 * MIB, ("nvls_tree", "Simple")),
        (4096 * MIB, ("nvls_tree", "Simple")),
    ],
)
def test_nccl_chooses_on_two_p5_hosts_what_aws_tuner_has(size: int, way: tuple[str, str]) -> None:
    """``region_init_internal_p5_p5e`` of aws-ofi-nccl: LL128 trees to 30 MB, then NVLS trees."""
    assert nccl(2, "efa-v2").choose(Collective.ALL_REDUCE, 16, size) == way


def test_a_slower_declared_network_keeps_trees_for_larger_data() -> None:
    """On InfiniBand, which declares nothing, two hosts take the NVLS tree at 4 MiB."""
    assert nccl(2, "infiniband-ndr").choose(Collective.ALL_REDUCE, 16, 4 * MIB)[0] == "nvls_tree"


@pytest.mark.parametrize(("nic", "way"), [("200Gbps", "ring"), ("100Gbps", "tree")])
def test_two_a100_hosts_take_the_tree_whose_channels_the_nics_cant_fill(nic: str, way: str) -> None:
    """By hand: 4 x 24 x 16/30 = 51 GB/s of a ring, 4 x 23.6 x 0.9 / 2 = 42 of a tree (its channels' limit);
    of NICs half as fast 26 and 4 x 24 x 0.92 x 0.9 / 2 = 40.
    """
    chosen = nccl(2, "infiniband-hdr", 4, nic, "a100").choose(Collective.ALL_REDUCE, 16, 1024 * MIB)
    assert chosen[0] == way


def test_what_waits_for_a_far_message_waits_for_its_step_and_sends_do_not() -> None:
    """A ring of four, two to a host: two of its edges are far."""
    template = RingAlgorithm().build(Collective.ALL_REDUCE, 4, 4096, Costs())
    far = (template.src // 2 != template.dst // 2) & (template.src != template.dst)
    longer = with_steps(template, far, 5 * US)
    prove(longer)
    pauses = (longer.src == longer.dst) & (longer.delay_ps == 5 * US)
    repeat = np.repeat(longer.block_repeat, np.diff(longer.block_row))
    assert repeat[pauses].sum() == 2 * 6  # in each of its 2 (N - 1) steps
    assert longer.total_bytes == template.total_bytes
    waits = longer.dep_kind[np.repeat(pauses, np.diff(longer.dep_ptr))]
    assert (waits == COMPLETION).all()
    assert with_steps(template, far, 0) is template
    assert len(entries(4).distance) == 4


def seconds(collective: str, size: int, **topology: object) -> float:
    """Of two DGX H100s."""
    workload = {"kind": "collective", "collective": collective, "size": size, "ranks": 16}
    found = run(
        Scenario.model_validate(
            {
                "topology": {"kind": "dgx-h100", "hosts": 2, **topology},
                "network": "fair_share",
                "jobs": [{"workload": workload}],
                "fold": "never",
            }
        )
    )
    return found.records.end_ps / 1e12


@pytest.mark.parametrize("collective", ["all_gather", "reduce_scatter", "all_to_all"])
def test_large_collectives_take_a_fabrics_rate_and_small_ones_its_step(collective: str) -> None:
    size = 256 * MIB // (16 if collective == "all_gather" else 1)
    fast, slow = seconds(collective, size), seconds(collective, size, fabric={"rate": 0.485})
    assert slow / fast == pytest.approx(2, rel=0.12)
    small = 1024
    later = seconds(collective, small, fabric={"step": "50us"}) - seconds(collective, small)
    # A ring's first message passes one of two far edges in each 8 steps: once or twice of 15.
    assert 50e-6 * 0.99 <= later <= 2.05 * 50e-6


def test_systems_have_the_infiniband_of_their_data_sheets() -> None:
    assert DgxH100(hosts=2).costs_between_hosts() is FABRICS["infiniband-ndr"]
    assert DgxA100(hosts=2).costs_between_hosts() is FABRICS["infiniband-hdr"]
    named = DgxH100.model_validate({"hosts": 2, "fabric": "roce"})
    assert named.costs_between_hosts() is FABRICS["roce"]


def test_a_racks_nvls_starts_later_the_more_gpus_fill_it() -> None:
    law, size = SYSTEMS["gb200"], 1024 * MIB
    assert law.nvls_start_us(8, size) == law.nvls_start
    assert law.nvls_start_us(72, size) == pytest.approx(9 * law.nvls_start)
    assert law.nvls_start_us(72, 64 * MIB) == pytest.approx(9 / 4 * law.nvls_start)  # chunks of a quarter


@pytest.mark.parametrize(
    ("fabric", "said"),
    [
        ("infiband", "no fabric is called infiband; give infiniband-ndr, infiniband-hdr, roce, efa-v2"),
        ({"rate": 1.2}, "less than or equal to 1"),
        ({"step": 20}, "needs a time unit"),
        ({"latency": "20us"}, "latency"),
    ],
)
def test_a_wrong_fabric_is_refused_with_what_would_be_right(fabric: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        DgxH100.model_validate({"hosts": 2, "fabric": fabric})


def test_numbers_given_to_nccl_win() -> None:
    given = Nccl.model_validate({"fabric": {"rate": 0.5}})
    assert isinstance(given.fabric, Spec)
    assert given.fabric.rate == 0.5


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"topology": {"kind": "dgx-h100", "hosts": 1, "fabric": "roce"}}, "there is one host"),
        (
            {"topology": {"kind": "dgx-h100", "hosts": 2, "fabric": "roce"}, "collectives": _RINGS},
            "no collective is NCCL's",
        ),
    ],
)
def test_a_fabric_that_nothing_of_nccl_meets_is_said_to_be_idle(changes: dict[str, object], why: str) -> None:
    workload = {"kind": "collective", "collective": "all_reduce", "size": 1024, "ranks": 8}
    scenario = {"network": "fair_share", "jobs": [{"workload": workload}], **changes}
    built = build(Scenario.model_validate(scenario))
    assert [line for line in built.warnings if "fabric" in line and why in line]
