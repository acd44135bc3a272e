"""NCCL's collectives on NVSwitch hosts and a network between them: ring, tree or direct; LL, LL128 or Simple.

Which algorithm and protocol carry an operation is decided as NCCL decides it, by its own estimate
(``tuning.cc`` of NCCL 2.18 to 2.20: base and hardware latencies, protocol ratios; described in Hu et al.,
"Demystifying NCCL", arXiv 2507.04786, section III): latency plus bytes over bandwidth, least wins. The
estimate only decides; the time is the network's. All-reduces take a ring or a tree, all-gathers and
reduce-scatters a ring, broadcasts the ring as a chain; all-to-alls and sends are NCCL's grouped sends and
receives, each straight to its peer or over the GPU that has its rail's NIC (``nccl_pxn``), LL up to 16 KB a
message (``NCCL_P2P_LL_THRESHOLD``), Simple above. What reaches the network is what goes over wires:

- LL sends a 4-byte flag with each 4 bytes of data, LL128 8 bytes in 128; Simple none. NVLink's and the
  network's own headers and flow control take ``nvlink_efficiency`` and ``network_efficiency``: messages
  carry that much more than their data.
- An operation starts after its last rank arrives on its GPU (the kernel starts, channels are set up):
  ``least_latency`` if one channel carries it, ``latency`` if all do, in proportion between. NCCL takes as
  many channels as have work: 512 threads x 8 bytes, times the ranks of a ring (``enqueue.cc``); 64 KiB for
  sends.
- A rank passes on a step's data ``hardware latency`` after it came. Inside a host that includes the NVLinks'
  own latency, as it was measured: steps wait for so much less as the topology's links take. A ring works
  through its data in loops of ``buffer`` bytes on each rank; between two loops its pipeline drains, which
  takes ``loop_gap``.

Where the topology names its ``fabric``, the estimate is current NCCL's (2.27 to 2.30, ``nccl_between``), and
a step's latency between hosts holds up what waits for it, not what is sent next (``far_steps``).

Between hosts, several rings (or pairs of trees) run at once, each entering a host at another GPU, so that all
NICs carry data. Trees are double binary trees over hosts and chains inside, data cut in pieces that follow
each other. Dimension 0 of the topology is the host; a group that is no grid of the topology's dimensions is
taken to be in one host.

Where each rank has a host of its own, small all-gathers and reduce-scatters of current NCCL (a ``system``) go
by PAT (Jeaugey, arXiv 2506.20252): log2 N steps, the largest messages to the nearest, as halving and doubling
has them; groups that aren't a power of two keep the ring here.

Inside a host of a ``system`` whose collectives were measured (``nccl_host``) its laws hold: the switch adds
up large all-reduces (NVLS) where that is faster than a ring. Between such hosts all-reduces may take an NVLS
tree (``nccl_nvls_tree``): its start and the switch's rate are those of one host, a step between hosts waits
for as long as NCCL reckons. Between hosts NICs are the topology's, each GPU's own one carrying what it sends.

Sends that are no all-to-all (their groups seldom have the GPU of the receiver's rail) have PXN where the
topology says so (``hosts: {pxn: true}``).

A GPU with several NICs has as many rings or trees more, and cuts other messages into so many parts; each
channel takes a NIC of its own at both ends. Where GPUs have no scale-up links each is a host. Links of XGMI
from GPU to GPU all carry a part (``mesh``; where GPUs have links to some of the others, ``nccl_mesh``).

Not modelled: SHARP, user buffers, copy-engine collectives; the GPU's multiprocessors that NCCL occupies;
protocol changes between NCCL versions. Where no system's laws hold (``system: none``, or NVLinks slower than
an A100's) ``latency``, ``nvlink_efficiency`` and ``loop_gap`` are those of a cluster of 2022: nccl-tests
all-reduces of 2 and 8 A100s of 1 MB to 1 GB (``python -m tests.lab.validation.fit``); ``least_latency`` and
the network's latencies are NCCL's own, ``network_efficiency`` is that of InfiniBand's framing: small
operations, other collectives and other hosts are predictions then. `cosim calibrate` measures where there are
GPUs.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field

from cosim.pattern.contract import Algorithm
from cosim.pattern.costs import Costs
from cosim.pattern.nccl_host import SYSTEMS, HostLaw, SystemName, system_of
from cosim.pattern.nccl_rings import GivenRings, given_rings, over_nics, ring_orders
from cosim.pattern.nccl_tuning import (
    ALGORITHMS,
    AMPERE,
    LEAST_CHUNK,
    NVLS_CHANNELS,
    PROTOCOLS,
    Links,
    channel_bytes,
    estimate_us,
    nvls_tree_us,
    pat_start_us,
)
from cosim.pattern.nccl_wire import (
    DIRECT,
    LAWFUL,
    AlgorithmName,
    ProtocolName,
    Wire,
    whole_bytes,
)
from cosim.pattern.ring import Rings
from cosim.pattern.template import I32, Collective, Template
from cosim.spec import RateBps, SizeBytes, TimePs
from cosim.topology.host_shape import HostShape, NamedFabric
from cosim.units import PS_PER_US

if TYPE_CHECKING:
    from cosim.pattern.group_links import GroupLinks

_LL_MOST = 16384
"""``NCCL_P2P_LL_THRESHOLD``: bytes of the largest message that goes by LL."""
_RAILS = 4
"""Rings between hosts where nobody knows the NICs."""
_CALIBRATED = {"latency", "least_latency", "nvlink_efficiency", "loop_gap", "buffer", "channels"}
"""What somebody measured, and `cosim calibrate` prints; what a system's laws know nothing of."""
CHAIN_PIECE, CHAIN_PIECES = 128 * 1024, 64
"""A broadcast's pieces follow each other down the chain: no smaller, and no more of them."""


class Nccl(Algorithm):
    """NCCL's choice of ring or tree and LL, LL128 or Simple, by size and hosts; NVLink and InfiniBand"""

    name: ClassVar[str] = "nccl"
    carries: ClassVar[frozenset[Collective]] = frozenset(set(Collective) - {Collective.BARRIER})

    latency: TimePs = Field(
        43_800_000,
        ge=0,
        le=500 * PS_PER_US,
        description="from the last arrival to the first byte, all channels in use",
    )
    least_latency: TimePs = Field(
        6_600_000, ge=0, le=500 * PS_PER_US, description="the same with one channel (NCCL's baseLat of LL)"
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
    channels: int = Field(
        24,
        ge=1,
        le=64,
        description="thread blocks of a large operation on a GPU; if given, so many rings between hosts",
    )
    rails: int | None = Field(
        None,
        ge=1,
        le=64,
        description="rings, or pairs of trees, between hosts; omitted: the topology's NICs of a host, or 4",
    )
    alternate: bool | None = Field(
        None,
        description="rings pass every second host the other way round, which keeps them on their rails where "
        "a GPU has a NIC of its own; omitted: where a host's NICs lead to several switches",
    )
    pieces: int = Field(8, ge=1, le=256, description="pieces of a tree's data that follow each other")
    nvlink_rate: RateBps = Field(
        240e9 * 8, gt=0, description="of a GPU, as NCCL's choice assumes it (20 GB/s for each of 12 links)"
    )
    network_rate: RateBps = Field(100e9 * 8, gt=0, description="of a host, as NCCL's choice assumes it")
    system: SystemName | Literal["none"] | None = Field(
        None,
        description="whose measured laws hold inside a host; omitted: by the topology's NVLink, unless "
        "latency, least_latency, nvlink_efficiency, loop_gap, buffer or channels is given; none: these hold",
    )
    pxn: bool = Field(
        True,
        description="all-to-alls between hosts take the NIC of the receiver's rail, over the GPU that has it "
        "(NCCL_P2P_PXN_LEVEL 2; false: 0, each its own)",
    )
    number_bytes: int = Field(
        2, ge=1, le=8, description="of the numbers that are added up: of one byte no switch adds any"
    )
    algorithms: Literal["ring", "tree", "nvls", "nvls_tree", "pat"] | None = Field(
        None, description="this one only (NCCL_ALGO)"
    )
    nvls: bool = Field(True, description="an NVSwitch that can adds up (NCCL_NVLS_ENABLE)")
    protocol: ProtocolName | None = Field(None, description="this one only (NCCL_PROTO)")
    hosts: int = Field(
        1, ge=0, description="of the group, 0: one for each rank; found from the topology where it has hosts"
    )
    fabric: NamedFabric | None = Field(
        None, description="what messages between hosts cost; omitted: as the topology says"
    )
    gpu_nics: int = Field(1, ge=1, le=64, description="NICs of each GPU; found from the topology")
    mesh: bool = Field(
        False,
        description="GPUs of a host have a link to each other one (XGMI), no switch; found from the topology",
    )
    rings: GivenRings = Field(
        (),
        description="orders of a group's ranks, each a ring at once; by_links: such as links from GPU to GPU "
        "allow; omitted: the group's own, or by_links in one host whose GPUs have links to some others",
    )

    def on_hosts(self, hosts: HostShape) -> Nccl:
        """With the topology's NICs, their rate and its NVLink's laws, where they aren't given."""
        found: dict[str, object] = {}
        if self.rails is None:
            found["rails"] = min(max(hosts.nics, 1), 64)
        if self.alternate is None:
            found["alternate"] = hosts.rails
        if "network_rate" not in self.model_fields_set:
            found["network_rate"] = hosts.nic_rate_bps * hosts.nics
        if hosts.reckoned and "nvlink_efficiency" not in self.model_fields_set:
            found["nvlink_efficiency"] = 1.0
        elif self.system is None and not self.model_fields_set & _CALIBRATED:
            found["system"] = system_of(hosts.link_rate_bps)
        if self.fabric is None:
            found["fabric"] = hosts.fabric
        if hosts.gpus == 1 and "hosts" not in self.model_fields_set:
            found["hosts"] = 0
        if "gpu_nics" not in self.model_fields_set:
            found["gpu_nics"] = min(max(hosts.gpu_nics, 1), 64)
        if "mesh" not in self.model_fields_set:
            found["mesh"] = hosts.mesh
        if hosts.partial and "rings" not in self.model_fields_set:
            found["rings"] = "by_links"
        return self.model_copy(update=found)

    def by_links(self) -> bool:
        """Where rings are to be found."""
        return self.rings == "by_links"

    def on_links(self, links: GroupLinks, collective: Collective, size_bytes: int) -> Nccl:  # noqa: ARG002
        """With the rings for which there are links; a mesh, where there are all."""
        from cosim.pattern.nccl_mesh import is_mesh, rings_over

        whole = is_mesh(links)
        return self.model_copy(update={"mesh": whole, "rings": () if whole else rings_over(links)})

    @property
    def law(self) -> HostLaw | None:
        """The law of one host of the system; without NVLS where it is switched off."""
        if self.system is None or self.system == "none":
            return None
        law = SYSTEMS[self.system]
        return law if self.nvls else replace(law, nvls_efficiency=0.0)

    def placed(
        self, collective: Collective, num_ranks: int, size_bytes: int, dims: tuple[int, ...] | None
    ) -> Nccl:
        """Algorithm, protocol and hosts fixed for one operation."""
        hosts = math.prod(dims[1:]) if dims else self.hosts or num_ranks
        found = self if hosts == self.hosts else self.model_copy(update={"hosts": hosts})
        algorithm, protocol = found.choose(collective, num_ranks, size_bytes)
        chosen = None if algorithm == "direct" else algorithm
        return found.model_copy(update={"algorithms": chosen, "protocol": protocol})

    def on_few(self, num_ranks: int, few: int) -> Nccl:
        """The same for few hosts: with one rank each where they have one, else with two."""
        all_hosts = self.hosts or num_ranks
        local = num_ranks // all_hosts if num_ranks % all_hosts == 0 else num_ranks
        hosts = 1 if all_hosts == 1 else few // min(local, 2)
        return self.model_copy(update={"hosts": max(hosts, 1), "rings": ()})

    def choose(
        self, collective: Collective, num_ranks: int, size_bytes: int
    ) -> tuple[AlgorithmName, ProtocolName]:
        """What NCCL would take: the least of its estimates; the first of equals."""
        if self.law is not None and self.hosts == 1 and collective in LAWFUL:
            return self._by_law(self.law, collective, num_ranks, size_bytes)
        if collective in DIRECT:
            message = size_bytes // num_ranks if collective is Collective.ALL_TO_ALL else size_bytes
            return "direct", "LL" if message <= _LL_MOST else "Simple"
        law, links = self.law, self.links(num_ranks, alone=self._may_pat(collective, num_ranks))
        alone, kind = links.alone, links.generation

        def expected(algorithm: str, protocol: str) -> float:
            if self.fabric is not None and kind is not None and self.hosts > 1:
                from cosim.pattern.nccl_between import between_us

                declared_us = self.fabric.declared / PS_PER_US
                return between_us(algorithm, protocol, collective, size_bytes, links, kind, declared_us)
            if algorithm == "nvls_tree" and kind is not None:
                return nvls_tree_us(size_bytes, links, kind)
            return estimate_us(algorithm, protocol, collective, size_bytes, links)

        best: tuple[float, AlgorithmName, ProtocolName] | None = None
        if alone:
            best = expected("pat", "Simple"), "pat", "Simple"
        elif law is not None and self._may_nvls_tree(law, collective, links.heads):
            best = expected("nvls_tree", "Simple"), "nvls_tree", "Simple"
        if best is not None and self.algorithms is not None:
            return best[1:]
        for algorithm in ALGORITHMS:
            if algorithm == "tree" and (collective is not Collective.ALL_REDUCE or num_ranks < 3):
                continue
            if algorithm != (self.algorithms or algorithm) and self.algorithms in ALGORITHMS:
                continue
            for protocol in PROTOCOLS:
                if protocol != (self.protocol or protocol):
                    continue
                took = expected(algorithm, protocol)
                if best is None or took < best[0]:
                    best = took, algorithm, protocol
        return best[1:] if best else ("ring", self.protocol or "Simple")

    def links(self, num_ranks: int, *, alone: bool = False) -> Links:
        """What NCCL's estimates go by: of a group's own GPUs the NICs, not of all of its hosts'."""
        law, local = self.law, num_ranks // self.hosts
        kind = None if law is None else law.generation
        if kind is None and law is not None and self.fabric is not None:
            kind = AMPERE
        nics, heads = self.nics_of(local), max(self.heads(local), 1)
        nvlink_rate = self.nvlink_rate if law is None or self.hosts == 1 else law.assumed_rate * 8e6
        network_rate = self.network_rate * nics / (self.rails or nics)
        return Links(
            self.hosts, num_ranks, nvlink_rate, network_rate, alone=alone, heads=heads, generation=kind
        )

    def _may_pat(self, collective: Collective, num_ranks: int) -> bool:
        """Current NCCL, one rank on each of several hosts; other numbers of them than powers of two don't."""
        gathers = collective in (Collective.ALL_GATHER, Collective.REDUCE_SCATTER)
        apart = self.hosts == num_ranks > 1 and num_ranks & (num_ranks - 1) == 0
        chosen = self.algorithms in (None, "pat") and self.protocol in (None, "Simple")
        return gathers and apart and self.law is not None and chosen

    def _may_nvls_tree(self, law: HostLaw, collective: Collective, heads: int) -> bool:
        """Several hosts whose switches add up, two heads or more in each."""
        adds = law.nvls_efficiency > 0 and self.number_bytes > 1
        chosen = self.algorithms in (None, "nvls_tree") and self.protocol in (None, "Simple")
        return collective is Collective.ALL_REDUCE and adds and self.hosts > 1 and heads > 1 and chosen

    def heads(self, local: int) -> int:
        """GPUs of a host by which rings or trees enter it."""
        return min(self.rails or _RAILS, local)

    def nics_of(self, local: int) -> int:
        """NICs that ``local`` GPUs of a host have: as many rings, or pairs of trees, run at once."""
        return min(self.rails or _RAILS, local * self.gpu_nics)

    def _by_law(
        self, law: HostLaw, collective: Collective, num_ranks: int, size_bytes: int
    ) -> tuple[AlgorithmName, ProtocolName]:
        """In one host: as it was measured."""
        whole = whole_bytes(collective, num_ranks, size_bytes)
        way = law.way(collective, num_ranks, whole, self.number_bytes)
        protocol: ProtocolName = self.protocol or ("Simple" if way == "nvls" else way)
        if collective in DIRECT:
            return "direct", protocol
        if protocol == "LL128" and not law.ll128:
            protocol = "Simple"
        if self.algorithms == "nvls" or (way == "nvls" and self.algorithms is None):
            return "nvls", "Simple"
        return "ring", protocol

    def start_ps(
        self, algorithm: AlgorithmName, protocol: ProtocolName, num_ranks: int, size_bytes: int
    ) -> int:
        """From the last arrival to the first byte: more, the more channels have work."""
        if algorithm == "pat":
            return round(pat_start_us(num_ranks) * PS_PER_US)
        if algorithm == "nvls_tree" and self.law is not None:
            return round(self.law.nvls_start * PS_PER_US)
        most = self.channels * channel_bytes(algorithm, protocol, num_ranks)
        more = max(self.latency - self.least_latency, 0)
        return min(self.least_latency, self.latency) + more * min(size_bytes, most) // most

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
        del chunk
        self.check(collective, num_ranks)
        if not self.hosts:
            placed = self.placed(collective, num_ranks, size_bytes, None)
            return placed.build(collective, num_ranks, size_bytes, costs, reverse=reverse, root=root)
        algorithm, protocol = self.choose(collective, num_ranks, size_bytes)
        hosts = self.hosts if num_ranks % self.hosts == 0 else 1
        local = num_ranks // hosts
        wire = Wire(self, algorithm, protocol, local, costs)
        heads = self.heads(local)
        if collective is Collective.ALL_TO_ALL and self.pxn and hosts > 1 and heads > 1:
            from cosim.pattern.nccl_pxn import pxn_all_to_all

            template = pxn_all_to_all(num_ranks, size_bytes, hosts, heads, costs)
        elif algorithm == "direct":
            from cosim.pattern.direct import Direct
            from cosim.pattern.send_recv import SendRecv

            straight = SendRecv() if collective is Collective.SEND_RECV else Direct()
            template = straight.build(collective, num_ranks, size_bytes, costs, reverse=reverse)
            template = replace(template, name="nccl direct")
        elif algorithm == "nvls" or (hosts == 1 and self._mesh_ring(collective, algorithm)):
            from cosim.pattern.direct import Direct

            template = Direct().build(collective, num_ranks, size_bytes, costs, reverse=reverse)
            template = replace(template, name="nccl nvls" if algorithm == "nvls" else "nccl ring")
        elif algorithm == "pat":
            from cosim.pattern.halving_doubling import HalvingDoubling

            template = HalvingDoubling().build(collective, num_ranks, size_bytes, costs)
            template = replace(template, name="nccl pat")
        elif algorithm == "nvls_tree":
            piece = NVLS_CHANNELS * wire.nvls_chunk(size_bytes, hosts)
            from cosim.pattern.nccl_nvls_tree import nvls_tree_template

            template = nvls_tree_template(
                num_ranks, size_bytes, hosts, heads, step_ps=wire.step_ps, piece_bytes=piece, costs=costs
            )
        elif algorithm == "tree":
            trees = 2 * self.nics_of(local)
            pieces = self.pieces
            if self.fabric is not None:
                pieces = min(pieces, max(size_bytes // trees // LEAST_CHUNK, 1))
            from cosim.pattern.nccl_tree import tree_template

            template = tree_template(num_ranks, size_bytes, hosts, trees // 2, pieces, costs)
            if self.gpu_nics > 1:  # both trees of a pair take one NIC
                template = replace(template, channel=(template.chunk % trees // 2).astype(np.int32))
        else:
            rings = self._rings(num_ranks, hosts, costs, reverse=reverse)
            if collective is Collective.BROADCAST:
                pieces = min(max(size_bytes // CHAIN_PIECE, 1), CHAIN_PIECES)
                template = rings.broadcast(size_bytes, root, pieces)
            else:
                template = rings.reduce_or_gather(collective, size_bytes)
        if hosts > 1:
            template = over_nics(template, self.gpu_nics)
        return wire.laid(template, size_bytes)

    def _mesh_ring(self, collective: Collective, algorithm: AlgorithmName) -> bool:
        """Rings over all links of a mesh carry on each what a direct exchange does, which stands for them."""
        from cosim.pattern.direct import Direct

        return self.mesh and not self.rings and algorithm == "ring" and collective in Direct.carries

    def ring_orders(self, num_ranks: int, hosts: int, *, sockets: int = 1) -> I32:
        """int32[rings, ranks]: the orders in which rings pass a group's ranks, all at once.

        ``sockets``: of a host, where NCCL is older than 2.19.3 (:mod:`cosim.pattern.nccl_rings`).

        Raises
        ------
        AlgorithmError
            ``rings`` are of another number of ranks.
        """
        if self.rings and self.rings != "by_links":
            return given_rings(self.rings, num_ranks)
        if hosts == 1:
            return np.arange(num_ranks, dtype=np.int32)[None, :]
        local = num_ranks // hosts
        channels = self.channels if "channels" in self.model_fields_set else self.nics_of(local)
        alternate = self.alternate or False
        return ring_orders(hosts, local, channels, alternate=alternate, mesh=self.mesh, sockets=sockets)

    def _rings(self, num_ranks: int, hosts: int, costs: Costs, *, reverse: bool) -> Rings:
        order = self.ring_orders(num_ranks, hosts)
        return Rings(num_ranks, len(order), costs, reverse=reverse, order=order, name="nccl ring")
