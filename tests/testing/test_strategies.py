"""Strategies draw what can run: every topology is connected, all traffic arrives, every job ends."""

import subprocess
import sys

import numpy as np
from hypothesis import HealthCheck, given, settings

from cosim.engine.replay import replay
from cosim.network.aware import CongestionAwareNetwork
from cosim.network.fair_share import FairShareNetwork
from cosim.network.unaware import CongestionUnawareNetwork
from cosim.testing import strategies
from cosim.topology.graph import Topology
from cosim.units import NEVER

some = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


@some
@given(strategies.topologies(most_endpoints=7))
def test_any_endpoint_reaches_any_other(topology: Topology) -> None:
    assert 2 <= topology.num_endpoints <= 7
    ends = np.array([(a, b) for a in range(topology.num_endpoints) for b in range(topology.num_endpoints)])
    src, dst = ends.T.astype(np.int32)
    ptr, links = topology.paths(src, dst, np.zeros(len(src), np.int32))
    for k, (one, other) in enumerate(zip(src, dst, strict=True)):
        path = links[ptr[k] : ptr[k + 1]]
        walk = [one, *topology.link_dst[path]]
        assert walk[-1] == other
        assert (topology.link_src[path] == walk[:-1]).all()


@some
@given(strategies.traffic())
def test_all_traffic_arrives_however_it_is_asked_for(traffic: strategies.Traffic) -> None:
    for network in (CongestionUnawareNetwork, CongestionAwareNetwork, FairShareNetwork):
        found = traffic.run(network())
        assert len(found) == traffic.num_flows
        assert all(start <= end for start, end in found.values())
        assert traffic.reacting(NEVER).run(network()) == found
    for group, given_flows in zip(traffic.groups, traffic.given, strict=True):
        assert all(found[group.handle, flow][0] == start for flow, (start, _) in given_flows.items())


@some
@given(strategies.job_mixes(), strategies.workloads(4))
def test_every_job_ends(mix: strategies.JobMix, work: object) -> None:
    records = replay(mix.topology, FairShareNetwork(), mix.jobs, mix.planner)
    operations = sum(
        len(job.workload.program(rank).operations) * job.iterations
        for job in mix.jobs
        for rank in range(job.workload.world_size)
    )
    assert len(records.ops.op) == operations


def test_without_hypothesis_all_else_works_and_strategies_say_what_is_missing() -> None:
    script = """
import sys
sys.modules["hypothesis"] = None
from cosim.testing import FaultyNetwork, Recorder, check_network
try:
    from cosim.testing import strategies
except Exception as error:
    print(f"{type(error).__name__}: {error}")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    expected = "InputError: cosim.testing.strategies needs hypothesis\n  pip install hypothesis\n"
    assert done.stdout == expected
