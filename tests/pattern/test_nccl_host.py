"""NCCL inside a host by a system's laws: the replay takes what they say, and every template is proved."""

from dataclasses import replace

import numpy as np
import pytest
import yaml

from cosim.pattern.config import CollectiveConfig
from cosim.pattern.costs import Costs
from cosim.pattern.nccl import Nccl
from cosim.pattern.nccl_fit import host_s, scenario_lines
from cosim.pattern.nccl_host import SYSTEMS, SystemName, system_of
from cosim.pattern.planner import Planner
from cosim.pattern.prove import prove
from cosim.pattern.ring import RingAlgorithm
from cosim.pattern.template import I64, Collective
from cosim.topology.host_shape import HostShape
from tests.lab.validation.nccl_tables import LARGE, TABLES, predicted, rows_of
from tests.pattern.uncontended import exits_ns

KINDS = (
    Collective.ALL_REDUCE,
    Collective.ALL_GATHER,
    Collective.REDUCE_SCATTER,
    Collective.ALL_TO_ALL,
)


def replayed_s(
    topology: dict[str, object], kind: Collective, ranks: int, size: int, system: SystemName | None = None
) -> float:
    """Seconds through the full path, with what NCCL takes there if no system is given."""
    from cosim.experiment.run import run

    scenario = {
        "topology": topology,
        "network": "fair_share",
        "collectives": {kind.value: {"algorithm": "nccl", **({"system": system} if system else {})}},
        "jobs": [
            {"workload": {"kind": "collective", "collective": kind.value, "size": size, "ranks": ranks}}
        ],
    }
    return run(scenario).records.end_ps / 1e12


@pytest.mark.parametrize("system", ["a100", "h100", "b200"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ranks", [2, 8])
def test_laws_are_what_the_replay_takes(system: SystemName, kind: Collective, ranks: int) -> None:
    spec = Nccl(system=system)
    rate = SYSTEMS[system].link_rate * 1e6
    switch = {"kind": "switch", "endpoints": ranks, "rate": f"{rate * 8e-9}Gbps", "latency": "0ns"}
    for size in (ranks << 9, ranks << 17, ranks << 23):
        assert replayed_s(switch, kind, ranks, size, system) == pytest.approx(
            host_s(spec, kind, ranks, size, rate), rel=0.02
        )


@pytest.mark.parametrize(
    ("kind", "table"),
    [
        ("dgx-a100", "a100_sxm"),
        ("dgx-h100", "h100_sxm"),
        ("dgx-h200", "h200_sxm"),
        ("dgx-b200", "b200_sxm"),
        ("gb200-nvl72", "gb200"),
    ],
)
@pytest.mark.parametrize("latency", ["0ns", "300ns"])
def test_hosts_take_what_was_measured_whatever_latency_their_links_have(
    kind: str, table: str, latency: str
) -> None:
    """Measured steps include it; of large operations nothing is seen of it."""
    rows = [row for row in rows_of(table)[1::2] if row.size_bytes < LARGE and row.number_bytes == 2]
    topology: dict[str, object] = {"kind": kind, "nvlink_latency": latency}
    off = []
    for row in rows:
        size = row.size_bytes // (row.ranks if row.collective is Collective.ALL_GATHER else 1)
        took = replayed_s(topology, row.collective, row.ranks, size)
        off.append(took / row.seconds - 1)
    assert len(off) > (20 if table != "gb200" else 10)  # no host of eight
    assert np.abs(off).mean() < 0.10
    assert abs(np.mean(off)) < 0.05


def test_the_switch_adds_up_large_all_reduces_of_eight() -> None:
    spec = Nccl(system="h100")
    assert spec.choose(Collective.ALL_REDUCE, 8, 1 << 30)[0] == "nvls"
    assert spec.choose(Collective.ALL_REDUCE, 2, 1 << 30)[0] == "ring"
    assert Nccl(system="a100").choose(Collective.ALL_REDUCE, 8, 1 << 30)[0] == "ring"
    # A link carries 1 + 1/N of the data, where a ring's carries 2 - 2/N.
    plan = Planner(CollectiveConfig(all_reduce=spec)).plan(Collective.ALL_REDUCE, 8, 1 << 30)
    template = plan.chunks[0][0].template
    sent = template.bytes[template.src == 0].sum()
    assert sent * SYSTEMS["h100"].nvls_efficiency == pytest.approx((1 + 1 / 8) * (1 << 30), rel=1e-3)


@pytest.mark.parametrize("table", TABLES)
def test_measured_collectives_that_were_not_fitted_to(table: str) -> None:
    rows = rows_of(table)[1::2]
    error = abs(predicted(SYSTEMS[TABLES[table]], rows) / [row.seconds for row in rows] - 1)
    large = [row.size_bytes >= LARGE for row in rows]
    assert error[large].mean() < 0.05
    assert error[[not each for each in large]].mean() < 0.10


def test_a_protocol_is_chosen_as_nccl_estimates_not_as_is_fastest() -> None:
    # 2 MB gathered on Ampere (tuning.cc: LL 6.6 us + 0.6 a step at 87.7 GB/s, Simple 8.4 + 3.4 at 240).
    law, size = SYSTEMS["a100"], 1 << 21
    for ranks in (2, 4, 8):
        ll, simple = (6.6 + 0.6 * (ranks - 1), 87.7e3), (8.4 + 3.4 * (ranks - 1), 240e3)
        moved = size * (ranks - 1) / ranks
        expected = "LL" if ll[0] + moved / ll[1] < simple[0] + moved / simple[1] else "Simple"
        assert law.way(Collective.ALL_GATHER, ranks, size) == expected
    two, eight = (law.seconds(Collective.ALL_GATHER, ranks, size) for ranks in (2, 8))
    assert two > eight  # as measured: 38 and 33 us


def test_no_switch_adds_numbers_of_one_byte() -> None:
    spec = Nccl(system="h100", number_bytes=1)
    assert spec.choose(Collective.ALL_REDUCE, 8, 1 << 30)[0] == "ring"
    slow, fast = (
        host_s(Nccl(system="h100", number_bytes=width), Collective.REDUCE_SCATTER, 8, 1 << 28, 450e9)
        for width in (1, 2)
    )
    assert slow > fast


@pytest.mark.parametrize("kind", [Collective.ALL_GATHER, Collective.REDUCE_SCATTER])
def test_pat_is_proved_chosen_as_nccl_estimates_and_takes_log_steps(kind: Collective) -> None:
    ranks = 16
    spec = Nccl.model_validate({"system": "h100", "hosts": ranks, "network_rate": "400Gbps"})
    parts = ranks if kind is Collective.ALL_GATHER else 1
    small, large = (1 << 16) // parts, (1 << 30) // parts
    # tuning.cc: PAT 8 us + log2 N * 14 us / 3.5 + 2.8 us * N = 69 us; a ring by LL 6.6 + 15 * 5 = 82 us.
    assert spec.choose(kind, ranks, small) == ("pat", "Simple")
    assert spec.choose(kind, ranks, large) == ("ring", "Simple")
    for other in ({"system": "none"}, {"hosts": 8}, {"algorithms": "ring"}):  # old, two a host, NCCL_ALGO
        assert spec.model_copy(update=other).choose(kind, ranks, small)[0] == "ring"
    template = spec.build(kind, ranks, small, Costs())
    prove(template)
    assert template.name == "nccl pat"

    def sent_ns(src: I64, dst: I64, size: I64) -> I64:
        del src, dst
        return (size / 50).astype(np.int64)

    took = exits_ns(template, np.zeros(ranks, np.int64), sent_ns)
    moved = (ranks - 1) * small * parts / ranks / 50 / spec.network_efficiency
    assert took.max() == pytest.approx((8 + 2.8 * ranks + 4 * 4) * 1e3 + moved, rel=0.01)


def test_hosts_with_nvlink_get_nccl_and_their_own_nics() -> None:
    shape = HostShape(gpus=8, nics=8, link_rate_bps=450e9 * 8, nic_rate_bps=400e9)
    config = Planner(CollectiveConfig(), hosts=shape).config
    chosen = config.all_reduce
    assert isinstance(chosen, Nccl)
    assert (chosen.rails, chosen.network_rate, chosen.system) == (8, 3.2e12, "h100")
    assert not chosen.alternate
    assert Nccl().on_hosts(replace(shape, rails=True)).alternate
    named = Planner(CollectiveConfig.model_validate({"all_reduce": "ring"}), hosts=shape).config
    assert isinstance(named.all_reduce, RingAlgorithm)
    assert isinstance(named.all_gather, Nccl)
    given = CollectiveConfig.model_validate(
        {"all_reduce": {"algorithm": "nccl", "rails": 2, "system": "none"}}
    )
    kept = Planner(given, hosts=shape).config.all_reduce
    assert isinstance(kept, Nccl)
    assert (kept.rails, kept.law) == (2, None)


def test_what_cosim_calibrate_prints_holds_on_hosts_of_a_known_system() -> None:
    truth = Nccl.model_validate({"latency": "61us", "least_latency": "9us"})
    printed = yaml.safe_load(scenario_lines(truth))["collectives"]
    shape = HostShape(gpus=8, nics=8, link_rate_bps=450e9 * 8, nic_rate_bps=400e9)
    found = Planner(CollectiveConfig.model_validate(printed), hosts=shape).config.all_gather
    assert isinstance(found, Nccl)
    assert (found.law, found.latency, found.least_latency) == (None, 61_000_000, 9_000_000)


@pytest.mark.parametrize("kind", [Collective.ALL_GATHER, Collective.ALL_REDUCE])
def test_one_gpu_a_host_has_one_nic_not_its_neighbours(kind: Collective) -> None:
    """What NCCL finds for a group with a GPU in each of 16 hosts: the NIC beside it."""
    alone = {"system": "h100", "hosts": 16}
    shared = Nccl.model_validate({**alone, "rails": 8, "network_rate": "3.2Tbps"})
    single = Nccl.model_validate({**alone, "rails": 1, "network_rate": "400Gbps"})
    for size in (1 << power for power in range(10, 32)):
        assert shared.choose(kind, 16, size) == single.choose(kind, 16, size)


def test_systems_are_told_by_their_links() -> None:
    rates = {150e9: None, 300e9: "a100", 448e9: "a100", 450e9: "h100", 900e9: "b200"}
    assert {rate: system_of(rate * 8) for rate in rates} == rates
