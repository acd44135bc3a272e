"""NCCL's collectives on NVSwitch hosts and a network between them: ring or tree, LL, LL128 or Simple.

Which algorithm and protocol carry an operation is decided as NCCL decides it, by its own estimate
(``tuning.cc`` of NCCL 2.18 to 2.20: base and hardware latencies, protocol ratios; described in Hu et al.,
"Demystifying NCCL", arXiv 2507.04786, section III): latency plus bytes over bandwidth, least wins. The
estimate only decides; the time is the network's. What reaches the network is what goes over wires:

- LL sends a 4-byte flag with each 4 bytes of data, LL128 8 bytes in 128; Simple none. NVLink's and the
  network's own headers and flow control take ``nvlink_efficiency`` and ``network_efficiency``: messages
  carry that much more than their data.
- A rank passes on a step's data ``hardware latency`` after it came; an operation starts ``latency`` after its
  last rank arrives on its GPU (launch, and setting up of the channels).
- A ring works through its data in loops of ``buffer`` bytes on each rank; between two loops its pipeline
  drains, which takes ``loop_gap``.

Between hosts, several rings (or pairs of trees) run at once, each entering a host at another GPU, so that all
NICs carry data. Trees are double binary trees over hosts and chains inside, data cut in pieces that follow
each other. Dimension 0 of the topology is the host; a group that is no grid of the topology's dimensions is
taken to be in one host.

Not modelled: NVLS and SHARP, PAT, user buffers, copy-engine collectives; the GPU's multiprocessors that NCCL
occupies; protocol changes between NCCL versions. Calibrated (``latency``, ``nvlink_efficiency``,
``loop_gap``) on nccl-tests all-reduces of 2 and 8 A100s (``python -m tests.validation.fit``); the network's
latencies are NCCL's, its efficiency that of InfiniBand's framing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from cosim.pattern.algorithm import Algorithm
from cosim.pattern.costs import Costs
from cosim.pattern.nccl_tree import tree_template
from cosim.pattern.nccl_tuning import ALGORITHMS, PROTOCOLS, Links, estimate_us, network_us, nvlink_us
from cosim.pattern.ring import Rings
from cosim.pattern.template import I32, Collective, Template
from cosim.spec import RateBps, SizeBytes, TimePs
from cosim.units import PS_PER_US

AlgorithmName = Literal["ring", "tree"]
ProtocolName = Literal["LL", "LL128", "Simple"]
_DATA_PER_WIRE: dict[str, float] = {"LL": 0.5, "LL128": 0.9375, "Simple": 1.0}
"""Bytes of data in a byte on the wire: 4 of 8, 120 of 128, all."""


class Nccl(Algorithm):
    """NCCL's choice of ring or tree and LL, LL128 or Simple, by size and hosts; NVLink and InfiniBand"""

    name: ClassVar[str] = "nccl"
    carries: ClassVar[frozenset[Collective]] = frozenset(
        {Collective.ALL_REDUCE, Collective.ALL_GATHER, Collective.REDUCE_SCATTER}
    )

    latency: TimePs = Field(
        43_500_000, ge=0, le=500 * PS_PER_US, description="from the last arrival to the first byte"
    )
    nvlink_efficiency: float = Field(
        0.786, ge=0.3, le=1, description="data in a byte that an NVLink carries, flags apart"
    )
    network_efficiency: float = Field(
        0.97, ge=0.1, le=1, description="data in a byte that the network between hosts carries, flags apart"
    )
    loop_gap: TimePs = Field(
        23_300_000, ge=0, le=500 * PS_PER_US, description="for which a ring drains between two loops"
    )
    buffer: SizeBytes = Field(
        12 * 2**20, gt=0, description="of each rank and loop: channels x chunk (24 x 512 KiB on an A100)"
    )
    rails: int = Field(4, ge=1, le=64, description="rings, or pairs of trees, between hosts: NICs of a host")
    pieces: int = Field(8, ge=1, le=256, description="pieces of a tree's data that follow each other")
    nvlink_rate: RateBps = Field(
        240e9 * 8, gt=0, description="of a GPU, as NCCL's choice assumes it (20 GB/s for each of 12 links)"
    )
    network_rate: RateBps = Field(100e9 * 8, gt=0, description="of a host, as NCCL's choice assumes it")
    algorithms: Literal["ring", "tree"] | None = Field(None, description="this one only (NCCL_ALGO)")
    protocol: ProtocolName | None = Field(None, description="this one only (NCCL_PROTO)")
    hosts: int = Field(1, ge=1, description="of the group; found from the topology where it has hosts")

    def placed(
        self, collective: Collective, num_ranks: int, size_bytes: int, dims: tuple[int, ...] | None
    ) -> Nccl:
        """Algorithm, protocol and hosts fixed for one operation."""
        hosts = math.prod(dims[1:]) if dims else self.hosts
        found = self if hosts == self.hosts else self.model_copy(update={"hosts": hosts})
        algorithm, protocol = found.choose(collective, num_ranks, size_bytes)
        return found.model_copy(update={"algorithms": algorithm, "protocol": protocol})

    def choose(
        self, collective: Collective, num_ranks: int, size_bytes: int
    ) -> tuple[AlgorithmName, ProtocolName]:
        """What NCCL would take: the least of its estimates; the first of equals."""
        links = Links(self.hosts, num_ranks, self.nvlink_rate, self.network_rate)
        best: tuple[float, AlgorithmName, ProtocolName] | None = None
        for algorithm in ALGORITHMS:
            if algorithm == "tree" and (collective is not Collective.ALL_REDUCE or num_ranks < 3):
                continue
            if algorithm != (self.algorithms or algorithm):
                continue
            for protocol in PROTOCOLS:
                if protocol != (self.protocol or protocol):
                    continue
                took = estimate_us(algorithm, protocol, collective, size_bytes, links)
                if best is None or took < best[0]:
                    best = took, algorithm, protocol
        return best[1:] if best else ("ring", "Simple")

    def build(
        self,
        collective: Collective,
        num_ranks: int,
        size_bytes: int,
        costs: Costs,
        *,
        reverse: bool = False,
        chunk: int = 0,
        root: int = 0,
    ) -> Template:
        """See :meth:`Algorithm.build`; ``costs``' delays are added to NCCL's own."""
        del chunk, root
        self.check(collective, num_ranks)
        algorithm, protocol = self.choose(collective, num_ranks, size_bytes)
        hosts = self.hosts if num_ranks % self.hosts == 0 else 1
        wire = _Wire(self, algorithm, protocol, num_ranks // hosts, costs)
        if algorithm == "tree":
            template = tree_template(num_ranks, size_bytes, hosts, self.rails, self.pieces, costs)
        else:
            template = _ring(collective, num_ranks, size_bytes, hosts, self.rails, costs, reverse)
        return wire.laid(template, size_bytes)


def _ring(
    collective: Collective,
    num_ranks: int,
    size_bytes: int,
    hosts: int,
    rails: int,
    costs: Costs,
    reverse: bool,
) -> Template:
    local = num_ranks // hosts
    order = ring_orders(hosts, local, min(rails, local) if hosts > 1 else 1)
    rings = Rings(num_ranks, len(order), costs, reverse=reverse, order=order, name="nccl ring")
    return rings.reduce_or_gather(collective, size_bytes)


def ring_orders(hosts: int, local: int, channels: int) -> I32:
    """int32[channels, hosts * local]: rings host by host, each entering a host at another of its GPUs."""
    enter = np.arange(channels) * local // channels
    inside = (enter[:, None] + np.arange(local)[None, :]) % local
    ranks = np.arange(hosts)[None, :, None] * local + inside[:, None, :]
    return np.ascontiguousarray(ranks.reshape(channels, hosts * local), np.int32)


@dataclass(frozen=True)
class _Wire:
    """Makes a template's messages what goes over wires: bytes with flags and headers, NCCL's delays."""

    spec: Nccl
    algorithm: AlgorithmName
    protocol: ProtocolName
    local: int
    costs: Costs

    def laid(self, template: Template, size_bytes: int) -> Template:
        """The template with wire bytes and delays."""
        spec, between = self.spec, template.src // self.local != template.dst // self.local
        message = template.src != template.dst
        data = _DATA_PER_WIRE[self.protocol]
        share = np.where(between, spec.network_efficiency, spec.nvlink_efficiency) * data
        size = np.where(message, np.ceil(template.bytes / share), 0).astype(np.int64)
        inside = round(nvlink_us(self.algorithm, self.protocol) * PS_PER_US)
        across = round(network_us(self.algorithm, self.protocol) * PS_PER_US)
        delay = template.delay_ps + np.where(message, np.where(between, across, inside), 0)
        # What waits for arrivals only is the first that its rank sends.
        entries, exits = template.num_ranks, int(template.block_row[-2])
        rows = np.repeat(np.arange(len(template.src)), np.diff(template.dep_ptr))
        degree = np.diff(template.dep_ptr)
        block = np.repeat(np.arange(len(template.block_repeat)), np.diff(template.block_row))
        once = template.block_repeat[block] == 1
        position = np.arange(len(template.src)) - template.block_row[block] + template.block_base[block]
        target = position[rows] - template.dep_distance
        arrivals = np.bincount(rows[target < entries], minlength=len(degree))
        first = once & message & (degree > 0) & (arrivals == degree)
        delay[first] += spec.latency
        if self.algorithm == "ring":
            delay[exits:] += self._gaps(template, size_bytes)
        return replace(template, bytes=size, delay_ps=delay.astype(np.int64))

    def _gaps(self, template: Template, size_bytes: int) -> int:
        """The time for which a ring drains: once each ``buffer`` bytes on each rank."""
        ranks = 1 if template.collective is Collective.ALL_GATHER else template.num_ranks
        halves = 2 if template.collective is Collective.ALL_REDUCE else 1
        return self.spec.loop_gap * size_bytes * halves // (2 * ranks * self.spec.buffer)
