"""Any topology as InfraGraph YAML, which :class:`~cosim.formats.infragraph.topology.InfraGraph` reads back.

One device has all nodes: endpoints are xpu, all else is switch. Links of one rate and latency have one name;
several links between two nodes have several. Not InfraGraph's to say, and so lost: names of nodes, the
routing and its costs, ``endpoints_forward``, which links are scale-up.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from typing import Any

import yaml

from cosim.errors import TopologyError
from cosim.topology.graph import Topology


def write_infragraph(topology: Topology) -> str:
    """The text of the file.

    Raises
    ------
    TopologyError
        A link goes one way only, or is not alike both ways: InfraGraph's links are.
    """
    names: dict[tuple[float, int, int], str] = {}
    edges = []
    for a, b, rate, latency, number in _both_ways(topology):
        name = names.setdefault((rate, latency, number), f"link{len(names)}")
        ends = ({"component": _component(topology, node)} for node in (a, b))
        edges.append({"ep1": next(ends), "ep2": next(ends), "scheme": "one2one", "link": name})
    n = topology.num_endpoints
    components = [{"name": "xpu", "count": n, "choice": "xpu"}]
    if topology.num_nodes > n:
        components.append({"name": "switch", "count": topology.num_nodes - n, "choice": "switch"})
    device = {
        "name": "fabric",
        "components": components,
        "links": [_link(name, rate, latency) for (rate, latency, _), name in names.items()],
        "edges": edges,
    }
    whole = {
        "name": re.sub(r"[^\w ()\[\]<>-]", "-", topology.name, flags=re.ASCII),
        "devices": [device],
        "instances": [{"name": "fabric", "device": "fabric", "count": 1}],
    }
    return yaml.safe_dump(whole, sort_keys=False, default_flow_style=None, width=110)


def _both_ways(topology: Topology) -> list[tuple[int, int, float, int, int]]:
    """(Node, node, rate, latency, which of equal ones) of each pair of links."""
    count: dict[tuple[int, int, float, int], int] = defaultdict(int)
    columns = (topology.link_src, topology.link_dst, topology.link_rate_bps, topology.link_latency_ps)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    every = Counter(rows)
    found = []
    for row in rows:
        a, b, rate, latency = row
        if every[row] != every[b, a, rate, latency]:
            raise TopologyError(
                f"the link {topology.node_names[a]} -> {topology.node_names[b]} has no equal the other way, "
                "and links of InfraGraph go both ways"
            )
        if a < b:
            found.append((a, b, rate, latency, count[row]))
            count[row] += 1
    return found


def _component(topology: Topology, node: int) -> str:
    n = topology.num_endpoints
    return f"xpu[{node}]" if node < n else f"switch[{node - n}]"


def _link(name: str, rate_bps: float, latency_ps: int) -> dict[str, Any]:
    physical: dict[str, Any] = {
        "bandwidth": {"choice": "gigabits_per_second", "gigabits_per_second": _giga(rate_bps)},
        "latency": {"choice": "ns", "ns": latency_ps / 1000},
    }
    return {"name": name, "physical": physical}


def _giga(rate_bps: float) -> float:
    """Gbps as a number that is read back as exactly this rate, where there is one."""
    near = rate_bps / 1e9
    tried = (near, math.nextafter(near, math.inf), math.nextafter(near, 0.0))
    return next((one for one in tried if one * 1e9 == rate_bps), near)
