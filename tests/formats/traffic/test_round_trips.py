"""What a run is written as is read as what it was: the same matrices, the same collectives, times to 1 us."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random

import numpy as np
import pytest

import cosim
from cosim.captures.hosts import named, read_hosts
from cosim.captures.read import read_capture
from cosim.captures.traffic import I64, Transfers
from cosim.errors import InputError, SimulationError
from cosim.experiment.scenario import Scenario
from cosim.formats.flow_csv.write import FlowsFormat
from cosim.formats.inspector.write import InspectorFormat
from cosim.formats.pcap.write import PcapFormat
from cosim.results.traffic.analysis import analyse_capture
from cosim.results.traffic.causes import LINK
from cosim.results.traffic.read import capture_of_messages
from tests.lab.validation.slow_causes import NOTHING, drawn, tried
from tests.lab.validation.slow_causes import named as named_cause

SCENARIO = """
topology: {kind: leaf_spine, leaves: 2, spines: 2, endpoints_per_leaf: 4, rate: 100Gbps, latency: 500ns}
network: fair_share
record: {messages: npz}
collectives: {all_reduce: ring, all_gather: direct}
jobs:
  - iterations: 3
    workload:
      kind: operations
      mesh: {dp: 2, tp: 4}
      programs:
        - operations:
            - {name: work, kind: compute, duration: 30us}
            - {name: sum, kind: collective, collective: all_reduce, size: 1000001, axes: [tp], deps: [work]}
            - {name: all, kind: collective, collective: all_gather, size: 5003, axes: [dp], stream: b}
            - {name: wait, kind: compute, duration: 20us, deps: [sum, all]}
"""


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return cosim.loads(SCENARIO)


@pytest.fixture(scope="module")
def run(scenario: Scenario) -> cosim.Run:
    return cosim.run(scenario)


def sorted_rows(found: Transfers, names: list[str]) -> I64:
    """int64[5, transfers]: hosts by name, bytes, start and end in nanoseconds from the first."""
    number = np.array([names.index(name) for name in found.hosts])
    zero = found.start_ps.min()
    times = ((found.start_ps - zero + 500) // 1000, (found.end_ps - zero + 500) // 1000)
    columns = np.stack([number[found.src], number[found.dst], found.size_bytes, *times])
    return columns[:, np.lexsort(columns[::-1])]


@pytest.mark.parametrize("form", [PcapFormat(mtu=1024), PcapFormat(mtu=4096), FlowsFormat()])
def test_matrices_and_times_come_back(
    scenario: Scenario, run: cosim.Run, form: PcapFormat | FlowsFormat, tmp_path: Path
) -> None:
    cosim.translate(scenario, form, tmp_path)
    capture = read_capture(tmp_path / form.file)
    if isinstance(form, PcapFormat):
        capture = named(capture, read_hosts(tmp_path / "hosts.yaml"))
    messages = run.records.messages
    assert messages is not None
    assert capture.transfers is not None
    names = run.records.topology.node_names
    kept = messages.src != messages.dst
    assert kept.all()
    own = capture_of_messages("run", messages, names, ["job"]).transfers
    assert own is not None
    expected, found = (sorted_rows(one, list(names)) for one in (own, capture.transfers))
    assert np.array_equal(expected[:3], found[:3])
    assert np.abs(expected[3:] - found[3:]).max() <= 1000
    assert not any("sent again" in note or "missing" in note for note in capture.notes)


def test_collectives_come_back(scenario: Scenario, run: cosim.Run, tmp_path: Path) -> None:
    cosim.translate(scenario, InspectorFormat(), tmp_path)
    logged = read_capture(tmp_path).collectives
    assert logged is not None
    records = list(run.records.collectives)
    assert len(logged) == sum(len(one.ranks) for one in records)
    assert len(logged.groups) == len({one.ranks for one in records})
    zero = min(one.start_ps for one in records)
    for kind, word in (("all_reduce", "AllReduce"), ("all_gather", "AllGather")):
        mine = logged.kind == logged.kinds.index(word)
        expected = sorted(
            (one.start_ps - zero, one.end_ps - zero) for one in records if one.collective == kind
        )
        seen = []
        for group, number in sorted(set(zip(logged.group[mine], logged.number[mine], strict=True))):
            rows = (logged.group == group) & (logged.number == number)
            end = (logged.start_ps + logged.duration_ps)[rows].max()
            seen.append((int(logged.start_ps[rows].min()), int(end)))
        assert np.abs(np.array(expected) - np.array(sorted(seen))).max() <= 1_000_000
        assert set(logged.size_bytes[mine].tolist()) == {1000001 if kind == "all_reduce" else 5003}


def test_a_runs_analysis_has_its_bytes_its_iteration_and_its_patterns(run: cosim.Run) -> None:
    messages = run.records.messages
    assert messages is not None
    found = analyse_capture(capture_of_messages("run", messages, run.records.topology.node_names, ["job"]))
    assert found.size_bytes == int(messages.size_bytes.sum())
    dense = np.zeros((8, 8), np.int64)
    np.add.at(dense, (messages.src, messages.dst), messages.size_bytes)
    mine = np.zeros((8, 8), np.int64)
    mine[found.pairs[:, 0], found.pairs[:, 1]] = found.pairs[:, 2]
    assert np.array_equal(dense, mine)
    (part,) = found.parts
    assert part.periods[0].period_ps == pytest.approx(run.summary.jobs[0].iteration_mean_ps, rel=0.005)
    named_ones = {(pattern.name, len(pattern.order), groups) for pattern, groups in part.patterns}
    assert named_ones == {("ring", 4, 2), ("pair", 2, 4)}


def straggled(
    scenario: Scenario, changes: Mapping[str, object], out: Path
) -> tuple[list[str], list[tuple[str, ...]]]:
    cosim.translate(scenario, InspectorFormat(), out, set=changes)
    found = analyse_capture(read_capture(out)).logged
    assert found is not None
    return [one.process for one in found.slow_ranks], [one.processes for one in found.slow_groups]


def test_a_slow_rank_is_named_and_nobody_without(scenario: Scenario, tmp_path: Path) -> None:
    more = {"jobs[0].iterations": 6}
    assert straggled(scenario, more, tmp_path / "none") == ([], [])
    slow = {**more, "jobs[0].stragglers": [{"ranks": [5], "factor": 1.5}]}
    assert straggled(scenario, slow, tmp_path / "one")[0] == ["gpu5:6"]


def test_a_slow_link_shows_in_its_communicator(tmp_path: Path) -> None:
    text = SCENARIO.replace("leaves: 2", "leaves: 8").replace("{dp: 2, tp: 4}", "{dp: 8, tp: 4}")
    slow = {"events": [{"at": "0s", "link": "gpu9 <-> leaf2", "rate": "30Gbps"}]}
    assert straggled(cosim.loads(text), {}, tmp_path / "none") == ([], [])
    groups = straggled(cosim.loads(text), slow, tmp_path / "one")[1]
    assert groups[0] == ("gpu10:11", "gpu11:12", "gpu8:9", "gpu9:10")


def port_bytes(run: cosim.Run) -> dict[str, tuple[int, int]]:
    """What ports that face a host have to count, in and out, by the messages of a run."""
    messages, names = run.records.messages, run.records.topology.node_names
    assert messages is not None
    sent, got = (np.bincount(ends, messages.size_bytes, 8) for ends in (messages.src, messages.dst))
    return {
        f"leaf{host // 4}:{names[host]}": (round(sent[host]), round(got[host])) for host in range(len(sent))
    }


@pytest.mark.parametrize("every", ["5us", "1ms"])
def test_counters_have_the_bytes_of_messages_within_what_links_carry(
    scenario: Scenario, run: cosim.Run, every: str, tmp_path: Path
) -> None:
    cosim.translate(scenario, {"kind": "counters", "every": every}, tmp_path)
    ports = {one.name: one for one in read_capture(tmp_path / "counters.csv").ports}
    found = {name: (int(one.in_bytes.sum()), int(one.out_bytes.sum())) for name, one in ports.items()}
    expected = port_bytes(run)
    assert {name: found[name] for name in expected} == expected
    assert set(found) - set(expected) == {f"leaf{leaf}:spine{spine}" for leaf in (0, 1) for spine in (0, 1)}
    crossing = sum(found[f"leaf0:spine{spine}"][1] for spine in (0, 1))
    assert crossing == sum(found[f"leaf1:spine{spine}"][0] for spine in (0, 1)) > 0
    analysed = analyse_capture(read_capture(tmp_path / "counters.csv")).ports
    assert analysed is not None
    assert float(analysed.peak_bps.max()) <= 100e9 * 1.001


@pytest.mark.parametrize(
    ("changes", "every", "message"),
    [
        ({}, "1ns", "ports each 1 ns give"),
        (
            {"topology": {"kind": "ring", "endpoints": 8, "rate": "80Gbps", "latency": "1us"}},
            "1us",
            "no switch",
        ),
        (
            {"network": {"model": "fair_share", "balancer": "spray"}},
            "1us",
            "isn't known where a load balancer",
        ),
    ],
)
def test_counters_that_cannot_be_written_are_refused(
    scenario: Scenario, changes: Mapping[str, object], every: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises((InputError, SimulationError), match=message):
        cosim.translate(scenario, {"kind": "counters", "every": every}, tmp_path / "out", set=changes)
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize("count", [1, pytest.param(6, marks=pytest.mark.slow)])
def test_causes_that_are_drawn_are_named(count: int) -> None:
    found = tried(count, 7)
    assert {kind: times["right"] for kind, times in found.items()} == dict.fromkeys(found, count)


def test_no_link_is_named_where_samples_are_longer_than_a_step() -> None:
    kind, _ = named_cause(1, drawn(LINK, Random(1))[0], 400)
    assert kind == NOTHING
