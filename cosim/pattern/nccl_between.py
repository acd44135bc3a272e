"""NCCL's own estimate of a collective's time between hosts, by which current NCCL chooses how it goes.

``ncclTopoTuneModel`` and ``ncclTopoGetAlgoTime`` of ``src/graph/tuning.cc``, NCCL 2.27 to 2.30 (Apache-2.0):
base and hardware latencies, limits of a GPU's generation, and what the network plug-in declares, which counts
in each step between hosts, and twice where Simple flushes. Of two hosts a tree's rate is the search's inside
a host, up to twice what a NIC has (``search.cc``). A tuner plug-in replaces all this (AWS's, for one, whose
table for two p5 hosts has trees by LL128 up to 30 MB, then NVLS trees): ``algorithms`` and ``protocol`` say
what it takes. Only the choice uses these figures.

Not modelled: CollNet and SHARP, CPUs other than Intel's, Power.
"""

from __future__ import annotations

from cosim.pattern.nccl_tuning import PROTOCOLS, Generation, Links, nvls_tree_us, pat_us, tree_reaches
from cosim.pattern.template import Collective

_BASE_US = {"tree": (6.8, 14.0, 8.4), "ring": (6.6, 14.0, 8.4)}
"""``baseLatencies``, by protocol: LL, LL128, Simple."""
_NVLINK_US = {"tree": (0.6, 1.25, 4.0), "ring": (0.6, 1.9, 3.4)}
_NETWORK_US = {"tree": (5.0, 8.5, 14.0), "ring": (2.7, 4.0, 14.0)}
"""``hwLatencies``."""
_POST_US = (1.0, 1.0, 3.0)
"""The least time of a ring's step (``getNetOverhead``)."""
_PLATEAU, _CHANNELS = 1.4, 24
_SHARE = 0.92
"""The share of its rate that a ring reaches by LL128, and a tree by any."""


def between_us(
    algorithm: str,
    protocol: str,
    collective: Collective,
    size_bytes: int,
    links: Links,
    kind: Generation,
    declared_us: float,
) -> float:
    """Microseconds that NCCL expects of a collective over ``links.hosts``, two or more.

    ``size_bytes`` as ``Collective`` counts them; ``declared_us``: of the network, by its plug-in.
    """
    if algorithm == "nvls_tree":
        log2 = links.hosts.bit_length() - 1
        return nvls_tree_us(size_bytes, links, kind) + 4 * log2 * declared_us
    if algorithm == "pat":
        return pat_us(collective, size_bytes, links, 2 * declared_us)
    number = PROTOCOLS.index(protocol)
    network = _NETWORK_US["tree" if links.alone else algorithm][number]
    network += declared_us * (2 if protocol == "Simple" else 1)
    inside, base = _NVLINK_US[algorithm][number], _BASE_US[algorithm][number]
    if algorithm == "tree":
        depth = links.hosts.bit_length() - 1
        latency = base + 2 * ((links.ranks // links.hosts - 1) * inside + depth * network)
        return latency + 2 * size_bytes / (
            _tree_rate(protocol, links, kind) * tree_reaches(protocol, size_bytes)
        )
    both = 2 if collective is Collective.ALL_REDUCE else 1
    across = both * (links.hosts - 1)
    latency = base + (both * (links.ranks - 1) - across) * max(inside, _POST_US[number]) + across * network
    if both == 2 and protocol == "Simple" and size_bytes >= 64 * _CHANNELS * links.ranks:
        latency *= _PLATEAU
    whole = size_bytes * links.ranks if collective is Collective.ALL_GATHER else size_bytes
    moved = 1.0 if collective is Collective.BROADCAST else (links.ranks - 1) / links.ranks
    return latency + whole * both * moved / _ring_rate(protocol, links, kind)


def _ring_rate(protocol: str, links: Links, kind: Generation) -> float:
    """Bus bandwidth, B/us."""
    rate = links.network_rate / 8e6
    if protocol == "LL":
        return min(rate / 2, kind.ll[int(links.hosts > 2)])
    return min(rate * _SHARE, links.channels * kind.ring_ll128) if protocol == "LL128" else rate


def _tree_rate(protocol: str, links: Links, kind: Generation) -> float:
    """The same of a tree."""
    more = int(links.hosts > 2)
    rate = links.network_rate / 8e6
    if not more:
        rate = min(2 * rate, links.heads * kind.head, links.nvlink_rate / 8e6)
    rate = min(rate * _SHARE, links.channels * kind.tree[more])
    if protocol == "LL":
        return min(rate / 3.8, kind.ll[more])
    return min(rate * 120 / 128, links.channels * kind.tree_ll128[more]) if protocol == "LL128" else rate


def network_limit(algorithm: str, protocol: str, size_bytes: int, links: Links, kind: Generation) -> float:
    """What all NICs of a host carry at most, B/us, by what NCCL measured of its thread blocks and of trees.

    Of two hosts a tree's NICs carry the data once each way, of more twice, where its rate is of half.
    """
    if algorithm == "tree":
        half = 0.5 if links.hosts == 2 else 1.0
        return half * _tree_rate(protocol, links, kind) * tree_reaches(protocol, size_bytes)
    return _ring_rate(protocol, links, kind)
