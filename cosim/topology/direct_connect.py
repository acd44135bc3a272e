"""Direct connect: servers linked to one another without switches, as TopoOpt does with a patch panel.

Server i is linked both ways to i + s and i - s for each stride s; ``pairs`` are links of their own besides.
Servers forward, over the fewest links. Several links between two servers are one of their summed rate.
Source: W. Wang et al., "TopoOpt: Co-optimizing Network Topology and Parallelization Strategy for Distributed
Training Jobs", NSDI 2023, arXiv 2202.00433. Not modelled: what a server's NIC or processor takes to forward.
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from cosim.context import Context
from cosim.topology.builder import Builder
from cosim.topology.contract import Count, Latency, Rate, TopologySpec
from cosim.topology.graph import Topology
from cosim.topology.strides import best, connects, hops, spread

Stride = Annotated[int, Field(ge=1)]
Pair = Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=2, max_length=2)]


class DirectConnect(TopologySpec):
    """Servers linked to one another by strides and pairs, without switches (TopoOpt)"""

    servers: int = Field(ge=2, le=1 << 14, description="Servers: endpoints, each of one rank.")
    degree: Count = Field(description="Links of each server; a stride takes two.")
    rate: Rate = Field(description="Rate of each link, per direction.")
    latency: Latency = Field(description="Latency of each link.")
    strides: Literal["auto", "best"] | list[Stride] = Field(
        "auto",
        description="auto (the paper's rule), best (of all that could be, the fewest hops), or a list.",
    )
    group: int | None = Field(
        None, ge=2, description="Ranks of the groups whose rings strides are for; omitted: all servers."
    )
    pairs: list[Pair] = Field([], description="[a, b] each: servers with a link besides; as often as listed.")

    @model_validator(mode="after")
    def _can_be(self) -> Self:
        n, group = self.servers, self.group or self.servers
        if n % group:
            near = [g for g in range(2, n + 1) if n % g == 0]
            raise ValueError(f"{n} servers are no whole number of groups of {group}; these are: {near[:12]}")
        for a, b in self.pairs:
            if a == b or max(a, b) >= n:
                raise ValueError(f"pairs has [{a}, {b}]; it should be two servers from 0 to {n - 1}")
        if self._pair_links() > self.degree:
            raise ValueError(
                f"pairs give a server {self._pair_links()} links; degree {self.degree} is the most"
            )
        left = self.degree - self._pair_links()
        if isinstance(self.strides, str):
            if left % 2:
                raise ValueError(
                    f"degree {self.degree} leaves an odd number of links, {left}, for strides, which take "
                    f"two each; make it {self.degree + 1}"
                )
            if self.strides == "best" and best(n, group, left // 2) is None:
                raise ValueError(f"best: {left // 2} strides of {n} servers are too many to try; take auto")
        elif wrong := [s for s in self.strides if s >= n or self.strides.count(s) > 1]:
            raise ValueError(f"strides has {wrong[0]}; each should be there once, from 1 to {n - 1}")
        elif 2 * len(self.strides) > left:
            raise ValueError(
                f"{len(self.strides)} strides take {2 * len(self.strides)} links of each server, and degree "
                f"{self.degree} leaves {left}"
            )
        if not connects(n, self.chosen, self.pairs):
            raise ValueError(
                f"strides {self.chosen} don't connect {n} servers: all are multiples of a number that "
                f"divides {n}; add one that isn't, such as 1, or pairs"
            )
        return self

    def _pair_links(self) -> int:
        """Links of pairs at the server that has most."""
        return max(Counter(end for pair in self.pairs for end in pair).values(), default=0)

    @property
    def chosen(self) -> list[int]:
        """The strides."""
        if not isinstance(self.strides, str):
            return self.strides
        count = (self.degree - self._pair_links()) // 2
        choose = spread if self.strides == "auto" else best
        return list(choose(self.servers, self.group or self.servers, count) or ())

    def size_about(self) -> int:
        """See :class:`~cosim.topology.contract.TopologySpec`."""
        return self.servers * self.degree

    def build(self, context: Context) -> Topology:
        """The topology, strides before pairs."""
        n, strides = self.servers, self.chosen
        builder = Builder(f"server{i}" for i in range(n))
        links: Counter[tuple[int, int]] = Counter()
        for stride in strides:
            links.update((i, (i + stride) % n) for i in range(n))
            links.update((i, (i - stride) % n) for i in range(n))
        for a, b in self.pairs:
            links.update(((a, b), (b, a)))
        for times in sorted(set(links.values())):
            ends = np.array([pair for pair, count in links.items() if count == times])
            builder.link(ends[:, 0], ends[:, 1], self.rate * times, self.latency)
        diameter, mean = hops(n, strides)
        info: dict[str, Any] = {"strides": strides}
        if not self.pairs:
            info |= {"diameter": diameter, "mean_hops": mean}
        name = f"direct-connect {n} (strides {', '.join(map(str, strides)) or 'none'})"
        return builder.topology(name, self.routing, context, endpoints_forward=True, info=info)

    def idle_settings(self) -> list[tuple[str, str]]:
        """``group``, where strides are given."""
        if self.group is not None and not isinstance(self.strides, str):
            return [("group", "strides are given")]
        return []
