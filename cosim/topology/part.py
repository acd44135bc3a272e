"""A part of a topology: some of its links as a topology of their own, for a network that carries only those.

Endpoints keep their numbers; switches that no link of the part touches are left out. Paths are those of the
whole, so that a flow takes the same links whether the whole or the part is simulated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.errors import UnreachableError
from cosim.topology.graph import I32, I64, Paths, Topology


@dataclass(frozen=True, eq=False)
class PartOf(Paths):
    """Routing of a part: the whole's paths, in the part's link numbers; ``number`` is -1 for other links."""

    whole: Topology
    number: I32

    @property
    def name(self) -> str:
        """The whole's."""
        return self.whole.routing.name

    @property
    def endpoints_forward(self) -> bool:
        """The whole's."""
        return self.whole.routing.endpoints_forward

    def paths(self, topology: Topology, src: I32, dst: I32, channel: I32) -> tuple[I64, I32]:
        """See :class:`~cosim.topology.graph.Paths`.

        Raises
        ------
        UnreachableError
            A path leaves the part.
        """
        ptr, links = self.whole.paths(src, dst, channel)
        mine: Any = self.number[links]
        if (mine < 0).any():
            row = int(np.searchsorted(ptr, np.flatnonzero(mine < 0)[0], side="right")) - 1
            names = topology.node_names
            raise UnreachableError(
                f"the path from {names[src[row]]} to {names[dst[row]]} leaves {topology.name}"
            )
        return ptr, mine

    def around(
        self, topology: Topology, dead: NDArray[np.bool_], src: I32, dst: I32, channel: I32
    ) -> tuple[I64, I32]:
        """See :class:`~cosim.topology.graph.Paths`: the whole's ways round that stay within the part."""
        del topology
        theirs = np.zeros(self.whole.num_links, np.bool_)
        theirs[self.number >= 0] = dead
        ptr, links = self.whole.routing.around(self.whole, theirs, src, dst, channel)
        mine, row = self.number[links], np.repeat(np.arange(len(src)), np.diff(ptr))
        stays = np.ones(len(src), np.bool_)
        stays[row[mine < 0]] = False
        sizes = np.where(stays, np.diff(ptr), 0)
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]), mine[stays[row]]

    @property
    def has_alternatives(self) -> bool:
        """The whole's."""
        return self.whole.routing.has_alternatives

    def alternatives(self, topology: Topology, src: I32, dst: I32, most: int) -> tuple[I64, I64, I32]:
        """See :class:`~cosim.topology.graph.Paths`: those of the whole that stay within the part."""
        count, ptr, links = self.whole.routing.alternatives(self.whole, src, dst, most)
        mine = self.number[links]
        pair = np.repeat(np.arange(len(src)), count)
        stays = np.ones(len(pair), np.bool_)
        stays[np.repeat(np.arange(len(pair)), np.diff(ptr))[mine < 0]] = False
        kept = np.bincount(pair[stays], minlength=len(src)).astype(np.int64)
        if (kept == 0).any():
            self.paths(topology, src, dst, np.zeros(len(src), np.int32))  # says which of them leaves it
        sizes = np.diff(ptr)[stays]
        return (
            kept,
            np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]),
            mine[np.repeat(stays, np.diff(ptr))],
        )


def part_of(whole: Topology, links: NDArray[np.bool_], name: str) -> Topology:
    """The links chosen by a mask; ``link_number`` of the part says what they are in the whole."""
    chosen = np.flatnonzero(links).astype(np.int32)
    used = np.zeros(whole.num_nodes, np.bool_)
    used[: whole.num_endpoints] = True
    used[whole.link_src[chosen]] = used[whole.link_dst[chosen]] = True
    node = (np.cumsum(used) - 1).astype(np.int32)
    number = np.full(whole.num_links, -1, np.int32)
    number[chosen] = np.arange(len(chosen))
    return Topology(
        name=f"{name} of {whole.name}",
        num_endpoints=whole.num_endpoints,
        node_names=tuple(whole.node_names[k] for k in np.flatnonzero(used).tolist()),
        link_src=node[whole.link_src[chosen]],
        link_dst=node[whole.link_dst[chosen]],
        link_rate_bps=whole.link_rate_bps[chosen],
        link_latency_ps=whole.link_latency_ps[chosen],
        routing=PartOf(whole, number),
        dims=(whole.num_endpoints,),
        link_number=chosen,
        changes=None if whole.changes is None else whole.changes.part(number),
    )
