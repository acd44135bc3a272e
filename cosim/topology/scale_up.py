"""Scale-up domains: endpoints that reach each other over links marked as such (GPUs of a host, by NVLink)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cosim.errors import TopologyError
from cosim.topology.contract import TopologySpec
from cosim.topology.graph import I64, Topology
from cosim.topology.host_shape import HostShape


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


def host_domains(topology: Topology) -> I64 | None:
    """The scale-up domain of each endpoint: int64[endpoints]; None: there are none, or all are in one."""
    hosts = topology.hosts
    if hosts is not None and 1 < hosts.gpus < topology.num_endpoints:
        return np.arange(topology.num_endpoints, dtype=np.int64) // hosts.gpus
    if topology.scale_up is None or topology.scale_up.all():
        return None
    label = domains(topology)
    return None if (label == label[0]).all() or len(np.unique(label)) == len(label) else label


def host_shape(topology: Topology, spec: TopologySpec | Topology | None = None) -> HostShape | None:
    """What hosts have, on the fabric that ``spec`` names, of which the topology was built.

    As the topology says it; else the first host's, by its links. Where no link is marked as scale-up each
    GPU is a host of its own, if several links lead from it to its fabric. None: it has one, or nothing leads
    out of a host.
    """
    shape = _shape(topology)
    fabric = spec.costs_between_hosts() if isinstance(spec, TopologySpec) else None
    return shape if shape is None or fabric is None else replace(shape, fabric=fabric)


def _shape(topology: Topology) -> HostShape | None:
    if topology.hosts is not None:
        return topology.hosts
    if topology.scale_up is None:
        return _lone_gpu(topology)
    if topology.scale_up.all():
        return None
    label = domains(topology)
    inside = np.flatnonzero(label == label[0])
    if len(inside) < _LEAST:
        return None
    from_gpu = np.isin(topology.link_src, inside)
    uplinks = from_gpu & ~topology.scale_up & (topology.link_dst >= topology.num_endpoints)
    nics = np.unique(topology.link_dst[uplinks])
    others = np.isin(topology.link_dst, nics) & (topology.link_src < topology.num_endpoints) & ~from_gpu
    if others.any():  # GPUs are linked to the fabric's switches themselves: a link is a NIC
        out, count = uplinks, int(uplinks.sum())
    else:
        out = np.isin(topology.link_src, nics) & (topology.link_dst >= topology.num_endpoints)
        count = len(nics)
    rate = topology.link_rate_bps
    if not count or not out.any():
        return None
    return HostShape(
        len(inside),
        count,
        float(rate[from_gpu & topology.scale_up].max()),
        float(rate[out].sum()) / count,
        len(np.unique(topology.link_dst[out])) > 1,
        _to_nearest_ps(topology, inside),
        max(count // len(inside), 1),
    )


def _lone_gpu(topology: Topology) -> HostShape | None:
    """The host of a GPU that has several links to switches, and none to other GPUs."""
    own = topology.link_src == 0
    if not own.any() or (topology.link_dst[own] < topology.num_endpoints).any():
        return None
    rate = topology.link_rate_bps[own]
    nics = int((rate == rate.max()).sum())
    if nics < _LEAST:
        return None
    switches = len(np.unique(topology.link_dst[own]))
    return HostShape(1, nics, 0.0, float(rate.max()), switches > 1, 0, nics, named_only=True)


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
