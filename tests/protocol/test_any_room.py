"""Whatever room a server has, and whenever a run over it is killed: its log brings another server there."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from cosim.errors import OverloadError
from cosim.network.aware import CongestionAwareNetwork
from cosim.network.fair_share import FairShareNetwork
from cosim.network.flows import FlowBatch, FlowGroup, FlowTable
from cosim.network.simulator import NetworkSimulator
from cosim.network.unaware import CongestionUnawareNetwork
from cosim.protocol.client import RemoteNetwork
from cosim.protocol.replay_log import LogReader
from cosim.protocol.session import ServerConfig
from cosim.testing.conformance.cases import star
from cosim.units import NEVER
from tests.lab.fuzz.loop import looped
from tests.protocol.small_run import run

Release = Literal["network", "caller"]
MODELS: list[Callable[[], NetworkSimulator]] = [
    CongestionAwareNetwork,
    FairShareNetwork,
    CongestionUnawareNetwork,
]


def chains(lengths: list[int], sizes: list[int], delays: list[int], release: Release) -> FlowGroup:
    """Chains of messages: each waits for the one before it. Without latency empty ones take no time."""
    count, many = sum(lengths), len(lengths)
    chain = np.repeat(np.arange(many), lengths)
    first = np.r_[True, chain[1:] != chain[:-1]]
    rng = np.random.default_rng(count)
    src = rng.integers(0, 4, count)
    degree = np.where(first, 0, 1)
    table = FlowTable(
        num_participants=4,
        src=src.astype(np.int32),
        dst=((src + rng.integers(1, 4, count)) % 4).astype(np.int32),
        size_bytes=np.resize(sizes, count).astype(np.int64),
        channel=np.zeros(count, np.int32),
        delay_ps=np.where(first, 0, np.resize(delays, count)).astype(np.int64),
        reaction_ps=np.full(count, 0 if release == "caller" else NEVER),
        dep_ptr=np.concatenate([[0], np.cumsum(degree)]),
        dep_distance=np.ones(count - many, np.int64),
        dep_kind=np.zeros(count - many, np.int8),
        block_row=np.array([0, count]),
        block_repeat=np.array([1]),
    )
    return FlowGroup(0, table, np.arange(4, dtype=np.int32), (0, 0), release=release)


def play(network: RemoteNetwork, group: FlowGroup) -> str:
    """Run the chains to their end; with ``caller`` a message starts when the one before it completed."""
    there = star(4)
    network.open(replace(there, link_latency_ps=np.zeros_like(there.link_latency_ps)), 1)
    table = group.table
    waits = np.diff(table.dep_ptr) > 0
    which = np.flatnonzero(~waits)
    when = np.zeros(len(which), np.int64)
    groups, left = [group], table.num_flows
    while left:
        batch = FlowBatch(groups, np.zeros(len(which), np.int32), which, when, when)
        _, done = network.advance(batch, NEVER)
        groups, left = [], left - len(done)
        which, when = np.empty(0, np.int64), np.empty(0, np.int64)
        if group.release == "caller" and len(done):
            after = done.index + 1
            follows = (after < table.num_flows) & waits[np.minimum(after, table.num_flows - 1)]
            which = after[follows]
            when = done.time_ps[follows] + table.delay_ps[which]
    assert network._injector is not None
    return str(network._injector.digest)


def resumed_anywhere(served: ServerConfig, go: Callable[[RemoteNetwork], str], moments: list[float]) -> None:
    """Break a run off at these parts of its log; each time it goes on to the same digest."""
    with TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with closing(looped(served)) as network:
            network.log_to(log)
            right = go(network)
        whole = log.read_bytes()
        ends = [one.end for one in LogReader(log).exchanges()]
        for moment in moments:
            log.write_bytes(whole[: ends[int(moment * (len(ends) - 1))]])
            with closing(looped(served)) as network:
                network.log_to(log, resume=True)
                assert go(network) == right


@settings(max_examples=20)
@given(
    model=st.sampled_from(MODELS),
    release=st.sampled_from(["caller", "network"]),
    room=st.integers(2, 40),
    lengths=st.lists(st.integers(1, 12), min_size=1, max_size=8),
    sizes=st.lists(st.sampled_from([0, 0, 1, 1000, 70_000]), min_size=1, max_size=5),
    delays=st.lists(st.sampled_from([0, 0, 1, 2_000_000]), min_size=1, max_size=5),
    moments=st.lists(st.floats(0, 1), min_size=1, max_size=3),
)
@example(CongestionAwareNetwork, "caller", 10, [9, 9, 7, 12, 10, 7, 9, 11], [1000, 0], [1, 1, 0, 0], [0.375])
@example(CongestionUnawareNetwork, "caller", 4, [12, 12, 12], [0], [0], [0.2, 0.5, 0.8, 1.0])
def test_a_run_of_any_room_goes_on_wherever_it_was_killed(
    model: Callable[[], NetworkSimulator],
    release: Release,
    room: int,
    lengths: list[int],
    sizes: list[int],
    delays: list[int],
    moments: list[float],
) -> None:
    group = chains(lengths, sizes, delays, release)
    try:
        resumed_anywhere(ServerConfig(model, max_open_flows=room), lambda net: play(net, group), moments)
    except OverloadError as error:
        assume("start at" not in str(error))


@pytest.mark.parametrize(("room", "release"), [(24, "network"), (40, "engine"), (200, "network")])
def test_a_run_of_jobs_goes_on_wherever_it_was_killed(room: int, release: str) -> None:
    """Two jobs, 4 ranks each: more messages in all than the server has room for, many times over."""
    served = ServerConfig(CongestionAwareNetwork, max_open_flows=room)
    resumed_anywhere(served, lambda network: run(network, release).digest, [0.1, 0.35, 0.73, 0.97])
