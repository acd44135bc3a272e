"""Format ``pcap``: the messages of a run of ours as RoCEv2 packets, headers only, times in nanoseconds.

A message is an RDMA write: packets of ``mtu`` bytes at even distances from its start to its end, and the
receiver's acknowledgement at its end. Endpoint i has the address 10.x.y.z, where x, y, z are the bytes of i;
``hosts.yaml`` names each. Messages of a pair that are under way together have queue pairs of their own.
Payloads are not in the file, and checksums are 0, as offloading leaves them.
"""

from __future__ import annotations

from heapq import heappush, heapreplace
from pathlib import Path
from typing import BinaryIO, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from cosim.errors import InputError
from cosim.network.flows import before_in_pair
from cosim.translation.contract import Progress
from cosim.translation.loss_report import LossReport
from cosim.translation.message_level import OpenLoop
from cosim.translation.source import Source

I64 = NDArray[np.int64]

HOSTS_FILE = "hosts.yaml"
_MOST_PACKETS = 20_000_000
_MOST_ENDPOINTS = 1 << 20
_ROWS = 1 << 16
_HEADER = 16 + 14 + 20 + 8 + 12 + 16
_WRITE, _ACK = 16, 4
"""Bytes of an RDMA write's and an acknowledgement's own header, behind the base header."""


class PcapFormat(OpenLoop):
    """A packet capture: messages as RoCEv2 packets, at the times of a run of ours"""

    goes: ClassVar[str] = "each packet goes at"

    file: str = Field("run.pcap", pattern=r"^[^/\\]+$", description="name of the file")
    mtu: int = Field(4096, ge=256, le=65000, description="payload bytes of a packet; RoCEv2 has at most 4096")

    def write(self, source: Source, out: Path, report: LossReport, progress: Progress) -> None:
        """See :meth:`Format.write`."""
        messages = self.timed(source)
        count = np.maximum(-(-messages.size_bytes // self.mtu), 1)
        total = int(count.sum()) + len(count)
        if total > _MOST_PACKETS:
            raise InputError(
                f"{total:,} packets, of which {_MOST_PACKETS:,} are written at most",
                hint="fewer iterations, or larger packets: --to '{kind: pcap, mtu: 65000}'",
            )
        endpoints = source.topology.num_endpoints
        if endpoints > _MOST_ENDPOINTS:
            raise InputError(f"{endpoints:,} endpoints, of which {_MOST_ENDPOINTS:,} have addresses")
        src, dst = messages.src.astype(np.int64), messages.dst.astype(np.int64)
        times = messages.start_ps, messages.end_ps
        with (out / self.file).open("wb") as file:
            _write(file, (src, dst), messages.size_bytes, times, self.mtu, progress)
        names = (f"{_address(at)}: {name}" for at, name in enumerate(source.topology.node_names[:endpoints]))
        (out / HOSTS_FILE).write_text("\n".join(names) + "\n", encoding="utf-8")
        report.written("packets", total, f"{self.file}; {HOSTS_FILE} names the addresses")


def _address(endpoint: int) -> str:
    return f"10.{endpoint >> 16}.{endpoint >> 8 & 255}.{endpoint & 255}"


def _write(
    file: BinaryIO, ends: tuple[I64, I64], size: I64, times: tuple[I64, I64], mtu: int, progress: Progress
) -> None:
    """Write the file: its header, then packets in order of time."""
    (src, dst), (start_ps, end_ps) = ends, times
    file.write(np.array([0xA1B23C4D, 4 << 16 | 2, 0, 0, 65535, 1], "<u4").tobytes())
    count = np.maximum(-(-size // mtu), 1)
    row = np.repeat(np.arange(len(size)), count + 1)
    number = np.arange(len(row)) - np.repeat(np.cumsum(count + 1) - count - 1, count + 1)
    of = count[row]
    ack = number == of
    took = (end_ps - start_ps)[row]
    step = took // np.maximum(of, 1)
    time = np.where(ack, end_ps[row], start_ps[row] + number * step)
    order = np.lexsort((number, row, time))
    first, lane = before_in_pair(src, dst, count), _lanes(src, dst, start_ps, end_ps)
    for begin in range(0, len(order), _ROWS):
        chosen = order[begin : begin + _ROWS]
        one = row[chosen]
        packets = _packets(
            (src[one], dst[one]),
            size[one],
            number[chosen],
            of[chosen],
            (first[one] + np.minimum(number[chosen], of[chosen] - 1)) & 0xFFFFFF,
            time[chosen] // 1000,
            lane[one],
            mtu,
        )
        file.write(packets)
        progress(begin + len(chosen), len(order), "packets")


def _lanes(src: I64, dst: I64, start_ps: I64, end_ps: I64) -> I64:
    """The queue pair of each message: messages of one pair that are under way together have others."""
    lanes = np.empty(len(src), np.int64)
    free: dict[tuple[int, int], list[tuple[int, int]]] = {}
    order = np.lexsort((end_ps, start_ps)).tolist()
    rows = zip(*(column[order].tolist() for column in (src, dst, start_ps, end_ps)), strict=True)
    for at, (a, b, start, end) in zip(order, rows, strict=True):
        busy = free.setdefault((a, b), [])
        if busy and busy[0][0] < start:
            lane = heapreplace(busy, (end, busy[0][1]))[1]
        else:
            lane = len(busy)
            heappush(busy, (end, lane))
        lanes[at] = lane
    return lanes


def _packets(
    ends: tuple[I64, I64],
    size: I64,
    number: I64,
    of: I64,
    psn: I64,
    time_ns: I64,
    lane: I64,
    mtu: int,
) -> bytes:
    """The bytes of packets, each with its record's header."""
    ack, first, last = number == of, number == 0, number == of - 1
    payload = np.where(ack, 0, np.where(last, size - number * mtu, mtu))
    opcode = np.select([ack, first & last, first, last], [0x11, 10, 6, 8], default=7)
    more = np.select([ack, first], [_ACK, _WRITE], default=0)
    pad = -payload % 4
    udp = 8 + 12 + more + payload + pad + 4
    src, dst = (np.where(ack, ends[1 - at], ends[at]) for at in (0, 1))
    captured = 14 + 20 + 8 + 12 + more
    rows = np.zeros((len(size), _HEADER), np.uint8)

    def put(at: int, width: int, value: I64 | int, *, big: bool = True) -> None:
        for offset in range(width):
            shift = 8 * (width - 1 - offset if big else offset)
            rows[:, at + offset] = (np.asarray(value) >> shift) & 255

    for at, value in enumerate((time_ns // 10**9, time_ns % 10**9, captured, 14 + 20 + udp)):
        put(4 * at, 4, value, big=False)
    put(16, 6, dst | 0x02 << 40)
    put(22, 6, src | 0x02 << 40)
    put(28, 2, 0x0800)
    put(30, 2, 0x4500)
    put(32, 2, np.minimum(20 + udp, 65535))
    put(38, 2, 64 << 8 | 17)
    put(42, 4, src | 10 << 24)
    put(46, 4, dst | 10 << 24)
    put(50, 2, 49152 + lane % 16384)
    put(52, 2, 4791)
    put(54, 2, np.minimum(udp, 65535))
    put(58, 1, opcode)
    put(59, 1, 0x40 | pad << 4)
    put(60, 2, 0xFFFF)
    put(63, 3, lane + 1)
    put(67, 3, psn)
    put(66, 1, np.where(last, 0x80, 0))
    put(82, 4, np.where(ack, 0, size))
    kept = np.arange(_HEADER) < (16 + captured)[:, None]
    return rows[kept].tobytes()
