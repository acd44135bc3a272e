"""Scale-up domains: endpoints that reach each other over links marked as such (GPUs of a host, by NVLink)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.errors import TopologyError
from cosim.topology.graph import I64, Topology


def scale_up_links(topology: Topology) -> NDArray[np.bool_]:
    """The links of scale-up domains.

    Raises
    ------
    TopologyError
        There are none, or no others.
    """
    if topology.scale_up is None or topology.scale_up.all():
        what = "nothing but" if topology.scale_up is not None else "no"
        raise TopologyError(
            f"{topology.name} has {what} scale-up links: there is nothing to share out between two networks",
            hint="scale-up links are those to the NVSwitch of hosts (topology.hosts.nvlink_rate), "
            "and links of a graph with scale_up: true",
        )
    return topology.scale_up


def domains(topology: Topology) -> I64:
    """The scale-up domain of each endpoint: the lowest node that it reaches over scale-up links."""
    links = scale_up_links(topology)
    label = np.arange(topology.num_nodes)
    while True:
        before = label.copy()
        np.minimum.at(label, topology.link_dst[links], label[topology.link_src[links]])
        np.minimum.at(label, topology.link_src[links], label[topology.link_dst[links]])
        if (label == before).all():
            return label[: topology.num_endpoints]


@dataclass(frozen=True, slots=True)
class HostShape:
    """What the hosts of a topology have: GPUs, NICs, bits per second of a GPU's scale-up link and of a
    NIC; ``rails``: the NICs lead to several switches; ``link_latency_ps``: from a GPU to the nearest other
    over scale-up links.
    """

    gpus: int
    nics: int
    link_rate_bps: float
    nic_rate_bps: float
    rails: bool = False
    link_latency_ps: int = 0


def host_shape(topology: Topology) -> HostShape | None:
    """The first host's; None: no links are marked as scale-up, or nothing leads out of it."""
    if topology.scale_up is None or topology.scale_up.all():
        return None
    label = domains(topology)
    inside = np.flatnonzero(label == label[0])
    if len(inside) < _LEAST:
        return None
    from_gpu = np.isin(topology.link_src, inside)
    nics = np.unique(topology.link_dst[from_gpu & ~topology.scale_up])
    nics = nics[nics >= topology.num_endpoints]
    out = np.isin(topology.link_src, nics) & (topology.link_dst >= topology.num_endpoints)
    rate = topology.link_rate_bps
    if not len(nics) or not out.any():
        return None
    return HostShape(
        len(inside),
        len(nics),
        float(rate[from_gpu & topology.scale_up].max()),
        float(rate[out].sum()) / len(nics),
        len(np.unique(topology.link_dst[out])) > 1,
        _to_nearest_ps(topology, inside),
    )


def _to_nearest_ps(topology: Topology, inside: I64) -> int:
    """From the first of the GPUs inside to the nearest other one."""
    links = np.flatnonzero(scale_up_links(topology))
    far = np.iinfo(np.int64).max // 2
    reached = np.full(topology.num_nodes, far)
    reached[inside[0]] = 0
    while True:
        before = reached.copy()
        through = reached[topology.link_src[links]] + topology.link_latency_ps[links]
        np.minimum.at(reached, topology.link_dst[links], np.minimum(through, far))
        if (reached == before).all():
            return int(reached[inside[1:]].min())


_LEAST = 2
"""GPUs that make a scale-up domain."""
