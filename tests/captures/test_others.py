"""Flow records, counters of ports and NCCL Inspector's logs, written by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cosim.captures.hosts import named, read_hosts
from cosim.captures.read import read_capture
from cosim.errors import InputError
from cosim.results.traffic.ports import analyse_ports
from tests.captures.test_pcap import rows

ZEEK = """#separator \\x09
#fields\tts\tuid\tid.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\tproto\tservice\tduration\torig_bytes\tresp_bytes
1700000000.000001\tC1\t10.0.0.1\t5\t10.0.0.2\t6\ttcp\t-\t0.5\t100\t7
1700000001.000001\tC2\t10.0.0.1\t5\t10.0.0.2\t6\ttcp\t-\t-\t-\t-
#close\t2023
"""
NFDUMP = """ts,te,td,sa,da,sp,dp,pr,flg,fwd,stos,ipkt,ibyt
2024-01-01 00:00:00.250,2024-01-01 00:00:01,0.75,10.0.0.1,10.0.0.2,1,2,TCP,,0,0,5,1234
Summary
flows,bytes
1,1234
"""


def put(tmp_path: Path, text: str, name: str = "a.csv") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dst,src,size_bytes,start_us,duration_ms\nb,a,5,10,1\n", [("a", "b", 5, 0, 1_000_000)]),
        (
            "src,dst,size_bytes,start_ns,end_ns\na,b,5,10.5,20\nb,a,6,9,9\n",
            [("b", "a", 6, 0, 0), ("a", "b", 5, 1, 11)],
        ),
        (ZEEK, [("10.0.0.1", "10.0.0.2", 100, 0, 500_000_000), ("10.0.0.2", "10.0.0.1", 7, 0, 500_000_000)]),
        (NFDUMP, [("10.0.0.1", "10.0.0.2", 1234, 0, 750_000_000)]),
        (
            "2\n0 1 3 100 5000 2.000000001\n1 0 3 100 6000 2.0\n",
            [("1", "0", 6000, 0, 0), ("0", "1", 5000, 1, 1)],
        ),
    ],
)
def test_flow_records(tmp_path: Path, text: str, expected: list[object]) -> None:
    assert rows(read_capture(put(tmp_path, text))) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("src,dst,start_s\n", "a.csv:1: not flow records"),
        ("src,dst,size_bytes,start_s,end_s\na,b,5,2,1\n", "a.csv:2: not a flow: it ends before it starts"),
        ("src,dst,size_bytes,start_s,end_s\na,b,5,x,1\n", "a.csv:2: not a flow: a number is wrong"),
        (
            "src,dst,size_bytes,start_s,end_s\na,b,5,0,1\na,b,5,1e9,2e9\n",
            "a.csv:3: not a flow: times lie over",
        ),
        ("src,dst,size_bytes,start_s,end_s\n", "holds no flow"),
        ("3\n0 1 3 100 5000 2.0\n", "1 flows, and its first line says 3"),
        ("#fields\tts\tuid\n", "no conn.log"),
        ("port,time_s,in_bytes,out_bytes\nx,1,5,5\nx,1,5,5\n", "clock goes back or stands still at sample 1"),
        ("port,time_s,in_bytes,out_bytes\nx,1,-5,5\nx,2,5,5\n", "negative bytes at sample 0"),
        ("port,time_s,in_bytes\nx,1,5\n", "not counters of ports"),
        ("port,time_s,in_bytes,out_bytes\nx,1,5,5\n", "no port with two samples"),
        ("port,time_s,in_bytes,out_bytes," + "x" * 140_000, "a.csv:1: not CSV: field larger"),
        ('{"header": {}, "metadata": {}}\n', "a.csv:1: not a record of Inspector's"),
    ],
)
def test_mistakes_are_told_with_their_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_capture(put(tmp_path, text))


def test_counters_that_wrap_and_that_were_reset(tmp_path: Path) -> None:
    text = "port,time_s,in_total,out_total\n" + "".join(
        f"x,{at},{into},{out}\n"
        for at, (into, out) in enumerate([(4294967000, 100), (200, 200), (1200, 50), (1300, 80)])
    )
    capture = read_capture(put(tmp_path, text))
    (port,) = capture.ports
    assert port.in_bytes.tolist() == [0, 496, 1000, 100]
    assert port.out_bytes.tolist() == [0, 100, 0, 30]
    assert any("reset at sample 2" in note for note in capture.notes)


def test_a_difference_of_a_counter_that_wrapped_is_what_was_carried(tmp_path: Path) -> None:
    """As one leaf of Zhejiang Lab's has it, from a management port's 32 bits."""
    text = "port,time_ms,in_bytes,out_bytes\nx,0,1443,23509\nx,618,3786,-4294885894\nx,1150,1242,23432\n"
    capture = read_capture(put(tmp_path, text))
    assert capture.ports[0].out_bytes.tolist() == [23509, 81402, 23432]
    assert any("wrapped at sample 1" in note for note in capture.notes)


def test_ports_of_one_job_a_gap_and_the_samplers_own_period(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    apart = np.tile([500, 500, 500, 900], 500)
    apart[1000] = 250_000
    at = np.cumsum(apart)
    ports = {}
    for number, rate in enumerate([5e9] * 4 + [9e9] * 3 + [2e9, 3e9]):
        moved = (rate / 8e3 * apart * rng.uniform(0.999, 1.001, len(apart))).astype(np.int64)
        ports[f"p{number}"] = np.stack([at, moved, moved])
    np.savez(tmp_path / "ports.npz", **ports)  # type: ignore[arg-type]
    found = analyse_ports(read_capture(tmp_path / "ports.npz").ports)
    assert [set(group.ports) for group in found.groups] == [{"p0", "p1", "p2", "p3"}, {"p4", "p5", "p6"}]
    assert [group.periods for group in found.groups] == [(), ()]
    assert found.gap_ps == (250 * 10**12,)
    assert float(found.peak_bps.max()) < 9.1e9
    assert list(found.sampler) == [pytest.approx(2.4e12, rel=0.01)]


def record(rank: int, number: int, took: int, **more: object) -> str:
    value = {
        "header": {"id": "0x7", "rank": rank, "n_ranks": 4, "nnodes": 1},
        "metadata": {
            "inspector_output_format_version": "v4.0", "git_rev": "", "rec_mechanism": "profiler_plugin",
            "dump_timestamp_us": 1748030377748202, "hostname": "h", "pid": rank,
        },
        "coll_perf": {
            "coll": "AllReduce", "coll_sn": number, "coll_msg_size_bytes": 1 << 20, "coll_exec_time_us": took,
            "coll_algobw_gbs": 1.0, "coll_busbw_gbs": 1.0, **more,
        },
    }  # fmt: skip
    return json.dumps(value) + "\n"


def test_inspectors_records_without_event_times(tmp_path: Path) -> None:
    put(tmp_path, record(0, 1, 50) + record(0, 2, 60) + record(0, 3, 1)[:-20], "h-pid0.log")
    put(tmp_path, record(1, 1, 55), "h-pid1.log")
    capture = read_capture(tmp_path)
    logged = capture.collectives
    assert logged is not None
    assert logged.number.tolist() == [1, 2, 1]
    assert logged.duration_ps.tolist() == [50_000_000, 60_000_000, 55_000_000]
    assert (logged.start_ps == -1).all()
    assert any("end within a record" in note for note in capture.notes)


def test_another_version_of_inspectors_format_is_refused(tmp_path: Path) -> None:
    path = put(tmp_path, record(0, 1, 50).replace("v4.0", "v9.0"), "a.log")
    with pytest.raises(InputError, match=r"format v9\.0"):
        read_capture(path)


def test_addresses_of_one_host_are_one(tmp_path: Path) -> None:
    flows = "src,dst,size_bytes,start_s,end_s\n10.0.0.1,10.0.1.2,5,0,1\n"
    flows += "10.0.1.1,10.0.0.2,6,0,1\nz,10.0.0.2,1,0,1\n"
    hosts = put(tmp_path, "10.0.0.1: a\n10.0.1.1: a\n10.0.0.2: b\n10.0.1.2: b\n", "hosts.yaml")
    capture = named(read_capture(put(tmp_path, flows)), read_hosts(hosts))
    assert sorted((row[0], row[1], row[2]) for row in rows(capture)) == [
        ("a", "b", 5),
        ("a", "b", 6),
        ("z", "b", 1),
    ]
    assert any("1 addresses without a name: z" in note for note in capture.notes)
