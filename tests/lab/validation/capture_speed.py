"""What ``cosim analyse`` takes for large captures: ``python -m tests.lab.validation.capture_speed [SHARE]``.

A pcap of 1 GB, whole frames of 1,500 bytes, the same of frames snapped at 128 bytes, and a million records of
NCCL Inspector's. Each is read and analysed by a process of its own: CPU seconds and most memory. With
SHARE 0.1 each is a tenth as large.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from tests.captures.packets import ethernet, ipv4, tcp

_GB = 10**9
_HOSTS = 64
_BLOCK = 10_000


def write_pcap(path: Path, size: int, frame: int, snap: int) -> int:
    """A ring of 64 hosts, packet by packet; how many packets."""
    length = 16 + min(frame, snap)
    row = np.zeros((_BLOCK, length), np.uint8)
    packet = ethernet(ipv4("10.0.0.1", "10.0.0.2", 6, tcp(0, frame - 54)), 0x0800)[:snap]
    row[:, 16:] = np.frombuffer(packet, np.uint8)
    fields = row[:, :16].view(np.uint32)
    fields[:, 2], fields[:, 3] = min(frame, snap), frame
    total = size // length
    with path.open("wb") as file:
        file.write(np.array([0xA1B2C3D4, 0x00040002, 0, 0, snap, 1], np.uint32).tobytes())
        for first in range(0, total, _BLOCK):
            at = np.arange(first, first + _BLOCK)
            fields[:, 0], fields[:, 1] = np.divmod(at, 10**6)
            host = at % _HOSTS
            row[:, 16 + 29], row[:, 16 + 33] = host + 1, (host + 1) % _HOSTS + 1
            sequence = (at // _HOSTS * (frame - 54)).astype(np.uint32).astype(">u4")
            row[:, 16 + 38 : 16 + 42] = sequence.view(np.uint8).reshape(-1, 4)
            file.write(row[: total - first].tobytes())
    return total


def write_inspector(path: Path, records: int) -> int:
    """All-reduces of 8 ranks in one file."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(records):
            rank, step = number % 8, number // 8
            record = {
                "header": {"id": "0x7", "rank": rank, "n_ranks": 8, "nnodes": 1},
                "metadata": {
                    "inspector_output_format_version": "v4.0",
                    "hostname": f"host{rank}",
                    "pid": 100 + rank,
                },
                "coll_perf": {
                    "coll": "AllReduce",
                    "coll_sn": step,
                    "coll_msg_size_bytes": 1 << 20,
                    "coll_exec_time_us": 200 + (step * 7 + rank) % 13,
                },
            }
            file.write(json.dumps(record) + "\n")
    return records


def measure(path: Path) -> None:
    """Print CPU seconds and MB of ``cosim analyse``."""
    child = os.fork()
    if not child:
        words = [sys.executable, "-m", "cosim", "analyse", str(path), "--json"]
        code = subprocess.run(words, stdout=subprocess.DEVNULL).returncode
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(
            f"  {used.ru_utime + used.ru_stime:.1f} CPU-s, {used.ru_maxrss / 1000:.0f} MB, exit code {code}",
            flush=True,
        )
        os._exit(code)
    os.waitpid(child, 0)


def main(share: float) -> None:
    """Write, read, measure."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place)
        for name, frame, snap in (("frames", 1500, 65535), ("snapped", 1500, 128)):
            packets = write_pcap(path / "large.pcap", round(share * _GB), frame, snap)
            print(
                f"pcap, {name}: {packets:,} packets, {(path / 'large.pcap').stat().st_size / 1e6:.0f} MB",
                flush=True,
            )
            measure(path / "large.pcap")
            (path / "large.pcap").unlink()
        records = write_inspector(path / "log.json", round(share * 10**6))
        print(f"Inspector: {records:,} records", flush=True)
        measure(path / "log.json")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0)
