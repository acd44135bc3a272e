"""What NCCL's collectives take inside one host, by system: fitted laws of a ring, direct exchange and NVLS.

Fitted to NCCL 2.27 and 2.29 on 2, 4 and 8 GPUs (ai-dynamo/aiconfigurator, Apache-2.0; every other row,
``python -m tests.validation.nccl_tables``). A ring of N has N - 1 steps, twice that for an all-reduce. Small
operations go by LL, whose flags halve its rate; larger ones start later, as channels fill, and their ends
don't overlap (``drain``, in steps). NVLS: NVSwitch adds up what all GPUs have of a share and sends the sum
to all (Klenk et al., "An In-Network Architecture for Accelerating Shared-Memory Multiprocessor Collectives",
ISCA 2020, doi:10.1109/ISCA45697.2020.00085): a GPU's link carries 1 + 1/N of the data each way, where a
ring's carries 2 - 2/N.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cosim.pattern.template import Collective

SystemName = Literal["a100", "h100", "h200", "b200", "gb200"]
HostWay = Literal["LL", "wide", "nvls"]
_LL_DIRECT = 16384
"""Bytes of the largest message of a direct exchange that goes by LL (``NCCL_P2P_LL_THRESHOLD``)."""


@dataclass(frozen=True, slots=True)
class HostLaw:
    """A system's numbers; times in microseconds, rates in bytes per microsecond.

    Attributes
    ----------
    link_rate
        Of a GPU to its peers, one way, by its data sheet.
    ll_most
        Bytes of the largest operation that goes by LL.
    ll_start, ll_hop, ll_rate
        From the last arrival to the first byte; a step's latency; data a ring's step carries.
    start, half, hop, efficiency, drain
        The same of larger operations: ``start`` grows with the size and is half at ``half`` bytes; of the
        link's rate; the part of a step that a ring's ends take beside.
    direct_start, direct_efficiency, direct_drain
        The same of messages straight to each peer.
    nvls_start, nvls_efficiency
        Of an all-reduce that the switch adds up; 0: the system has none.
    """

    link_rate: float
    ll_most: int
    ll_start: float
    ll_hop: float
    ll_rate: float
    start: float
    hop: float
    efficiency: float
    drain: float
    direct_start: float
    direct_efficiency: float
    direct_drain: float
    nvls_start: float = 0.0
    nvls_efficiency: float = 0.0
    half: int = 1 << 23

    def way(self, collective: Collective, ranks: int, size_bytes: int) -> HostWay:
        """By what an operation goes: ``size_bytes`` of the whole buffer."""
        if collective in (Collective.ALL_TO_ALL, Collective.SEND_RECV):
            message = size_bytes // ranks if collective is Collective.ALL_TO_ALL else size_bytes
            return "LL" if message <= _LL_DIRECT else "wide"
        if size_bytes <= self.ll_most:
            return "LL"
        nvls = collective is Collective.ALL_REDUCE and ranks >= _NVLS_RANKS and self.nvls_efficiency > 0
        if nvls and self.nvls_us(ranks, size_bytes) < self.ring_us(collective, ranks, size_bytes, "wide"):
            return "nvls"
        return "wide"

    def start_us(self, way: HostWay, size_bytes: int, *, direct: bool = False) -> float:
        """From the last arrival to the first byte."""
        if way == "nvls":
            return self.nvls_start
        if way == "LL":
            return self.ll_start
        if direct:
            return self.ll_start + self.direct_start
        return self.ll_start + self.start * size_bytes / (size_bytes + self.half)

    def hop_us(self, way: HostWay, *, direct: bool = False) -> float:
        """A step's latency."""
        return 0.0 if way == "nvls" else self.hop if way == "wide" and not direct else self.ll_hop

    def data_per_wire(self, way: HostWay, ranks: int, *, direct: bool = False) -> float:
        """Bytes of data for each byte that a GPU's link carries meanwhile."""
        if way == "nvls":  # of the 2 (N - 1) shares that an all-reduce's messages are, N + 1 go over a link
            return self.nvls_efficiency * 2 * (ranks - 1) / (ranks + 1)
        if way == "LL":
            return self.ll_rate / self.link_rate
        return self.direct_efficiency if direct else self.efficiency

    def drained(self, *, direct: bool = False, both: bool = False) -> float:
        """Steps' data that the ends of an operation take beside."""
        return self.direct_drain if direct else self.drain / 2 if both else self.drain

    def ring_us(self, collective: Collective, ranks: int, size_bytes: int, way: HostWay) -> float:
        """A ring alone."""
        both = collective is Collective.ALL_REDUCE
        steps = (2 if both else 1) * (ranks - 1)
        rate = self.link_rate * self.data_per_wire(way, ranks)
        moved = (steps + self.drained(both=both)) * size_bytes / ranks
        return self.start_us(way, size_bytes) + steps * self.hop_us(way) + moved / rate

    def nvls_us(self, ranks: int, size_bytes: int) -> float:
        """An all-reduce that the switch adds up."""
        return self.nvls_start + (1 + 1 / ranks) * size_bytes / (self.link_rate * self.nvls_efficiency)

    def direct_us(self, ranks: int, size_bytes: int, way: HostWay) -> float:
        """An all-to-all."""
        rate = self.link_rate * self.data_per_wire(way, ranks, direct=True)
        moved = (ranks - 1 + self.direct_drain) * size_bytes / ranks
        return self.start_us(way, size_bytes, direct=True) + self.ll_hop + moved / rate

    def seconds(self, collective: Collective, ranks: int, size_bytes: int) -> float:
        """An operation alone, all ranks there at once; ``size_bytes`` of the whole buffer."""
        way = self.way(collective, ranks, size_bytes)
        if collective is Collective.ALL_TO_ALL:
            return self.direct_us(ranks, size_bytes, way) / 1e6
        if way == "nvls":
            return self.nvls_us(ranks, size_bytes) / 1e6
        return self.ring_us(collective, ranks, size_bytes, way) / 1e6


_NVLS_RANKS = 8
"""Fewer GPUs than these take a ring on the measured systems."""

SYSTEMS: dict[SystemName, HostLaw] = {
    "a100": HostLaw(300e3, 1 << 18, 10.0, 0.79, 36.98e3, 62.9, 0.87, 0.713, 0.223, 6.51, 0.619, 0.253),
    "h100": HostLaw(
        450e3, 1 << 21, 5.62, 0.737, 159.1e3, 28.6, 0.53, 0.783, 0.379, 6.76, 0.653, 0.121, 66.0, 0.65
    ),
    "h200": HostLaw(
        450e3, 1 << 21, 5.48, 0.835, 164.7e3, 26.0, 0.66, 0.793, 0.395, 6.17, 0.662, 0.069, 66.0, 0.67
    ),
    "b200": HostLaw(
        900e3, 1 << 21, 8.63, 1.21, 329.1e3, 19.3, 3.12, 0.752, 0.49, 6.81, 0.625, 0.652, 77.0, 0.531
    ),
    "gb200": HostLaw(
        900e3, 1 << 21, 8.93, 1.13, 295.7e3, 0.0, 10.3, 0.791, 0.622, 6.34, 0.62, 0.603, 77.0, 0.531
    ),
}
"""By the name that ``nccl``'s ``system`` has; GB200's NVLS is B200's: on four GPUs NCCL takes none."""


def system_of(link_rate_bps: float) -> SystemName | None:
    """The system whose NVLink has that rate, one way; None: before NVLS."""
    if link_rate_bps < 400e9 * 8:
        return None
    return "h100" if link_rate_bps < 800e9 * 8 else "b200"
