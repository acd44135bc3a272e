"""Jobs over two networks at once: the same run as over one, where the two are of the same model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cosim.context import HERE
from cosim.engine.records import Records
from cosim.network.aware import CongestionAwareNetwork
from cosim.network.fair_share import FairShareNetwork
from cosim.network.hybrid import HybridNetwork
from cosim.network.hybrid_spec import hybrid_of
from cosim.network.simulator import NetworkSimulator
from cosim.network.unaware import CongestionUnawareNetwork
from cosim.testing.faulty import FaultyNetwork
from cosim.testing.recorder import Player, Recorder
from cosim.testing.strategies.jobs import JobMix as World
from cosim.testing.strategies.jobs import job_mixes as worlds
from cosim.topology.graph import Topology
from cosim.topology.leaf_spine import LeafSpine
from tests.engine.test_release import Model, assert_same, ran
from tests.engine.worlds import (
    NETWORKS,
    Hesitant,
    ShortSighted,
    Shuffled,
    Watched,
    collective,
    config,
    job,
    never_hangs,  # noqa: F401 - runs by itself
    run,
    workload,
)

every_network = pytest.mark.parametrize("model", NETWORKS.values(), ids=NETWORKS)
few = settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))


def hybrid(model: Model) -> NetworkSimulator:
    return hybrid_of(model(), model())


def without_bins(records: Records) -> Records:
    """Statistics over all time: bins are as wide as each network's own time needs."""
    total = records.links.busy_ps.sum(axis=0, keepdims=True)
    return replace(records, links=replace(records.links, busy_ps=total, bin_ps=1))


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(NETWORKS[one], id=one, marks=[pytest.mark.slow] * (one != "fair_share"))
        for one in NETWORKS
    ],
)
@few
@given(world=worlds(("hosts",)), seed=st.integers(0, 2**32))
def test_two_of_a_model_run_jobs_as_one_of_it(model: Model, world: World, seed: int) -> None:
    whole = without_bins(ran(world, model()))
    assert_same(whole, without_bins(ran(world, hybrid(model))))
    assert_same(whole, without_bins(ran(world, Watched(HybridNetwork(model(), model())))))
    assert_same(whole, without_bins(ran(world, Watched(hybrid(model)), "engine")))
    assert_same(whole, without_bins(ran(world, Shuffled(Hesitant(ShortSighted(hybrid(model)), seed), seed))))


def hosts() -> Topology:
    """Two hosts of four GPUs, a NIC each."""
    tree = {
        "leaves": 2, "spines": 1, "endpoints_per_leaf": 4, "latency": "500ns",
        "hosts": {"gpus": 4, "nvlink_rate": "800Gbps", "nics": 4, "nic_rate": "100Gbps"},
    }  # fmt: skip
    return LeafSpine.model_validate(tree).build(HERE)


@pytest.mark.parametrize("release", ["network", "engine"])
def test_a_hierarchical_all_reduce_is_as_fast_as_each_network_lets_it_be(release: str) -> None:
    """Reduce-scatter and all-gather in a host, ring between hosts: without latency and queues, by hand."""
    flat = replace(hosts(), link_latency_ps=np.zeros(hosts().num_links, np.int64))
    size = 8_000_000
    done = run(
        flat,
        job(workload([collective(size)], mesh={"dp": 8})),
        network=hybrid_of(FairShareNetwork(), FairShareNetwork()),
        collectives=config(all_reduce=["ring", "ring"]),
        release=release,
    )
    inner = 2 * 3 * (size // 4) * 8 / 800e9
    outer = 2 * 1 * (size // 4 // 2) * 8 / 100e9
    assert done.end_ps == pytest.approx((inner + outer) * 1e12, rel=1e-9)


def test_what_ends_without_latency_lets_something_start_where_the_instant_was_over() -> None:
    """Messages of 0 ns: one network has gone on, as the other's last ones of the instant complete."""
    flat = replace(hosts(), link_latency_ps=np.zeros(hosts().num_links, np.int64))
    work = [
        collective(64, kind="broadcast", axes=("dp",), stream="b"),
        collective(64, kind="reduce_scatter", axes=("dp",), stream="a"),
        collective(8, 1, kind="reduce_scatter", stream="c"),
        collective(8000, kind="reduce_scatter", axes=("dp",), stream="a"),
    ]
    jobs = job(workload(work, mesh={"dp": 2, "tp": 4}))
    chosen = config(all_gather="direct")
    one, two = (
        run(flat, jobs, network=network, collectives=chosen, record_messages=True)
        for network in (CongestionAwareNetwork(), hybrid(CongestionAwareNetwork))
    )
    assert_same(without_bins(one), without_bins(two))


def test_each_network_answers_for_its_own_links() -> None:
    """Inside the host max-min fair, outside as if nothing else were sent."""
    work = workload([collective(8_000_000, kind="all_to_all")], mesh={"dp": 8})
    networks = FairShareNetwork(), CongestionUnawareNetwork()
    records = run(hosts(), job(work), network=hybrid_of(*networks))
    part = records.links.link_bytes
    whole = run(hosts(), job(work), network=FairShareNetwork()).links.link_bytes
    assert (part == whole).all()
    scale_up = hosts().scale_up
    assert scale_up is not None
    one, two = (network.statistics() for network in networks)
    assert len(one.link_bytes) == scale_up.sum()
    assert (one.link_bytes.sum(), two.link_bytes.sum()) == (part[scale_up].sum(), part[~scale_up].sum())


def test_recorder_player_and_faults_work_on_a_hybrid_as_on_any_network() -> None:
    jobs = job(workload([collective(1 << 20)], mesh={"dp": 8}))
    recorder = Recorder(hybrid(FairShareNetwork))
    first = run(hosts(), jobs, network=recorder)
    again = run(hosts(), jobs, network=Player(recorder.recording))
    assert again.digest == first.digest
    chosen = recorder.recording.calls[0].flows.groups[0].key
    late = FaultyNetwork(hybrid(FairShareNetwork), {(chosen[0], chosen[1] + 8): 10**9})
    assert run(hosts(), jobs, network=late, release="engine").end_ps >= first.end_ps + 9 * 10**8
    assert len(late.applied) == 1
