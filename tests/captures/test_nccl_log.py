"""NCCL's log lines, written as its sources print them (``init.cc``, ``rings.cc``, ``transport/*.cc``)."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from cosim.captures.read import read_capture
from cosim.captures.traffic import LoggedCommunicator
from cosim.errors import InputError
from cosim.experiment.scenario import Scenario
from cosim.experiment.traffic import rings_of
from cosim.results.traffic.rings import BETWEEN, OTHER, SAME, analyse_communicators, rings_beside

FOUR_NICS = """0 7 6 5 4 3 2 1 8 15 14 13 12 11 10 9 16 23 22 21
0 3 10 15 14 13 12 9 8 11 18 23 22 21 20 17 16 19 26 31
0 7 6 5 12 11 10 9 8 15 14 13 20 19 18 17 16 23 22 21
0 5 4 7 14 11 10 9 8 13 12 15 22 19 18 17 16 21 20 23"""
"""The rings of 4 hosts of 8 A100s with 4 NICs, cut after 20 ranks. NCCL 2.14.3 printed them in Zhejiang Lab's
job (2024, CC BY 4.0), and NVIDIA/nccl issue 514 has the same ones of another cluster of 2021."""
TREES = ["1/16/-1->0->-1", *["1/-1/-1->0->7"] * 3, "1/-1/-1->0->8", *["1/-1/-1->0->7"] * 3]
"""Rank 0's places in that job's trees."""


def zhejiang(version: str = "2.14.3") -> str:
    who = "h1:10:20 [0] NCCL INFO"
    orders = [line.split() for line in FOUR_NICS.splitlines()] * 2
    lines = [f"NCCL version {version}+cuda11.7"]
    for channel, order in enumerate(orders):
        lines.append(f"{who} Channel {channel:02}/08 : " + "".join(f"{rank:>4}" for rank in order))
    lines.append(f"{who} Trees" + "".join(f" [{at}] {one}" for at, one in enumerate(TREES)))
    lines.append(f"{who} Channel 00/0 : 25[16000] -> 0[10000] [receive] via NET/IB/0/GDRDMA")
    lines.append(f"{who} comm 0x5b rank 0 nranks 32 cudaDev 0 busId 10000 - Init COMPLETE")
    return "\n".join(lines) + "\n"


def read(tmp_path: Path, text: str) -> tuple[LoggedCommunicator, ...]:
    path = tmp_path / "nccl.log"
    path.write_text(text)
    return read_capture(path).communicators


def hosts(count: int, nics: int = 4, gpus: int = 8, **more: object) -> Scenario:
    nvlink = {"nvlink_rate": "2.4Tbps", "nvlink_latency": "300ns", "nics": nics, "nic_rate": "200Gbps"}
    topology = {"kind": "leaf_spine", "leaves": 1, "spines": 1, "endpoints_per_leaf": count * gpus}
    job = {"workload": {"kind": "collective", "collective": "all_reduce", "size": "1MB", "ranks": 2}}
    return Scenario.model_validate(
        {
            "topology": {**topology, "latency": "1us", "hosts": {"gpus": gpus, **nvlink}},
            "network": "fair_share",
            "jobs": [job],
            **more,
        }
    )


def verdicts(logged: tuple[LoggedCommunicator, ...], scenario: Scenario) -> list[tuple[tuple[int, ...], str]]:
    ours, theirs = analyse_communicators(rings_of(scenario, logged)), analyse_communicators(logged)
    return [(row.ring.channels, row.verdict) for row in rings_beside(ours, theirs).rings]


def test_rings_of_a_real_job_are_those_that_are_expected(tmp_path: Path) -> None:
    logged = read(tmp_path, zhejiang())
    (one,) = logged
    assert (one.num_ranks, one.num_channels, one.version) == (32, 8, "2.14.3")
    ours, theirs = analyse_communicators(rings_of(hosts(4), logged)), analyse_communicators(logged)
    found = rings_beside(ours, theirs)
    assert [(row.ring.channels, row.ring.steps, row.verdict) for row in found.rings] == [
        ((0, 4), 19, SAME),
        ((1, 5), 19, SAME),
        ((2, 6), 19, SAME),
        ((3, 7), 19, SAME),
    ]
    assert found.channels == (8, 8)
    assert found.trees == (8, 8)
    assert (found.rings[0].nics, found.rings[0].expected_nics) == ((0,), (0,))


def test_newer_versions_pass_neighbours_first_and_the_same_hosts(tmp_path: Path) -> None:
    found = verdicts(read(tmp_path, zhejiang("2.21.5")), hosts(4))
    assert found == [((0, 4), SAME), ((1, 5), BETWEEN), ((2, 6), SAME), ((3, 7), BETWEEN)]


def test_another_ring_is_told(tmp_path: Path) -> None:
    swapped = zhejiang().replace("1   8  15", "1  16  15").replace("9  16  23", "9   8  23")
    assert verdicts(read(tmp_path, swapped), hosts(4))[0] == ((0, 4), OTHER)
    assert verdicts(read(tmp_path, zhejiang()), hosts(4, nics=2))[1] == ((1, 5), OTHER)


def ranks_of(order: list[int], comm: str) -> list[list[str]]:
    """What each rank says of one ring on two channels; the first rank also prints the rings."""
    count = len(order)
    said = []
    for at, rank in enumerate(order):
        before, after = order[at - 1], order[(at + 1) % count]
        who = f"node{rank // 4}:{100 + rank}:{200 + rank} [{rank % 4}] NCCL INFO"
        begins = f"{who} ncclCommInitRank comm 0x5{rank} rank {rank} nranks {count} cudaDev 0 commId {comm}"
        lines = [f"{begins} - Init START"]
        if rank == 0:
            lines += [f"{who} Channel {channel:02}/02 : " + " ".join(map(str, order)) for channel in (0, 1)]
        for channel in (0, 1):
            lines.append(f"{who} Ring {channel:02} : {before} -> {rank} -> {after}")
            way = "P2P/CUMEM" if rank // 4 == after // 4 else "[send] via NET/IB/0/GDRDMA"
            way = way if "via" in way else f"via {way}"
            lines.append(f"{who} Channel {channel:02}/0 : {rank}[0] -> {after}[0] {way}")
        said.append([*lines, f"{begins} - Init COMPLETE"])
    return said


@pytest.mark.parametrize("prefix", ["", "[1,0]<stdout>:", "2026-01-02T03:04:05Z ", "(RayWorker pid=7) "])
def test_lines_of_ranks_may_be_mixed_and_prefixed(tmp_path: Path, prefix: str) -> None:
    """Two communicators of the same ranks, one after the other on each; ranks interleave."""
    random = Random(5)
    orders = [[0, 1, 2, 3, 7, 6, 5, 4], [0, 3, 2, 1, 5, 6, 7, 4]]
    threads = [a + b for a, b in zip(ranks_of(orders[0], "0xaa"), ranks_of(orders[1], "0xbb"), strict=True)]
    # Which rank stands at which place of a ring differs: lines of a thread are those of one rank.
    by_rank: dict[str, list[str]] = {}
    for lines in threads:
        for line in lines:
            by_rank.setdefault(line.split()[0], []).append(line)
    left = list(by_rank.values())
    mixed = []
    while left:
        lines = random.choice(left)
        mixed.append(prefix + lines.pop(0))
        left = [one for one in left if one]
    first, second = sorted(read(tmp_path, "\n".join(mixed)), key=lambda one: one.name)
    for one, order in ((first, orders[0]), (second, orders[1])):
        nexts = dict(zip(order, order[1:] + order[:1], strict=True))
        assert one.nexts == {0: nexts, 1: nexts}
        assert one.contradictions == ()
        assert {one.hosts[rank] for rank in range(4)} == {"node0"}
        assert len(one.ways) == 16
    assert first.name == "0xaa"


def test_groups_without_an_id_are_told_apart_by_what_they_say(tmp_path: Path) -> None:
    """Before 2.18: two groups of the same size at once, whose rings differ."""
    lines = []
    for pid, order in ((1, [0, 1, 2]), (2, [0, 2, 1])):
        who = f"a:{pid}:{pid} [0] NCCL INFO"
        lines += [f"{who} Channel 00/01 :    " + "   ".join(map(str, order))]
        lines += [f"{who} comm 0x1 rank 0 nranks 3 cudaDev 0 busId 1 - Init COMPLETE"]
    for pid, (before, after) in ((3, (0, 2)), (4, (2, 0))):
        who = f"a:{pid}:{pid} [1] NCCL INFO"
        lines += [f"{who} Ring 00 : {before} -> 1 -> {after}"]
        lines += [f"{who} comm 0x1 rank 1 nranks 3 cudaDev 1 busId 1 - Init COMPLETE"]
    found = read(tmp_path, "\n".join(lines))
    assert [sorted(one.hosts) for one in found] == [[0, 1], [0, 1]]
    assert [one.nexts[0] for one in found] == [{0: 1, 1: 2, 2: 0}, {0: 2, 2: 1, 1: 0}]


@pytest.mark.parametrize(
    ("lines", "nexts", "parents", "ways"),
    [
        ("Ring 00 : 35 -> 34 [send] via NET/Socket/0", {}, {}, {(0, 35, 34): "NET/Socket/0"}),
        ("Ring 01 : 0[1b000] -> 7[41000] via P2P/IPC", {}, {}, {(1, 0, 7): "P2P/IPC"}),
        ("Trees [0] 26->25->-1/-1/-1", {}, {0: {25: 26}}, {}),
        ("Trees [0] 1/-1/-1->0->7|7->0->1/-1/-1 [1] 8/1/-1->0->-1", {}, {0: {0: 7}, 1: {0: -1}}, {}),
        ("Channel 00/02 : 0 1 2 3 4 5...", {0: {0: 1, 1: 2, 2: 3, 3: 4}}, {}, {}),
        ("Channel 07 : 2[6] -> 3[7] via SHM/direct/direct", {}, {}, {(7, 2, 3): "SHM/direct/direct"}),
        ("Channel 3/1 : 5[5] -> 13[5] [send] via NET/IB/5(12)", {}, {}, {(3, 5, 13): "NET/IB/5(12)"}),
    ],
)  # fmt: skip
def test_what_versions_print(
    tmp_path: Path, lines: str, nexts: object, parents: object, ways: object
) -> None:
    """2.4, 2.5, 2.30 (a cut number is left out), 2.14, and PXN."""
    (one,) = read(tmp_path, f"h:1:2 [0] NCCL INFO {lines}\n")
    assert (one.nexts, one.parents, one.ways) == (nexts, parents, ways)


def test_two_messages_in_a_line(tmp_path: Path) -> None:
    glued = "n1:1:1 [0] NCCL INFO Channel 00/02 : 0 1n1:1:2 [1] NCCL INFO Ring 00 : 0 -> 1 -> 0\n"
    (one,) = read(tmp_path, "n1:1:1 [0] NCCL INFO Channel 01/02 : 0 1\n" + glued)
    assert one.nexts == {0: {0: 1, 1: 0}, 1: {0: 1, 1: 0}}
    assert one.hosts == {0: "n1", 1: "n1"}


def test_lines_that_contradict_each_other_are_told(tmp_path: Path) -> None:
    comm = "NCCL INFO comm 0x1 rank {} nranks 2 commId 0xa - Init START\n"
    path = tmp_path / "a.log"
    path.write_text(
        f"n:1:1 [0] {comm.format(0)}n:1:1 [0] NCCL INFO Channel 00/01 : 0 1\n"
        f"n:1:2 [1] {comm.format(1)}n:1:2 [1] NCCL INFO Ring 00 : 1 -> 1 -> 0\n"
    )
    found = read_capture(path)
    assert found.communicators[0].contradictions == ("channel 0 goes from 1 to 0 and to 1",)
    assert any("contradict" in note for note in found.notes)


def test_two_ranks_before_one_and_an_untold_number_of_ranks_are_told(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("n:1:1 [0] NCCL INFO Ring 00 : 3 -> 0 -> 1\nn:1:2 [2] NCCL INFO Ring 00 : 1 -> 2 -> 0\n")
    found = read_capture(path)
    assert found.communicators[0].contradictions == ("channel 0 goes to 0 from 3 and from 2",)
    assert any("doesn't say how many, and shows 4" in note for note in found.notes)


def test_what_cannot_be_read_or_compared_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none of rings, trees or connections"):
        read(tmp_path, "h:1:2 [0] NCCL INFO Using network IB\n")
    logged = read(tmp_path, zhejiang())
    job = {"workload": {"kind": "collective", "collective": "all_reduce", "size": "1MB", "ranks": 4}}
    ring = {"kind": "ring", "endpoints": 4, "rate": "1Gbps", "latency": "1us"}
    alone = {"topology": ring, "network": "fair_share", "jobs": [job]}
    with pytest.raises(InputError, match="no hosts with several GPUs"):
        rings_of(Scenario.model_validate(alone), logged)
    with pytest.raises(InputError, match="communicator of 32 ranks, and the topology 16 GPUs"):
        rings_of(hosts(2), logged)
    with pytest.raises(InputError, match="not by NCCL's rings"):
        rings_of(hosts(4, collectives={"all_reduce": "ring"}), logged)


def test_ranks_that_do_not_divide_over_hosts_have_no_expected_rings(tmp_path: Path) -> None:
    logged = read(tmp_path, "h:1:2 [0] NCCL INFO Channel 00/02 : 0 1 2 3 4 5 6 7 8\n")
    ours, theirs = analyse_communicators(rings_of(hosts(4), logged)), analyse_communicators(logged)
    found = rings_beside(ours, theirs)
    assert (found.rings, found.missing) == ((), ("9 ranks",))
    assert found.sentence == "b has no rings that can be set beside a's"
