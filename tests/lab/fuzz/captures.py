"""Captures, damaged: read and analysed, or refused."""

from __future__ import annotations

import io
import shutil
import tempfile
import weakref
from functools import cache
from itertools import chain
from pathlib import Path
from random import Random

import numpy as np

from cosim.captures.read import read_capture
from cosim.results.render.text import text
from cosim.results.render.traffic_page import traffic_page
from cosim.results.traffic.analysis import analyse_capture
from tests.captures.packets import ethernet, ipv4, ipv6, pcap, pcapng, roce, tcp, udp
from tests.captures.test_nccl_log import ranks_of, zhejiang
from tests.captures.test_others import NFDUMP, ZEEK, record
from tests.lab.fuzz.damage import damaged
from tests.lab.fuzz.tally import Target, drawn


def _packets() -> list[tuple[int, bytes]]:
    bodies = [
        ethernet(ipv4("10.0.0.1", "10.0.0.2", 6, tcp(at * 100, 100)), 0x0800, at % 2) for at in range(6)
    ]
    bodies += [ethernet(ipv6("fd00::1", "fd00::2", 17, udp(50)), 0x86DD)]
    bodies += [
        ethernet(ipv4("10.0.0.3", "10.0.0.1", 17, roce(op, at, 64)), 0x0800)
        for at, op in enumerate((6, 7, 8, 10))
    ]
    bodies += [ethernet(ipv4("10.0.0.1", "10.0.0.3", 17, roce(0x11, 2, 0)), 0x0800)]
    return [(1_700_000_000 * 10**9 + 1000 * at, body) for at, body in enumerate(bodies)]


def _ports() -> bytes:
    made = io.BytesIO()
    at = np.arange(30) * 500
    np.savez(made, a=np.stack([at, at + 7, at + 7]), b=np.stack([at, 10**9 + 0 * at, 10**9 + 0 * at]))
    return made.getvalue()


@cache
def bodies() -> dict[str, bytes]:
    """A valid file of each kind."""
    counters = "port,time_s,in_total,out_total\n" + "".join(
        f"p{at % 2},{at},{at * 9},{at * 8}\n" for at in range(20)
    )
    return {
        "pcap": pcap(_packets()),
        "pcapng": pcapng(_packets()),
        "flows": b"src,dst,size_bytes,start_ns,end_ns\na,b,5,1,2\nb,c,7,2,3\nc,a,7,2,9\n",
        "zeek": ZEEK.encode(),
        "nfdump": NFDUMP.encode(),
        "list": b"2\n0 1 3 100 5000 2.000000001\n1 0 3 100 6000 2.0\n",
        "inspector": "".join(record(at % 4, at // 4, 50 + at) for at in range(12)).encode(),
        "nccl": zhejiang().encode() + "\n".join(chain(*ranks_of([0, 2, 1, 3], "0xa"))).encode(),
        "counters": counters.encode(),
        "ports": _ports(),
    }


class _File:
    def __init__(self, name: str) -> None:
        self._place = Path(tempfile.mkdtemp(prefix="cosim-fuzz-"))
        weakref.finalize(self, shutil.rmtree, self._place, ignore_errors=True)
        self._path = self._place / name

    def __call__(self, body: bytes) -> None:
        self._path.write_bytes(body)
        text(traffic_page(analyse_capture(read_capture(self._path))))


def targets() -> list[Target]:
    """A reader each."""

    def of(name: str, body: bytes) -> Target:
        def draw(random: Random) -> bytes:
            return damaged(random, [body])

        return Target(name, drawn(draw), _File(name))

    return [of(name, body) for name, body in bodies().items()]
