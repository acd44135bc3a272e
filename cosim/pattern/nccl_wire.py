"""What NCCL's messages are on wires: bytes with flags and headers, and NCCL's delays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from cosim.pattern.costs import Costs
from cosim.pattern.nccl_host import HostLaw, HostWay
from cosim.pattern.nccl_tuning import IN_FLIGHT, NVLS_CHANNELS, network_us, nvlink_us, nvls_tree_chunk
from cosim.pattern.template import Collective, Template
from cosim.units import PS_PER_US

if TYPE_CHECKING:
    from cosim.pattern.nccl import Nccl

AlgorithmName = Literal["ring", "tree", "direct", "nvls", "nvls_tree", "pat"]
ProtocolName = Literal["LL", "LL128", "Simple"]
DATA_PER_WIRE: dict[str, float] = {"LL": 0.5, "LL128": 0.9375, "Simple": 1.0}
"""Bytes of data in a byte on the wire: 4 of 8, 120 of 128, all."""
DIRECT = (Collective.ALL_TO_ALL, Collective.SEND_RECV)
"""Grouped sends and receives."""
LAWFUL = (Collective.ALL_REDUCE, Collective.ALL_GATHER, Collective.REDUCE_SCATTER, *DIRECT)
"""What systems' laws are of."""


@dataclass(frozen=True)
class Wire:
    """Makes a template's messages what goes over wires: bytes with flags and headers, NCCL's delays."""

    spec: Nccl
    algorithm: AlgorithmName
    protocol: ProtocolName
    local: int
    costs: Costs

    def laid(self, template: Template, size_bytes: int) -> Template:
        """The template with wire bytes and delays."""
        spec, law = self.spec, self.spec.law
        if law is not None and self.local == template.num_ranks and template.collective in LAWFUL:
            return self._by_law(law, template, size_bytes)
        between = template.src // self.local != template.dst // self.local
        message = template.src != template.dst
        data = DATA_PER_WIRE[self.protocol]
        share = np.where(between, self._between(data, template.num_ranks, size_bytes), self._inside() * data)
        size = np.where(message, np.ceil(template.bytes / share), 0).astype(np.int64)
        _, inside = self._without_links(0, round(nvlink_us(self.algorithm, self.protocol) * PS_PER_US))
        across = 0 if self.algorithm == "nvls_tree" else self.step_ps  # its rows wait for themselves
        # Of a named fabric, messages that follow each other don't wait for each other's latency.
        later, across = (0, across) if spec.fabric is None else (across, 0)
        delay = template.delay_ps + np.where(message, np.where(between, across, inside), 0)
        whole = whole_bytes(template.collective, template.num_ranks, size_bytes)
        delay[_first(template)] += spec.start_ps(self.algorithm, self.protocol, template.num_ranks, whole)
        if law is None and self.algorithm == "ring" and template.collective is not Collective.BROADCAST:
            delay[int(template.block_row[-2]) :] += self._gaps(template, size_bytes)
        drained = self._drain(size_bytes, template.num_ranks // self.local)
        delay[int(template.block_row[-2]) :] += round(drained * PS_PER_US)
        template = replace(template, bytes=size, delay_ps=delay.astype(np.int64))
        if later == 0:
            return template
        from cosim.pattern.far_steps import with_steps

        return with_steps(template, message & between, later)

    @property
    def step_ps(self) -> int:
        """Latency of a step between hosts."""
        more = 0 if self.spec.fabric is None else self.spec.fabric.step
        return round(network_us(self.algorithm, self.protocol) * PS_PER_US) + more

    def nvls_chunk(self, size_bytes: int, hosts: int) -> int:
        """Bytes of a channel's chunk of an NVLS tree; on a fabric that nobody named it is always the same."""
        heads = self.spec.heads(self.local)
        return 64 << 10 if self.spec.fabric is None else nvls_tree_chunk(size_bytes, hosts, heads)

    def _between(self, data: float, ranks: int, size_bytes: int) -> float:
        """Bytes of data for each byte that a NIC carries."""
        spec = self.spec
        if spec.fabric is None or "network_efficiency" in spec.model_fields_set:
            return spec.network_efficiency * data
        links = spec.links(ranks)
        if links.generation is None or self.algorithm not in ("ring", "tree"):
            return spec.fabric.rate * data
        from cosim.pattern.nccl_between import network_limit

        most = network_limit(self.algorithm, self.protocol, size_bytes, links, links.generation)
        return min(spec.fabric.rate * data, most / (links.network_rate / 8e6))

    def _drain(self, size_bytes: int, hosts: int) -> float:
        """Microseconds that an NVLS tree takes beside: until ``IN_FLIGHT`` chunks are under way
        NICs and switches wait for each other.
        """
        spec, law = self.spec, self.spec.law
        if spec.fabric is None or law is None or self.algorithm != "nvls_tree":
            return 0.0
        heads = spec.heads(self.local)
        piece = NVLS_CHANNELS * self.nvls_chunk(size_bytes, hosts)
        nic = spec.network_rate / (spec.rails or heads) / 8e6 * spec.fabric.rate
        across = piece / nic * (1 if hosts == 2 else 2)
        inside = (1 + 1 / self.local) * heads * piece / (law.link_rate * law.nvls_efficiency)
        return min(-(-size_bytes // (heads * piece)), IN_FLIGHT) * min(across, inside)

    def _inside(self) -> float:
        """Bytes of data for each byte that a link inside a host carries, where there are several hosts."""
        law = self.spec.law
        if law is None:
            return self.spec.nvlink_efficiency
        if self.algorithm != "nvls_tree":
            return law.efficiency
        # A head's link carries the whole, and the sum of a share; its messages are all of both shares.
        heads = self.spec.heads(self.local)
        return law.nvls_efficiency * (self.local + heads - 2) / (heads + 1)

    def _by_law(self, law: HostLaw, template: Template, size_bytes: int) -> Template:
        """The template for one host whose system was measured."""
        kind, ranks = template.collective, template.num_ranks
        whole = whole_bytes(kind, ranks, size_bytes)
        way: HostWay = "nvls" if self.algorithm == "nvls" else self.protocol
        if self.algorithm == "direct":
            each = whole / ranks if kind is Collective.ALL_TO_ALL else whole
            share = law.direct_data_per_wire(way)
            start, hop = law.direct_start_us(way, whole), law.direct_hop_us(way, ranks, each)
            drained = law.direct_drain_us(way, each) if kind is Collective.ALL_TO_ALL else 0.0
        else:
            share = law.data_per_wire(way, kind, ranks, whole, self.spec.number_bytes)
            start, hop = law.start_us(way, ranks, whole), law.hop_us(way)
            drained = law.drain_us(way, kind, ranks, whole)
        message = template.src != template.dst
        size = np.where(message, np.ceil(template.bytes / share), 0).astype(np.int64)
        start_ps, hop_ps = self._without_links(round(start * PS_PER_US), round(hop * PS_PER_US))
        delay = template.delay_ps + np.where(message, hop_ps, 0)
        delay[_first(template)] += start_ps
        delay[int(template.block_row[-2]) :] += round(drained * PS_PER_US)
        return replace(template, bytes=size, delay_ps=delay.astype(np.int64))

    def _without_links(self, start_ps: int, hop_ps: int) -> tuple[int, int]:
        """A start and a step's hop without the links' latency, which was measured with them and which the
        network adds; where a step has no hop, all messages go at once, and the start has it.
        """
        latency = self.costs.link_latency_ps
        of_hop = min(hop_ps, latency)
        return start_ps - min(start_ps, latency - of_hop), hop_ps - of_hop

    def _gaps(self, template: Template, size_bytes: int) -> int:
        """The time for which a ring drains: once each ``buffer`` bytes on each rank."""
        ranks = 1 if template.collective is Collective.ALL_GATHER else template.num_ranks
        halves = 2 if template.collective is Collective.ALL_REDUCE else 1
        return self.spec.loop_gap * size_bytes * halves // (2 * ranks * self.spec.buffer)


def whole_bytes(collective: Collective, num_ranks: int, size_bytes: int) -> int:
    """Bytes of the whole buffer."""
    return size_bytes * (num_ranks if collective is Collective.ALL_GATHER else 1)


def _first(template: Template) -> NDArray[np.bool_]:
    """The messages that wait for arrivals only: the first that a rank sends."""
    entries, degree = template.num_ranks, np.diff(template.dep_ptr)
    rows = np.repeat(np.arange(len(template.src)), degree)
    block = np.repeat(np.arange(len(template.block_repeat)), np.diff(template.block_row))
    once = template.block_repeat[block] == 1
    position = np.arange(len(template.src)) - template.block_row[block] + template.block_base[block]
    target = position[rows] - template.dep_distance
    arrivals = np.bincount(rows[target < entries], minlength=len(degree))
    found: NDArray[np.bool_] = once & (template.src != template.dst) & (degree > 0) & (arrivals == degree)
    return found
