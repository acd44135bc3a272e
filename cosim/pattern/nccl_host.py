"""What NCCL's collectives take inside one host, by system: fitted laws of a ring, direct exchange and NVLS.

Fitted to NCCL 2.27 and 2.29 on 2, 4 and 8 GPUs (ai-dynamo/aiconfigurator, Apache-2.0; every other row,
``python -m tests.lab.validation.nccl_tables --fit``). A ring of N has N - 1 steps, twice that for an
all-reduce. LL, LL128 or Simple is NCCL's own choice, by its estimate and the rates that it assumes of each
generation (``tuning.cc`` of NCCL 2.27 and later): that choice, not the fastest protocol, is why an operation
of 2 MB on two A100s takes twice what one on eight does. What each protocol takes is fitted: its start, a
step's latency, its rate, and what the ends of an operation take beside. Simple's grows as channels fill, and
beyond one ``loop`` of a ring through its buffers the loops' ends don't overlap.

NVLS: NVSwitch adds up what all GPUs have of a share and sends the sum to all (Klenk et al., "An In-Network
Architecture for Accelerating Shared-Memory Multiprocessor Collectives", ISCA 2020,
doi:10.1109/ISCA45697.2020.00085): a GPU's link carries 1 + 1/N of the data each way, where a ring's carries
2 - 2/N. It adds no numbers of one byte, and rings add those more slowly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cosim.pattern.nccl_tuning import BLACKWELL, HOPPER, PROTOCOLS, Generation, Links, estimate_us, nvls_chunk
from cosim.pattern.template import Collective

SystemName = Literal["a100", "h100", "h200", "b200", "gb200"]
HostWay = Literal["LL", "LL128", "Simple", "nvls"]
_LL_DIRECT = 16384
"""Bytes of the largest message of a direct exchange that goes by LL (``NCCL_P2P_LL_THRESHOLD``)."""
_HALF = 8e6
"""Bytes of an operation at which half of ``growth`` is reached."""
_HOPPER_RATE, _BLACKWELL_RATE = 300e3, 600e3
"""``assumed_rate`` of a generation's GPUs is at least this."""
_NVLS_RANKS = 8
"""Fewer GPUs than these take a ring on the measured systems."""
_NVLS_CHUNK = 64 << 10
"""A channel's chunk of the large all-reduces that were measured on so many GPUs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLaw:
    """A system's numbers; times in microseconds, rates in bytes per microsecond.

    Attributes
    ----------
    link_rate
        Of a GPU to its peers, one way, by its data sheet.
    assumed_rate, assumed_ll
        What NCCL's choice takes a ring's rate, and LL's at most, to be.
    ll128
        NCCL may choose LL128; on Blackwell no measured operation looks like it.
    ll_start, ll_hop, ll_rate, ll_drain
        From the last arrival to the first byte; a step's latency; data that a step carries; the part of a
        step that an operation's ends take beside.
    ll128_start, ll128_efficiency
        The same of LL128, whose steps take LL's latency; of the link's rate.
    start, growth, hop, efficiency, later, loop, drain
        The same of Simple, whose start grows with the size by up to ``growth``. Of a rank's share of the
        data what is beyond ``loop`` bytes is slower (``later``) and drained.
    adding, adding_bytes
        How much longer a step takes that adds numbers up: of two bytes and more, of one byte.
    direct_start, direct_growth, direct_efficiency, direct_drain
        The same of messages straight to each peer, beside LL's start.
    direct_ll_rate, direct_ll_hop
        Small messages have a channel of such a rate each; the latency of each peer more.
    nvls_start, nvls_efficiency
        Of an all-reduce that the switch adds up; 0: the system has none.
    """

    link_rate: float
    assumed_rate: float
    assumed_ll: float
    ll_start: float
    ll_hop: float
    ll_rate: float
    ll_drain: float
    ll128_start: float = 0.0
    ll128_efficiency: float = 0.0
    start: float
    growth: float
    hop: float
    efficiency: float
    later: float
    drain: float
    adding: float
    adding_bytes: float
    direct_start: float
    direct_growth: float
    direct_efficiency: float
    direct_drain: float
    direct_ll_rate: float
    direct_ll_hop: float
    nvls_start: float = 0.0
    nvls_efficiency: float = 0.0
    loop: int = 1 << 22

    @property
    def ll128(self) -> bool:
        """LL128 is chosen at all."""
        return self.ll128_efficiency > 0

    @property
    def generation(self) -> Generation | None:
        """Whose limits NCCL's choice between hosts goes by; None: before Hopper."""
        if self.assumed_rate < _HOPPER_RATE:
            return None
        return HOPPER if self.assumed_rate < _BLACKWELL_RATE else BLACKWELL

    def way(self, collective: Collective, ranks: int, size_bytes: int, number_bytes: int = 2) -> HostWay:
        """By what an operation goes: ``size_bytes`` of the whole buffer, of numbers of so many bytes."""
        if collective in (Collective.ALL_TO_ALL, Collective.SEND_RECV):
            return "LL" if _message(collective, ranks, size_bytes) <= _LL_DIRECT else "Simple"
        own = size_bytes // ranks if collective is Collective.ALL_GATHER else size_bytes
        links = Links(1, ranks, self.assumed_rate * 8e6, self.assumed_rate * 8e6, self.assumed_ll)
        among = [each for each in PROTOCOLS if each != "LL128" or self.ll128]
        way: HostWay = min(among, key=lambda each: estimate_us("ring", each, collective, own, links))
        switch = self.nvls_efficiency > 0 and number_bytes > 1 and ranks >= _NVLS_RANKS
        if way == "Simple" and collective is Collective.ALL_REDUCE and switch:
            ring = self.ring_us(collective, ranks, size_bytes, "Simple", number_bytes)
            return "nvls" if self.nvls_us(ranks, size_bytes) < ring else way
        return way

    # -- a ring, or the switch -------------------------------------------------------------------------

    def start_us(self, way: HostWay, ranks: int, size_bytes: int) -> float:
        """From the last arrival to the first byte."""
        if way == "nvls":
            return self.nvls_start_us(ranks, size_bytes)
        if way == "LL":
            return self.ll_start
        return self.ll128_start if way == "LL128" else self.start + _grown(self.growth, size_bytes)

    def hop_us(self, way: HostWay) -> float:
        """A step's latency."""
        return {"nvls": 0.0, "LL": self.ll_hop, "LL128": self.ll_hop, "Simple": self.hop}[way]

    def data_per_wire(
        self, way: HostWay, collective: Collective, ranks: int, size_bytes: int, number_bytes: int = 2
    ) -> float:
        """Bytes of data for each byte that a GPU's link carries meanwhile."""
        if way == "nvls":  # of the 2 (N - 1) shares that an all-reduce's messages are, N + 1 go over a link
            return self.nvls_efficiency * 2 * (ranks - 1) / (ranks + 1)
        if way == "LL":
            return self.ll_rate / self.link_rate
        longer = 0.0
        if collective is not Collective.ALL_GATHER:  # an all-reduce adds in half of its steps
            adding = self.adding if number_bytes > 1 else self.adding_bytes
            longer = adding / 2 if collective is Collective.ALL_REDUCE else adding
        if way == "LL128":
            return self.ll128_efficiency / (1 + longer)
        return self.efficiency / (1 + longer + self.later * self._beyond(ranks, size_bytes))

    def drain_us(self, way: HostWay, collective: Collective, ranks: int, size_bytes: int) -> float:
        """What the ends of an operation take beside."""
        if way == "LL":
            both = collective is Collective.ALL_REDUCE
            return self.ll_drain * (0.5 if both else 1.0) * size_bytes / ranks / self.ll_rate
        if way != "Simple":
            return 0.0
        beyond = self._beyond(ranks, size_bytes) * size_bytes / ranks
        return self.drain * beyond / (self.link_rate * self.efficiency)

    def _beyond(self, ranks: int, size_bytes: int) -> float:
        """The part of a rank's share that comes after the first loop."""
        return max(0.0, 1 - self.loop * ranks / size_bytes) if size_bytes else 0.0

    def ring_us(
        self, collective: Collective, ranks: int, size_bytes: int, way: HostWay, number_bytes: int = 2
    ) -> float:
        """A ring alone."""
        steps = (2 if collective is Collective.ALL_REDUCE else 1) * (ranks - 1)
        rate = self.link_rate * self.data_per_wire(way, collective, ranks, size_bytes, number_bytes)
        ends = self.start_us(way, ranks, size_bytes) + self.drain_us(way, collective, ranks, size_bytes)
        return ends + steps * (self.hop_us(way) + size_bytes / ranks / rate)

    def nvls_start_us(self, ranks: int, size_bytes: int) -> float:
        """The start of an all-reduce that the switch adds up, us.

        As it was measured on up to eight GPUs, beyond those in
        proportion to what all have in their first chunks, which fill the switch before anything comes back.
        """
        if ranks <= _NVLS_RANKS:
            return self.nvls_start
        chunk = nvls_chunk(size_bytes, ranks)
        return max(self.nvls_start, self.nvls_start * ranks * chunk / (_NVLS_RANKS * _NVLS_CHUNK))

    def nvls_us(self, ranks: int, size_bytes: int) -> float:
        """An all-reduce that the switch adds up."""
        rate = self.link_rate * self.nvls_efficiency
        return self.nvls_start_us(ranks, size_bytes) + (1 + 1 / ranks) * size_bytes / rate

    # -- straight to each peer -------------------------------------------------------------------------

    def direct_start_us(self, way: HostWay, size_bytes: int) -> float:
        """From the last arrival to the first byte."""
        if way == "LL":
            return self.ll_start
        return self.ll_start + self.direct_start + _grown(self.direct_growth, size_bytes)

    def direct_hop_us(self, way: HostWay, ranks: int, message_bytes: float) -> float:
        """From a message's last byte to its receiver's next work."""
        if way != "LL":
            return 0.0
        return self.ll_hop + self.direct_ll_hop * (ranks - 2) + message_bytes / self.direct_ll_rate

    def direct_data_per_wire(self, way: HostWay) -> float:
        """Bytes of data for each byte on a link."""
        return self.ll_rate / self.link_rate if way == "LL" else self.direct_efficiency

    def direct_drain_us(self, way: HostWay, message_bytes: float) -> float:
        """What the last messages take beside."""
        if way == "LL":
            return 0.0
        return self.direct_drain * message_bytes / (self.link_rate * self.direct_efficiency)

    def direct_us(self, ranks: int, size_bytes: int, way: HostWay) -> float:
        """An all-to-all."""
        each, rate = size_bytes / ranks, self.link_rate * self.direct_data_per_wire(way)
        ends = self.direct_start_us(way, size_bytes) + self.direct_drain_us(way, each)
        return ends + self.direct_hop_us(way, ranks, each) + (ranks - 1) * each / rate

    def seconds(self, collective: Collective, ranks: int, size_bytes: int, number_bytes: int = 2) -> float:
        """An operation alone, all ranks there at once; ``size_bytes`` of the whole buffer."""
        way = self.way(collective, ranks, size_bytes, number_bytes)
        if collective is Collective.ALL_TO_ALL:
            return self.direct_us(ranks, size_bytes, way) / 1e6
        if way == "nvls":
            return self.nvls_us(ranks, size_bytes) / 1e6
        return self.ring_us(collective, ranks, size_bytes, way, number_bytes) / 1e6


def _message(collective: Collective, ranks: int, size_bytes: int) -> int:
    return size_bytes // ranks if collective is Collective.ALL_TO_ALL else size_bytes


def _grown(growth: float, size_bytes: int) -> float:
    return growth * size_bytes / (size_bytes + _HALF)


SYSTEMS: dict[SystemName, HostLaw] = {
    "a100": HostLaw(
        link_rate=300e3, assumed_rate=240e3, assumed_ll=87.7e3, loop=1 << 22,
        ll_start=9.41, ll_hop=0.978, ll_rate=122e3, ll_drain=1.73, ll128_start=19.6, ll128_efficiency=0.519,
        start=22.8, growth=23.5, hop=5.42, efficiency=0.762, later=0.0, drain=0.414,
        adding=0.0, adding_bytes=0.0474, direct_start=4.68, direct_growth=38.7, direct_efficiency=0.697,
        direct_drain=0.202, direct_ll_rate=5.82e3, direct_ll_hop=0.605,
    ),
    "h100": HostLaw(
        link_rate=450e3, assumed_rate=360e3, assumed_ll=141e3, loop=1 << 22,
        ll_start=5.14, ll_hop=0.812, ll_rate=171e3, ll_drain=0.632, ll128_start=15.7, ll128_efficiency=0.735,
        start=14.6, growth=18.6, hop=1.37, efficiency=0.82, later=0.0, drain=0.458,
        adding=0.0, adding_bytes=0.0552, direct_start=7.42, direct_growth=7.63, direct_efficiency=0.675,
        direct_drain=0.101, direct_ll_rate=5.66e3, direct_ll_hop=0.247,
        nvls_start=46.0, nvls_efficiency=0.65,
    ),
    "h200": HostLaw(
        link_rate=450e3, assumed_rate=360e3, assumed_ll=141e3, loop=1 << 22,
        ll_start=4.86, ll_hop=0.942, ll_rate=181e3, ll_drain=0.727, ll128_start=15.7, ll128_efficiency=0.767,
        start=14.7, growth=15.6, hop=1.28, efficiency=0.823, later=0.0, drain=0.465,
        adding=0.0, adding_bytes=0.0384, direct_start=7.02, direct_growth=7.25, direct_efficiency=0.685,
        direct_drain=0.044, direct_ll_rate=6.24e3, direct_ll_hop=0.538,
        nvls_start=48.5, nvls_efficiency=0.674,
    ),
    "b200": HostLaw(
        link_rate=900e3, assumed_rate=720e3, assumed_ll=282e3, loop=1 << 23,
        ll_start=7.99, ll_hop=1.3, ll_rate=312e3, ll_drain=0.82,
        start=16.9, growth=0.0, hop=8.09, efficiency=0.95, later=0.128, drain=0.896,
        adding=0.0108, adding_bytes=0.124, direct_start=7.84, direct_growth=5.85, direct_efficiency=0.652,
        direct_drain=0.662, direct_ll_rate=5.73e3, direct_ll_hop=0.292,
        nvls_start=90.0, nvls_efficiency=0.539,
    ),
    "gb200": HostLaw(
        link_rate=900e3, assumed_rate=720e3, assumed_ll=282e3, loop=1 << 23,
        ll_start=8.69, ll_hop=1.19, ll_rate=300e3, ll_drain=0.716,
        start=14.8, growth=0.0, hop=9.67, efficiency=0.95, later=0.0299, drain=0.953,
        adding=0.0504, adding_bytes=0.254, direct_start=7.6, direct_growth=0.973, direct_efficiency=0.626,
        direct_drain=0.611, direct_ll_rate=8.01e3, direct_ll_hop=0.442,
        nvls_start=90.0, nvls_efficiency=0.539,
    ),
}  # fmt: skip
"""By the name that ``nccl``'s ``system`` has; GB200's NVLS is B200's: on four GPUs NCCL takes none."""


def system_of(link_rate_bps: float) -> SystemName | None:
    """The newest generation whose NVLink, one way, is no faster; None: slower than an A100's."""
    generations: tuple[SystemName, ...] = ("a100", "h100", "b200")
    found = [name for name in generations if SYSTEMS[name].link_rate * 8e6 <= link_rate_bps]
    return found[-1] if found else None
