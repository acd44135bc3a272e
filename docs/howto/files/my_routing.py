"""Sources take the equal paths in turn."""

from itertools import pairwise

import networkx as nx
import numpy as np

from cosim.plugins import Paths, RoutingSpec


class RoundRobinPaths(Paths):
    name = "round_robin"

    def paths(self, topology, src, dst, channel):
        link_of = {
            (a, b): n for n, (a, b) in enumerate(zip(topology.link_src.tolist(), topology.link_dst.tolist()))
        }
        graph = nx.DiGraph(list(link_of))
        found = []
        for a, b, way in zip(src.tolist(), dst.tolist(), channel.tolist()):
            equal = sorted(nx.all_shortest_paths(graph, a, b))
            nodes = equal[(a + way) % len(equal)]
            found.append([link_of[hop] for hop in pairwise(nodes)])
        ptr = np.cumsum([0, *map(len, found)])
        return ptr, np.array([link for links in found for link in links], np.int32)


class RoundRobin(RoutingSpec):
    """The equal path whose number is source plus channel"""

    def build(self, fabric, context):
        return RoundRobinPaths()
