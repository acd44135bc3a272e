"""Where the links of each row are now: its own path, or one around links that routing knows to be dead.

A row keeps its own path unless a dead link is on it, and comes back to it when the link does.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cosim.network.flows import I32, I64
from cosim.topology.graph import Topology

_Found = tuple[int, I64, I64]
"""How many rows were looked at; rows that have a detour, and where its links are."""


class Detours:
    """Rows that got a path, and their detours."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._row = np.zeros(0, np.int64)
        self._ends = np.zeros((3, 0), np.int32)
        self._bound: list[tuple[int, I32, I32, I32]] = []
        self._found: dict[tuple[int, ...], _Found] = {}
        self.dead: tuple[int, ...] = ()

    def copy(self) -> Detours:
        """For a network that looks ahead: what it finds meanwhile is forgotten."""
        other = Detours(self._topology)
        vars(other).update(vars(self), _found=dict(self._found), _bound=list(self._bound))
        return other

    def add(self, first: int, src: I32, dst: I32, channel: I32) -> None:
        """Rows from ``first`` on got their own paths."""
        self._bound.append((first, src, dst, channel))

    def places(self, ptr: I64, links: I32, append: Callable[[I64, I32], int]) -> tuple[I64, I64]:
        """Rows that take another path now, and its place, by the network's ``ptr`` and ``links``, to which
        ``append`` adds paths and says where.
        """
        none = np.zeros(0, np.int64)
        if not self.dead:
            return none, none
        self._gather()
        begin, rows, places = self._found.get(self.dead, (0, none, none))
        if begin == len(self._row):
            return rows, places
        dead = np.zeros(self._topology.num_links, np.bool_)
        dead[list(self.dead)] = True
        on = np.concatenate([[0], np.cumsum(dead[links])])
        new = self._row[begin:]
        hit = begin + np.flatnonzero(on[ptr[new + 1]] > on[ptr[new]])
        routing = self._topology.routing
        found, way = routing.around(self._topology, dead, *self._ends[:, hit])
        first = append(found, way)
        there = np.flatnonzero(np.diff(found))
        rows = np.concatenate([rows, self._row[hit[there]]])
        places = np.concatenate([places, first + there])
        self._found[self.dead] = len(self._row), rows, places
        return rows, places

    def _gather(self) -> None:
        """Have rows that were bound since as columns, too."""
        if self._bound:
            rows = [first + np.arange(len(src)) for first, src, _, _ in self._bound]
            ends = [np.stack(one[1:]) for one in self._bound]
            self._row = np.concatenate([self._row, *rows])
            self._ends = np.concatenate([self._ends, *ends], axis=1)
            self._bound = []
