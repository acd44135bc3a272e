"""What a run adds up to, completion times, traffic, bytes, the digest, against every single message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from cosim.engine.columns import EngineColumns
from cosim.engine.flow_log import FlowLog, fct_edges
from cosim.engine.programs import COLLECTIVES
from cosim.engine.records import JobInfo, Records
from cosim.errors import NetworkError
from cosim.network.aware import CongestionAwareNetwork
from cosim.network.flows import Completions, FlowBatch, flat_table
from cosim.network.forwarding import ForwardingNetwork
from cosim.network.simulator import Advance
from cosim.network.unaware import CongestionUnawareNetwork
from cosim.pattern.planner import Planner
from cosim.testing.faulty import FaultyNetwork
from cosim.testing.recorder import Recorder
from cosim.testing.strategies.jobs import JobMix as World
from cosim.testing.strategies.jobs import job_mixes as worlds
from cosim.topology.grid import Dimension, grid_topology
from cosim.units import PS_PER_MS, PS_PER_US
from cosim.workload.program import OpKind
from tests.engine.worlds import (
    NETWORKS,
    collective,
    compute,
    config,
    flows_of,
    job,
    never_hangs,  # noqa: F401 - runs by itself
    one_dimension,
    recv,
    run,
    send,
    times,
    workload,
)

MASK = (1 << 64) - 1
many = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))


def fixed_case() -> JobInfo:
    """Computation, all-reduce, all-to-all and a message on four ranks, twice."""
    before = [compute(PS_PER_US), collective(100_000, 0), collective(9_999, 1, kind="all_to_all")]
    programs = [[*before] for _ in range(4)]
    programs[0].append(send(2, 12_345, 2, tag=3))
    programs[2].append(recv(0, 12_345, 0, tag=3))
    return job(workload(*programs), iterations=2)


COSTS = config(endpoint_delay="10ns", reduction_rate="1600GB/s")


def ran(release: str = "network") -> tuple[Records, Recorder]:
    recorder = Recorder(CongestionAwareNetwork())
    records = run(
        one_dimension("Ring", 4), fixed_case(), network=recorder, collectives=COSTS, release=release,
        record_messages=True,
    )  # fmt: skip
    return records, recorder


# -- digest ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", ["network", "engine"])
@pytest.mark.parametrize(
    ("name", "end_ps", "digest"),
    [
        # 1000 ns; 10 + 6 * (1000 + 10) + 3 * 45; 10 + 1050 + 10; 1246; twice.
        ("congestion_unaware", 19_042_000, "00f04eb4f6de3202837eaa7c2012371f"),
        ("congestion_aware", 19_734_000, "74073bf9efb5ac3b921d00ca6e5f586b"),
        ("fair_share", 19_193_800, "ab404e5951ab1e61b1c4e7fbbae348cc"),
    ],
)
def test_the_digest_of_a_fixed_case_is_the_same_on_any_machine(
    name: str, end_ps: int, digest: str, release: str
) -> None:
    records = run(
        one_dimension("Ring", 4), fixed_case(), network=NETWORKS[name](), collectives=COSTS, release=release
    )
    assert (records.end_ps, records.digest) == (end_ps, digest)


def mixed(*values: int) -> int:
    """splitmix64's finalizer over values, in Python's own integers."""
    state = 0
    for value in values:
        state = (state + value + 0x9E3779B97F4A7C15) & MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & MASK
        state ^= state >> 31
    return state


def finalized(state: int) -> int:
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & MASK
    return state ^ (state >> 31)


def sums(rows: Sequence[tuple[int, ...]]) -> tuple[int, int]:
    hashes = [mixed(*row) for row in rows]
    second = [finalized(one ^ 0x9E3779B97F4A7C15) for one in hashes]
    return sum(hashes) & MASK, sum(second) & MASK


def test_the_digest_is_made_of_every_key_and_time_and_nothing_else() -> None:
    """Worked out again in plain Python, from what the network reported and the operations' records."""
    records, recorder = ran()
    flows = sums([(*flow.key, flow.time_ps) for flow in flows_of(recorder.recording)])
    operations = sums([(*key, *at) for key, at in times(records).items()])
    assert records.digest == combined(flows, operations)


def combined(flows: tuple[int, int], operations: tuple[int, int]) -> str:
    return "".join(f"{(a + b) & MASK:016x}" for a, b in zip(flows, operations, strict=True))


def test_a_picosecond_in_any_completion_changes_the_digest() -> None:
    programs = [[collective(4096), compute(PS_PER_US)]] * 4
    work = job(workload(*programs))
    recorder = Recorder(CongestionUnawareNetwork())
    ring = one_dimension("Ring", 4)
    whole = run(ring, work, network=recorder, release="engine")
    digests = Counter([whole.digest])
    keys = [flow.key for flow in flows_of(recorder.recording)]
    assert len(keys) == 4 + 2 * 3 * 4 + 4
    for key in keys:
        faulty = FaultyNetwork(CongestionUnawareNetwork(), {key: 1})
        digests[run(ring, work, network=faulty, release="engine").digest] += 1
        assert len(faulty.applied) == 1
    assert set(digests.values()) == {1}


class Unbegun(ForwardingNetwork):
    """Completions of messages that began otherwise than any can."""

    def __init__(self, start: int) -> None:
        super().__init__(CongestionUnawareNetwork())
        self.start = start

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        granted, done = self.inner.advance(flows, horizon_ps)
        return Advance(granted, replace(done, start_ps=np.full(len(done), self.start)))


@pytest.mark.parametrize("start", [-(2**63), -1, 2**62])
def test_a_message_that_cannot_have_taken_its_time_is_named(start: int) -> None:
    """Its time is a place in a histogram: what is none would be written elsewhere in memory."""
    with pytest.raises(
        NetworkError, match=rf"completed flow \d+ .* at \d+ ps; it was to start at {start} ps"
    ):
        run(
            one_dimension("Ring", 2),
            job(workload(*[[collective(64)]] * 2)),
            network=Unbegun(start),
            release="engine",
        )


def test_a_picosecond_in_a_computation_changes_the_digest_though_no_message_moves() -> None:
    ring = one_dimension("Ring", 2)
    one, two = (run(ring, job(workload([collective(64), compute(d)], [collective(64)]))) for d in (5, 6))
    assert one.digest != two.digest
    assert one.num_messages == two.num_messages


# -- completion times and traffic --------------------------------------------------------------------


@many
@given(world=worlds())
def test_histogram_traffic_and_bytes_agree_with_every_message(world: World) -> None:
    for model in NETWORKS.values():
        records = run(
            world.topology, *world.jobs, network=model(), collectives=world.planner, record_messages=True
        )
        messages = records.messages
        assert messages is not None
        assert len(messages.src) == records.num_messages
        took = messages.end_ps - messages.start_ps
        edges = fct_edges()
        assert np.array_equal(records.fct.edges_ps, edges)
        expected = np.bincount(np.searchsorted(edges, took, side="right") - 1, minlength=len(edges) - 1)
        assert np.array_equal(records.fct.counts, expected)
        assert records.fct.sum_ps == int(took.sum())
        assert (records.fct.min_ps, records.fct.max_ps) == (
            int(took.min(initial=2**62)) if len(took) else 0,
            int(took.max(initial=0)),
        )
        by_pair: Counter[tuple[int, int, int]] = Counter()
        traffic = records.traffic
        for src, dst, size, end in zip(
            messages.src.tolist(), messages.dst.tolist(), messages.size_bytes.tolist(),
            messages.end_ps.tolist(), strict=True,
        ):  # fmt: skip
            by_pair[src, dst, end // traffic.bin_ps] += size
        found = Counter({
            (int(traffic.src[p]), int(traffic.dst[p]), int(b)): int(traffic.size_bytes[b, p])
            for b, p in np.argwhere(traffic.size_bytes)
        })  # fmt: skip
        assert found == +by_pair
        pairs = list(zip(traffic.src.tolist(), traffic.dst.tolist(), strict=True))
        assert len(pairs) == len(set(pairs))
        assert all(a != b for a, b in pairs)
        order = np.lexsort((messages.end_ps,))
        assert np.array_equal(order, np.arange(len(order)))  # sorted by end


@many
@given(world=worlds())
def test_bytes_are_what_the_plans_and_messages_say(world: World) -> None:
    """No byte is lost or made up: plans times iterations, messages, and requests of rendezvous."""
    records = run(world.topology, *world.jobs, collectives=world.planner, record_messages=True)
    messages = records.messages
    assert messages is not None
    for number, one in enumerate(world.jobs):
        work = one.workload
        planned = sum(c.messages for c in records.collectives if c.job == number)
        sends = [
            operation
            for rank in range(work.world_size)
            for operation in work.program(rank).operations
            if operation.kind is OpKind.SEND
        ]
        posted = len(sends) * one.iterations * (2 if work.rendezvous else 1)
        assert int((messages.job == number).sum()) == planned + posted
    moved = sum(world.planned_bytes(record) for record in records.collectives)
    moved += sum(
        (operation.size_bytes + (8192 if one.workload.rendezvous else 0)) * one.iterations
        for one in world.jobs
        for rank in range(one.workload.world_size)
        for operation in one.workload.program(rank).operations
        if operation.kind is OpKind.SEND
    )
    assert int(messages.size_bytes.sum()) == moved == int(records.traffic.size_bytes.sum())


def test_every_link_carries_the_bytes_of_the_messages_routed_over_it() -> None:
    records, _ = ran()
    messages = records.messages
    assert messages is not None
    ptr, links = records.topology.paths(messages.src, messages.dst, np.zeros(len(messages.src), np.int32))
    expected = np.zeros(records.topology.num_links, np.int64)
    np.add.at(expected, links, np.repeat(messages.size_bytes, np.diff(ptr)))
    assert np.array_equal(records.links.link_bytes, expected)


def test_a_collectives_bytes_are_its_plans() -> None:
    grid = grid_topology([Dimension("Ring", 4, 400e9, 1000), Dimension("Switch", 2, 200e9, 1000)])
    planner = Planner(config(all_reduce=["ring", "direct"], splits=3, active_chunks=2))
    work = workload([collective(1_000_003)], mesh={"dp": 8})
    records = run(grid, job(work), collectives=planner, record_messages=True)
    plan = planner.plan(COLLECTIVES["all_reduce"], 8, 1_000_003, dims=(4, 2))
    assert records.messages is not None
    assert int(records.messages.size_bytes.sum()) == plan.total_bytes
    assert records.num_messages == plan.num_messages


# -- the log by itself ---------------------------------------------------------------------------------


def fed(sizes: list[int], pairs: list[tuple[int, int]], spans: list[tuple[int, int]]) -> FlowLog:
    """A log to which flow k, of ``sizes[k]`` from ``pairs[k]``, took from ``spans[k]``, one group each."""
    columns = EngineColumns()
    log = FlowLog(columns)
    columns.reserve(handles=1)
    columns.scalars["handles_used"] = 1
    for size, pair, span in zip(sizes, pairs, spans, strict=True):
        table = flat_table([0], [1], [size])
        number, bound = columns.extend("bindings", 1)
        bound["info"], bound["block"] = log.bind(table, np.array(pair, np.int32)), log.blocks(table)
        bound["blocks"], bound["react_from"] = 1, 1  # nobody waits for it
        handle = columns.handles[:1]
        handle["left"], handle["holds"], handle["binding"] = 1, 2, number
        one = [np.array([value], np.int64) for value in (0, *span)]
        log.count(Completions(np.zeros(1, np.int32), *one), *span)
    return log


@pytest.mark.parametrize("took", [0, 1, 63, 64, 65, 127, 128, 10**6, 2**40 - 1, 2**40, 2**62 - 1])
def test_a_completion_time_falls_into_the_bin_whose_edges_hold_it(took: int) -> None:
    fct = fed([1], [(0, 1)], [(0, took)]).fct()
    (at,) = np.flatnonzero(fct.counts)
    assert fct.edges_ps[at] <= took < fct.edges_ps[at + 1]
    assert (fct.min_ps, fct.max_ps, fct.sum_ps) == (took, took, took)
    width = int(fct.edges_ps[at + 1]) - int(fct.edges_ps[at])
    assert width <= max(1, took / 64)


def test_traffic_bins_double_as_time_goes_on_and_lose_nothing() -> None:
    spans = [(0, end) for end in (1, 10**6, PS_PER_MS, 10**15, 5)]
    log = fed([10, 20, 30, 40, 50], [(0, 1)] * 3 + [(1, 0)] * 2, spans)
    traffic = log.traffic()
    assert len(traffic.size_bytes) * traffic.bin_ps > 10**15
    assert traffic.size_bytes.sum(axis=0).tolist() == [60, 90]
    assert int(traffic.size_bytes[10**15 // traffic.bin_ps, 1]) == 40


@pytest.mark.parametrize("endpoints", [300, 5000])
def test_many_pairs_widen_the_matrix_and_lose_nothing(endpoints: int) -> None:
    count = 3000
    generator = np.random.default_rng(7)
    pairs = [(int(a), int(b)) for a, b in generator.integers(0, endpoints, (count, 2)) if a != b]
    sizes = [k + 1 for k in range(len(pairs))]
    spans = [(0, k * 10**7) for k in range(len(pairs))]
    traffic = fed(sizes, pairs, spans).traffic()
    expected: Counter[tuple[int, int]] = Counter()
    for pair, size in zip(pairs, sizes, strict=True):
        expected[pair] += size
    sums_ = traffic.size_bytes.sum(axis=0).tolist()
    found = dict(zip(zip(traffic.src.tolist(), traffic.dst.tolist(), strict=True), sums_, strict=True))
    assert found == dict(expected)


@pytest.mark.parametrize("most_cells", [1 << 14, 1 << 22])
def test_arrivals_are_put_into_the_same_bins_in_however_many_parts(
    monkeypatch: pytest.MonkeyPatch, most_cells: int
) -> None:
    """While pairs are still coming, and times go forth and back."""
    monkeypatch.setattr("cosim.engine.flow_log._CELLS", most_cells)
    generator = np.random.default_rng(8)
    pairs = [(int(a), int(b)) for a, b in generator.integers(0, 30, (5000, 2)) if a != b]
    times_ = (10 ** generator.uniform(0, 12, len(pairs))).astype(int).tolist()
    traffic = fed([1] * len(pairs), pairs, [(0, one) for one in times_]).traffic()
    number = dict(zip(zip(traffic.src.tolist(), traffic.dst.tolist(), strict=True), range(900), strict=False))
    expected = np.zeros_like(traffic.size_bytes)
    for pair, one in zip(pairs, times_, strict=True):
        expected[one // traffic.bin_ps, number[pair]] += 1
    assert np.array_equal(traffic.size_bytes, expected)
    assert len(expected) * traffic.bin_ps > max(times_) >= len(expected) * traffic.bin_ps // 4
