"""Cheapest paths in plain Python, where the kernel can't be loaded: those of ``routing.c``, slowly.

Distances are found for each goal by Dijkstra's search. At each node the candidates are the links on a
cheapest way, in link order; which is taken is said in :mod:`cosim.topology.routing`.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise

import numpy as np

from cosim.kernel import kernel
from cosim.topology.graph import I32, I64
from cosim.topology.hop_tables import HopTables, pointer

_WORD = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_FAR = 1 << 30
_MOST_HOPS, _TRIES_PER_PATH, _MANY_PATHS = 64, 4, 1 << 40


def find_paths(
    tables: HopTables, src: I32, dst: I32, channel: I32, choice: int, seed: int
) -> tuple[I64, I32] | int:
    """Links of a path for each flow, as ptr and links; or the number of the first without one."""
    graph, found, hops = _CheapestWays(tables), [], [0]
    for k, (one, goal, row) in enumerate(zip(src.tolist(), dst.tolist(), channel.tolist(), strict=True)):
        who = _Traveller.of(tables, one, goal, row, choice, seed)
        links = graph.follow(one, goal, who)
        if links is None:
            return k
        found += links
        hops.append(len(links))
    return np.cumsum(np.array(hops, np.int64)), np.array(found, np.int32)


def find_equal_paths(tables: HopTables, src: I32, dst: I32, most: int) -> tuple[I64, I64, I32] | int:
    """No more than ``most`` cheapest paths of each pair: how many, ptr and links; or a pair without one."""
    graph = _CheapestWays(tables)
    counts, paths = [], []
    for pair, (one, goal) in enumerate(zip(src.tolist(), dst.tolist(), strict=True)):
        found = graph.equal_paths(one, goal, most)
        if found is None:
            return pair
        counts.append(len(found))
        paths += found
    ptr = pointer([len(path) for path in paths])
    return np.array(counts, np.int64), ptr, np.array([link for path in paths for link in path], np.int32)


class _CheapestWays:
    """A topology's links, and distances to the goals that were asked for."""

    def __init__(self, tables: HopTables) -> None:
        self._tails, self._heads = tables.link_src.tolist(), tables.link_dst.tolist()
        self._cost, self._last = tables.cost.tolist(), tables.last_link.tolist()
        self._out = _lists(tables.out_ptr, tables.out_link)
        self._in = _lists(tables.in_ptr, tables.in_link)
        self._to: dict[int, dict[int, int]] = {}

    def _distances(self, goal: int) -> dict[int, int]:
        """To a goal, from each node that forwards and reaches it."""
        if goal in self._to:
            return self._to[goal]
        found, ahead = {goal: 0}, [(0, goal)]
        while ahead:
            so_far, node = heappop(ahead)
            if so_far > found[node]:
                continue
            for link in self._in[node]:
                tail, far = self._tails[link], so_far + self._cost[link]
                if far < found.get(tail, _FAR):
                    found[tail] = far
                    heappush(ahead, (far, tail))
        self._to[goal] = found
        return found

    def _ways(self, node: int, goal: int) -> tuple[int, list[int]]:
        """How far it is from a node, and the links on a cheapest way."""
        left = self._distances(goal)
        costs = [(self._cost[link] + left.get(self._heads[link], _FAR), link) for link in self._out[node]]
        best = min([far for far, _ in costs if far < _FAR], default=_FAR)
        return best, [link for far, link in costs if far == best < _FAR]

    def _is_last(self, node: int, goal: int) -> bool:
        last = self._last[goal]
        return bool(last >= 0 and self._tails[last] == node)

    def follow(self, src: int, goal: int, who: _Traveller) -> list[int] | None:
        """A traveller's links; None: there is no path."""
        node, links = src, []
        whole = self._ways(src, goal)[0] if src != goal else 0
        while node != goal:
            if self._is_last(node, goal):
                links.append(self._last[goal])
            else:
                left, ways = self._ways(node, goal)
                if not ways:
                    return None
                links.append(ways[who.choose(node, node == src, 2 * left <= whole, len(ways))])
            node = self._heads[links[-1]]
        return links

    def _numbered(self, src: int, goal: int, number: int) -> tuple[list[int], int, int] | None:
        """The links of the path with a number, the product of ways at its nodes, and what is left of it."""
        node, links, product = src, list[int](), 1
        while node != goal:
            if len(links) == _MOST_HOPS:
                return None
            if self._is_last(node, goal):
                links.append(self._last[goal])
            else:
                _, ways = self._ways(node, goal)
                if not ways:
                    return None
                number, digit = divmod(number, len(ways))
                links.append(ways[digit])
                product = min(product * len(ways), _MANY_PATHS)
            node = self._heads[links[-1]]
        return links, product, number

    def equal_paths(self, src: int, goal: int, wanted: int) -> list[list[int]] | None:
        """Cheapest paths, each once; None: there is none."""
        found: list[list[int]] = []
        number, total, start, tries = 0, 1, 0, 1
        while number < total and len(found) < wanted and tries <= _TRIES_PER_PATH * wanted:
            path = self._numbered(src, goal, (start + number) % total)
            number += 1
            if path is None:
                return None
            links, product, rest = path
            total = max(total, product)
            if tries == 1 and total > wanted:
                start = (_mix(_mix(src + _GOLDEN) + goal) >> 24) % total
                number = 0
            elif rest == 0 and not (start > 0 and links in found):
                found.append(links)
            tries += 1
        return found


@dataclass
class _Traveller:
    """A flow on its way, and what says which of several ways it takes."""

    choice: int
    channel: int
    pair: int
    hash: int
    digits: int
    nic: int | None = None

    @classmethod
    def of(cls, tables: HopTables, src: int, dst: int, channel: int, choice: int, seed: int) -> _Traveller:
        """Before its first step."""
        pair = _mix(_mix(_mix(seed + _GOLDEN) + src) + dst)
        by_goal = choice == kernel.WAY_BY_DESTINATION
        digits = int(tables.place_of[dst]) if by_goal else channel
        return cls(choice, max(channel, 0), pair, _mix(pair + channel), digits)

    def choose(self, node: int, is_source: bool, is_near: bool, ways: int) -> int:
        """Which of so many ways it takes at a node; ``is_near``: half of its way is behind it."""
        if ways == 1:
            return 0
        by_channel = self.choice == kernel.WAY_BY_CHANNEL
        if self.nic is None and (is_source or by_channel):
            hashed = self.choice == kernel.HASHED_WAY
            nic = _hashed(_mix(self.pair), node, ways) if hashed else self._at_switch(node, ways)
            self.nic = nic if by_channel else (nic + self.channel) % ways
            return self.nic
        if self.nic is None:
            return self._at_switch(node, ways)
        if is_near:
            if self.choice == kernel.WAY_BY_DESTINATION:
                return (self._at_switch(node, ways) + self.channel) % ways
            return self.nic % ways
        return self.channel % ways if self.choice == kernel.FIRST_WAY else self._at_switch(node, ways)

    def _at_switch(self, node: int, ways: int) -> int:
        if self.choice == kernel.FIRST_WAY:
            return 0
        if self.choice == kernel.HASHED_WAY:
            return _hashed(self.hash, node, ways)
        self.digits, chosen = divmod(self.digits, ways)
        return chosen


def _lists(ptr: I64, links: I32) -> list[list[int]]:
    ends = ptr.tolist()
    return [links[a:b].tolist() for a, b in pairwise(ends)]


def _hashed(seed: int, node: int, ways: int) -> int:
    return ((_mix(seed + node * _GOLDEN) >> 32) * ways) >> 32


def _mix(x: int) -> int:
    """splitmix64's finaliser (Steele, Lea and Flood, doi:10.1145/2714064.2660195)."""
    x &= _WORD
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & _WORD
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & _WORD
    return x ^ (x >> 31)
