"""Queues and rates over time: closed forms, no effect on the run, bounded, named mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cosim
from cosim.engine.series import MOST_SAMPLES
from cosim.errors import InputError, StallError
from cosim.network.congestion.watching import LinkWatch
from cosim.network.simulator import QueueSample
from cosim.network.congestion.watching import LinkWatch
from cosim.network.simulator import QueueSample

MS, US = 1_000_000_000, 1_000_000
INCAST = """
topology: {kind: switch, endpoints: 3, rate: 100Gbps, latency: 100us}
network: {model: congestion, control: fixed}
jobs: [{name: in, workload: {kind: periodic, compute: 0ns, size: 4MB, communication: incast, ranks: 3}}]
"""
HALVED = """
topology: {kind: ring, endpoints: 2, rate: 8Gbps, latency: 0ns}
network: fair_share
jobs: [{name: pair, workload: {kind: collective, collective: all_to_all, ranks: 2, size: 20MB}}]
events: [{link: npu0 -> npu1, rate: 4Gbps, at: 3ms, until: 5ms}]
"""
ALL_TO_ALL = """
topology: {kind: leaf_spine, leaves: 2, spines: 2, endpoints_per_leaf: 2, rate: 40Gbps, latency: 1us}
network: {model: congestion, control: CONTROL, mtu: 1500 B}
jobs:
- {name: a, workload: {kind: collective, collective: all_to_all, ranks: 4, size: 1MB}, iterations: 2}
"""
EVERYTHING = "record: {queues: '* -> *', rates: [a, '* -> *'], every: 3us}\n"


def test_a_queue_grows_by_what_comes_less_what_goes() -> None:
    run = cosim.run(INCAST + "record: {queues: '* -> *', every: 10us}\n")
    queues = run.queues
    hot = max({*queues.link}, key=lambda name: queues.queue_bytes[queues.link == name].sum())
    mine = queues.link == hot
    at, length = queues.at_ps[mine], queues.queue_bytes[mine]
    early = at <= 50 * US  # two windows at line rate into one link, before the first round trip has ended
    np.testing.assert_allclose(length[early], at[early] * 100e9 / 8e12, rtol=1e-9)
    np.testing.assert_allclose(queues.sent_bps[mine][1:6], 100e9, rtol=1e-9)
    others = queues.queue_bytes[~mine & (queues.at_ps <= 50 * US)]
    np.testing.assert_allclose(others, 0.0, atol=1e-6)


def test_rates_follow_a_link_whose_rate_changes() -> None:
    rates = cosim.run(HALVED + "record: {rates: [pair, npu0 -> npu1, npu1 -> *], every: 1ms}\n").rates
    one, other, both = (
        rates.rate_bps[rates.name == name] for name in ("npu0 -> npu1", "npu1 -> npu0", "pair")
    )
    # 10 MB each at a gigabyte a second; from 3 to 5 ms at half of it, so that one takes 11 ms.
    assert one.tolist() == [0, 8e9, 8e9, 8e9, 4e9, 4e9, 8e9, 8e9, 8e9, 8e9, 8e9, 0]
    assert other.tolist() == [0, *[8e9] * 9, 0, 0]
    assert (one + other == both).all()
    assert rates.connections[rates.name == "pair"].tolist() == [0, *[2] * 9, 1, 0]
    assert np.isnan(rates.window_bytes[rates.rate_bps > 0]).all()  # fair_share has none


def test_looking_at_one_link_counts_in_rows_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch has fewer links than the network: what it counted for the 12th would lie beyond its one row."""
    counted: list[float] = []

    def queues(watch: LinkWatch, *given: Any) -> QueueSample:
        sample = settle(watch, *given)
        counted.append(float(watch._fluid.histogram.sum()))
        return sample

    settle = LinkWatch.queues
    monkeypatch.setattr(LinkWatch, "queues", queues)
    hot = cosim.run(INCAST + "record: {queues: '* -> *', every: 10us}\n").queues
    name = max({*hot.link}, key=lambda name: hot.queue_bytes[hot.link == name].sum())
    counted.clear()
    one = cosim.run(INCAST + f"record: {{queues: ['{name}'], every: 10us}}\n").queues
    assert one.queue_bytes.tolist() == hot.queue_bytes[hot.link == name].tolist()
    assert counted[0] == 0
    assert counted[-1] > 0


def test_looking_at_one_link_counts_in_rows_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch has fewer links than the network: what it counted for the 12th would lie beyond its one row."""
    counted: list[float] = []

    def queues(watch: LinkWatch, *given: Any) -> QueueSample:
        sample = settle(watch, *given)
        counted.append(float(watch._fluid.histogram.sum()))
        return sample

    settle = LinkWatch.queues
    monkeypatch.setattr(LinkWatch, "queues", queues)
    hot = cosim.run(INCAST + "record: {queues: '* -> *', every: 10us}\n").queues
    name = max({*hot.link}, key=lambda name: hot.queue_bytes[hot.link == name].sum())
    counted.clear()
    one = cosim.run(INCAST + f"record: {{queues: ['{name}'], every: 10us}}\n").queues
    assert one.queue_bytes.tolist() == hot.queue_bytes[hot.link == name].tolist()
    assert counted[0] == 0
    assert counted[-1] > 0


@pytest.mark.parametrize("control", ["dctcp", "newreno", "{kind: dcqcn}", "hpcc"])
def test_looking_changes_nothing_and_adds_up(control: str) -> None:
    scenario = ALL_TO_ALL.replace("CONTROL", control)
    plain, seen = cosim.run(scenario), cosim.run(scenario + EVERYTHING)
    assert seen.digest == plain.digest
    assert seen.links.sent_bytes.tolist() == plain.links.sent_bytes.tolist()
    series = seen.records.series
    assert series is not None
    counted, end = plain.records.links.extra, seen.records.end_ps
    # What links still send after the last sample took less than one interval.
    late = (end - series.at_ps[-1]) * 40e9 / 8e12
    sent = plain.records.links.link_busy_ps * 40e9 / 8e12 - series.queues.sent_bytes[-1]
    assert ((sent >= -1) & (sent <= late + 1)).all()
    assert (series.queues.queue_bytes.max(axis=0) <= counted["queue_max_bytes"] + 1e-6).all()
    assert (series.queues.marks[-1] <= counted["marks"] + 1e-6).all()
    assert (series.queues.drops[-1] <= counted["drops"] + 1e-6).all()
    assert (np.diff(series.queues.sent_bytes, axis=0) >= 0).all()
    pairs = series.rate_bps[:, 1:].sum(axis=1)
    np.testing.assert_allclose(pairs, series.rate_bps[:, 0], rtol=1e-12)


@pytest.mark.parametrize("more", [{"release": "engine"}, {"record.messages": True}])
def test_the_engine_in_the_loop_or_beside_it_sees_the_same(more: dict[str, object]) -> None:
    scenario = ALL_TO_ALL.replace("CONTROL", "dctcp") + EVERYTHING
    one = cosim.run(scenario).records.series
    other = cosim.run(scenario, set=more, messages="record.messages" in more).records.series
    assert one is not None
    assert other is not None
    np.testing.assert_array_equal(one.at_ps, other.at_ps)
    np.testing.assert_allclose(one.queues.queue_bytes, other.queues.queue_bytes, rtol=1e-9, atol=1e-6)
    np.testing.assert_array_equal(one.rate_bps, other.rate_bps)


def test_a_long_run_takes_fewer_samples_and_says_so() -> None:
    long = cosim.run(HALVED + "record: {rates: [pair], every: 100ns}\n")
    series = long.records.series
    assert series is not None
    assert MOST_SAMPLES // 2 <= len(series.at_ps) <= MOST_SAMPLES
    assert series.every_ps == 3_200_000  # 11 ms are 110,000 samples; 2^5 times as far apart they are 3,438
    assert (np.diff(series.at_ps) == series.every_ps).all()
    coarse = cosim.run(HALVED + "record: {rates: [pair], every: 3200ns}\n").records.series
    assert coarse is not None
    np.testing.assert_array_equal(series.rate_bps, coarse.rate_bps)
    assert any("every 3.2 us, not 100 ns" in warning for warning in long.summary.warnings)


def test_more_connections_than_ports_end_their_rounds() -> None:
    """12 connections on 8 links: what is still to come when all is sent are their rounds' ends."""
    ring = "topology: {kind: ring, endpoints: 4, rate: 40Gbps, latency: 1us}\n"
    text = ring + ALL_TO_ALL[ALL_TO_ALL.index("network") :].replace("CONTROL", "newreno")
    plain, watched = cosim.run(text), cosim.run(text + EVERYTHING)
    assert watched.digest == plain.digest
    assert watched.rates.at_ps.max() >= plain.records.end_ps - 3 * US


def test_a_run_that_stands_still_says_so_all_the_same() -> None:
    stuck = HALVED.replace("rate: 4Gbps, at: 3ms, until: 5ms", "down: true, at: 3ms")
    with pytest.raises(StallError, match=r"nothing can happen after 1[0-1]"):
        cosim.run(stuck + "record: {rates: [pair], every: 100us}\n")


def test_a_saved_run_has_the_same_tables(tmp_path: Path) -> None:
    run = cosim.run(ALL_TO_ALL.replace("CONTROL", "dctcp") + EVERYTHING, out=tmp_path)
    stored = cosim.load_run(tmp_path)
    for table, again in ((run.queues, stored.queues), (run.rates, stored.rates)):
        assert [*table] == [*again]
        for name in table:
            np.testing.assert_array_equal(table[name], again[name])


@pytest.mark.parametrize(
    ("network", "record", "said"),
    [
        ("fair_share", "queues: '* -> *'", "fair_share keeps no queues over time; congestion does"),
        ("congestion_aware", "rates: [pair]", "keeps no rates over time; fair_share and congestion do"),
        ("fair_share", "rates: [pare]", "'pare' is no job; did you mean 'pair'"),
        ("fair_share", "rates: [npu9 -> npu0]", "has no endpoint 'npu9'; did you mean 'npu"),
        (
            "{model: congestion, control: dctcp}",
            "queues: [npu0 -> npu7]",
            "has no node 'npu7'; did you mean 'npu",
        ),
        (
            "{model: congestion, control: dctcp}",
            "queues: [npu0]",
            "is not a link; write it as in 'npu0 -> npu1'",
        ),
        ("fair_share", "rates: [pair], every: 0s", "at least 1"),
    ],
)
def test_mistakes_are_named(network: str, record: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        cosim.run(HALVED.replace("fair_share", network).replace("events", "#") + f"record: {{{record}}}\n")
    assert said in str(error.value)


def test_too_many_series_and_none_are_refused() -> None:
    big = HALVED.replace("ring, endpoints: 2", "ring, endpoints: 160").split("events")[0]
    with pytest.raises(InputError, match="25,600 pairs of endpoints"):
        cosim.run(big + "record: {rates: '* -> *'}\n")
    with pytest.raises(InputError, match="the run has no queues over time"):
        _ = cosim.run(HALVED).queues


HOSTS = """
topology:
  kind: leaf_spine
  leaves: 2
  spines: 1
  endpoints_per_leaf: 4
  latency: 1us
  hosts: {gpus: 2, nvlink_rate: 300GB/s, nics: 2, nic_rate: 100Gbps}
network: {model: hybrid, scale_up: fair_share, scale_out: {model: congestion, control: dctcp}}
jobs: [{name: all, workload: {kind: collective, collective: all_reduce, ranks: 8, size: 1MB}}]
record: {queues: LINKS}
"""


def test_queues_of_a_part_of_a_hybrid_that_has_none_are_refused_before_the_run() -> None:
    with pytest.raises(InputError, match=r"scale_up is fair_share, which keeps no queues over time, and gpu"):
        cosim.run(HOSTS.replace("LINKS", "'* -> *'"))
    assert cosim.run(HOSTS.replace("LINKS", "'leaf* -> spine*'")).queues.to_pandas().shape[0] > 0
