from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosim.engine.records import CollectiveRecord, OpRecords
from cosim.errors import InputError
from cosim.pattern.template import Collective
from cosim.results.breakdown import break_down
from cosim.results.collective_columns import collective_columns
from cosim.results.collectives import bus_factor, summarize_collectives
from cosim.results.network_statistics import percentile_ps
from cosim.results.optable import op_table
from cosim.results.summary import Summary, iteration_times, summarize
from cosim.workload.program import CPU_STREAM, NO_STREAM, Operation, OpKind
from tests.calls import calls
from tests.results.synthetic_run import MB, US, Builder, example, histogram


def test_hand_made_run_breaks_down_as_on_paper() -> None:
    job = summarize(example().records()).jobs[0]
    assert job.iteration_ps == (100 * US, 100 * US)
    assert (job.iteration_mean_ps, job.iteration_min_ps, job.iteration_max_ps) == (100 * US,) * 3
    assert job.finish_ps == (200 * US,) * 4
    assert (job.compute.min_ps, job.compute.max_ps, job.compute.max_rank) == (80 * US, 100 * US, 3)
    assert (job.communication.min_ps, job.communication.max_ps) == (130 * US, 150 * US)
    assert (job.exposed.min_ps, job.exposed.max_ps) == (90 * US, 110 * US)
    assert (job.host_alone.min_ps, job.host_alone.max_ps) == (10 * US, 10 * US)
    assert (job.idle.min_ps, job.idle.max_ps) == (0, 0)
    assert job.exposed.share == pytest.approx((3 * 55 + 45) / 400)


def test_exposed_as_astra_sim_reports_it_is_finish_less_accelerator_computation() -> None:
    job = summarize(example().records()).jobs[0]
    assert (job.exposed_astra.min_ps, job.exposed_astra.max_ps) == (100 * US, 120 * US)


def test_memory_access_hides_communication_but_not_for_astra_sim() -> None:
    operations = (
        Operation("load", OpKind.MEMORY, "memory"),
        Operation("reduce", OpKind.COLLECTIVE, "comm", collective="all_reduce", size_bytes=8),
    )
    build = Builder(operations, ranks=2, iterations=1)
    for rank in range(2):
        build.op(0, rank, 0, 0, 30)
    build.collective(0, 1, {0: 10, 1: 10}, 50)
    job = summarize(build.records()).jobs[0]
    assert (job.compute.max_ps, job.exposed.max_ps, job.exposed_astra.max_ps) == (30, 20, 50)


def test_free_communication_is_bounded_by_the_busiest_stream_of_the_busiest_rank() -> None:
    job = summarize(example().records()).jobs[0]
    assert job.free_communication_ps == 100 * US
    assert job.free_communication_iteration_ps == 50 * US
    assert job.free_communication_speedup == pytest.approx(2.0)


def test_operations_without_a_stream_bound_a_rank_by_the_longest() -> None:
    operations = (Operation("a", OpKind.COMPUTE, NO_STREAM), Operation("b", OpKind.COMPUTE, CPU_STREAM))
    build = Builder(operations, ranks=1, iterations=1)
    for start, end in ((0, 70), (0, 60)):
        build.op(0, 0, 0, start, end)
    build.op(0, 0, 1, 0, 40)
    assert summarize(build.records()).jobs[0].free_communication_ps == 70


def test_iterations_are_measured_between_the_last_ranks() -> None:
    ends = np.array([[110, 120], [200, 190], [310, 305]])
    np.testing.assert_array_equal(iteration_times(ends, 20), [100, 80, 110])


def test_the_rank_that_computes_longer_is_the_straggler() -> None:
    straggler, *others = summarize(example().records()).jobs[0].stragglers
    assert (straggler.rank, straggler.endpoint, straggler.times_last) == (3, 0, 2)
    assert straggler.waited_ps == 20 * US
    assert others == []


@st.composite
def runs(draw: st.DrawFn) -> Builder:
    build = Builder(ranks=3, iterations=2)
    for iteration in range(2):
        for rank in range(3):
            for op in (0, 2, 3, 4):
                start = draw(st.integers(0, 50)) + 50 * iteration
                build.op(iteration, rank, op, start, start + draw(st.integers(0, 40)))
    return build


@given(runs())
def test_parts_of_a_span_add_up_and_none_is_negative(build: Builder) -> None:
    records = build.records()
    parts = break_down(records, op_table(records))
    np.testing.assert_array_equal(parts.compute + parts.exposed + parts.host_alone + parts.idle, parts.span)
    for name, column in vars(parts).items():
        # ASTRA-sim adds durations; here computations overlap, so its figure may well be negative.
        assert name == "exposed_astra" or (column >= 0).all()
    assert (parts.exposed <= parts.communication).all()


N = 8


@pytest.mark.parametrize(
    ("collective", "busbw"),
    [
        # 8 MB in 1 ms is 64 Gbit/s of algbw; all-gather's size is each rank's input, so 8 times that.
        ("all_reduce", 64e9 * 2 * 7 / 8),
        ("reduce_scatter", 64e9 * 7 / 8),
        ("all_gather", 8 * 64e9 * 7 / 8),
        ("all_to_all", 64e9 * 7 / 8),
        ("broadcast", 64e9),
        ("send_recv", 64e9),
    ],
)
def test_busbw_is_that_of_nccl_tests(collective: str, busbw: float) -> None:
    start, ready, end = 0, 5 * US, 5 * US + 1000 * US
    one = CollectiveRecord(0, 0, 0, "x", collective, "ring", tuple(range(N)), 8 * MB, 1, start, ready, end)
    (row,) = summarize_collectives(collective_columns([one]), (example().job(),))
    assert row.busbw_bps == pytest.approx(busbw)
    assert (row.mean_ps, row.wait_mean_ps, row.wait_max_ps) == (1000 * US, 5 * US, 5 * US)


def test_ring_at_full_rate_has_the_links_rate_as_busbw() -> None:
    # 2 (n - 1) steps of D / n bytes at 80 Gbit/s, without latency.
    d, n = 8 * MB, 8
    one = CollectiveRecord(
        0, 0, 0, "x", "all_reduce", "ring", tuple(range(n)), d, 1, 0, 0, 2 * (n - 1) * (d // n) * 100
    )
    (row,) = summarize_collectives(collective_columns([one]), (example().job(),))
    assert row.busbw_bps == pytest.approx(80e9)


def test_every_collective_has_a_bus_factor() -> None:
    for collective in Collective:
        assert bus_factor(collective.value, 4) >= 0


def test_barrier_and_instant_collectives_have_no_bandwidth() -> None:
    for collective, end in (("barrier", 10), ("all_reduce", 0)):
        one = CollectiveRecord(0, 0, 0, "x", collective, "ring", (0, 1), 64, 1, 0, 0, end)
        (row,) = summarize_collectives(collective_columns([one]), (example().job(),))
        assert row.algbw_bps is None
        assert row.busbw_bps is None


@given(
    st.lists(st.integers(1, 10**13), min_size=1, max_size=300), st.sampled_from([500, 900, 990, 999, 1000])
)
def test_percentile_is_within_a_bin_of_the_exact_one(times: list[int], per_mille: int) -> None:
    column = np.sort(np.array(times, np.int64))
    exact = int(column[max(1, -(-per_mille * len(times) // 1000)) - 1])
    assert abs(percentile_ps(histogram(column), per_mille) - exact) <= max(1, exact // 64)


def test_busiest_links_come_first_with_their_utilisation() -> None:
    summary = summarize(example().records())
    first, second, third = summary.links
    assert (first.name, first.utilisation, first.peak_utilisation) == ("gpu0 -> switch", 1.0, 1.0)
    assert (second.name, second.utilisation) == ("switch -> gpu0", 0.5)
    assert (third.utilisation, third.peak_utilisation) == (0.05, 1.0)
    assert third.over_time[:2] == (1.0, 0.0)
    assert len(first.over_time) == 20
    assert (summary.link_totals.links, summary.link_totals.used) == (8, 3)
    # 200 us at 10 bytes a nanosecond, always busy.
    assert first.sent_bytes == 2 * MB
    assert first.mean_rate_bps == pytest.approx(80e9)


def test_traffic_totals() -> None:
    traffic = summarize(example().records()).traffic
    assert traffic.total_bytes == 3 * (1 + 2 + 3 + 4) * MB + MB
    assert (traffic.pairs, traffic.busiest_src, traffic.busiest_dst) == (5, 3, 0)


def test_summary_survives_json() -> None:
    summary = summarize(example().records(), name="hand made", warnings=["beware"])
    assert Summary.from_json(json.loads(json.dumps(summary.to_json()))) == summary
    assert summary.warnings == ("beware",)


def test_json_of_another_shape_is_refused_and_the_key_named() -> None:
    data = summarize(example().records()).to_json()
    with pytest.raises(InputError, match="format 2"):
        Summary.from_json(data | {"format": 7})
    del data["jobs"][0]["idle"]
    with pytest.raises(InputError, match=r"jobs\.0\.idle"):
        Summary.from_json(data)


def test_interrupted_run_is_summarized_and_says_so() -> None:
    build = example()
    build.rows = [row for row in build.rows if row[0] == 0]
    build.collectives = build.collectives[:1]
    build.iterations = 1
    summary = summarize(build.records(interrupted="Ctrl-C"))
    assert summary.warnings == ("stopped early: Ctrl-C",)
    assert summary.jobs[0].iterations_done == 1


def test_run_without_operations_is_summarized() -> None:
    summary = summarize(Builder(iterations=0).records())
    assert summary.jobs[0].iteration_mean_ps is None
    assert summary.jobs[0].duration_ps == 0


def test_columns_are_summarized_whole_not_row_by_row() -> None:
    few, many = (_calls_to_summarize(count) for count in (1_000, 100_000))
    assert many < 1.5 * few


def _calls_to_summarize(count: int) -> int:
    """Functions that are called, numpy's too, to summarize a run of so many operations."""
    records = example().records()
    rng = np.random.default_rng(0)
    start = rng.integers(0, 10**12, count)
    i32 = np.int32
    zero = np.zeros(count, i32)
    ops = OpRecords(
        zero,
        zero,
        rng.integers(0, 4, count).astype(i32),
        rng.integers(0, 4, count).astype(i32),
        start,
        start + 10**6,
    )
    object.__setattr__(records, "ops", ops)
    object.__setattr__(records, "finish_ps", (np.full(4, 10**12 + 10**6),))
    return calls(lambda: summarize(records))
