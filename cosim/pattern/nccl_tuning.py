"""NCCL's own estimate of a collective's time, by which it chooses algorithm and protocol.

Figures are those of NCCL 2.18 to 2.20 (``src/graph/tuning.cc``): latencies in microseconds, rates in bytes
per microsecond. Only the choice uses them, and the latencies of steps; what a collective takes is simulated.
Of current NCCL (2.27 and later) are PAT, the NVLS tree and, between hosts of a ``Generation``, its limits.

Not modelled: limits per channel of GPUs before Hopper, CPUs other than Intel's.

Chunks that NCCL cuts data into are those of ``calcCollChunking`` (``src/enqueue.cc``) and of
``src/transport/nvls.cc``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cosim.pattern.template import Collective

ALGORITHMS: tuple[Literal["ring", "tree"], ...] = ("ring", "tree")
PROTOCOLS: tuple[Literal["LL", "LL128", "Simple"], ...] = ("LL", "LL128", "Simple")

_BASE_US = {"tree": (6.8, 14.0, 0.0), "ring": (6.6, 14.0, 8.4)}
"""``baseLat``, by protocol: LL, LL128, Simple."""
_NVLINK_US = {"tree": (0.6, 1.25, 28.0), "ring": (0.6, 1.9, 3.4)}
"""``hwLat`` of NVLink."""
_NETWORK_US = {"tree": (5.0, 8.5, 28.0), "ring": (2.7, 4.0, 14.0)}
"""``hwLat`` of a network."""
_TREE_SIMPLE_STEP_US = 4.0
"""A tree's Simple latency stands for a whole 256 KiB chunk; its steps here carry their own bytes, and wait
for as long as a newer NCCL (2.23) says: 4 us."""
_RATIO = {"LL": 0.5, "LL128": 0.92, "Simple": 1.0}
_RING_LL_MOST = 87.7e3
"""``llMaxBws`` of Ampere in one node, B/us."""
_TREE_REACHES = {
    "LL": (10, 10, 10, 10, 9, 8, 7, 7, 7, 7, 6, 5, 4, 4, 5, 6, 7, 8, 9, 10, 10, 10, 10),
    "LL128": (10, 10, 10, 10, 10, 9, 8, 8, 8, 7, 6, 6, 6, 6, 6, 6, 8, 9, 9, 9, 9, 10, 10),
    "Simple": (9, 9, 9, 9, 9, 9, 9, 8, 7, 6, 6, 5, 5, 5, 5, 6, 7, 8, 7, 7, 8, 9, 9),
}
"""Tenths of its rate that a tree reaches, by powers of two from 64 B (``treeCorrectionFactor``)."""
_PAT_BASE_US, _PAT_STEP_US, _PAT_RANK_US, _PAT_RATIO = 8.0, 14.0 / 3.5, 2.8, 0.75
"""PAT's (NCCL 2.23 and later): ``baseLat``, a step of the network's, each rank's, part of the rate."""
_NVLS_INSIDE_US, _NVLS_STEP_US = 25.0, 20.9
"""``hwLat`` of an NVLS tree (NCCL 2.27 and later): of NVLink, of a network."""
_PLATEAU = 1.4
"""A Simple ring between hosts, more than 64 B a channel and rank: latency times this (from Ampere on)."""
_CHANNELS = 24
_SEND_LEAST = 64 * 1024
"""A send is split over channels in parts no smaller (``calcP2pChunkSize``: an eighth of a 512 KiB step)."""
_TREE_RATIO = {"LL": 1 / 3.8, "LL128": 120 / 128, "Simple": 0.92}


@dataclass(frozen=True, slots=True)
class Generation:
    """What current NCCL (2.27 and later) expects of a GPU between hosts, B/us; pairs: of two hosts, of more.

    Attributes
    ----------
    ll, ring_ll128, tree_ll128, tree
        Most that LL carries (``llMaxBws``, Intel CPUs); a channel of a ring by LL128, of a tree by LL128, of
        a tree (``perChMaxRingLL128Bws``, ``perChMaxTreeLL128Bws``, ``perChMaxTreeBws``).
    nvls_efficiency, head, nvls_tree
        Part of its rate that NVLS reaches; most of a head, by search (``speedArrayInter``) and in a tree
        (``perChMaxNVLSTreeBws``).
    corrected
        An NVLS tree's rate is, by size, as a tree's.
    """

    ll: tuple[float, float]
    ring_ll128: float
    tree_ll128: tuple[float, float]
    tree: tuple[float, float]
    nvls_efficiency: float
    head: float
    nvls_tree: tuple[float, float]
    corrected: bool


AMPERE = Generation(
    (39e3, 20.4e3), 20e3, (20e3, 20e3), (23.6e3, 17.8e3), 0.0, 48e3, (0.0, 0.0), corrected=False
)
HOPPER = Generation(
    (39e3, 20.4e3), 36.7e3, (36.7e3, 29e3), (41.4e3, 36e3), 0.85, 48e3, (57.7e3, 45.5e3), corrected=False
)
BLACKWELL = Generation(
    (39e3, 20.4e3), 40e3, (31.67e3, 20e3), (42.8e3, 24e3), 0.74, 96e3, (96e3, 80e3), corrected=True
)
_FEW_CHANNELS, _FAST_CHANNEL = 4, 50e3
"""Up to so many channels, and faster ones, are made two each (``ncclTopoDupChannels``)."""


@dataclass(frozen=True, slots=True)
class Links:
    """A group's hosts and ranks; rates in bits per second: of a GPU's NVLinks, of a host's NICs.

    ``ll_most``: that a ring's LL reaches at most, B/us. ``alone``: each rank has a host of its own, and
    current NCCL counts a tree's latencies for a ring's steps, which nothing hides. ``heads``: of a host, GPUs
    that rings or trees enter it by. ``generation``: whose limits hold between hosts; None: no limits.
    """

    hosts: int
    ranks: int
    nvlink_rate: float
    network_rate: float
    ll_most: float = _RING_LL_MOST
    alone: bool = False
    heads: int = 1
    generation: Generation | None = None

    @property
    def channels(self) -> int:
        """One for each head, or two."""
        if self.generation is AMPERE:
            return self.heads
        split = self.heads <= _FEW_CHANNELS or self.network_rate / 8e6 / self.heads > _FAST_CHANNEL
        return self.heads * (2 if split else 1)

    def limited(self, algorithm: str, protocol: str, rate: float) -> float:
        """No more than the generation's limits, B/us."""
        kind = self.generation
        if kind is None or self.hosts == 1:
            return rate
        more = int(self.hosts > 2)
        if protocol == "LL":
            return min(rate, kind.ll[more])
        channels = self.channels
        if algorithm == "ring":
            return min(rate, channels * kind.ring_ll128) if protocol == "LL128" else rate
        rate = min(rate, channels * kind.tree[more])
        return min(rate, channels * kind.tree_ll128[more]) if protocol == "LL128" else rate


def pat_start_us(ranks: int) -> float:
    """What NCCL expects of PAT before its steps: it grows with the ranks."""
    return _PAT_BASE_US + _PAT_RANK_US * ranks


def nvlink_us(algorithm: str, protocol: str) -> float:
    """Latency of a step inside a host; what goes straight to its peer waits as in a ring."""
    if algorithm == "nvls_tree":
        return 0.0
    algorithm = "ring" if algorithm in ("direct", "pat") else algorithm
    if algorithm == "tree" and protocol == "Simple":
        return _TREE_SIMPLE_STEP_US
    return _NVLINK_US[algorithm][PROTOCOLS.index(protocol)]


def network_us(algorithm: str, protocol: str) -> float:
    """Latency of a step between hosts."""
    if algorithm == "pat":
        return _PAT_STEP_US
    if algorithm == "nvls_tree":
        return _NVLS_STEP_US
    return _NETWORK_US["ring" if algorithm == "direct" else algorithm][PROTOCOLS.index(protocol)]


def channel_bytes(algorithm: str, protocol: str, ranks: int) -> int:
    """Bytes of an operation for which NCCL takes one channel more."""
    if algorithm == "direct":
        return _SEND_LEAST
    threads, each = (512, 64) if protocol == "Simple" else (512, 8)
    return threads * each * (ranks if algorithm == "ring" and protocol == "LL" else 1)


def estimate_us(
    algorithm: str, protocol: str, collective: Collective, size_bytes: int, links: Links
) -> float:
    """Microseconds that NCCL expects."""
    number = PROTOCOLS.index(protocol)
    ranks, hosts = links.ranks, links.hosts
    bus = (links.nvlink_rate if hosts == 1 else links.network_rate) / 8e6
    if algorithm == "pat":
        return pat_us(collective, size_bytes, links)
    inside, across = _NVLINK_US[algorithm][number], _NETWORK_US[algorithm][number]
    if algorithm == "ring":
        if links.alone:
            across = _NETWORK_US["tree"][number] if protocol != "Simple" else across
        both = 2 if collective is Collective.ALL_REDUCE else 1
        ranks_moved = 1.0 if collective is Collective.BROADCAST else (ranks - 1) / ranks
        between = both * (hosts - 1) if hosts > 1 else 0
        latency = _BASE_US["ring"][number] + (both * (ranks - 1) - between) * inside + between * across
        if hosts > 1 and both == 2 and protocol == "Simple" and size_bytes >= 64 * _CHANNELS * ranks:
            latency *= _PLATEAU
        rate = bus * _RATIO[protocol]
        if protocol == "LL":
            rate = min(rate, links.ll_most)
        rate = links.limited("ring", protocol, rate)
        total = size_bytes * ranks if collective is Collective.ALL_GATHER else size_bytes
        return latency + total * both * ranks_moved / rate
    depth = (hosts - 1).bit_length()
    latency = _BASE_US["tree"][number] + 2 * ((ranks // hosts - 1) * inside + depth * across)
    rate = links.limited("tree", protocol, bus * _TREE_RATIO[protocol])
    return latency + 2 * size_bytes / (rate * tree_reaches(protocol, size_bytes))


def tree_reaches(protocol: str, size_bytes: int) -> float:
    """The part of its rate that NCCL expects a tree to reach."""
    reaches = _TREE_REACHES[protocol]
    power = (size_bytes >> 6).bit_length() - 1
    return reaches[power] / 10 if 0 <= power < len(reaches) else 1.0


def pat_us(collective: Collective, size_bytes: int, links: Links, more_us: float = 0.0) -> float:
    """Microseconds that NCCL expects of PAT; ``more_us``: of a step, by the network's plug-in."""
    steps = (links.hosts.bit_length() - 1) * (_PAT_STEP_US + more_us / 3.5)
    whole = size_bytes * (links.ranks if collective is Collective.ALL_GATHER else 1)
    return pat_start_us(links.ranks) + steps + whole / (links.network_rate / 8e6 * _PAT_RATIO)


def nvls_tree_us(size_bytes: int, links: Links, kind: Generation) -> float:
    """Microseconds that NCCL expects of an NVLS tree."""
    heads, more = links.heads, int(links.hosts > 2)
    # A head reads and sends its share, and its own link carries all others' as well.
    inside = (
        min(links.nvlink_rate / 8e6 / (heads + 1), kind.head) * kind.nvls_efficiency * (heads - 1) / heads * 2
    )
    across = links.network_rate / 8e6 / heads * (1 if more else 2)
    bus = heads * min(inside, across, kind.nvls_tree[more])
    power = (size_bytes >> 6).bit_length() - 1
    reaches = _TREE_REACHES["Simple"]
    if kind.corrected and 0 <= power <= len(reaches):
        bus *= reaches[min(power, len(reaches) - 1)] / 10
    latency = _NVLS_INSIDE_US + 2 * (links.hosts.bit_length() - 1) * _NVLS_STEP_US
    return latency + size_bytes * 2 * (links.ranks - 1) / links.ranks / bus


LEAST_CHUNK = 32 << 10
"""A tree's least chunk by LL128, bytes."""
IN_FLIGHT = 8
"""``NCCL_STEPS``: chunks of a connection that are under way at most."""
NVLS_CHANNELS = 16
"""``NVLS_NCHANNELS_SM90``; each has a chunk of every head under way."""
_RACK_CHANNELS = 24
"""Blackwell's channels in one domain (``NVLS_NCHANNELS_SM100_NVL``)."""
_MOST = 128 << 10
"""``NVLS_CHUNKSIZE``."""


def nvls_tree_chunk(size_bytes: int, hosts: int, heads: int) -> int:
    """Bytes of a channel's chunk of an NVLS tree."""
    chunk, at_once = _MOST if hosts < 4 else _MOST // 2, NVLS_CHANNELS * heads
    if size_bytes < 4 * at_once * chunk:
        chunk = min(chunk, 64 << 10)
    return min(chunk, 32 << 10) if size_bytes < at_once * chunk else chunk


def nvls_chunk(size_bytes: int, ranks: int) -> int:
    """Bytes of a channel's chunk of an all-reduce that the switch of a rack adds up."""
    chunk, at_once = _MOST, _RACK_CHANNELS * ranks
    for times, less in ((64, 64 << 10), (8, 32 << 10), (2, 16 << 10)):
        if size_bytes < times * at_once * chunk:
            chunk = less
    return chunk
