"""Paths on random graphs of hosts, NICs and switches against routing as it is defined, without tables."""

from __future__ import annotations

import numpy as np
import pytest

from cosim.errors import UnreachableError
from cosim.topology.graph import Topology
from cosim.topology.routing import DModKPaths, ShortestPaths

FAR = 1 << 30


class Wiring:
    """A random graph: endpoints first, then switches, then NVSwitches and NICs; some links one-way."""

    def __init__(self, seed: int) -> None:
        self.draw = np.random.default_rng(seed)
        self.endpoints = int(self.draw.integers(2, 12))
        self.switches = self.endpoints + np.arange(int(self.draw.integers(1, 7)))
        self.nodes = self.endpoints + len(self.switches)
        self.dear = bool(self.draw.random() < 0.3)
        self.links: list[tuple[int, int, int]] = []
        for one in self.switches.tolist():
            for other in range(self.endpoints, one):
                if self.draw.random() < 0.5:
                    self.join(one, other)
        if self.draw.random() < 0.7:
            self.hosts(int(self.draw.integers(1, 4)))
        else:
            for endpoint in range(self.endpoints):
                for switch in self.draw.choice(self.switches, self.draw.integers(1, 3)).tolist():
                    self.join(endpoint, switch)

    def join(self, one: int, other: int) -> None:
        """Both ways, mostly."""
        for link in ((one, other), (other, one)):
            if self.draw.random() < 0.95:
                self.links.append((*link, int(self.draw.integers(1, 4)) if self.dear else 1))

    def hosts(self, gpus: int) -> None:
        for first in range(0, self.endpoints, gpus):
            nvswitch = self.nodes
            self.nodes += 1
            for gpu in range(first, min(first + gpus, self.endpoints)):
                self.join(gpu, nvswitch)
                for _ in range(int(self.draw.integers(1, 3))):
                    nic = self.nodes
                    self.nodes += 1
                    self.join(gpu, nic)
                    for switch in self.draw.choice(self.switches, 1 + (self.draw.random() < 0.2)).tolist():
                        self.join(nic, switch)

    def topology(self, routing: ShortestPaths | DModKPaths) -> Topology:
        src, dst, _ = np.array(self.links, np.int32).reshape(-1, 3).T
        names = tuple(f"node{k}" for k in range(self.nodes))
        columns = np.ascontiguousarray(src), np.ascontiguousarray(dst)
        count = len(src)
        return Topology(
            "random", self.endpoints, names, *columns, np.ones(count), np.zeros(count, np.int64), routing
        )

    def left(self, goal: int) -> list[int]:
        """The cost from each node to a destination, through nodes that forward."""
        left = [FAR] * self.nodes
        left[goal] = 0
        for _ in range(self.nodes):
            for src, dst, cost in self.links:
                if dst == goal or dst >= self.endpoints:
                    left[src] = min(left[src], cost + left[dst])
        return left

    def path(self, src: int, goal: int, by_destination: bool) -> list[int] | None:
        """The lowest link on a cheapest way, or the one that the destination's digits pick."""
        left, node, digits = self.left(goal), src, goal
        if left[src] >= FAR:
            return None
        path = []
        while node != goal:
            out = [
                (cost + left[dst], number)
                for number, (tail, dst, cost) in enumerate(self.links)
                if tail == node and (dst == goal or dst >= self.endpoints)
            ]
            ways = [number for cost, number in out if cost == min(out)[0]]
            taken = ways[digits % len(ways)] if by_destination else ways[0]
            digits //= len(ways)
            path.append(taken)
            node = self.links[taken][1]
        return path


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("by_destination", [False, True])
def test_paths_are_those_of_the_definition(seed: int, by_destination: bool) -> None:
    wiring = Wiring(seed)
    cost = np.array([cost for *_, cost in wiring.links], np.int32)
    routing = (DModKPaths if by_destination else ShortestPaths)(False, cost)
    topology = wiring.topology(routing)
    for src in range(wiring.endpoints):
        for dst in range(wiring.endpoints):
            one = np.array([src], np.int32), np.array([dst], np.int32), np.zeros(1, np.int32)
            expected = wiring.path(src, dst, by_destination)
            if expected is None:
                with pytest.raises(UnreachableError):
                    topology.paths(*one)
            else:
                assert topology.paths(*one)[1].tolist() == expected
