"""A routing for fabrics with one switch on the way: of the switches that join two GPUs, the last."""

from __future__ import annotations

import numpy as np

from cosim.plugins import I32, I64, Context, Fabric, Paths, RoutingSpec, Topology, TopologyError


class LastLink(RoutingSpec):
    """Two links through a board's switch where there is one, else through the last switch that joins them"""

    def build(self, fabric: Fabric, context: Context) -> Paths:
        return LastLinkPaths()


class LastLinkPaths(Paths):
    name = "last"

    def paths(self, topology: Topology, src: I32, dst: I32, channel: I32) -> tuple[I64, I32]:
        ends = list(zip(topology.link_src.tolist(), topology.link_dst.tolist(), strict=True))
        number = {pair: link for link, pair in enumerate(ends)}
        ptr, links = [0], []
        for one, other in zip(src.tolist(), dst.tolist(), strict=True):
            if one != other:
                via = [b for a, b in ends if a == one and (b, other) in number]
                if not via:
                    raise TopologyError(f"no switch joins {one} and {other}")
                board = [b for b in via if topology.node_names[b].startswith("board")]
                middle = (board or via)[-1]
                links += [number[one, middle], number[middle, other]]
            ptr.append(len(links))
        return np.array(ptr, np.int64), np.array(links, np.int32)
